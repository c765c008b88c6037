/* take and index_put: elements of the whole tensor, named by indices that may count from the end. Also wrap_index,
   which makes such indices positive. */
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

/* Combines n indices, which broadcast, into one index into the first n axes of x, joined to one axis. */
static cn_tensor *linear_index(cn_tensor *const *index, int64_t n, cn_dims x)
{
    cn_tensor *at = cn__wrap_index(index[0], x.v[0]);
    for (int64_t d = 1; d < n; d++) at = cn_add(cn_mul_s(at, (double)x.v[d]), cn__wrap_index(index[d], x.v[d]));
    return at;
}

/* One index for each axis that is named. */
typedef struct indices {
    cn_tensor *of[CN_MAX_DIMS];
    int64_t n;
} indices;

/* The axes that an index names, from axis `first` of x on: one, or those of a mask. 0: an error. */
static int64_t axes_of(cn_ctx *ctx, cn_tensor *index, int64_t first, cn_dims x)
{
    const bool mask = cn__dtype(index) == CN_BOOL;
    const cn_dims shape = cn_shape(index);
    const int64_t axes = mask ? shape.n : 1;
    bool fits = axes > 0 && first + axes <= x.n;
    for (int64_t d = 0; d < axes && fits && mask; d++) fits = shape.v[d] == x.v[first + d];
    char s[96];
    if (!fits)
        cn__fail(ctx, CN_BAD_SHAPE,
                 "index_put: indices must name at most the %d axes of x, and a mask must have the sizes of the axes it "
                 "names, got an index %s from axis %lld on",
                 x.n, cn__shape_text(cn__layout(index), s, sizeof s), (long long)first);
    return fits ? axes : 0;
}

/* A mask becomes an index for each axis that it names: the places where it is true. */
static void add_index(indices *all, cn_tensor *index)
{
    const bool mask = cn__dtype(index) == CN_BOOL;
    const int64_t axes = mask ? cn_ndim(index) : 1;
    cn_tensor *places = mask ? cn_nonzero(index) : index;
    for (int64_t d = 0; d < axes; d++) all->of[all->n++] = mask ? cn_select(places, 1, d) : places;
}

/* One mask and a value that does not depend on how many elements are true: the mask need not be evaluated. */
static bool is_fill(cn_tensor *const *in, int n_in, cn_dims x)
{
    return n_in == 3 && cn__dtype(in[2]) == CN_BOOL && cn_ndim(in[1]) + cn_ndim(in[2]) <= x.n;
}

static cn_tensor *fill(cn_tensor *const *in, cn_dims x, bool accumulate)
{
    cn_dims mask = cn_shape(in[2]), rest = { 0, { 0 } };
    for (int d = mask.n; d < x.n; d++) rest.v[rest.n++] = x.v[d], mask.v[d] = 1;
    mask.n = x.n;
    if (!cn__index_value("index_put", in[1], rest)) return NULL;
    return cn_where(cn_reshape(in[2], mask), accumulate ? cn_add(in[0], in[1]) : in[1], in[0]);
}

/* in: x (s0, ..., rest...), value, one index for each of s0, ..., or masks */
static cn_tensor *compose_put(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)args;
    const cn__put_attrs *a = attrs;
    cn_dims x = cn_shape(in[0]);
    if (a->n != n_in - 2) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "index_put: there must be %lld index tensors, got %d", (long long)a->n,
                 n_in - 2);
        return NULL;
    }
    for (int64_t k = 2, axes, first = 0; k < n_in; k++, first += axes)
        if (!(axes = axes_of(ctx, in[k], first, x))) return NULL;
    if (is_fill(in, n_in, x)) return fill(in, x, a->accumulate);
    indices all = { .n = 0 };
    for (int k = 2; k < n_in; k++) add_index(&all, in[k]);
    cn_tensor *at = linear_index(all.of, all.n, x);
    if (!at) return NULL;
    cn_dims slices = cn_shape(at); /* becomes the shape of the value: that of the index, then the other axes of x */
    if (slices.n + x.n - all.n > CN_MAX_DIMS) {
        cn__fail(ctx, CN_BAD_SHAPE,
                 "index_put: the axes of the index and the other axes of x must be at most %d, got %d", CN_MAX_DIMS,
                 (int)(slices.n + x.n - all.n));
        return NULL;
    }
    int64_t named = cn_numel(at), places = 1, width = 1;
    for (int d = 0; d < x.n; d++) *(d < all.n ? &places : &width) *= x.v[d];
    for (int d = (int)all.n; d < x.n; d++) slices.v[slices.n++] = x.v[d];
    if (!cn__index_value("index_put", in[1], slices)) return NULL;
    cn_tensor *flat = cn_reshape(in[0], CN_DIMS(places, width));
    cn_tensor *value = cn_reshape(cn_expand(in[1], slices), CN_DIMS(named, width));
    at = cn_reshape(at, CN_DIMS(named));
    return cn_reshape(a->accumulate ? cn_index_add(flat, 0, at, value) : cn__index_copy(flat, 0, at, value), x);
}

const cn_op cn__op_index_put = {
    .call = "index_put(Tensor input, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
    .name = "index_put", .doc = "x with x[index0, index1, ...] replaced by a value, or with the value added there.",
    .kind = CN_COMPOSITE, .n_in = 3, .n_out = 1, .variadic = true, .dtypes = CN_NUMBERS, .free_dtype = ~3u,
    .not_differentiable = ~3u, .attr_size = sizeof(cn__put_attrs), .compose = compose_put,
    .onnx = "ScatterND",
    CN_CASES({ CN_IN(CN_S(4, 5), CN_S(3, 5), CN_IDX(4, 3)), .attrs = &(const cn__put_attrs){ 1, 1 } },
             { CN_IN(CN_S(4, 5), CN_S(1, 5), CN_IDX(4, 1)), .attrs = &(const cn__put_attrs){ 1, 0 } },
             { CN_IN(CN_S(6, 3), CN_S(6, 1), CN_PERM(6)), .attrs = &(const cn__put_attrs){ 1, 0 } },
             { CN_IN(CN_S(4, 3, 5), CN_S(5), CN_IDX(4, 2, 1), CN_IDX(3, 3)),
               .attrs = &(const cn__put_attrs){ 2, 1 } },
             { CN_IN(CN_S(4, 3), CN_S0, CN_IDX(4, 6), CN_IDX(3, 6)), .attrs = &(const cn__put_attrs){ 2, 0 },
               .no_gradient_check = true /* an element is named twice */ },
             { CN_IN(CN_S(4, 3), CN_S(0, 3), CN_IDX(4, 0)), .attrs = &(const cn__put_attrs){ 1, 0 } },
             { CN_IN(CN_S(7, 3), CN_S(1, 3), CN_BOOLS(7)), .attrs = &(const cn__put_attrs){ 1, 0 } },
             { CN_IN(CN_S(7, 3), CN_S(1, 1), CN_BOOLS(7)), .attrs = &(const cn__put_attrs){ 1, 1 } },
             { CN_IN(CN_S(7, 3), CN_S(3), CN_BOOLS(7)), .attrs = &(const cn__put_attrs){ 1, 0 } },
             { CN_IN(CN_S(4, 3, 2), CN_S0, CN_BOOLS(4, 3)), .attrs = &(const cn__put_attrs){ 1, 1 } },
             { CN_IN(CN_S(4, 3, 2), CN_S(1), CN_BOOLS(4, 3, 2)), .attrs = &(const cn__put_attrs){ 1, 0 } },
             { CN_IN(CN_S(4, 3, 2), CN_S(1, 2), CN_BOOLS(4), CN_IDX(3, 1)), .attrs = &(const cn__put_attrs){ 2, 1 } },
             { CN_IN(CN_S(4, 5, 3), CN_S0, CN_IDX(4, 1), CN_BOOLS(5, 3)), .attrs = &(const cn__put_attrs){ 2, 0 } },
             { CN_IN(CN_S(60, 70), CN_S(50, 40), CN_IDX(60, 50, 1), CN_IDX(70, 40)),
               .attrs = &(const cn__put_attrs){ 2, 1 } }),
};

cn_tensor *cn_index_put(cn_tensor *x, cn_tensor *const *index, int n, cn_tensor *value, bool accumulate)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx || !cn__of_context(x->ctx, value, __func__, "values")) return NULL;
    cn_dtype own = cn__dtype(x), given = cn__dtype(value);
    if (!index || n < 1 || n > cn_ndim(x)) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "index_put: there must be 1 to %d indices, one for each axis of x, got %d",
                 cn_ndim(x), index ? n : 0);
        return NULL;
    }
    if (own != given) {
        cn__fail(x->ctx, CN_BAD_DTYPE, "index_put: values must have x's dtype %s, got %s; convert them with cn_cast",
                 cn_dtype_name(own), cn_dtype_name(given));
        return NULL;
    }
    cn_tensor *in[2 + CN_MAX_DIMS] = { x, value };
    memcpy(in + 2, index, sizeof *in * (size_t)n);
    return cn_apply(&cn__op_index_put, in, n + 2, &(cn__put_attrs){ n, accumulate }, NULL);
}
