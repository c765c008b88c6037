/* moment_body.h: the loops of NAdam and RAdam, Adamax and Lion for elements of type T; included by optim_cpu.c. The
   formulas are in moment.c. */
#define NUMBER(which) ((T)l->args[which].f)

static void NAME(moment_step_loop)(const cn_loop *l)
{
    const T *p = l->in[0], *g = l->in[1], *m = l->in[2], *v = l->in[3];
    T *p_out = l->out, *m_out = l->more[0], *v_out = l->more[1];
    const T rate = NUMBER(CN__MOMENT_RATE), ahead = NUMBER(CN__MOMENT_AHEAD), fresh1 = NUMBER(CN__MOMENT_FRESH1);
    const T beta2 = NUMBER(CN__MOMENT_BETA2), fresh2 = (T)(1 - l->args[CN__MOMENT_BETA2].f);
    const T scale = NUMBER(CN__MOMENT_SCALE), floor = NUMBER(CN__MOMENT_FLOOR);
    const T decay = NUMBER(CN__MOMENT_DECAY), shrink = NUMBER(CN__MOMENT_SHRINK);
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) {
        T slope = decay != 0 ? g[i] + decay * p[i] : g[i], away = slope - m[i];
        T mean = fresh1 < (T)0.5 ? m[i] + fresh1 * away : slope - away * (1 - fresh1);
        T square = v[i] * beta2 + fresh2 * slope * slope, size = SQRT(square) * scale + floor;
        p_out[i] = p[i] * shrink - ahead * slope / size - rate * mean / size;
        m_out[i] = mean;
        v_out[i] = square;
    }
}

static void NAME(adamax_step_loop)(const cn_loop *l)
{
    const T *p = l->in[0], *g = l->in[1], *m = l->in[2], *v = l->in[3];
    T *p_out = l->out, *m_out = l->more[0], *v_out = l->more[1];
    const T rate = NUMBER(CN__ADAMAX_RATE), fresh1 = NUMBER(CN__ADAMAX_FRESH1), beta2 = NUMBER(CN__ADAMAX_BETA2);
    const T eps = NUMBER(CN__ADAMAX_EPS), decay = NUMBER(CN__ADAMAX_DECAY);
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) {
        T slope = decay != 0 ? g[i] + decay * p[i] : g[i], away = slope - m[i];
        T mean = fresh1 < (T)0.5 ? m[i] + fresh1 * away : slope - away * (1 - fresh1);
        T faded = v[i] * beta2, now = ABS(slope) + eps, top = MAX(faded, now);
        p_out[i] = p[i] - rate * mean / top;
        m_out[i] = mean;
        v_out[i] = top;
    }
}

static void NAME(lion_step_loop)(const cn_loop *l)
{
    const T *p = l->in[0], *g = l->in[1], *m = l->in[2];
    T *p_out = l->out, *m_out = l->more[0];
    const T lr = NUMBER(CN__LION_LR), decay = NUMBER(CN__LION_DECAY);
    const T beta1 = NUMBER(CN__LION_BETA1), fresh1 = (T)(1 - l->args[CN__LION_BETA1].f);
    const T beta2 = NUMBER(CN__LION_BETA2), fresh2 = (T)(1 - l->args[CN__LION_BETA2].f);
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) {
        T mixed = beta1 * m[i] + fresh1 * g[i], way = (T)((mixed > 0) - (mixed < 0));
        T mean = beta2 * m[i] + fresh2 * g[i];
        p_out[i] = p[i] - lr * (way + decay * p[i]);
        m_out[i] = mean;
    }
}
#undef NUMBER
