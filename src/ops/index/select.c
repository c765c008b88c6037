/* index_select and embedding: whole slices of x, named by indices. */
#include "ops/index/index.h"
#include "gpu/shaders.h"

/* x (..., size, ...), index (n) → (..., n, ...); a scalar stays a scalar. */
static bool infer_select(cn_infer *i)
{
    const cn__index_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout, *index = &i->in[1]->layout;
    char s[96];
    if (!cn__infer_index(i, 1)) return false;
    if (index->ndim > 1)
        return cn_infer_fail(i, CN_BAD_SHAPE, "index must have one axis, got %s", cn__shape_text(index, s, sizeof s));
    if (x->ndim == 0 && cn__numel(index) != 1)
        return cn_infer_fail(i, CN_BAD_SHAPE, "index must have one element if x is a scalar, got %s",
                             cn__shape_text(index, s, sizeof s));
    i->out[0].dtype = i->in[0]->dtype;
    i->out[0].layout = *x;
    if (x->ndim) i->out[0].layout.shape[a->axis] = cn__numel(index);
    return true;
}

static void grad_select(cn_grad_call *g)
{
    const cn__index_attrs *a = g->attrs;
    if (g->needs[0]) g->in_grad[0] = cn_index_add(cn__zeros_for(g, 0), a->axis, g->in[1], g->out_grad[0]);
}

/* weight (rows, width), index (...) → (..., width) */
static bool infer_embedding(cn_infer *i)
{
    const cn_layout *w = &i->in[0]->layout, *index = &i->in[1]->layout;
    char s[96];
    if (!cn__infer_index(i, 1)) return false;
    if (w->ndim != 2)
        return cn_infer_fail(i, CN_BAD_SHAPE, "weight must be (rows, width), got %s", cn__shape_text(w, s, sizeof s));
    if (index->ndim == CN_MAX_DIMS)
        return cn_infer_fail(i, CN_BAD_SHAPE, "indices may have at most %d axes, got %d", CN_MAX_DIMS - 1,
                             index->ndim);
    i->out[0].dtype = i->in[0]->dtype;
    i->out[0].layout = *index;
    i->out[0].layout.shape[i->out[0].layout.ndim++] = w->shape[1];
    return true;
}

static void grad_embedding(cn_grad_call *g)
{
    if (g->needs[0]) g->in_grad[0] = cn__embedding_backward(g->out_grad[0], g->in[1], cn_size(g->in[0], 0));
}

/* Elements [begin, end) of the result, slice by slice. */
static void slices(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__around *x = user;
    int64_t item = (int64_t)cn_dtype_size(k->in[0].dtype), inner = x->inner, n = k->in[1].numel, count;
    for (int64_t p = begin; p < end; p += count) {
        int64_t slice = p / inner, skip = p % inner, t = cn__index_at(&k->in[1], slice % n);
        char *out = (char *)k->out[0].data + p * item;
        count = inner - skip < end - p ? inner - skip : end - p;
        if (t >= 0 && t < x->n) {
            int64_t from = (slice / n * x->n + t) * inner + skip;
            memcpy(out, (const char *)k->in[0].data + from * item, (size_t)(count * item));
        } else {
            cn_kernel_fault(k, t, x->n);
            memset(out, 0, (size_t)(count * item));
        }
    }
}

/* The same if slices are single elements. */
static void elements(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__around *x = user;
    int64_t n = k->in[1].numel;
    cn__pick run = { .size = x->n, .step = 1 };
    for (int64_t p = begin; p < end; p += run.count) {
        run.at = p;
        run.index = p % n;
        run.x = p / n * x->n;
        run.count = n - run.index < end - p ? n - run.index : end - p;
        cn__pick_run(k, &run);
    }
}

static void select_along(const cn_kernel *k, int64_t axis)
{
    cn__around x = cn__around_axis(k->in[0].ndim, k->in[0].shape, axis);
    if (k->out[0].numel) cn_parallel(k, k->out[0].numel, 16384, x.inner == 1 ? elements : slices, &x);
}

static void cpu_select(const cn_kernel *k) { select_along(k, ((const cn__index_attrs *)k->attrs)->axis); }
static void cpu_embedding(const cn_kernel *k) { select_along(k, 0); }

/* The result is (outer, indices, inner). The parameters are those of select.wgsl. */
static bool gpu_along(cn_gpu_call *c, int64_t axis)
{
    cn__around x = cn__around_axis(c->in[0].ndim, c->in[0].shape, axis);
    cn_gpu_param(c, x.inner);
    cn_gpu_param(c, c->in[1].numel);
    cn_gpu_param(c, x.n);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_select, .each = c->out[0].numel });
}

static bool gpu_select(cn_gpu_call *c) { return gpu_along(c, ((const cn__index_attrs *)c->attrs)->axis); }
static bool gpu_embedding(cn_gpu_call *c) { return gpu_along(c, 0); }

/* Only the picked slices are read. */
static double picked_bytes(const cn_meta *in, const cn_meta *out, const void *attrs)
{
    (void)attrs;
    return 2.0 * (double)cn__numel(&out->layout) * (double)cn_dtype_size(out->dtype) +
           (double)cn__numel(&in[1].layout) * (double)cn_dtype_size(in[1].dtype);
}

const cn_op cn__op_index_select = {
    .call = "index_select(Tensor input, int dim, Tensor index) -> Tensor",
    .name = "index_select", .doc = "The slices along an axis that a list of indices names.",
    .kind = CN_INDEX, .n_in = 2, .n_out = 1, .dtypes = CN_ANY, .free_dtype = 2, .not_differentiable = 2,
    .checks_index = true, .attr_size = sizeof(cn__index_attrs), .infer = infer_select, .grad = grad_select,
    .cpu = cpu_select, .gpu = gpu_select, .bytes = picked_bytes, .onnx = "Gather",
    CN_CASES({ CN_IN(CN_S(4, 5), CN_IDX(5, 7)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S(3, 4, 5), CN_IDX(4, 3)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S(7), CN_IDX(7, 9)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(3, 4), CN_IDX(4, 0)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S(3, 0), CN_IDX(3, 4)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S0, CN_IDX(1, 1)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(3, 2), CN_IDX0(3)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(50, 300), CN_IDX(50, 131)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(120, 30), CN_IDX(30, 200)), .attrs = &(const cn__index_attrs){ 1 } }),
};

const cn_op cn__op_embedding = {
    .call = "embedding(Tensor weight, Tensor indices) -> Tensor",
    .name = "embedding", .doc = "For each index the row of the weight that it names.",
    .kind = CN_INDEX, .n_in = 2, .n_out = 1, .dtypes = CN_ANY, .free_dtype = 2, .not_differentiable = 2,
    .checks_index = true, .infer = infer_embedding, .grad = grad_embedding, .cpu = cpu_embedding, .gpu = gpu_embedding,
    .bytes = picked_bytes, .onnx = "Gather",
    CN_CASES({ CN_IN(CN_S(6, 4), CN_IDX(6, 2, 5)) }, { CN_IN(CN_S(5, 3), CN_IDX(5, 0)) },
             { CN_IN(CN_S(5, 0), CN_IDX(5, 2)) }, { CN_IN(CN_S(5, 3), CN_IDX0(5)) },
             { CN_IN(CN_S(1, 1), CN_IDX(1, 3)) }, { CN_IN(CN_S(70, 100), CN_IDX(70, 20, 11)) }),
};

cn_tensor *cn_index_select(cn_tensor *x, int64_t axis, cn_tensor *index)
{
    cn__index_attrs a;
    if (!cn__index_axis("index_select", x, axis, &a)) return NULL;
    return cn_apply(&cn__op_index_select, (cn_tensor *[]){ x, index }, 2, &a, NULL);
}

cn_tensor *cn_embedding(cn_tensor *weight, cn_tensor *index)
{
    return cn_apply(&cn__op_embedding, (cn_tensor *[]){ weight, index }, 2, NULL, NULL);
}
