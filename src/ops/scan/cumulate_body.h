/* cumulate_body.h: one strip of a scan: FOLD(h, x, y) makes the next h, of type ACC, from the elements x and y, of type
   T. */
#if IS_FLOAT
#define ACC double
#else
#define ACC U
#endif

static void FOLDED(strip)(const strip *s)
{
    const T *x = s->x;
    const T *y = s->y;
    T *out = s->out;
    (void)y;
    if (s->width == 1) { /* h stays in a register */
        ACC h = (ACC)(out[s->at] = x[s->at]);
        for (int64_t i = 1, at = s->at + s->step; i < s->n; i++, at += s->step)
            out[at] = (T)(h = FOLD(h, (ACC)x[at], (ACC)y[at + s->lag]));
        return;
    }
    ACC h[STRIP];
    for (int64_t c = 0; c < s->width; c++) h[c] = (ACC)(out[s->at + c] = x[s->at + c]);
    for (int64_t i = 1, at = s->at + s->step; i < s->n; i++, at += s->step)
        for (int64_t c = 0; c < s->width; c++)
            out[at + c] = (T)(h[c] = FOLD(h[c], (ACC)x[at + c], (ACC)y[at + c + s->lag]));
}

#undef ACC
