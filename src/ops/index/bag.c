/* embedding_bag: sums, means or largest elements of rows of a weight, for each bag of indices. All rows are looked up at
   once; index_add or index_reduce then collects those of each bag. Padding goes to a bag of its own, which is dropped. */
#include "ops/index/index.h"

static bool check_bags(cn_ctx *ctx, cn_tensor *const *in, const cn__bag_attrs *a)
{
    const cn_tensor *weight = in[0], *indices = in[1], *offsets = in[2], *scales = in[3];
    const cn_layout *l = cn__layout(indices);
    char s[96], t[96], u[96];
    if (cn__layout(weight)->ndim != 2 || l->ndim != (offsets ? 1 : 2) || (offsets && cn__layout(offsets)->ndim != 1))
        return cn__fail(
            ctx, CN_BAD_SHAPE,
            "embedding_bag: weight must be (rows, width), and indices (bags, n) or (n) with offsets (bags), "
            "got %s, %s and offsets %s",
            cn__shape_text(cn__layout(weight), s, sizeof s), cn__shape_text(l, t, sizeof t),
            offsets ? cn__shape_text(cn__layout(offsets), u, sizeof u) : "NULL");
    if (a->mode < 0 || a->mode > CN_BAG_MAX)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "embedding_bag: mode must be a cn_bag_mode, got %lld",
                        (long long)a->mode);
    if (scales && (a->mode != CN_BAG_SUM || !cn__same_shape(l, cn__layout(scales))))
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "embedding_bag: per_sample_weights are for sums, and must have the shape of the indices %s, "
                        "got %s",
                        cn__shape_text(l, s, sizeof s), cn__shape_text(cn__layout(scales), t, sizeof t));
    if (scales && cn__dtype(scales) != cn__dtype(weight))
        return cn__fail(ctx, CN_BAD_DTYPE, "embedding_bag: per_sample_weights must have the weight's dtype %s, got %s",
                        cn_dtype_name(cn__dtype(weight)), cn_dtype_name(cn__dtype(scales)));
    if (offsets && a->include_last_offset && cn__layout(offsets)->shape[0] < 1)
        return cn__fail(ctx, CN_BAD_SHAPE, "embedding_bag: offsets must not be empty with include_last_offset");
    return true;
}

/* The bag of each index: with offsets, the last that begins before it or there. */
static cn_tensor *bags_of(cn_ctx *ctx, cn_tensor *indices, cn_tensor *offsets)
{
    const int64_t n = cn_numel(indices);
    cn_tensor *place = cn_arange(ctx, CN_I64, 0, (double)n, 1);
    if (!offsets) return n ? cn_floor_div_s(place, (double)cn_size(indices, 1)) : place;
    return cn_sub_s(cn_searchsorted(cn_cast(offsets, CN_I64), place, false, true, NULL), 1);
}

/* rows (n, width) of bags (n) → (count, width) */
static cn_tensor *collected(cn_tensor *rows, cn_tensor *bags, int64_t count, int64_t mode)
{
    if (!rows || !bags) return NULL;
    cn_ctx *ctx = rows->ctx;
    const cn_dtype t = cn__dtype(rows);
    cn_tensor *none = cn_zeros(ctx, t, CN_DIMS(count, cn_size(rows, 1)));
    if (mode == CN_BAG_MAX) return cn_index_reduce(none, 0, bags, rows, CN_FOLD_AMAX, false);
    cn_tensor *sum = cn_index_add(none, 0, bags, rows);
    if (mode == CN_BAG_SUM) return sum;
    cn_tensor *one = cn_ones(ctx, CN_F32, cn_shape(bags));
    cn_tensor *sizes = cn_index_add(cn_zeros(ctx, CN_F32, CN_DIMS(count)), 0, bags, one);
    return cn_div(sum, cn_cast(cn_unsqueeze(cn_maximum_s(sizes, 1), -1), t));
}

/* in: weight, indices, offsets or NULL, per_sample_weights or NULL */
static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__bag_attrs *a = attrs;
    if (!check_bags(ctx, in, a)) return NULL;
    const int64_t n = cn_numel(in[1]);
    const int64_t count = in[2] ? cn_numel(in[2]) - (a->include_last_offset != 0) : cn_size(in[1], 0);
    cn_tensor *indices = cn_reshape(in[1], CN_DIMS(n)), *bags = bags_of(ctx, in[1], in[2]);
    cn_tensor *rows = cn_embedding(in[0], indices);
    if (in[3]) rows = cn_mul(rows, cn_reshape(in[3], CN_DIMS(n, 1)));
    if (a->padding >= 0)
        bags = cn_where(cn_eq_s(indices, (double)a->padding), cn_full(ctx, CN_I64, CN_DIMS(n), (double)count), bags);
    return cn_narrow(collected(rows, bags, count + 1, a->mode), 0, 0, count);
}

#define BAG(mode, last, padding) \
    .attrs = &(const cn__bag_attrs) { mode, last, padding }
const cn_op cn__op_embedding_bag = {
    .call = "embedding_bag(Tensor weight, Tensor indices, Tensor? offsets=None, *, mean|sum|max mode=mean, "
            "Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Tensor",
    .name = "embedding_bag",
    .doc = "For each bag of indices the mean, sum or largest elements of the rows of the weight that they name.",
    .kind = CN_COMPOSITE,
    .n_in = 4,
    .n_out = 1,
    .optional = 12,
    .free_dtype = 6,
    .not_differentiable = 6,
    .attr_size = sizeof(cn__bag_attrs),
    .compose = compose,
    CN_CASES({ CN_IN(CN_S(6, 4), CN_IDX(6, 2, 5), CN_ABSENT, CN_ABSENT), BAG(CN_BAG_MEAN, 0, -1) },
             { CN_IN(CN_S(6, 4), CN_IDX(6, 3, 4), CN_ABSENT, CN_S(3, 4)), BAG(CN_BAG_SUM, 0, 2) },
             { CN_IN(CN_S(6, 3), CN_IDX(6, 3, 4), CN_ABSENT, CN_ABSENT), BAG(CN_BAG_MAX, 0, 1) },
             { CN_IN(CN_S(5, 3), CN_IDX(5, 7), CN_PERM(1), CN_ABSENT), BAG(CN_BAG_MEAN, 0, 3) },
             { CN_IN(CN_S(5, 3), CN_IDX(5, 0, 4), CN_ABSENT, CN_ABSENT), BAG(CN_BAG_SUM, 0, -1) },
             { CN_IN(CN_S(5, 3), CN_IDX(5, 2, 0), CN_ABSENT, CN_ABSENT), BAG(CN_BAG_MAX, 0, -1) },
             { CN_IN(CN_S(70, 33), CN_IDX(70, 40, 20), CN_ABSENT, CN_ABSENT), BAG(CN_BAG_MEAN, 0, 0) }),
};

cn_tensor *cn_embedding_bag(cn_tensor *weight, cn_tensor *indices, cn_tensor *offsets,
                            const cn_embedding_bag_desc *desc)
{
    CN__CALL call = cn__enter_tensor(weight, "embedding_bag");
    if (!call.ctx) return NULL;
    const cn_embedding_bag_desc d = desc ? *desc : (cn_embedding_bag_desc){ .mode = CN_BAG_MEAN };
    const int64_t rows = cn_ndim(weight) ? cn_size(weight, 0) : 0;
    const int64_t padding = !d.has_padding ? -1 : d.padding_idx < 0 ? d.padding_idx + rows : d.padding_idx;
    if (d.has_padding && (padding < 0 || padding >= rows)) {
        cn__fail(weight->ctx, CN_BAD_ARGUMENT, "embedding_bag: padding_idx must be from %lld to %lld, got %lld",
                 (long long)-rows, (long long)rows - 1, (long long)d.padding_idx);
        return NULL;
    }
    cn__bag_attrs a = { (int64_t)d.mode, d.include_last_offset, padding };
    return cn_apply(&cn__op_embedding_bag, (cn_tensor *[]){ weight, indices, offsets, d.per_sample_weights }, 4, &a,
                    NULL);
}
