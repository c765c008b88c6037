/* SGD for elements of type T; see sgd.c. */
static void NAME(sgd_step_loop)(const cn_loop *l)
{
    const T *p = l->in[0], *g = l->in[1];
    T *p_out = l->out;
    const cn_arg *a = l->args;
    const T lr = (T)a[CN__SGD_LR].f, decay = (T)a[CN__SGD_DECAY].f, sign = (T)a[CN__SGD_SIGN].f;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) {
        T slope = decay != 0 ? sign * g[i] + decay * p[i] : sign * g[i];
        p_out[i] = p[i] - lr * slope;
    }
}

static void NAME(momentum_step_loop)(const cn_loop *l)
{
    const T *p = l->in[0], *g = l->in[1], *b = l->in[2];
    T *p_out = l->out, *b_out = l->more[0];
    const cn_arg *a = l->args;
    const T lr = (T)a[CN__SGD_LR].f, decay = (T)a[CN__SGD_DECAY].f, sign = (T)a[CN__SGD_SIGN].f;
    const T momentum = (T)a[CN__SGD_MOMENTUM].f, fresh = (T)a[CN__SGD_FRESH].f;
    const bool nesterov = a[CN__SGD_NESTEROV].f != 0;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) {
        T slope = decay != 0 ? sign * g[i] + decay * p[i] : sign * g[i];
        T moved = b[i] * momentum + fresh * slope;
        p_out[i] = p[i] - lr * (nesterov ? slope + momentum * moved : moved);
        b_out[i] = moved;
    }
}
