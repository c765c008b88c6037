/* Attention for one T: a row of scores at a time. */
#include "ops/block/rows_body.h"
#include "ops/block/dropout_body.h"

static inline T NAME(dot)(const T *x, const T *y, int64_t n)
{
    T s[CN__LANES] = { 0 };
    int64_t i = 0;
    for (; i + CN__LANES <= n; i += CN__LANES)
        for (int j = 0; j < CN__LANES; j++) s[j] += x[i + j] * y[i + j];
    for (; i < n; i++) s[0] += x[i] * y[i];
    for (int j = 1; j < CN__LANES; j++) s[0] += s[j];
    return s[0];
}

static inline void NAME(add_scaled)(T *y, T a, const T *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

/* What the mask adds to the first n scores of a row. */
static void NAME(mask_row)(const attention *a, int64_t head, int64_t i, T *add, int64_t n)
{
    const char *from = mask_at(a, head, i);
    if (a->mask_dtype == CN_BOOL) {
        for (int64_t j = 0; j < n; j++) add[j] = from[a->mask_step * j] ? 0 : (T)-INFINITY;
    } else if (a->mask_step) {
        cn__convert(sizeof(T) == 8 ? CN_F64 : CN_F32, add, a->mask_dtype, from, n);
    } else {
        const T value = (T)cn__load_f64(a->mask_dtype, from);
        for (int64_t j = 0; j < n; j++) add[j] = value;
    }
}

/* The scores of query i of a head, with scale and mask; returns how many keys it sees. */
static int64_t NAME(score_row)(const attention *a, const T *q, const T *k, int64_t head, int64_t i, T *s, T *spare)
{
    const int64_t n = a->causal && i + 1 < a->tk ? i + 1 : a->tk;
    for (int64_t j = 0; j < n; j++) s[j] = NAME(dot)(q, k + j * a->e, a->e) * (T)a->scale;
    if (a->mask) {
        NAME(mask_row)(a, head, i, spare, n);
        for (int64_t j = 0; j < n; j++) s[j] += spare[j];
    }
    return n;
}

/* x *= dropout's mask at that row of (..., heads, Tq, Tk) */
static void NAME(drop_row)(const attention *a, int64_t row, T *x, T *spare, int64_t n)
{
    NAME(dropout_fill)(spare, (uint64_t)row * (uint64_t)a->tk, n, &a->drop);
    for (int64_t j = 0; j < n; j++) x[j] *= spare[j];
}

/* out = softmax(q kᵀ scale + mask) v, for rows [begin, end) of (..., heads, Tq) */
static void NAME(forward)(const cn_kernel *kernel, void *user, int64_t begin, int64_t end, int thread)
{
    const attention *a = user;
    T *s = (T *)(a->scratch + (size_t)thread * a->scratch_step), *spare = (T *)((char *)s + a->row_bytes);
    for (int64_t row = begin; row < end; row++) {
        const int64_t head = row / a->tq, kv = head / a->group;
        const T *q = (const T *)kernel->in[0].data + row * a->e, *k = (const T *)kernel->in[1].data + kv * a->tk * a->e;
        const T *v = (const T *)kernel->in[2].data + kv * a->tk * a->ev;
        T *out = (T *)kernel->out[0].data + row * a->ev;
        const int64_t n = NAME(score_row)(a, q, k, head, row % a->tq, s, spare);
        const T max = NAME(row_max)(s, n);
        NAME(row_exp)(s, max, s, n);
        const double sum = NAME(row_sum)(s, n);
        ((T *)kernel->out[1].data)[row] = max == (T)-INFINITY ? max : (T)(max + log(sum));
        for (int64_t j = 0; j < n; j++) s[j] /= (T)sum;
        if (a->drop.p > 0) NAME(drop_row)(a, row, s, spare, n);
        for (int64_t d = 0; d < a->ev; d++) out[d] = 0;
        for (int64_t j = 0; j < n; j++) NAME(add_scaled)(out, s[j], v + j * a->ev, a->ev);
    }
}

typedef struct NAME(head) {
    const T *k, *v;
    T *dk, *dv;
    T *p, *dp, *spare; /* rows of scratch */
} NAME(head);

/* P = exp(score - lse);  dP = g vᵀ;  dS = P (dP - sum of P dP);  dq += dS k, dk += dSᵀ q, dv += Pᵀ g */
static void NAME(backward_row)(const cn_kernel *kernel, const attention *a, const NAME(head) * h, int64_t row)
{
    const T *g = (const T *)kernel->in[0].data + row * a->ev, *q = (const T *)kernel->in[1].data + row * a->e;
    T *dq = (T *)kernel->out[0].data + row * a->e;
    const int64_t n = NAME(score_row)(a, q, h->k, row / a->tq, row % a->tq, h->p, h->spare);
    NAME(row_exp)(h->p, ((const T *)kernel->in[5].data)[row], h->p, n);
    for (int64_t j = 0; j < n; j++) h->dp[j] = NAME(dot)(g, h->v + j * a->ev, a->ev);
    if (a->drop.p > 0) NAME(drop_row)(a, row, h->dp, h->spare, n);
    for (int64_t j = 0; j < n; j++)
        NAME(add_scaled)(h->dv + j * a->ev, a->drop.p > 0 ? h->p[j] * h->spare[j] : h->p[j], g, a->ev);
    const T sum = (T)NAME(row_dot)(h->p, h->dp, n);
    for (int64_t d = 0; d < a->e; d++) dq[d] = 0;
    for (int64_t j = 0; j < n; j++) {
        const T ds = h->p[j] * (h->dp[j] - sum) * (T)a->scale;
        NAME(add_scaled)(dq, ds, h->k + j * a->e, a->e);
        NAME(add_scaled)(h->dk + j * a->e, ds, q, a->e);
    }
}

/* One head of k and v: all queries that look at it, in order. */
static void NAME(backward)(const cn_kernel *kernel, void *user, int64_t begin, int64_t end, int thread)
{
    const attention *a = user;
    char *scratch = a->scratch + (size_t)thread * a->scratch_step;
    for (int64_t kv = begin; kv < end; kv++) {
        const int64_t k = kv * a->tk * a->e, v = kv * a->tk * a->ev;
        const NAME(head) h = {
            .k = (const T *)kernel->in[2].data + k,
            .v = (const T *)kernel->in[3].data + v,
            .dk = (T *)kernel->out[1].data + k,
            .dv = (T *)kernel->out[2].data + v,
            .p = (T *)scratch,
            .dp = (T *)(scratch + a->row_bytes),
            .spare = (T *)(scratch + 2 * a->row_bytes),
        };
        for (int64_t i = 0; i < a->tk * a->e; i++) h.dk[i] = 0;
        for (int64_t i = 0; i < a->tk * a->ev; i++) h.dv[i] = 0;
        for (int64_t row = kv * a->group * a->tq; row < (kv + 1) * a->group * a->tq; row++)
            NAME(backward_row)(kernel, a, &h, row);
    }
}
