/* Template: cached_attention for one element type T. cached_attention_cpu.c includes it through cpu/each_type.h, which
   defines T, NAME, EXP and EXP_DOWN. */
#include "ops/block/rows_body.h"
#include "ops/block/product_body.h"

/* The matrix of one head of x (B, rows, heads, width), from row `first` on. */
static NAME(matrix) NAME(head_of)(const cn_array *x, int64_t batch, int64_t head, int64_t first)
{
    const T *v = (const T *)x->data + batch * x->stride[0] + first * x->stride[1] + head * x->stride[2];
    return (NAME(matrix)){ v, x->stride[1], x->stride[3], 0 };
}

/* One block of query rows of one head. A row of scores begins with the cached keys; the new keys follow. */
static void NAME(cached_block)(const cn_kernel *k, const cn__cached *a, int64_t part, int thread)
{
    const int64_t first = part % a->blocks * CN__CACHED_ROWS, head = part / a->blocks % a->heads,
                  b = part / a->blocks / a->heads;
    const int64_t rows = a->t - first < CN__CACHED_ROWS ? a->t - first : CN__CACHED_ROWS, fresh = first + rows,
                  kv = head / a->group;
    T *s = (T *)(a->scratch + (size_t)thread * a->step);
    void *scratch = a->gemm_scratch + (size_t)thread * a->gemm_step;
    const NAME(matrix) q = NAME(head_of)(&k->in[0], b, head, first);
    const NAME(matrix) keys = NAME(head_of)(&k->in[3], b, kv, 0), values = NAME(head_of)(&k->in[4], b, kv, 0);
    if (a->used) NAME(product)(a->gemm, scratch, false, rows, a->used, a->e, q, NAME(transposed)(keys), s, a->ld, 1);
    NAME(product)
    (a->gemm, scratch, false, rows, fresh, a->e, q, NAME(transposed)(NAME(head_of)(&k->in[1], b, kv, 0)), s + a->used,
     a->ld, 1);
    for (int64_t r = 0; r < rows; r++) {
        T *row = s + r * a->ld;
        const int64_t n = a->used + first + r + 1;
        for (int64_t j = 0; j < n; j++) row[j] *= (T)a->scale;
        NAME(row_exp_down)(row, NAME(row_max)(row, n), row, n);
        const T each = (T)(1 / NAME(row_sum)(row, n));
        for (int64_t j = 0; j < n; j++) row[j] *= each;
        for (int64_t j = n; j < a->used + fresh; j++) row[j] = 0;
    }
    const cn_array *y = &k->out[0];
    const int64_t width = y->shape[3], step = a->heads * width;
    T *out = (T *)y->data + ((b * a->t + first) * a->heads + head) * width;
    const NAME(matrix) weights = { s, a->ld, 1, 0 };
    if (a->used) NAME(product)(a->gemm, scratch, false, rows, width, a->used, weights, values, out, step, 1);
    NAME(product)
    (a->gemm, scratch, a->used > 0, rows, width, fresh, (NAME(matrix)){ s + a->used, a->ld, 1, 0 },
     NAME(head_of)(&k->in[2], b, kv, 0), out, step, 1);
}

static void NAME(cached)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    for (int64_t part = begin; part < end; part++) NAME(cached_block)(k, user, part, thread);
}
