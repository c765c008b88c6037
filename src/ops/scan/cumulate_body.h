/* One strip of a scan: FOLD(h, x, y) makes the next h, of type ACC, from the elements x and y, of type T. */
static void NAME(const strip *s)
{
    const T *x = s->x;
    const T *y = s->y;
    T *out = s->out;
    ACC h[STRIP];
    (void)y;
    for (int64_t c = 0; c < s->width; c++) h[c] = (ACC)(out[s->at + c] = x[s->at + c]);
    for (int64_t i = 1; i < s->n; i++) {
        int64_t at = s->at + i * s->step;
        for (int64_t c = 0; c < s->width; c++) {
            h[c] = FOLD(h[c], (ACC)x[at + c], (ACC)y[at + c + s->lag]);
            out[at + c] = (T)h[c];
        }
    }
}

#undef T
#undef ACC
#undef NAME
