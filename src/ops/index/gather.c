/* gather: out[i][j] = x[index[i][j]][j] along axis 0, out[i][j] = x[i][index[i][j]] along axis 1, and so on. The result
   has the shape of the index. */
#include "ops/index/index.h"
#include "gpu/shaders.h"

/* As in PyTorch, the index may not be larger than x along the other axes; an empty index always fits. */
static bool infer(cn_infer *i)
{
    const cn__index_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout, *index = &i->in[1]->layout;
    if (!cn__infer_index(i, 1)) return false;
    bool fits = (x->ndim ? x->ndim : 1) == (index->ndim ? index->ndim : 1);
    for (int d = 0; d < index->ndim && d < x->ndim; d++) fits &= d == a->axis || index->shape[d] <= x->shape[d];
    if (!fits && cn__numel(index) > 0) {
        char s[96], t[96];
        return cn_infer_fail(i, CN_BAD_SHAPE,
                             "index must have the axes of x %s and be no larger than x except along axis %d, got %s",
                             cn__shape_text(x, t, sizeof t), (int)a->axis, cn__shape_text(index, s, sizeof s));
    }
    i->out[0].dtype = i->in[0]->dtype;
    i->out[0].layout = *index;
    return true;
}

static void grad(cn_grad_call *g)
{
    const cn__index_attrs *a = g->attrs;
    if (g->needs[0]) g->in_grad[0] = cn_scatter_add(cn__zeros_for(g, 0), a->axis, g->in[1], g->out_grad[0]);
}

/* Elements [begin, end) of the result, in runs along the last axis, or along the gathered axis if it is the last. */
static void body(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__space *s = user;
    int64_t inner = s->inner.numel, length = inner == 1 ? s->n : s->inner.shape[0];
    cn__pick run = { .size = s->size, .step = s->x_step, .next = inner != 1 };
    for (int64_t p = begin; p < end; p += run.count) {
        int64_t left = length - p % length, unused = 0;
        run.at = run.index = p;
        run.count = left < end - p ? left : end - p;
        run.x = 0;
        cn__side_offset(&s->outer, p / (s->n * inner), &run.x, &unused);
        cn__side_offset(&s->inner, p % inner, &run.x, &unused);
        cn__pick_run(k, &run);
    }
}

static void cpu(const cn_kernel *k)
{
    if (k->out[0].numel == 0) return;
    cn__space s;
    cn__space_of(&s, &k->in[1], &k->in[0], &k->in[1], ((const cn__index_attrs *)k->attrs)->axis);
    cn_parallel(k, k->out[0].numel, 8192, body, &s);
}

/* The parameters are those of gather.wgsl. */
static bool gpu(cn_gpu_call *c)
{
    if (c->out[0].numel == 0) return true;
    cn__space s;
    cn__space_of(&s, &c->in[1], &c->in[0], &c->in[1], ((const cn__index_attrs *)c->attrs)->axis);
    const int64_t numbers[] = { s.inner.numel, s.n, s.size, s.x_step };
    for (int k = 0; k < 4; k++) cn_gpu_param(c, numbers[k]);
    const char *outer = cn__gpu_side(c, "outer", &s.outer), *inner = cn__gpu_side(c, "inner", &s.inner);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_gather,
                                           .holes = CN_GPU_HOLES(CN_GPU_TEXT("outer", outer),
                                                                 CN_GPU_TEXT("inner", inner)),
                                           .each = c->out[0].numel });
}

const cn_op cn__op_gather = {
    .call = "gather(Tensor input, int dim, Tensor index) -> Tensor",
    .name = "gather", .doc = "The elements of x along an axis that an index names, one for each element of the index.",
    .kind = CN_INDEX, .n_in = 2, .n_out = 1, .dtypes = CN_ANY, .free_dtype = 2, .not_differentiable = 2,
    .checks_index = true, .attr_size = sizeof(cn__index_attrs), .infer = infer, .grad = grad, .cpu = cpu,
    .gpu = gpu, .onnx = "GatherElements",
    CN_CASES({ CN_IN(CN_S(4, 5), CN_IDX(5, 4, 3)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S(4, 5), CN_IDX(4, 7, 5)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(4, 3, 5), CN_IDX(3, 2, 6, 3)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S(3, 4, 2, 3), CN_IDX(3, 2, 4, 1, 2)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(3, 4), CN_IDX(1, 3, 0)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S0, CN_IDX(1, 3)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(3), CN_IDX0(3)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(33, 70, 5), CN_IDX(70, 33, 61, 5)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S(90, 130), CN_IDX(130, 90, 120)), .attrs = &(const cn__index_attrs){ 1 } }),
};

cn_tensor *cn_gather(cn_tensor *x, int64_t axis, cn_tensor *index)
{
    cn__index_attrs a;
    if (!cn__index_axis("gather", x, axis, &a)) return NULL;
    return cn_apply(&cn__op_gather, (cn_tensor *[]){ x, index }, 2, &a, NULL);
}
