/* searchsorted and bucketize: where values would be inserted into a sorted sequence, found by halving. */
#include "ops/scan/scan.h"
#include "gpu/shaders.h"

/* Rows of m values, each with its own sequence of n elements, or all with one. */
typedef struct job {
    int64_t n, m;
    const void *sequence, *values;
    bool shared, right;
} job;

#define TEMPLATE "ops/scan/search_body.h"
#define TYPES    CN__FLOAT_TYPES | CN__WHOLE_TYPES
#include "cpu/each_type.h"

static void search(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = user;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = j->shared ? 0 : i / j->m * j->n;
        int64_t at;
        switch (k->in[0].dtype) {
        case CN_U8: at = place_u8(j, row, i); break;
        case CN_I8: at = place_i8(j, row, i); break;
        case CN_I16: at = place_i16(j, row, i); break;
        case CN_I32: at = place_i32(j, row, i); break;
        case CN_I64: at = place_i64(j, row, i); break;
        case CN_F32: at = place_f32(j, row, i); break;
        default: at = place_f64(j, row, i); break;
        }
        if (k->out[0].dtype == CN_I32) ((int32_t *)k->out[0].data)[i] = (int32_t)at;
        else ((int64_t *)k->out[0].data)[i] = at;
    }
}

static void cpu(const cn_kernel *k)
{
    const cn_array *s = &k->in[0], *v = &k->in[1];
    const cn__search_attrs *a = k->attrs;
    job j = { .n = s->shape[s->ndim - 1],
              .m = v->ndim ? v->shape[v->ndim - 1] : 1,
              .sequence = s->data,
              .values = v->data,
              .shared = s->ndim == 1,
              .right = a->right };
    if (v->numel) cn_parallel(k, v->numel, 1024, search, &j);
}

static bool gpu(cn_gpu_call *c)
{
    const cn_array *s = &c->in[0], *v = &c->in[1];
    const cn__search_attrs *a = c->attrs;
    cn_gpu_param(c, s->shape[s->ndim - 1]);
    cn_gpu_param(c, v->ndim ? v->shape[v->ndim - 1] : 1);
    return cn_gpu_run(
        c, &(cn_gpu_launch){ .shader = cn__wgsl_search,
                             .holes = CN_GPU_HOLES(CN_GPU_FLAG("shared", s->ndim == 1), CN_GPU_FLAG("right", a->right),
                                                   CN_GPU_FLAG("float", cn_dtype_is_float(s->dtype))),
                             .each = v->numel });
}

/* sequence (n) and values of any shape, or sequence (..., n) and values (..., m) */
static bool infer(cn_infer *i)
{
    const cn_layout *s = &i->in[0]->layout, *v = &i->in[1]->layout;
    const cn__search_attrs *a = i->attrs;
    bool fits = s->ndim > 0 && (s->ndim == 1 || s->ndim == v->ndim);
    for (int d = 0; d + 1 < s->ndim && fits; d++) fits = s->shape[d] == v->shape[d];
    char x[96], y[96];
    if (!fits)
        return cn_infer_fail(i, CN_BAD_SHAPE,
                             "sorted_sequence must have one axis, or the axes of the values with their sizes except "
                             "the last, got %s and values %s",
                             cn__shape_text(s, x, sizeof x), cn__shape_text(v, y, sizeof y));
    i->out[0].dtype = a->int32 ? CN_I32 : CN_I64;
    i->out[0].layout = *v;
    return true;
}

#define WHERE(right, int32) \
    .attrs = &(const cn__search_attrs) { right, int32 }
const cn_op cn__op_searchsorted = {
    .call = "searchsorted(Tensor sorted_sequence, Tensor input, *, bool out_int32=False, bool right=False, "
            "Tensor? sorter=None) -> Tensor",
    .name = "searchsorted",
    .doc =
        "Where elements of y would be inserted into x, sorted along its last axis: the first place that keeps order.",
    .kind = CN_INDEX,
    .n_in = 2,
    .n_out = 1,
    .dtypes = CN_NUMBERS,
    .not_differentiable = 3,
    .no_grad = "an index does not change smoothly",
    .attr_size = sizeof(cn__search_attrs),
    .infer = infer,
    .cpu = cpu,
    .gpu = gpu,
    CN_CASES({ CN_IN(CN_S(7), CN_S(3, 4)), WHERE(0, 0) }, { CN_IN(CN_S(2, 3, 5), CN_S(2, 3, 4)), WHERE(1, 0) },
             { CN_IN(CN_S(4), CN_S0), WHERE(1, 1) }, { CN_IN(CN_S(0), CN_S(3)), WHERE(0, 0) },
             { CN_IN(CN_S(3), CN_S(0, 2)), WHERE(0, 0) }, { CN_IN(CN_S(1000), CN_S(4000)), WHERE(1, 0) },
             { CN_IN(CN_S(40, 33), CN_S(40, 50)), WHERE(0, 1) }),
};

/* A sorter sorts the sequence first, which also checks it. */
cn_tensor *cn_searchsorted(cn_tensor *sequence, cn_tensor *values, bool int32, bool right, cn_tensor *sorter)
{
    CN__CALL call = cn__enter_tensor(sequence, "searchsorted");
    if (!call.ctx || !cn__of_context(sequence->ctx, values, "searchsorted", "input") ||
        (sorter && !cn__of_context(sequence->ctx, sorter, "searchsorted", "sorter")))
        return NULL;
    if (sorter && !cn__same_shape(cn__layout(sequence), cn__layout(sorter))) {
        char s[96], t[96];
        cn__fail(sequence->ctx, CN_BAD_SHAPE, "searchsorted: sorter must have the shape of sorted_sequence %s, got %s",
                 cn__shape_text(cn__layout(sequence), s, sizeof s), cn__shape_text(cn__layout(sorter), t, sizeof t));
        return NULL;
    }
    cn_scope s = cn_scope_begin(sequence->ctx);
    cn_tensor *in[] = { sorter ? cn_gather(sequence, -1, sorter) : sequence, values };
    return cn_scope_return(sequence->ctx, s,
                           cn_apply(&cn__op_searchsorted, in, 2, &(cn__search_attrs){ right, int32 }, NULL));
}

static cn_tensor *compose_bucketize(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__search_attrs *a = attrs;
    if (cn_ndim(in[1]) == 1) return cn_searchsorted(in[1], in[0], a->int32, a->right, NULL);
    cn__fail(ctx, CN_BAD_SHAPE, "bucketize: boundaries must have one axis, got %d", cn_ndim(in[1]));
    return NULL;
}

const cn_op cn__op_bucketize = {
    .call = "bucketize(Tensor input, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    .name = "bucketize",
    .doc = "For each element of x the interval between sorted boundaries that it lies in.",
    .kind = CN_COMPOSITE,
    .n_in = 2,
    .n_out = 1,
    .dtypes = CN_NUMBERS,
    .not_differentiable = 3,
    .no_grad = "an index does not change smoothly",
    .attr_size = sizeof(cn__search_attrs),
    .compose = compose_bucketize,
    CN_CASES({ CN_IN(CN_S(3, 4), CN_S(7)), WHERE(0, 0) }, { CN_IN(CN_S0, CN_S(3)), WHERE(1, 1) },
             { CN_IN(CN_S(0, 2), CN_S(3)), WHERE(0, 0) }, { CN_IN(CN_S(60, 70), CN_S(100)), WHERE(1, 0) }),
};

cn_tensor *cn_bucketize(cn_tensor *x, cn_tensor *boundaries, bool int32, bool right)
{
    return cn_apply(&cn__op_bucketize, (cn_tensor *[]){ x, boundaries }, 2, &(cn__search_attrs){ right, int32 }, NULL);
}
