/* pad_sequence: sequences of different lengths as one tensor. */
#include "nn/nn.h"
#include "ops/shared.h"

/* Whether all axes but the first are equal. */
static bool fits(cn_tensor *a, cn_tensor *b)
{
    bool same = cn_ndim(a) == cn_ndim(b) && cn_ndim(a) > 0 && cn_type(a) == cn_type(b);
    for (int d = 1; same && d < cn_ndim(a); d++) same = cn_size(a, d) == cn_size(b, d);
    return same;
}

/* x with rows of `value` behind it, `steps` in all */
static cn_tensor *fill_up(cn_tensor *x, int64_t steps, double value)
{
    cn_dims rest = { cn_ndim(x), { steps - cn_size(x, 0) } };
    if (rest.v[0] == 0) return x;
    for (int d = 1; d < rest.n; d++) rest.v[d] = cn_size(x, d);
    return cn_cat((cn_tensor *[]){ x, cn_full(x->ctx, cn_type(x), rest, value) }, 2, 0);
}

cn_tensor *cn_pad_sequence(cn_tensor *const *x, int n, bool batch_first, double value)
{
    if (!x || n < 1 || !x[0]) return cn_stack(x, n, 0); /* an error */
    CN__CALL call = cn__enter_tensor(x[0], __func__);
    if (!call.ctx) return NULL;
    int64_t steps = 0;
    for (int k = 0; k < n; k++) {
        char s[96], t[96];
        if (!cn__of_context(call.ctx, x[k], "pad_sequence", "a sequence")) return NULL;
        if (!fits(x[k], x[0])) {
            cn__fail(call.ctx, CN_BAD_SHAPE,
                     "pad_sequence: sequences must have one dtype, and equal sizes but for their first axis; got %s %s "
                     "and, as number %d, %s %s",
                     cn_dtype_name(cn_type(x[0])), cn__shape_text(cn__layout(x[0]), s, sizeof s), k,
                     cn_dtype_name(cn_type(x[k])), cn__shape_text(cn__layout(x[k]), t, sizeof t));
            return NULL;
        }
        if (cn_size(x[k], 0) > steps) steps = cn_size(x[k], 0);
    }
    const size_t bytes = (size_t)n * sizeof(cn_tensor *);
    cn_tensor **all = cn__alloc(call.ctx, bytes), *y;
    if (!all) return NULL;
    for (int k = 0; k < n; k++) all[k] = fill_up(x[k], steps, value);
    y = cn_stack(all, n, batch_first ? 0 : 1);
    cn__free(call.ctx, all, bytes);
    return y;
}
