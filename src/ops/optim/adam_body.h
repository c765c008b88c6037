/* adam_body.h: the loops of Adam for elements of type T; included by optim_cpu.c. The formulas are in adam.c. */
CN__INLINE void NAME(adam)(const cn_loop *l, bool largest)
{
    const T *p = l->in[0], *g = l->in[1], *m = l->in[2], *v = l->in[3], *top = largest ? l->in[4] : NULL;
    T *p_out = l->out, *m_out = l->more[0], *v_out = l->more[1], *top_out = largest ? l->more[2] : NULL;
    const cn_arg *a = l->args;
    const T rate = (T)a[CN__ADAM_RATE].f, root = (T)a[CN__ADAM_ROOT].f, eps = (T)a[CN__ADAM_EPS].f;
    const T beta2 = (T)a[CN__ADAM_BETA2].f, fresh2 = (T)(1 - a[CN__ADAM_BETA2].f);
    const T fresh1 = (T)(1 - a[CN__ADAM_BETA1].f);
    const T decay = (T)a[CN__ADAM_DECAY].f, shrink = (T)a[CN__ADAM_SHRINK].f, sign = (T)a[CN__ADAM_SIGN].f;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) {
        T slope = decay != 0 ? sign * g[i] + decay * p[i] : sign * g[i], away = slope - m[i];
        T mean = fresh1 < (T)0.5 ? m[i] + fresh1 * away : slope - away * (1 - fresh1);
        T square = v[i] * beta2 + fresh2 * slope * slope;
        T size = largest ? MAX(top[i], square) : square;
        p_out[i] = p[i] * shrink - rate * mean / (SQRT(size) / root + eps);
        m_out[i] = mean;
        v_out[i] = square;
        if (largest) top_out[i] = size;
    }
}

static void NAME(adam_step_loop)(const cn_loop *l) { NAME(adam)(l, false); }
static void NAME(amsgrad_step_loop)(const cn_loop *l) { NAME(adam)(l, true); }
