/* attention: softmax(q kᵀ scale + mask) v, its backward operator, and scaled_dot_product_attention, which broadcasts.
   q (..., H, Tq, E), k (..., K, Tk, E), v (..., K, Tk, V); K divides H: query head h attends to key head h / (H / K).
   causal: query i sees keys 0 .. i. A query sees no key if all its scores are -inf: its result is 0.
   args: scale, dropout's p, seed, stream. The second result is lse, the log of the sum of exp(score): (..., H, Tq). It
   is inf for a query that sees no key: then exp(score - lse), from which gradients are computed, is 0. */
#include <math.h>

#include "ops/block/attention_gpu.h"
#include "ops/block/block.h"
#include "ops/kernels.h"

/* The most bytes a thread packs for a head. A larger head is packed by the matrix product, again for each block. */
enum { PACKED_BYTES = 1 << 22 };

static int64_t broadcast_stride(const cn_array *x, int d) { return d < 0 || x->shape[d] == 1 ? 0 : x->stride[d]; }

/* first: the number of q among the operands; k, v and mask follow. buffers: of (rows, keys), in scratch. */
static cn__attention attention_of(const cn_kernel *k, int first, int buffers)
{
    const cn_array *q = &k->in[first], *key = &k->in[first + 1], *mask = &k->in[first + 3];
    const int n = q->ndim;
    cn__attention a = { .heads = 1,
                    .kv_heads = 1,
                    .group = 1,
                    .tq = q->shape[n - 2],
                    .tk = key->shape[n - 2],
                    .e = q->shape[n - 1],
                    .outer = n - 2 };
    a.ev = k->in[first + 2].shape[n - 1];
    for (int d = 0; d < n - 2; d++) a.size[d] = q->shape[d], a.heads *= q->shape[d], a.kv_heads *= key->shape[d];
    if (n > 2 && key->shape[n - 3]) a.group = q->shape[n - 3] / key->shape[n - 3];
    a.blocks = (a.tq + CN__ATTENTION_ROWS - 1) / CN__ATTENTION_ROWS;
    a.ld = cn__attention_padded(a.tk);
    a.causal = ((const cn__attention_attrs *)k->attrs)->causal;
    if (k->args) { /* NULL when only the size of the scratch is asked for */
        a.scale = k->args[0].f;
        a.drop = (cn__dropout){ k->args[1].f, k->args[2].u, k->args[3].u };
    }
    a.mask = mask->data;
    if (a.mask) {
        const int shift = n - mask->ndim;
        for (int d = 0; d < n - 2; d++) a.mask_stride[d] = broadcast_stride(mask, d - shift);
        a.mask_row = broadcast_stride(mask, mask->ndim - 2);
        a.mask_step = broadcast_stride(mask, mask->ndim - 1);
        a.mask_dtype = mask->dtype;
    }
    const size_t size = cn_dtype_size(q->dtype);
    a.scratch = k->scratch;
    a.scratch_step = ((size_t)(CN__ATTENTION_ROWS * buffers + 1) * (size_t)a.ld * size + 63) / 64 * 64;
    a.gemm = cn__kernel_gemm(k, q->dtype);
    a.gemm_step = cn__gemm_alone_scratch(a.gemm);
    return a;
}

/* Sets the bytes for the packed matrices of a head: kᵀ and v, or in the backward pass kᵀ, vᵀ and k. */
static void plan_packing(cn__attention *a, bool backward)
{
    if (a->group * a->blocks < 2 || a->tk == 0) return;
    const int64_t n = cn__keys_seen(a, a->tq - 1);
    const size_t kt = cn__gemm_pack_bytes(a->gemm, a->e, n);
    const size_t all = backward ? kt + cn__gemm_pack_bytes(a->gemm, a->ev, n) + cn__gemm_pack_bytes(a->gemm, n, a->e)
                                : kt + cn__gemm_pack_bytes(a->gemm, n, a->ev);
    if (all <= PACKED_BYTES) a->packed_step = all;
}

static cn__attention forward_of(const cn_kernel *k)
{
    cn__attention a = attention_of(k, 0, 1);
    plan_packing(&a, false);
    return a;
}

static cn__attention backward_of(const cn_kernel *k)
{
    cn__attention a = attention_of(k, 1, 3);
    plan_packing(&a, true);
    return a;
}

static size_t scratch_bytes(const cn__attention *a, int threads)
{
    return (a->scratch_step + a->gemm_step + a->packed_step) * (size_t)threads;
}

static size_t scratch(const cn_kernel *k, int threads)
{
    const cn__attention a = forward_of(k);
    return scratch_bytes(&a, threads);
}

static size_t backward_scratch(const cn_kernel *k, int threads)
{
    const cn__attention a = backward_of(k);
    return scratch_bytes(&a, threads);
}

static void share_scratch(cn__attention *a, int threads)
{
    a->gemm_scratch = a->scratch + a->scratch_step * (size_t)threads;
    a->packed = a->gemm_scratch + a->gemm_step * (size_t)threads;
}

/* Chunks are whole heads, so that each head is packed once, unless that would leave threads idle at the end. */
static int64_t forward_grain(const cn__attention *a, int threads)
{
    const int64_t grain = cn__grain_of((double)CN__ATTENTION_ROWS * (double)a->tk * (double)(a->e + a->ev + 8) / 4);
    const bool whole = a->packed_step && (a->heads % threads == 0 || a->heads >= 4 * threads);
    return whole ? (grain + a->blocks - 1) / a->blocks * a->blocks : grain;
}

static void cpu(const cn_kernel *k)
{
    cn__attention a = forward_of(k);
    share_scratch(&a, cn_threads(k));
    const cn_body body = k->kernels->attention.forward[cn__f64_entry(k->in[0].dtype)];
    cn_parallel(k, a.heads * a.blocks, forward_grain(&a, cn_threads(k)), body, &a);
}

static void backward_cpu(const cn_kernel *k)
{
    cn__attention a = backward_of(k);
    share_scratch(&a, cn_threads(k));
    const cn_body body = k->kernels->attention.backward[cn__f64_entry(k->in[0].dtype)];
    cn_parallel(k, a.kv_heads, cn__grain_of((double)(a.group * a.tq) * (double)a.tk * (double)(a.e + a.ev)),
                body, &a);
}

/* ---- shapes */

static bool misfit(cn_infer *i, const cn_meta *const *in)
{
    char q[96], k[96], v[96];
    return cn_infer_fail(i, CN_BAD_SHAPE,
                         "shapes must be query (..., H, T, E), key (..., K, S, E), value (..., K, S, V) with K "
                         "dividing H, got %s, %s and %s",
                         cn__shape_text(&in[0]->layout, q, sizeof q), cn__shape_text(&in[1]->layout, k, sizeof k),
                         cn__shape_text(&in[2]->layout, v, sizeof v));
}

static bool check_mask(cn_infer *i, const cn_meta *mask, const cn_layout *scores)
{
    if (!mask) return true;
    const cn_layout *m = &mask->layout;
    if (mask->dtype != CN_BOOL && !cn_dtype_is_float(mask->dtype))
        return cn_infer_fail(i, CN_BAD_DTYPE, "attn_mask must be bool or of a floating type, got %s",
                             cn_dtype_name(mask->dtype));
    bool fits = m->ndim <= scores->ndim;
    for (int d = 0; fits && d < m->ndim; d++)
        fits = m->shape[d] == 1 || m->shape[d] == scores->shape[d + scores->ndim - m->ndim];
    char s[96], t[96];
    return fits || cn_infer_fail(i, CN_BAD_SHAPE, "attn_mask must broadcast to the scores %s, got %s",
                                 cn__shape_text(scores, t, sizeof t), cn__shape_text(m, s, sizeof s));
}

/* in: q, k, v, mask */
static bool check(cn_infer *i, const cn_meta *const *in)
{
    const cn_layout *q = &in[0]->layout, *k = &in[1]->layout, *v = &in[2]->layout;
    const int n = q->ndim;
    if (n < 2 || k->ndim != n || v->ndim != n) return misfit(i, in);
    for (int d = 0; d < n - 2; d++) {
        const bool grouped = d == n - 3 && k->shape[d] > 0 && q->shape[d] % k->shape[d] == 0;
        if (v->shape[d] != k->shape[d] || (q->shape[d] != k->shape[d] && !grouped)) return misfit(i, in);
    }
    if (q->shape[n - 1] != k->shape[n - 1] || k->shape[n - 2] != v->shape[n - 2]) return misfit(i, in);
    cn_layout scores = *q;
    scores.shape[n - 1] = k->shape[n - 2];
    return check_mask(i, in[3], &scores);
}

static cn_meta lse_of(const cn_meta *q)
{
    cn_meta m = *q;
    m.layout.ndim--;
    return m;
}

static bool infer(cn_infer *i)
{
    if (!check(i, i->in)) return false;
    const cn_layout *v = &i->in[2]->layout;
    i->out[0] = *i->in[0];
    i->out[0].layout.shape[v->ndim - 1] = v->shape[v->ndim - 1];
    i->out[1] = lse_of(i->in[0]);
    return true;
}

/* ---- in simpler operators */

static cn_dims grouped_shape(const cn_tensor *kv, int64_t group)
{
    const int n = cn_ndim(kv);
    int64_t heads = 1;
    for (int d = 0; d < n - 2; d++) heads *= cn_size(kv, d);
    return CN_DIMS(heads, group, cn_size(kv, -2), cn_size(kv, -1));
}

static int64_t group_of(const cn_tensor *q, const cn_tensor *k)
{
    const int64_t heads = cn_ndim(q) > 2 ? cn_size(k, -3) : 0;
    return heads ? cn_size(q, -3) / heads : 1;
}

/* Repeats the heads of k or v, so that there is one for every query head. */
static cn_tensor *spread(cn_tensor *kv, int64_t group) { return group > 1 ? cn_repeat_interleave(kv, group, -3) : kv; }

/* Sums the gradient of spread(kv) over the repeated heads. */
static cn_tensor *gather_heads(cn_tensor *grad, cn_tensor *kv, int64_t group)
{
    if (group == 1) return grad;
    return cn_reshape(cn_sum(cn_reshape(grad, grouped_shape(kv, group)), CN_DIMS(1), false), cn_shape(kv));
}

static cn_tensor *scores(cn_ctx *ctx, cn_tensor *q, cn_tensor *k, cn_tensor *mask, bool causal, double scale)
{
    cn_tensor *s = cn_mul_s(cn_matmul(q, cn_transpose(k, -2, -1)), scale);
    if (mask && cn__dtype(mask) == CN_BOOL) s = cn_masked_fill(s, cn_logical_not(mask), -INFINITY);
    else if (mask) s = cn_add(s, cn__as(mask, cn__dtype(q)));
    if (!causal) return s;
    cn_tensor *query = cn_arange(ctx, CN_I64, 0, (double)cn_size(q, -2), 1);
    cn_tensor *key = cn_arange(ctx, CN_I64, 0, (double)cn_size(k, -2), 1);
    return cn_masked_fill(s, cn_gt(key, cn_unsqueeze(query, 1)), -INFINITY);
}

/* NULL without dropout */
static cn_tensor *drop_mask(cn_ctx *ctx, cn_tensor *s, const cn_arg *args)
{
    const cn__dropout d = { args[1].f, args[2].u, args[3].u };
    return s && d.p > 0 ? cn__dropout_mask(ctx, cn__dtype(s), cn_shape(s), &d) : NULL;
}

/* Whether each query sees no key, (..., H, Tq, 1). A score that is NaN is seen. */
static cn_tensor *blind(cn_tensor *s) { return cn_all(cn_eq_s(s, -INFINITY), CN_DIMS(-1), true); }

static cn_tensor *weigh(cn_ctx *ctx, cn_tensor *s, cn_tensor *v, cn_tensor *none, const cn_arg *args)
{
    cn_tensor *p = cn_masked_fill(cn_softmax(s, -1), none, 0), *drop = drop_mask(ctx, s, args);
    return cn_matmul(drop ? cn_mul(p, drop) : p, v);
}

/* The scores of a query that sees no key become 0, whose softmax has a gradient; the results below ignore them. */
static void define(cn_ctx *ctx, cn_tensor *const *in, const void *attrs, const cn_arg *args, cn_tensor **out)
{
    const cn__attention_attrs *a = attrs;
    const int64_t group = group_of(in[0], in[1]);
    cn_tensor *s = scores(ctx, in[0], spread(in[1], group), in[3], a->causal, args[0].f), *none = blind(s);
    s = cn_masked_fill(s, none, 0);
    out[0] = weigh(ctx, s, spread(in[2], group), none, args);
    out[1] = cn_masked_fill(cn_logsumexp(s, CN_DIMS(-1), false), cn_squeeze(none, CN_DIMS(-1)), INFINITY);
}

static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in;
    cn_tensor *out[2];
    define(ctx, in, attrs, args, out);
    return out[0];
}

/* in: g, q, k, v, mask, lse */
static void backward_define(cn_ctx *ctx, cn_tensor *const *in, const void *attrs, const cn_arg *args, cn_tensor **out)
{
    const cn__attention_attrs *a = attrs;
    const int64_t group = group_of(in[1], in[2]);
    cn_tensor *g = in[0], *k = spread(in[2], group), *v = spread(in[3], group);
    cn_tensor *p = cn_exp(cn_sub(scores(ctx, in[1], k, in[4], a->causal, args[0].f), cn_unsqueeze(in[5], -1)));
    cn_tensor *drop = drop_mask(ctx, p, args), *dp = cn_matmul(g, cn_transpose(v, -2, -1));
    if (drop) dp = cn_mul(dp, drop);
    cn_tensor *ds = cn_mul(p, cn_sub(dp, cn_sum(cn_mul(p, dp), CN_DIMS(-1), true)));
    ds = cn_mul_s(ds, args[0].f);
    out[0] = cn_matmul(ds, k);
    out[1] = gather_heads(cn_matmul(cn_transpose(ds, -2, -1), in[1]), in[2], group);
    cn_tensor *weights = drop ? cn_mul(p, drop) : p;
    out[2] = gather_heads(cn_matmul(cn_transpose(weights, -2, -1), g), in[3], group);
}

/* ---- the operators */

#define CAUSAL(yes) \
    .attrs = &(const cn__attention_attrs) { yes }
#define SCALE(scale)   CN_ARGS({ scale })
#define DROP(scale, p) CN_ARGS({ scale }, { p }, { .u = 5 }, { .u = 6 })

/* The backward kernel computes no gradient of the mask, and none that arrives through lse. */
static void grad(cn_grad_call *g)
{
    if (g->needs[3] || g->out_grad[1]) {
        cn__grad_by_definition(g, define);
        return;
    }
    cn_tensor *out[CN_MAX_OUT], *in[6] = { g->out_grad[0], g->in[0], g->in[1], g->in[2], g->in[3], g->out[1] };
    if (!cn_apply_n(&cn__op_attention_backward, in, 6, g->attrs, g->args, out)) return;
    for (int k = 0; k < 3; k++)
        if (g->needs[k]) g->in_grad[k] = out[k];
}

/* per_pair: multiplications for each pair of a query and a key */
static double flops_of(const cn_layout *q, const cn_layout *k, double per_pair)
{
    const int n = q->ndim;
    if (n < 2 || !q->shape[n - 1]) return 0;
    return 2.0 * (double)cn__numel(q) / (double)q->shape[n - 1] * (double)k->shape[n - 2] * per_pair;
}

static double last_size(const cn_layout *l) { return l->ndim ? (double)l->shape[l->ndim - 1] : 0; }

/* q kᵀ and the product with v */
static double flops(const cn_meta *in, const cn_meta *out, const void *attrs)
{
    (void)out, (void)attrs;
    const cn_layout *q = &in[0].layout, *v = &in[2].layout;
    return flops_of(q, &in[1].layout, last_size(q) + last_size(v));
}

const cn_op cn__op_attention = {
    .call = "_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, float scale) "
            "-> (Tensor result, Tensor log_sum)",
    .name = "attention",
    .doc = "softmax(q kT scale + mask) v, and the log of the softmax's sum.",
    .kind = CN_BLOCK,
    .n_in = 4,
    .n_out = 2,
    .optional = 8,
    .free_dtype = 8,
    .attr_size = sizeof(cn__attention_attrs),
    .infer = infer,
    .grad = grad,
    .compose = compose,
    .strided = true,
    .strided_out = 1,
    .epilogue = true,
    .cpu = cpu,
    .scratch = scratch,
    .gpu = cn__attention_gpu,
    .flops = flops,
    .attention = true,
    CN_CASES(
        { CN_IN(CN_S(2, 3, 4), CN_S(2, 5, 4), CN_S(2, 5, 3), CN_ABSENT), CAUSAL(0), SCALE(0.5) },
        { CN_IN(CN_S(2, 4, 3, 4), CN_S(2, 2, 5, 4), CN_S(2, 2, 5, 3), CN_ABSENT), CAUSAL(1), DROP(0.4, 0.3) },
        { CN_IN(CN_S(2, 2, 3, 4), CN_S(2, 2, 12, 4), CN_S(2, 2, 12, 1), CN_BOOLS(2, 1, 1, 12)),
          CAUSAL(0),
          SCALE(0.5) },
        { CN_IN(CN_S(2, 2, 3, 4), CN_S(2, 1, 3, 4), CN_S(2, 1, 3, 2), CN_S(2, 3, 3)), CAUSAL(1), SCALE(0.5) },
        { CN_IN(CN_S(3, 4), CN_S(5, 4), CN_S(5, 2), CN_S(3, 1)), CAUSAL(0), SCALE(0.5) },
        { CN_IN(CN_S(2, 3, 4), CN_S(2, 0, 4), CN_S(2, 0, 3), CN_ABSENT),
          CAUSAL(0),
          SCALE(0.5),
          .no_gradient_check = true /* the second result is inf */ },
        { CN_IN(CN_S(2, 7, 4), CN_S(2, 40, 4), CN_S(2, 40, 3), CN_BOOLS(7, 1)), /* some queries see no key */
          CAUSAL(0),
          SCALE(0.5),
          .no_gradient_check = true /* the second result is inf */ },
        { CN_IN(CN_S(0, 2, 3, 4), CN_S(0, 1, 5, 4), CN_S(0, 1, 5, 4), CN_ABSENT), CAUSAL(0), SCALE(0.5) },
        { CN_IN(CN_S(2, 3, 37, 19), CN_S(2, 3, 41, 19), CN_S(2, 3, 41, 21), CN_ABSENT), CAUSAL(1), DROP(0.25, 0.1) },
        { CN_IN(CN_S(4, 101, 5), CN_S(2, 110, 5), CN_S(2, 110, 17), CN_ABSENT), CAUSAL(1), SCALE(0.5) },
        { CN_IN(CN_S(3, 49, 3), CN_S(3, 40, 3), CN_S(3, 40, 2), CN_ABSENT), CAUSAL(0), SCALE(0.5) }),
};

/* ---- broadcasting */

/* The size of an axis, counted from the end; 1 for an axis that x lacks. */
static int64_t size_at(const cn_tensor *x, int from_end) { return from_end <= cn_ndim(x) ? cn_size(x, -from_end) : 1; }

/* The size that three sizes broadcast to; -1: none. */
static int64_t common(const int64_t size[3])
{
    int64_t n = 1;
    for (int i = 0; i < 3; i++) {
        if (size[i] != 1 && n != 1 && size[i] != n) return -1;
        if (size[i] != 1) n = size[i];
    }
    return n;
}

/* The heads that q, and k and v, are brought to: all the same, or groups. -1: there are none. */
static void choose_heads(cn_tensor *const *in, int64_t *queries, int64_t *keys)
{
    const int64_t h[3] = { size_at(in[0], 3), size_at(in[1], 3), size_at(in[2], 3) };
    const bool groups = h[0] > 0 && h[1] > 0 && h[2] > 0 && h[0] % h[1] == 0 && h[0] % h[2] == 0;
    *queries = groups ? h[0] : common(h);
    *keys = !groups ? *queries : h[1] % h[2] == 0 ? h[1] : h[2] % h[1] == 0 ? h[2] : h[0];
}

/* x with these outer axes and heads: expanded where its size is 1, else every head is repeated. */
static cn_tensor *broadcast(cn_tensor *x, cn_dims outer, int64_t heads)
{
    const int64_t own = size_at(x, 3);
    const cn_dims is = cn_shape(x);
    cn_dims to = outer;
    if (to.n) to.v[to.n - 1] = heads;
    to.v[to.n++] = is.v[is.n - 2];
    to.v[to.n++] = is.v[is.n - 1];
    if (is.n == to.n && !memcmp(is.v, to.v, sizeof *is.v * (size_t)is.n)) return x;
    return cn_expand(own > 1 && heads > own ? cn_repeat_interleave(x, heads / own, -3) : x, to);
}

static cn_tensor *compose_public(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx;
    cn_tensor *own[4] = { in[0], in[1], in[2], in[3] };
    cn_dims outer = { 0, { 0 } };
    int64_t heads[2] = { 1, 1 };
    bool fits = true;
    for (int i = 0; i < 3; i++) {
        const int n = cn_ndim(in[i]);
        fits &= n >= 2;
        if (n - 2 > outer.n) outer.n = n - 2;
    }
    for (int d = 0; d + 1 < outer.n; d++) { /* axes before the heads */
        const int at = outer.n + 2 - d;
        outer.v[d] = common((int64_t[]){ size_at(in[0], at), size_at(in[1], at), size_at(in[2], at) });
        fits &= outer.v[d] >= 0;
    }
    if (outer.n) choose_heads(in, &heads[0], &heads[1]);
    /* If the sizes do not fit, the operator fails and says which are allowed. */
    for (int i = 0; i < 3 && fits && heads[0] >= 0; i++) own[i] = broadcast(own[i], outer, heads[i > 0]);
    return cn_apply(&cn__op_attention, own, n_in, attrs, args);
}

const cn_op cn__op_scaled_dot_product_attention = {
    .call = "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
            "float dropout_p=0, bool is_causal=False, float? scale=None) -> Tensor",
    .name = "scaled_dot_product_attention",
    .doc = "softmax(q kT scale + mask) v; the axes before the last two broadcast.",
    .kind = CN_COMPOSITE,
    .n_in = 4,
    .n_out = 1,
    .optional = 8,
    .free_dtype = 8,
    .attr_size = sizeof(cn__attention_attrs),
    .compose = compose_public,
    .onnx = "Attention",
    CN_CASES(
        { CN_IN(CN_S(2, 2, 3, 4), CN_S(2, 2, 5, 4), CN_S(2, 2, 5, 3), CN_ABSENT), CAUSAL(1), SCALE(0.5) },
        { CN_IN(CN_S(1, 2, 3, 4), CN_S(2, 2, 5, 4), CN_S(2, 2, 5, 3), CN_ABSENT), CAUSAL(0), SCALE(0.5) },
        { CN_IN(CN_S(2, 1, 3, 4), CN_S(2, 3, 5, 4), CN_S(2, 3, 5, 3), CN_S(2, 3, 3, 5)), CAUSAL(0), SCALE(0.5) },
        { CN_IN(CN_S(2, 3, 3, 4), CN_S(1, 3, 5, 4), CN_S(1, 3, 5, 3), CN_BOOLS(3, 5)), CAUSAL(0), SCALE(0.5) },
        { CN_IN(CN_S(1, 1, 3, 4), CN_S(2, 1, 5, 4), CN_S(1, 3, 5, 3), CN_ABSENT), CAUSAL(0), DROP(0.5, 0.2) },
        { CN_IN(CN_S(3, 4), CN_S(2, 2, 5, 4), CN_S(2, 5, 3), CN_ABSENT), CAUSAL(1), SCALE(0.5) },
        { CN_IN(CN_S(2, 4, 3, 4), CN_S(2, 5, 4), CN_S(1, 1, 5, 3), CN_ABSENT), CAUSAL(0), SCALE(0.5) },
        { CN_IN(CN_S(2, 6, 3, 4), CN_S(1, 2, 5, 4), CN_S(2, 3, 5, 3), CN_ABSENT), CAUSAL(0), SCALE(0.5) },
        { CN_IN(CN_S(3, 4), CN_S(5, 4), CN_S(5, 2), CN_S(3, 1)), CAUSAL(0), SCALE(0.5) },
        { CN_IN(CN_S(1, 3, 4), CN_S(0, 5, 4), CN_S(0, 5, 4), CN_ABSENT), CAUSAL(0), SCALE(0.5) },
        { CN_IN(CN_S(2, 2, 6, 4), CN_S(2, 2, 5, 4), CN_S(2, 2, 5, 3), CN_BOOLS(2, 1, 6, 1)), /* queries that see none */
          CAUSAL(0),
          SCALE(0.5) },
        { CN_IN(CN_S(2, 3, 4), CN_S(2, 0, 4), CN_S(2, 0, 3), CN_ABSENT), CAUSAL(0), SCALE(0.5) },
        { CN_IN(CN_S(1, 3, 37, 19), CN_S(2, 3, 41, 19), CN_S(2, 1, 41, 21), CN_BOOLS(37, 1)), CAUSAL(1), SCALE(0.25) }),
};

cn_tensor *cn_scaled_dot_product_attention(cn_tensor *q, cn_tensor *k, cn_tensor *v, const cn_attention_desc *desc)
{
    if (!cn__alive(q)) return NULL;
    const cn_attention_desc none = { 0 };
    if (!desc) desc = &none;
    cn__dropout d = { 0 };
    if (!cn__dropout_begin(q->ctx, "scaled_dot_product_attention", desc->dropout_p, &d)) return NULL;
    const double width = cn_ndim(q) ? (double)cn_size(q, -1) : 0;
    const double scale = desc->scale != 0 ? desc->scale : width > 0 ? 1 / sqrt(width) : 1;
    cn_arg args[CN_MAX_ARGS] = { { .f = scale }, { .f = d.p }, { .u = d.seed }, { .u = d.stream } };
    return cn_apply(&cn__op_scaled_dot_product_attention, (cn_tensor *[]){ q, k, v, desc->attn_mask }, 4,
                    &(cn__attention_attrs){ desc->is_causal }, args);
}

/* ---- the backward operator */

static bool backward_infer(cn_infer *i)
{
    if (!check(i, i->in + 1)) return false;
    const cn_meta *q = i->in[1], *v = i->in[3], lse = lse_of(q);
    cn_layout g = q->layout;
    g.shape[g.ndim - 1] = v->layout.shape[g.ndim - 1];
    if (!cn__expect_shape(i, "the gradient", i->in[0], &g) || !cn__expect_shape(i, "log_sum", i->in[5], &lse.layout))
        return false;
    for (int k = 0; k < 3; k++) i->out[k] = *i->in[k + 1];
    return true;
}

static void backward_grad(cn_grad_call *g) { cn__grad_by_definition(g, backward_define); }

/* q kᵀ again, and the gradients of v, of the weights, of q and of k */
static double backward_flops(const cn_meta *in, const cn_meta *out, const void *attrs)
{
    (void)out, (void)attrs;
    const cn_layout *q = &in[1].layout, *v = &in[3].layout;
    return flops_of(q, &in[2].layout, 3 * last_size(q) + 2 * last_size(v));
}

const cn_op cn__op_attention_backward = {
    .call = "_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? attn_mask, "
            "Tensor log_sum, bool is_causal, float scale) -> (Tensor query, Tensor key, Tensor value)",
    .name = "attention_backward",
    .doc = "Gradients of attention to q, k and v, from g, q, k, v, mask and the log of the sum.",
    .kind = CN_BLOCK,
    .n_in = 6,
    .n_out = 3,
    .optional = 16,
    .free_dtype = 16,
    .attr_size = sizeof(cn__attention_attrs),
    .infer = backward_infer,
    .grad = backward_grad,
    .strided = true,
    .strided_out = 7,
    .cpu = backward_cpu,
    .scratch = backward_scratch,
    .gpu = cn__attention_backward_gpu,
    .flops = backward_flops,
    .attention = true,
    CN_CASES(
        { CN_IN(CN_S(2, 3, 3), CN_S(2, 3, 4), CN_S(2, 5, 4), CN_S(2, 5, 3), CN_ABSENT, CN_RANGE(1, 3, 2, 3)),
          CAUSAL(0),
          SCALE(0.5) },
        { CN_IN(CN_S(2, 4, 3, 3), CN_S(2, 4, 3, 4), CN_S(2, 2, 5, 4), CN_S(2, 2, 5, 3), CN_ABSENT,
                  CN_RANGE(1, 3, 2, 4, 3)),
          CAUSAL(1),
          DROP(0.4, 0.3) },
        { CN_IN(CN_S(2, 3, 2), CN_S(2, 3, 4), CN_S(2, 6, 4), CN_S(2, 6, 2), CN_BOOLS(3, 6), CN_RANGE(1, 3, 2, 3)),
          CAUSAL(0),
          SCALE(0.5) },
        { CN_IN(CN_S(3, 2), CN_S(3, 4), CN_S(5, 4), CN_S(5, 2), CN_S(1, 5), CN_RANGE(1, 3, 3)),
          CAUSAL(0),
          SCALE(0.5) },
        { CN_IN(CN_S(2, 3, 3), CN_S(2, 3, 4), CN_S(2, 0, 4), CN_S(2, 0, 3), CN_ABSENT, CN_RANGE(1, 3, 2, 3)),
          CAUSAL(0),
          SCALE(0.5) },
        { CN_IN(CN_S(2, 3, 23, 11), CN_S(2, 3, 23, 9), CN_S(2, 3, 29, 9), CN_S(2, 3, 29, 11), CN_ABSENT,
                  CN_RANGE(3, 4, 2, 3, 23)),
          CAUSAL(1),
          DROP(0.25, 0.1) },
        { CN_IN(CN_S(4, 101, 17), CN_S(4, 101, 5), CN_S(2, 110, 5), CN_S(2, 110, 17), CN_ABSENT,
                  CN_RANGE(4, 6, 4, 101)),
          CAUSAL(1),
          SCALE(0.5) }),
};
