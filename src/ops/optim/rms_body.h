/* rms_body.h: the loops of RMSprop and Adadelta for elements of type T; included by optim_cpu.c. The formulas are in
   rms.c. */
#define NUMBER(which) ((T)l->args[which].f)

CN__INLINE void NAME(rmsprop)(const cn_loop *l, bool centered, bool heavy)
{
    const T *p = l->in[0], *g = l->in[1], *v = l->in[2], *c = l->in[3], *b = l->in[3 + centered];
    T *p_out = l->out, *v_out = l->more[0], *c_out = l->more[1], *b_out = l->more[1 + centered];
    const T rate = NUMBER(CN__RMS_RATE), alpha = NUMBER(CN__RMS_ALPHA), fresh = (T)(1 - l->args[CN__RMS_ALPHA].f);
    const T eps = NUMBER(CN__RMS_EPS), decay = NUMBER(CN__RMS_DECAY), momentum = NUMBER(CN__RMS_MOMENTUM);
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) {
        T slope = decay != 0 ? g[i] + decay * p[i] : g[i], square = v[i] * alpha + fresh * slope * slope, size = square;
        if (centered) {
            T away = slope - c[i], mean = fresh < (T)0.5 ? c[i] + fresh * away : slope - away * (1 - fresh);
            size = square - mean * mean;
            c_out[i] = mean;
        }
        T way = slope / (SQRT(size) + eps);
        if (heavy) b_out[i] = way = b[i] * momentum + way;
        p_out[i] = p[i] - rate * way;
        v_out[i] = square;
    }
}

static void NAME(rmsprop_step_loop)(const cn_loop *l) { NAME(rmsprop)(l, false, false); }
static void NAME(rmsprop_momentum_step_loop)(const cn_loop *l) { NAME(rmsprop)(l, false, true); }
static void NAME(rmsprop_centered_step_loop)(const cn_loop *l) { NAME(rmsprop)(l, true, false); }
static void NAME(rmsprop_centered_momentum_step_loop)(const cn_loop *l) { NAME(rmsprop)(l, true, true); }

static void NAME(adadelta_step_loop)(const cn_loop *l)
{
    const T *p = l->in[0], *g = l->in[1], *v = l->in[2], *d = l->in[3];
    T *p_out = l->out, *v_out = l->more[0], *d_out = l->more[1];
    const T rate = NUMBER(CN__RMS_RATE), rho = NUMBER(CN__RMS_ALPHA), fresh = (T)(1 - l->args[CN__RMS_ALPHA].f);
    const T eps = NUMBER(CN__RMS_EPS), decay = NUMBER(CN__RMS_DECAY);
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) {
        T slope = decay != 0 ? g[i] + decay * p[i] : g[i], square = v[i] * rho + fresh * slope * slope;
        T way = SQRT(d[i] + eps) / SQRT(square + eps) * slope;
        p_out[i] = p[i] - rate * way;
        v_out[i] = square;
        d_out[i] = d[i] * rho + fresh * way * way;
    }
}
#undef NUMBER
