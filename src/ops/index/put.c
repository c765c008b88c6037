/* take and put: elements of the flat tensor, named by indices that may count from the end. Also wrap_index, which makes
   such indices positive. */
#include "ops/index/index.h"
#include "gpu/shaders.h"

static bool infer_wrap(cn_infer *i)
{
    if (!cn__infer_index(i, 0)) return false;
    i->out[0].dtype = CN_I64;
    i->out[0].layout = i->in[0]->layout;
    return true;
}

static void wrap(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)user, (void)thread;
    int64_t size = ((const cn__wrap_attrs *)k->attrs)->size, *out = k->out[0].data;
    for (int64_t p = begin; p < end; p++) {
        int64_t t = cn__index_at(&k->in[0], p);
        bool fine = t >= -size && t < size;
        if (!fine) cn_kernel_fault(k, t, size);
        out[p] = !fine ? 0 : t < 0 ? t + size : t;
    }
}

static void cpu_wrap(const cn_kernel *k) { cn_parallel(k, k->in[0].numel, 16384, wrap, NULL); }

static bool gpu_wrap(cn_gpu_call *c)
{
    cn_gpu_param(c, ((const cn__wrap_attrs *)c->attrs)->size);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_wrap_index, .each = c->in[0].numel });
}

const cn_op cn__op_wrap_index = {
    .call = "_wrap_index(Tensor index, int size) -> Tensor",
    .name = "wrap_index", .doc = "Indices along an axis; those that count from its end are made positive.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 1, .free_dtype = 1, .not_differentiable = 1, .checks_index = true,
    .attr_size = sizeof(cn__wrap_attrs), .infer = infer_wrap, .no_grad = "indices have no gradient", .cpu = cpu_wrap,
    .gpu = gpu_wrap,
    CN_CASES({ CN_IN(CN_IDX(5, 3, 4)), .attrs = &(const cn__wrap_attrs){ 5 } },
             { CN_IN(CN_IDX(5, 0)), .attrs = &(const cn__wrap_attrs){ 5 } },
             { CN_IN(CN_IDX(900, 3000)), .attrs = &(const cn__wrap_attrs){ 1000 } },
             { CN_IN(CN_IDX(900, 40000)), .attrs = &(const cn__wrap_attrs){ 1000 } }),
};

cn_tensor *cn__wrap_index(cn_tensor *index, int64_t size)
{
    return cn_apply(&cn__op_wrap_index, &index, 1, &(cn__wrap_attrs){ size }, NULL);
}

static cn_tensor *compose_take(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)attrs, (void)args;
    cn_tensor *x = in[0], *index = in[1];
    int64_t size = cn_numel(x), n = cn_numel(index);
    if (size == 0 && n > 0) {
        cn__fail(ctx, CN_BAD_SHAPE, "take: the index must be empty if x is, got %lld indices", (long long)n);
        return NULL;
    }
    cn_tensor *at = cn_reshape(cn__wrap_index(index, size), CN_DIMS(n));
    return cn_reshape(cn_index_select(cn_reshape(x, CN_DIMS(size)), 0, at), cn_shape(index));
}

const cn_op cn__op_take = {
    .call = "take(Tensor input, Tensor index) -> Tensor",
    .name = "take", .doc = "The elements of the flat tensor that the indices name, in the shape of the index.",
    .kind = CN_COMPOSITE, .n_in = 2, .n_out = 1, .dtypes = CN_ANY, .free_dtype = 2, .not_differentiable = 2,
    .compose = compose_take,
    CN_CASES({ CN_IN(CN_S(4, 5), CN_IDX(20, 3, 2)) }, { CN_IN(CN_S(3), CN_IDX(3, 0)) },
             { CN_IN(CN_S0, CN_IDX(1, 2)) }, { CN_IN(CN_S(2, 3), CN_IDX0(6)) },
             { CN_IN(CN_S(40, 50), CN_IDX(2000, 77, 39)) }),
};

cn_tensor *cn_take(cn_tensor *x, cn_tensor *index)
{
    return cn_apply(&cn__op_take, (cn_tensor *[]){ x, index }, 2, NULL, NULL);
}

/* in: x, index, source of as many elements as the index */
static cn_tensor *compose_put(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const int64_t size = cn_numel(in[0]), n = cn_numel(in[1]);
    if (n != cn_numel(in[2]) || (size == 0 && n > 0)) {
        cn__fail(ctx, CN_BAD_SHAPE,
                 "put: the source must have as many elements as the index, and x some if the index has, got %lld "
                 "elements, %lld indices and %lld elements of x",
                 (long long)cn_numel(in[2]), (long long)n, (long long)size);
        return NULL;
    }
    cn_tensor *at = cn_reshape(cn__wrap_index(in[1], size), CN_DIMS(n)), *x = cn_reshape(in[0], CN_DIMS(size));
    cn_tensor *source = cn_reshape(in[2], CN_DIMS(n));
    const cn__accumulate_attrs *a = attrs;
    return cn_reshape(a->accumulate ? cn_index_add(x, 0, at, source) : cn__index_copy(x, 0, at, source),
                      cn_shape(in[0]));
}

const cn_op cn__op_put = {
    .call = "put(Tensor input, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    .name = "put", .doc = "The flat tensor with a source's elements written, or added, where the indices say.",
    .kind = CN_COMPOSITE, .n_in = 3, .n_out = 1, .dtypes = CN_ANY, .free_dtype = 2, .not_differentiable = 2,
    .attr_size = sizeof(cn__accumulate_attrs), .compose = compose_put,
    CN_CASES({ CN_IN(CN_S(4, 5), CN_IDX_FROM(-20, 20, 3, 2), CN_S(6)), .attrs = &(const cn__accumulate_attrs){ 1 } },
             { CN_IN(CN_S(2, 3), CN_PERM(6), CN_S(3, 2)), .attrs = &(const cn__accumulate_attrs){ 0 } },
             { CN_IN(CN_S(3), CN_IDX(3, 0), CN_S(0)), .attrs = &(const cn__accumulate_attrs){ 0 } },
             { CN_IN(CN_S0, CN_IDX(1, 1), CN_S(1)), .attrs = &(const cn__accumulate_attrs){ 0 } },
             { CN_IN(CN_S(40, 50), CN_IDX(2000, 77, 39), CN_S(77, 39)),
               .attrs = &(const cn__accumulate_attrs){ 1 } }),
};

cn_tensor *cn_put(cn_tensor *x, cn_tensor *index, cn_tensor *source, bool accumulate)
{
    return cn_apply(&cn__op_put, (cn_tensor *[]){ x, index, source }, 3, &(cn__accumulate_attrs){ accumulate }, NULL);
}
