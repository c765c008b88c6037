/* cached_attention: attention of new tokens over cached keys and values and over each other, for decoding.
   The new tokens: q (B,T,H,E), k (B,T,K,E), v (B,T,K,V). The caches: keys (B,L,K,E), values (B,L,K,V), of which the
   first `used` places count. Query i sees these places and the new tokens 0 .. i. args: used, scale. */
#include <math.h>

#include "ops/block/attention_gpu.h"
#include "ops/block/block.h"
#include "ops/kernels.h"

static cn__cached cached_of(const cn_kernel *k)
{
    const cn_array *q = &k->in[0], *keys = &k->in[3];
    cn__cached a = { .batch = q->shape[0], .t = q->shape[1], .heads = q->shape[2], .e = q->shape[3] };
    a.group = keys->shape[2] ? a.heads / keys->shape[2] : 1;
    a.blocks = (a.t + CN__CACHED_ROWS - 1) / CN__CACHED_ROWS;
    a.ld = (keys->shape[1] + a.t + 15) / 16 * 16;
    if (k->args) a.used = k->args[0].i, a.scale = k->args[1].f;
    const int64_t rows = a.t < CN__CACHED_ROWS ? a.t : CN__CACHED_ROWS;
    a.step = ((size_t)(rows * a.ld) * cn_dtype_size(q->dtype) + 63) / 64 * 64;
    a.gemm = cn__kernel_gemm(k, q->dtype);
    a.gemm_step = cn__gemm_alone_scratch(a.gemm);
    a.scratch = k->scratch;
    return a;
}

static size_t scratch(const cn_kernel *k, int threads)
{
    const cn__cached a = cached_of(k);
    return (a.step + a.gemm_step) * (size_t)threads;
}

static void cpu(const cn_kernel *k)
{
    cn__cached a = cached_of(k);
    a.gemm_scratch = a.scratch + a.step * (size_t)cn_threads(k);
    const int64_t rows = a.t < CN__CACHED_ROWS ? a.t : CN__CACHED_ROWS;
    const double work = (double)rows * (double)(a.used + a.t) * (double)(a.e + 8) / 2;
    const cn_body body = k->kernels->cached_attention.cached[cn__f64_entry(k->in[0].dtype)];
    if (k->out[0].numel) cn_parallel(k, a.batch * a.heads * a.blocks, cn__grain_of(work), body, &a);
}

static bool infer(cn_infer *i)
{
    const cn_layout *x[5];
    for (int n = 0; n < 5; n++) {
        x[n] = &i->in[n]->layout;
        if (x[n]->ndim != 4)
            return cn_infer_fail(i, CN_BAD_SHAPE, "operand %d must be (batch, tokens, heads, width), got %d axes", n,
                                 x[n]->ndim);
    }
    const cn_layout *q = x[0], *k = x[1], *v = x[2], *keys = x[3], *values = x[4];
    bool fits = k->shape[2] > 0 && q->shape[2] % k->shape[2] == 0 && q->shape[3] == k->shape[3];
    for (int n = 1; n < 5; n++) fits &= x[n]->shape[0] == q->shape[0] && x[n]->shape[2] == k->shape[2];
    fits &= k->shape[1] == q->shape[1] && v->shape[1] == q->shape[1] && values->shape[1] == keys->shape[1];
    fits &= keys->shape[3] == k->shape[3] && values->shape[3] == v->shape[3];
    char s[5][96];
    if (!fits) {
        for (int n = 0; n < 5; n++) cn__shape_text(x[n], s[n], sizeof s[n]);
        return cn_infer_fail(i, CN_BAD_SHAPE,
                             "shapes must be query (B,T,H,E), key (B,T,K,E), value (B,T,K,V), keys (B,L,K,E), values "
                             "(B,L,K,V) with K dividing H, got %s, %s, %s, %s, %s",
                             s[0], s[1], s[2], s[3], s[4]);
    }
    const int64_t used = i->args ? i->args[0].i : 0;
    if (used < 0 || used > keys->shape[1])
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "used must be from 0 to %lld, the length of the caches, got %lld",
                             (long long)keys->shape[1], (long long)used);
    i->out[0] = *i->in[0];
    i->out[0].layout.shape[3] = v->shape[3];
    return true;
}

/* Attention with a mask (T, L + T): of the caches the first `used` places count, of the new tokens those up to the
   query's own. */
static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs;
    const int64_t t = cn_size(in[0], 1), l = cn_size(in[3], 1);
    cn_tensor *old =
        cn_expand(cn_unsqueeze(cn_lt_s(cn_arange(ctx, CN_I64, 0, (double)l, 1), (double)args[0].i), 0), CN_DIMS(t, l));
    cn_tensor *row = cn_unsqueeze(cn_arange(ctx, CN_I64, 0, (double)t, 1), 1), *column = cn_transpose(row, 0, 1);
    cn_tensor *mask = cn_cat((cn_tensor *[]){ old, cn_le(column, row) }, 2, 1);
    cn_tensor *q = cn_transpose(in[0], 1, 2);
    cn_tensor *k = cn_transpose(cn_cat((cn_tensor *[]){ in[3], in[1] }, 2, 1), 1, 2);
    cn_tensor *v = cn_transpose(cn_cat((cn_tensor *[]){ in[4], in[2] }, 2, 1), 1, 2);
    const cn_attention_desc desc = { .attn_mask = mask, .scale = args[1].f };
    return cn_contiguous(cn_transpose(cn_scaled_dot_product_attention(q, k, v, &desc), 1, 2));
}

const cn_op cn__op_cached_attention = {
    .call = "cached_attention(Tensor query, Tensor key, Tensor value, Tensor keys, Tensor values, int used, "
            "float? scale=None) -> Tensor",
    .name = "cached_attention",
    .doc = "New tokens attend to cached keys and values, and causally to each other: q, k, v, keys, values.",
    .kind = CN_BLOCK,
    .n_in = 5,
    .n_out = 1,
    .strided = true,
    .infer = infer,
    .no_grad = "a step of decoding; train with scaled_dot_product_attention",
    .compose = compose,
    .cpu = cpu,
    .scratch = scratch,
    .gpu = cn__cached_attention_gpu,
    CN_CASES(
        { CN_IN(CN_S(1, 1, 2, 4), CN_S(1, 1, 2, 4), CN_S(1, 1, 2, 4), CN_S(1, 5, 2, 4), CN_S(1, 5, 2, 4)),
          CN_ARGS({ .i = 3 }, { .f = 0.5 }) },
        { CN_IN(CN_S(2, 3, 4, 5), CN_S(2, 3, 2, 5), CN_S(2, 3, 2, 6), CN_S(2, 7, 2, 5), CN_S(2, 7, 2, 6)),
          CN_ARGS({ .i = 7 }, { .f = 0.4 }) },
        { CN_IN(CN_S(1, 2, 1, 3), CN_S(1, 2, 1, 3), CN_S(1, 2, 1, 3), CN_S(1, 4, 1, 3), CN_S(1, 4, 1, 3)),
          CN_ARGS({ .i = 0 }, { .f = 1 }) },
        { CN_IN(CN_S(0, 2, 1, 3), CN_S(0, 2, 1, 3), CN_S(0, 2, 1, 3), CN_S(0, 4, 1, 3), CN_S(0, 4, 1, 3)),
          CN_ARGS({ .i = 2 }, { .f = 1 }) },
        { CN_IN(CN_S(1, 53, 3, 17), CN_S(1, 53, 3, 17), CN_S(1, 53, 3, 17), CN_S(1, 90, 3, 17), CN_S(1, 90, 3, 17)),
          CN_ARGS({ .i = 71 }, { .f = 0.25 }) }),
};

cn_tensor *cn_cached_attention(cn_tensor *q, cn_tensor *k, cn_tensor *v, cn_tensor *keys, cn_tensor *values,
                               int64_t used, double scale)
{
    CN__CALL call = cn__call_tensor(q);
    if (!call.ctx) return NULL;
    if (scale == 0 && cn_ndim(q) == 4) scale = 1 / sqrt((double)cn_size(q, 3));
    cn_arg args[CN_MAX_ARGS] = { { .i = used }, { .f = scale } };
    return cn_apply(&cn__op_cached_attention, (cn_tensor *[]){ q, k, v, keys, values }, 5, NULL, args);
}
