/* rows_body.h: one row of the steps of rows.c, for elements of type T; included by rows.c. The formulas are there. */

/* Sums the gradients of a row in the order of their indices, beginning with zeros as embedding_backward does. */
static bool NAME(sum_row)(const cn_kernel *k, const chains *c, int64_t first, T *sum)
{
    const int64_t width = k->out[0].shape[1];
    memset(sum, 0, sizeof *sum * (size_t)width);
    for (int64_t a = first; a >= 0; a = c->next[a]) {
        const T *g = (const T *)k->in[1].data + a * width;
        for (int64_t i = 0; i < width; i++) sum[i] += g[i];
    }
    bool any = false;
    for (int64_t i = 0; i < width; i++) any |= sum[i] != 0;
    return any;
}

static void NAME(sgd_row)(const cn_kernel *k, int64_t at, const T *g)
{
    T *p = (T *)k->out[0].data + at;
    const T lr = (T)k->args[CN__ROWS_RATE].f;
    for (int64_t i = 0, n = k->out[0].shape[1]; i < n; i++) p[i] = p[i] - lr * g[i];
}

static void NAME(moment_row)(const cn_kernel *k, int64_t at, const T *g)
{
    T *s = (T *)k->out[0].data + at;
    const T fresh = (T)k->args[CN__ROWS_RATE].f;
    const bool square = k->args[CN__ROWS_SQUARE].i;
    for (int64_t i = 0, n = k->out[0].shape[1]; i < n; i++)
        s[i] = s[i] + ((square ? g[i] * g[i] : g[i]) - s[i]) * fresh;
}

static void NAME(adam_row)(const cn_kernel *k, int64_t at, const T *g)
{
    T *p = (T *)k->out[0].data + at;
    const T *m = (const T *)k->in[3].data + at, *v = (const T *)k->in[4].data + at;
    const cn_arg *a = k->args;
    const T rate = (T)a[CN__ROWS_RATE].f, fresh1 = (T)a[CN__ROWS_FRESH1].f, fresh2 = (T)a[CN__ROWS_FRESH2].f;
    const T eps = (T)a[CN__ROWS_EPS].f;
    for (int64_t i = 0, n = k->out[0].shape[1]; i < n; i++) {
        const T mean = m[i] + (g[i] - m[i]) * fresh1, size = v[i] + (g[i] * g[i] - v[i]) * fresh2;
        p[i] = p[i] - mean / (NAME(root)(size) + eps) * rate;
    }
}

static void NAME(rows)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const chains *c = user;
    T *sum = (T *)(void *)(c->sums + (size_t)thread * c->sum_bytes);
    for (int64_t r = begin; r < end; r++) {
        const int64_t first = c->first[r], at = cn__index_at(&k->in[2], first) * k->out[0].shape[1];
        if (!NAME(sum_row)(k, c, first, sum)) continue;
        if (k->op == &cn__op_sgd_rows_step) NAME(sgd_row)(k, at, sum);
        else if (k->op == &cn__op_adam_rows_step) NAME(adam_row)(k, at, sum);
        else NAME(moment_row)(k, at, sum);
    }
}
