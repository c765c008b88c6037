/* sgd_body.h: the loops of SGD for elements of type T, one for each choice of options; included by optim_cpu.c. The
   formulas are in sgd.c. */
CN__INLINE void NAME(sgd)(const cn_loop *l, bool decays)
{
    const T *p = l->in[0], *g = l->in[1];
    T *p_out = l->out;
    const cn_arg *a = l->args;
    const T lr = (T)a[CN__SGD_LR].f, decay = (T)a[CN__SGD_DECAY].f, sign = (T)a[CN__SGD_SIGN].f;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) {
        T slope = decays ? sign * g[i] + decay * p[i] : sign * g[i];
        p_out[i] = p[i] - lr * slope;
    }
}

static void NAME(sgd_step_loop)(const cn_loop *l)
{
    if ((T)l->args[CN__SGD_DECAY].f != 0) NAME(sgd)(l, true);
    else NAME(sgd)(l, false);
}

CN__INLINE void NAME(momentum)(const cn_loop *l, bool decays, bool nesterov)
{
    const T *p = l->in[0], *g = l->in[1], *b = l->in[2];
    T *p_out = l->out, *b_out = l->more[0];
    const cn_arg *a = l->args;
    const T lr = (T)a[CN__SGD_LR].f, decay = (T)a[CN__SGD_DECAY].f, sign = (T)a[CN__SGD_SIGN].f;
    const T momentum = (T)a[CN__SGD_MOMENTUM].f, fresh = (T)a[CN__SGD_FRESH].f;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) {
        T slope = decays ? sign * g[i] + decay * p[i] : sign * g[i];
        T moved = b[i] * momentum + fresh * slope;
        p_out[i] = p[i] - lr * (nesterov ? slope + momentum * moved : moved);
        b_out[i] = moved;
    }
}

static void NAME(momentum_step_loop)(const cn_loop *l)
{
    const bool decays = (T)l->args[CN__SGD_DECAY].f != 0, nesterov = l->args[CN__SGD_NESTEROV].f != 0;
    if (nesterov) NAME(momentum)(l, decays, true);
    else if (decays) NAME(momentum)(l, true, false);
    else NAME(momentum)(l, false, false);
}
