/* Template: attention for one element type T, by matrix products over blocks of query rows. attention_cpu.c includes it
   through cpu/each_type.h, which defines T, NAME, EXP and EXP_DOWN. */
#include "ops/block/rows_body.h"
#include "ops/block/dropout_body.h"
#include "ops/block/product_body.h"

/* The matrix of one head of an operand, from row `first` on. */
static NAME(matrix) NAME(matrix_of)(const cn_array *x, int64_t head, int64_t first)
{
    const int64_t row = x->stride[x->ndim - 2];
    return (NAME(matrix)){ (const T *)x->data + head_offset(x, head, 2) + first * row, row, x->stride[x->ndim - 1], 0 };
}

/* The matrix of one head of a result, from row `first` on. */
typedef struct NAME(place) {
    T *v;
    int64_t row, col;
} NAME(place);

static NAME(place) NAME(place_of)(const cn_array *x, int64_t head, int64_t first)
{
    const int64_t row = x->stride[x->ndim - 2];
    return (NAME(place)){ (T *)x->data + head_offset(x, head, 2) + first * row, row, x->stride[x->ndim - 1] };
}

/* add[j]: what the mask adds to score j of row i */
static void NAME(mask_row)(const cn__attention *a, int64_t head, int64_t i, T *add, int64_t n)
{
    const char *from = mask_at(a, head, i);
    const int64_t step = a->mask_step * (int64_t)cn_dtype_size(a->mask_dtype);
    for (int64_t j = 0; j < n; j++) {
        const double value = cn__load_f64(a->mask_dtype, from + j * step);
        add[j] = a->mask_dtype != CN_BOOL ? (T)value : value != 0 ? 0 : (T)-INFINITY;
    }
}

/* Sets the elements [seen, padded) of a row. */
static void NAME(fill_up)(T *row, int64_t seen, int64_t padded, T value)
{
    if (seen == padded) return;
    T *last = row + padded - CN__ATTENTION_PADDING;
    const int32_t left = (int32_t)(seen - padded + CN__ATTENTION_PADDING);
    for (int32_t j = 0; j < CN__ATTENTION_PADDING; j++) last[j] = j < left ? last[j] : value;
}

/* Scales and masks row i of a head's scores. Elements [seen, padded) get the first score, so that later loops run over
   whole vectors. Not -inf: exp of values that underflow is slow. */
static void NAME(finish_scores)(const cn__attention *a, int64_t head, int64_t i, T *s, int64_t seen, int64_t padded,
                                T *spare)
{
    for (int64_t j = 0; j < padded; j++) s[j] *= (T)a->scale;
    if (a->mask) {
        NAME(mask_row)(a, head, i, spare, seen);
        for (int64_t j = 0; j < seen; j++) s[j] += spare[j];
    }
    NAME(fill_up)(s, seen, padded, s[0]);
}

static void NAME(zero)(T *x, int64_t n)
{
    for (int64_t j = 0; j < n; j++) x[j] = 0;
}

static void NAME(zero_head)(NAME(place) to, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++) to.v[r * to.row + j * to.col] = 0;
}

/* Row i of a head of the dropout mask (..., heads, Tq, Tk). */
static void NAME(drop_row)(const cn__attention *a, int64_t head, int64_t i, T *to, int64_t n)
{
    NAME(dropout_fill)(to, (uint64_t)(head * a->tq + i) * (uint64_t)a->tk, n, &a->drop);
}

/* Packs m (rows, cols) into `to`, which has cn__gemm_pack_bytes bytes. */
static NAME(matrix) NAME(pack)(const cn__attention *a, void *to, int64_t rows, int64_t cols, NAME(matrix) m)
{
    cn__gemm_pack_b(a->gemm, to, rows, cols, m.v, m.row, m.col);
    return (NAME(matrix)){ to, 0, 0, rows };
}

/* One head of k and v, as blocks of queries read it. It is packed if several blocks read it. */
typedef struct NAME(keys) {
    NAME(matrix) k, kt, v, vt; /* forward: kt and v; backward: all but v */
} NAME(keys);

static NAME(keys) NAME(keys_of)(const cn_array *key, const cn_array *value, int64_t kv)
{
    const NAME(matrix) k = NAME(matrix_of)(key, kv, 0), v = NAME(matrix_of)(value, kv, 0);
    return (NAME(keys)){ k, NAME(transposed)(k), v, NAME(transposed)(v) };
}

static void NAME(pack_forward)(const cn__attention *a, NAME(keys) * h, int thread)
{
    const int64_t n = cn__keys_seen(a, a->tq - 1);
    char *to = a->packed + (size_t)thread * a->packed_step;
    h->kt = NAME(pack)(a, to, a->e, n, h->kt);
    h->v = NAME(pack)(a, to + cn__gemm_pack_bytes(a->gemm, a->e, n), n, a->ev, h->v);
}

static void NAME(pack_backward)(const cn__attention *a, NAME(keys) * h, int thread)
{
    const int64_t n = cn__keys_seen(a, a->tq - 1);
    char *to = a->packed + (size_t)thread * a->packed_step;
    h->kt = NAME(pack)(a, to, a->e, n, h->kt);
    to += cn__gemm_pack_bytes(a->gemm, a->e, n);
    h->vt = NAME(pack)(a, to, a->ev, n, h->vt);
    h->k = NAME(pack)(a, to + cn__gemm_pack_bytes(a->gemm, a->ev, n), n, a->e, h->k);
}

/* Whether all scores are -inf: max is -inf, but it skips NaN. */
static bool NAME(sees_none)(const T *row, T max, int64_t n)
{
    if (max != (T)-INFINITY) return false;
    for (int64_t j = 0; j < n; j++)
        if (isnan(row[j])) return false;
    return true;
}

/* out = softmax(q kᵀ scale + mask) v, for blocks [begin, end) of query rows of all heads */
static void NAME(forward)(const cn_kernel *kernel, void *user, int64_t begin, int64_t end, int thread)
{
    const cn__attention *a = user;
    T *s = (T *)(a->scratch + (size_t)thread * a->scratch_step), *spare = s + CN__ATTENTION_ROWS * a->ld;
    NAME(keys) keys = { { 0 }, { 0 }, { 0 }, { 0 } };
    for (int64_t block = begin, kv = -1; block < end; block++) {
        const int64_t head = block / a->blocks, first = block % a->blocks * CN__ATTENTION_ROWS;
        if (head / a->group != kv) {
            kv = head / a->group;
            keys = NAME(keys_of)(&kernel->in[1], &kernel->in[2], kv);
            const int64_t readers = (kv + 1) * a->group * a->blocks - block;
            if (a->packed_step && readers > 1 && end - block > 1) NAME(pack_forward)(a, &keys, thread);
        }
        const int64_t rows = a->tq - first < CN__ATTENTION_ROWS ? a->tq - first : CN__ATTENTION_ROWS,
                      n = cn__keys_seen(a, first + rows - 1);
        const NAME(matrix) q = NAME(matrix_of)(&kernel->in[0], head, first);
        const NAME(place) out = NAME(place_of)(&kernel->out[0], head, first);
        T *lse = (T *)kernel->out[1].data + head * a->tq + first;
        NAME(product)(a->gemm, product_scratch(a, thread), false, rows, n, a->e, q, keys.kt, s, a->ld, 1);
        for (int64_t r = 0; r < rows; r++) {
            T *row = s + r * a->ld;
            const int64_t seen = cn__keys_seen(a, first + r), padded = cn__attention_padded(seen);
            NAME(finish_scores)(a, head, first + r, row, seen, padded, spare);
            const T max = NAME(row_max)(row, padded);
            if (NAME(sees_none)(row, max, seen)) {
                lse[r] = (T)INFINITY;
                NAME(zero)(row, n);
                continue;
            }
            NAME(row_exp_down)(row, max, row, padded);
            NAME(fill_up)(row, seen, padded, 0);
            const double sum = NAME(row_sum)(row, padded);
            lse[r] = (T)(max + log(sum));
            const T each = (T)(1 / sum);
            for (int64_t j = 0; j < padded; j++) row[j] *= each;
            if (a->drop.p > 0) {
                NAME(drop_row)(a, head, first + r, spare, seen);
                for (int64_t j = 0; j < seen; j++) row[j] *= spare[j];
            }
            NAME(zero)(row + padded, n - padded);
        }
        NAME(product)
        (a->gemm, product_scratch(a, thread), false, rows, a->ev, n, (NAME(matrix)){ s, a->ld, 1, 0 }, keys.v, out.v,
         out.row, out.col);
        cn_kernel_done(kernel, (head * a->tq + first) * a->ev, (head * a->tq + first + rows) * a->ev, thread);
    }
}

/* For the rows of a block: P = exp(score - lse) replaces the scores, weights = P · dropout, and
   dS = P (dP - sum of P dP) scale replaces dP. */
static void NAME(backward_rows)(const cn_kernel *kernel, const cn__attention *a, int64_t head, int64_t first,
                                int64_t rows, int64_t n, T *p, T *dp, T *weights, T *spare)
{
    const cn_array *l = &kernel->in[5];
    const T *lse = (const T *)l->data + head_offset(l, head, 1);
    for (int64_t r = 0; r < rows; r++, p += a->ld, dp += a->ld, weights += a->ld) {
        const int64_t seen = cn__keys_seen(a, first + r), padded = cn__attention_padded(seen);
        NAME(finish_scores)(a, head, first + r, p, seen, padded, spare);
        NAME(row_exp)(p, lse[(first + r) * l->stride[l->ndim - 1]], p, padded);
        NAME(fill_up)(p, seen, padded, 0);
        NAME(zero)(p + padded, n - padded);
        NAME(fill_up)(dp, seen, padded, 0);
        if (a->drop.p > 0) {
            NAME(drop_row)(a, head, first + r, spare, seen);
            for (int64_t j = 0; j < seen; j++) weights[j] = p[j] * spare[j], dp[j] *= spare[j];
            NAME(zero)(weights + seen, n - seen);
        }
        const T sum = (T)NAME(row_dot)(p, dp, padded);
        for (int64_t j = 0; j < padded; j++) dp[j] = p[j] * (dp[j] - sum) * (T)a->scale;
        NAME(zero)(dp + padded, n - padded);
    }
}

/* dP = g vᵀ; then dv += weightsᵀ g, dq = dS k, dk += dSᵀ q, for one block of a query head */
static void NAME(backward_block)(const cn_kernel *kernel, const cn__attention *a, const NAME(keys) * keys, int64_t head,
                                 int64_t first, int thread)
{
    const int64_t kv = head / a->group, rows = a->tq - first < CN__ATTENTION_ROWS ? a->tq - first : CN__ATTENTION_ROWS,
                  n = cn__keys_seen(a, first + rows - 1);
    T *p = (T *)(a->scratch + (size_t)thread * a->scratch_step), *dp = p + CN__ATTENTION_ROWS * a->ld;
    T *weights = a->drop.p > 0 ? dp + CN__ATTENTION_ROWS * a->ld : p, *spare = dp + 2 * CN__ATTENTION_ROWS * a->ld;
    const NAME(matrix) g = NAME(matrix_of)(&kernel->in[0], head, first),
                       q = NAME(matrix_of)(&kernel->in[1], head, first);
    const NAME(place) dq = NAME(place_of)(&kernel->out[0], head, first), dk = NAME(place_of)(&kernel->out[1], kv, 0),
                      dv = NAME(place_of)(&kernel->out[2], kv, 0);
    NAME(product)(a->gemm, product_scratch(a, thread), false, rows, n, a->e, q, keys->kt, p, a->ld, 1);
    NAME(product)(a->gemm, product_scratch(a, thread), false, rows, n, a->ev, g, keys->vt, dp, a->ld, 1);
    NAME(backward_rows)(kernel, a, head, first, rows, n, p, dp, weights, spare);
    NAME(product)
    (a->gemm, product_scratch(a, thread), true, n, a->ev, rows, (NAME(matrix)){ weights, 1, a->ld, 0 }, g, dv.v, dv.row,
     dv.col);
    NAME(product)
    (a->gemm, product_scratch(a, thread), false, rows, a->e, n, (NAME(matrix)){ dp, a->ld, 1, 0 }, keys->k, dq.v,
     dq.row, dq.col);
    NAME(product)
    (a->gemm, product_scratch(a, thread), true, n, a->e, rows, (NAME(matrix)){ dp, 1, a->ld, 0 }, q, dk.v, dk.row,
     dk.col);
}

/* For each head of k and v: all queries that attend to it, in order. */
static void NAME(backward)(const cn_kernel *kernel, void *user, int64_t begin, int64_t end, int thread)
{
    const cn__attention *a = user;
    for (int64_t kv = begin; kv < end; kv++) {
        NAME(zero_head)(NAME(place_of)(&kernel->out[1], kv, 0), a->tk, a->e);
        NAME(zero_head)(NAME(place_of)(&kernel->out[2], kv, 0), a->tk, a->ev);
        NAME(keys) keys = NAME(keys_of)(&kernel->in[2], &kernel->in[3], kv);
        if (a->packed_step && a->group * a->blocks > 1) NAME(pack_backward)(a, &keys, thread);
        for (int64_t head = kv * a->group; head < (kv + 1) * a->group; head++)
            for (int64_t first = 0; first < a->tq; first += CN__ATTENTION_ROWS)
                NAME(backward_block)(kernel, a, &keys, head, first, thread);
    }
}
