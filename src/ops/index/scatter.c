/* scatter, scatter_add, index_copy, index_add, embedding_backward: the elements of a source are written into x, or
   added to it, where an index says. Along the axis this happens in the order of the index: the last write wins, and
   sums are always added in the same order. Lines along the axis are independent, so threads share the lines. */
#include "ops/index/index.h"
#include "ops/scan/order.h"
#include "gpu/shaders.h"

/* Neighbouring lines of one block of x: for each index a < n, `count` elements of the source and of the result. */
typedef struct lines {
    const cn_array *index, *source;
    int64_t n, count, size;
    int64_t at, index_step, out, out_step, from, from_step;
    bool shared;                     /* one index for all lines */
    bool fault;                      /* indices out of range are reported; false: another operator did so */
} lines;

static inline bool in_range(const cn_kernel *k, const lines *l, int64_t t)
{
    if (t >= 0 && t < l->size) return true;
    if (l->fault) cn_kernel_fault(k, t, l->size);
    return false;
}

#define TEMPLATE "ops/index/scatter_body.h"
#define TYPES    CN__FLOAT_TYPES | CN__WHOLE_TYPES
#include "cpu/each_type.h"

/* Overwrites the result with the source. size: bytes of an element, a constant after inlining. */
CN__INLINE void set_lines(const cn_kernel *k, const lines *l, const int64_t size)
{
    char *out = (char *)k->out[0].data + l->out * size;
    const char *from = (const char *)l->source->data + l->from * size;
    if (l->count == 1) {
        for (int64_t a = 0; a < l->n; a++) {
            const int64_t t = cn__index_at(l->index, l->at + a * l->index_step);
            if (in_range(k, l, t)) memcpy(out + t * l->out_step * size, from + a * l->from_step * size, (size_t)size);
        }
        return;
    }
    for (int64_t a = 0; a < l->n; a++, from += l->from_step * size) {
        const int64_t at = l->at + a * l->index_step;
        if (l->shared) {
            const int64_t t = cn__index_at(l->index, at);
            if (in_range(k, l, t)) memcpy(out + t * l->out_step * size, from, (size_t)(l->count * size));
            continue;
        }
        for (int64_t c = 0; c < l->count; c++) {
            const int64_t t = cn__index_at(l->index, at + c);
            if (in_range(k, l, t)) memcpy(out + (t * l->out_step + c) * size, from + c * size, (size_t)size);
        }
    }
}

static void set(const cn_kernel *k, const lines *l)
{
    switch (cn_dtype_size(k->out[0].dtype)) {
    case 1: set_lines(k, l, 1); break;
    case 2: set_lines(k, l, 2); break;
    case 4: set_lines(k, l, 4); break;
    default: set_lines(k, l, 8);
    }
}

typedef void (*lines_fn)(const cn_kernel *k, const lines *l);

static lines_fn writer(cn__fold fold, cn_dtype t)
{
    static const lines_fn folds[CN_DTYPES][4] = {
        [CN_F32] = { add_f32, mul_f32, max_f32, min_f32 }, [CN_F64] = { add_f64, mul_f64, max_f64, min_f64 },
        [CN_I32] = { add_i32, mul_i32, max_i32, min_i32 }, [CN_I64] = { add_i64, mul_i64, max_i64, min_i64 },
        [CN_I8] = { add_i8, mul_i8, max_i8, min_i8 },      [CN_U8] = { add_u8, mul_u8, max_u8, min_u8 },
        [CN_I16] = { add_i16, mul_i16, max_i16, min_i16 },
    };
    return fold == CN__SET ? set : folds[t][fold - CN__ADD];
}

typedef struct job {
    cn__space space;
    lines lines;
    lines_fn fn;
} job;

static void body(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = user;
    const cn__space *s = &j->space;
    lines l = j->lines;
    int64_t inner = s->inner.numel, length = s->inner.shape[0];
    for (int64_t line = begin; line < end; line += l.count) {
        int64_t o = line / inner, i = line % inner, left = length - i % length;
        l.count = left < end - line ? left : end - line;
        l.at = l.shared ? 0 : o * s->n * inner + i;
        l.out = l.from = 0;
        cn__side_offset(&s->outer, o, &l.out, &l.from);
        cn__side_offset(&s->inner, i, &l.out, &l.from);
        j->fn(k, &l);
    }
}

/* The result must hold x already. Chunks have a least width, so that threads do not share cache lines. */
static void write_lines(const cn_kernel *k, job *j)
{
    const cn__space *s = &j->space;
    j->lines.n = s->n;
    j->lines.size = s->size;
    j->lines.out_step = s->x_step;
    j->lines.from_step = s->source_step;
    int64_t inner = s->inner.numel, grain = 16384 / (s->n ? s->n : 1), narrow = inner < 64 ? inner : 64;
    if (s->n) cn_parallel(k, s->outer.numel * inner, grain > narrow ? grain : narrow, body, j);
}

/* scatter: the index has as many axes as x. */
void cn__scatter_cpu(const cn_kernel *k, cn__fold fold)
{
    cn__copy_all(k, k->out[0].data, k->in[0].data, k->out[0].numel * (int64_t)cn_dtype_size(k->out[0].dtype));
    if (k->in[1].numel == 0) return;
    job j = { .fn = writer(fold, k->in[0].dtype), .lines = { &k->in[1], &k->in[2], .fault = true } };
    cn__space_of(&j.space, &k->in[1], &k->out[0], &k->in[2], ((const cn__index_attrs *)k->attrs)->axis);
    j.lines.index_step = j.space.inner.numel;
    write_lines(k, &j);
}

static void cpu_scatter(const cn_kernel *k) { cn__scatter_cpu(k, CN__SET); }
static void cpu_scatter_add(const cn_kernel *k) { cn__scatter_cpu(k, CN__ADD); }

/* index_add: the index is a list, the same for all lines. */
static void rows_with(const cn_kernel *k, lines_fn fn)
{
    cn__copy_all(k, k->out[0].data, k->in[0].data, k->out[0].numel * (int64_t)cn_dtype_size(k->out[0].dtype));
    if (k->in[2].numel == 0) return;
    job j = { .fn = fn, .lines = { &k->in[1], &k->in[2], .index_step = 1, .shared = true, .fault = true } };
    cn__space_of(&j.space, &k->in[2], &k->out[0], &k->in[2], ((const cn__index_attrs *)k->attrs)->axis);
    write_lines(k, &j);
}

static void cpu_index_copy(const cn_kernel *k) { rows_with(k, set); }
static void cpu_index_add(const cn_kernel *k) { rows_with(k, writer(CN__ADD, k->in[0].dtype)); }

/* The same on (rows, width), beginning with zeros; all axes of the source but the last are joined. */
static void cpu_embedding_backward(const cn_kernel *k)
{
    cn__copy_all(k, k->out[0].data, NULL, k->out[0].numel * (int64_t)cn_dtype_size(k->out[0].dtype));
    if (k->in[0].numel == 0) return;
    cn_array source = k->in[0];
    source.ndim = 2;
    source.shape[0] = k->in[1].numel;
    source.shape[1] = k->out[0].shape[1];
    job j = { .fn = writer(CN__ADD, source.dtype), .lines = { &k->in[1], &source, .index_step = 1, .shared = true } };
    cn__space_of(&j.space, &source, &k->out[0], &source, 0);
    write_lines(k, &j);
}

/* ---- on the GPU: for each place, what is written to it is gathered, in the order of the index ---- */

typedef struct gpu_job {
    const cn_array *source;
    cn__space space;
    int operand; /* the number of the source; if it is 0, the source is written into zeros */
    bool shared; /* one index for all lines */
    cn__fold fold;
    bool fault;
} gpu_job;

/* The WGSL type of an element: folds need numbers, copies move words. */
static const char *gpu_type(const cn_gpu_call *c, const gpu_job *j)
{
    return j->fold == CN__SET ? "u32" : cn_dtype_is_float(c->out[0].dtype) ? "f32" : "i32";
}

static const char *gpu_fold(const gpu_job *j)
{
    static const char *const names[] = { "set", "add", "mul", "max", "min" };
    return names[j->fold];
}

/* Each element of the result searches all indices of its line. For few indices. */
static bool gpu_looking(cn_gpu_call *c, const gpu_job *j)
{
    const cn__space *s = &j->space;
    const int64_t inner = s->inner.numel;
    cn_gpu_param(c, inner);
    cn_gpu_param(c, s->size);
    cn_gpu_param(c, s->n);
    cn_gpu_param(c, j->source->numel / (s->outer.numel * inner));
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_scatter,
                                           .kernel = "looking",
                                           .holes = CN_GPU_HOLES(CN_GPU_TEXT("fold", gpu_fold(j)),
                                                                 CN_GPU_TEXT("type", gpu_type(c, j)),
                                                                 CN_GPU_NUMBER("operand", j->operand),
                                                                 CN_GPU_FLAG("shared", j->shared),
                                                                 CN_GPU_FLAG("checked", j->fault)),
                                           .each = c->out[0].numel });
}

/* Sorts the indices of each line, together with their positions. */
static bool gpu_order(cn_gpu_call *c, const gpu_job *j)
{
    const cn__space *s = &j->space;
    const cn__order o = { .lines = j->shared ? 1 : s->outer.numel * s->inner.numel,
                          .n = s->n,
                          .across = !j->shared && s->inner.numel > 1,
                          .shader = cn__wgsl_scatter,
                          .holes = { CN_GPU_FLAG("shared", j->shared), CN_GPU_FLAG("checked", j->fault) },
                          .numbers = { s->inner.numel, s->size, s->n } };
    return cn__gpu_order(c, &o);
}

static bool gpu_all(cn_gpu_call *c, const char *kernel)
{
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_words, .kernel = kernel, .each = c->out[0].numel });
}

static bool gpu_in_order(cn_gpu_call *c, const gpu_job *j)
{
    const cn__space *s = &j->space;
    if (!gpu_all(c, j->operand == 0 ? "zeros" : "copy") || !gpu_order(c, j)) return false;
    const int64_t numbers[] = { s->inner.numel, s->n, s->size, s->x_step, s->source_step };
    cn_gpu_params_clear(c);
    for (int k = 0; k < 5; k++) cn_gpu_param(c, numbers[k]);
    const char *outer = cn__gpu_side(c, "outer", &s->outer), *inner = cn__gpu_side(c, "inner", &s->inner);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_scatter,
                                           .kernel = "in_order",
                                           .holes = CN_GPU_HOLES(CN_GPU_TEXT("fold", gpu_fold(j)),
                                                                 CN_GPU_TEXT("type", gpu_type(c, j)),
                                                                 CN_GPU_NUMBER("operand", j->operand),
                                                                 CN_GPU_FLAG("shared", j->shared),
                                                                 CN_GPU_TEXT("outer", outer),
                                                                 CN_GPU_TEXT("inner", inner)),
                                           .each = s->outer.numel * s->n * s->inner.numel });
}

/* True if a and b have the same sizes except along the axis. */
static bool same_around(const cn_array *a, const cn_array *b, int64_t axis)
{
    bool same = a->ndim == b->ndim;
    for (int d = 0; d < a->ndim && same; d++) same = d == axis || a->shape[d] == b->shape[d];
    return same;
}

static bool gpu_write(cn_gpu_call *c, gpu_job *j, const cn_array *index, int64_t axis)
{
    enum { FEW = 32 };
    cn__space_of(&j->space, index, &c->out[0], j->source, axis);
    bool plain = same_around(index, &c->out[0], axis) && same_around(j->source, &c->out[0], axis);
    return (plain && j->space.n <= FEW && c->out[0].numel ? gpu_looking : gpu_in_order)(c, j);
}

bool cn__scatter_gpu(cn_gpu_call *c, cn__fold fold)
{
    gpu_job j = { .source = &c->in[2], .operand = 2, .fold = fold, .fault = true };
    if (c->in[1].numel == 0) return gpu_all(c, "copy");
    return gpu_write(c, &j, &c->in[1], ((const cn__index_attrs *)c->attrs)->axis);
}

static bool gpu_scatter(cn_gpu_call *c) { return cn__scatter_gpu(c, CN__SET); }
static bool gpu_scatter_add(cn_gpu_call *c) { return cn__scatter_gpu(c, CN__ADD); }

static bool gpu_rows_with(cn_gpu_call *c, cn__fold fold)
{
    gpu_job j = { .source = &c->in[2], .operand = 2, .shared = true, .fold = fold, .fault = true };
    if (c->in[2].numel == 0) return gpu_all(c, "copy");
    return gpu_write(c, &j, &c->in[2], ((const cn__index_attrs *)c->attrs)->axis);
}

static bool gpu_index_copy(cn_gpu_call *c) { return gpu_rows_with(c, CN__SET); }
static bool gpu_index_add(cn_gpu_call *c) { return gpu_rows_with(c, CN__ADD); }

static bool gpu_embedding_backward(cn_gpu_call *c)
{
    if (c->in[0].numel == 0) return gpu_all(c, "zeros");
    cn_array source = c->in[0];
    source.ndim = 2;
    source.shape[0] = c->in[1].numel;
    source.shape[1] = c->out[0].shape[1];
    gpu_job j = { .source = &source, .shared = true, .fold = CN__ADD };
    return gpu_write(c, &j, &source, 0);
}

/* True if the index is no larger than x along every axis except the skipped one (-1: none). An empty index fits. */
static bool fits(const cn_layout *index, const cn_layout *x, int64_t skipped)
{
    if (cn__numel(index) == 0) return true;
    if ((x->ndim ? x->ndim : 1) != (index->ndim ? index->ndim : 1)) return false;
    for (int d = 0; d < index->ndim; d++)
        if (d != skipped && index->shape[d] > (x->ndim ? x->shape[d] : 1)) return false;
    return true;
}

bool cn__infer_scatter(cn_infer *i)
{
    const cn__index_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout, *index = &i->in[1]->layout, *source = &i->in[2]->layout;
    if (!cn__infer_index(i, 1)) return false;
    if (!fits(index, x, a->axis) || !fits(index, source, -1)) {
        char s[96], t[96], u[96];
        return cn_infer_fail(i, CN_BAD_SHAPE,
                             "index must be no larger than the source %s, and than x %s except along axis %d, got %s",
                             cn__shape_text(source, u, sizeof u), cn__shape_text(x, t, sizeof t), (int)a->axis,
                             cn__shape_text(index, s, sizeof s));
    }
    i->out[0] = *i->in[0];
    return true;
}

/* The source must have x's shape, but along the axis the length of the index. */
static bool infer_rows(cn_infer *i)
{
    const cn__index_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout, *index = &i->in[1]->layout, *source = &i->in[2]->layout;
    if (!cn__infer_index(i, 1)) return false;
    cn_layout expected = *x;
    if (x->ndim) expected.shape[a->axis] = cn__numel(index);
    if (index->ndim > 1 || (x->ndim == 0 && cn__numel(index) != 1) || !cn__same_shape(&expected, source)) {
        char s[96], t[96], u[96];
        return cn_infer_fail(i, CN_BAD_SHAPE,
                             "index must be (n) and source have the shape of x %s with n along axis %d, got %s and %s",
                             cn__shape_text(x, s, sizeof s), (int)a->axis, cn__shape_text(index, t, sizeof t),
                             cn__shape_text(source, u, sizeof u));
    }
    i->out[0] = *i->in[0];
    return true;
}

/* Pads x with zeros at the end of each axis. */
static cn_tensor *enlarged(cn_tensor *x, cn_dims to)
{
    for (int d = 0; x && d < to.n && cn_ndim(x) == to.n; d++) {
        cn_dims shape = cn_shape(x);
        if (shape.v[d] == to.v[d]) continue;
        int64_t n = shape.v[d];
        shape.v[d] = to.v[d];
        x = cn_slice_assign(cn_zeros(cn_context(x), cn_type(x), shape), d, 0, n, 1, x);
    }
    return x;
}

/* The gradient of the source: that of the places it was written to. Two elements that were written to the same place
   both get its gradient, as in PyTorch. Elements that were not read get zero. */
static cn_tensor *scatter_source_grad(cn_grad_call *g)
{
    const cn__index_attrs *a = g->attrs;
    if (cn_numel(g->in[1]) == 0) return cn__zeros_for(g, 2);
    cn_dims to = cn_shape(g->in[2]);
    cn_tensor *read = cn_gather(g->out_grad[0], a->axis, g->in[1]);
    if (read && cn_ndim(read) != to.n) return cn_reshape(read, to); /* a scalar and a vector of one element */
    return enlarged(read, to);
}

static void grad_scatter(cn_grad_call *g)
{
    const cn__index_attrs *a = g->attrs;
    cn_tensor *none = g->needs[0] ? cn_zeros(g->ctx, cn_type(g->in[0]), cn_shape(g->in[1])) : NULL;
    if (g->needs[0]) g->in_grad[0] = cn_scatter(g->out_grad[0], a->axis, g->in[1], none);
    if (g->needs[2]) g->in_grad[2] = scatter_source_grad(g);
}

static void grad_scatter_add(cn_grad_call *g)
{
    if (g->needs[0]) g->in_grad[0] = g->out_grad[0];
    if (g->needs[2]) g->in_grad[2] = scatter_source_grad(g);
}

static void grad_index_copy(cn_grad_call *g)
{
    const cn__index_attrs *a = g->attrs;
    if (g->needs[0]) g->in_grad[0] = cn__index_copy(g->out_grad[0], a->axis, g->in[1], cn__zeros_for(g, 2));
    if (g->needs[2]) g->in_grad[2] = cn_index_select(g->out_grad[0], a->axis, g->in[1]);
}

static void grad_index_add(cn_grad_call *g)
{
    const cn__index_attrs *a = g->attrs;
    if (g->needs[0]) g->in_grad[0] = g->out_grad[0];
    if (g->needs[2]) g->in_grad[2] = cn_index_select(g->out_grad[0], a->axis, g->in[1]);
}

/* in: g (..., width), index (...); out: (rows, width) */
static bool infer_embedding_backward(cn_infer *i)
{
    const cn_layout *g = &i->in[0]->layout, *index = &i->in[1]->layout;
    if (!cn__infer_index(i, 1)) return false;
    cn_layout front = *g;
    front.ndim = g->ndim - 1;
    if (front.ndim < 0 || !cn__same_shape(&front, index)) {
        char s[96], t[96];
        return cn_infer_fail(i, CN_BAD_SHAPE,
                             "the gradient must have the shape of the indices %s and one axis more, got %s",
                             cn__shape_text(index, t, sizeof t), cn__shape_text(g, s, sizeof s));
    }
    i->out[0].dtype = i->in[0]->dtype;
    i->out[0].layout.ndim = 2;
    i->out[0].layout.shape[0] = ((const cn__rows_attrs *)i->attrs)->rows;
    i->out[0].layout.shape[1] = g->shape[front.ndim];
    return true;
}

static void grad_embedding_backward(cn_grad_call *g)
{
    if (g->needs[0]) g->in_grad[0] = cn_embedding(g->out_grad[0], g->in[1]);
}

/* If an index names a place twice, scatter's gradient is that of PyTorch, not the true one. */
const cn_op cn__op_scatter = {
    .call = "scatter(Tensor input, int dim, Tensor index, Tensor src) -> Tensor",
    .name = "scatter", .doc = "x with a source's elements written along an axis to the places an index names.",
    .kind = CN_INDEX, .n_in = 3, .n_out = 1, .dtypes = CN_ANY, .free_dtype = 2, .not_differentiable = 2,
    .checks_index = true, .attr_size = sizeof(cn__index_attrs), .infer = cn__infer_scatter, .grad = grad_scatter,
    .cpu = cpu_scatter, .gpu = gpu_scatter, .onnx = "ScatterElements",
    CN_CASES({ CN_IN(CN_S(6), CN_PERM(6), CN_S(6)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(4, 5), CN_IDX(4, 1, 3), CN_S(2, 5)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(3, 4, 2), CN_IDX(4, 3, 1, 2), CN_S(3, 2, 2)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S(3, 4), CN_IDX(4, 3, 0), CN_S(3, 4)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S0, CN_IDX(1, 1), CN_S0), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(4, 5), CN_IDX(4, 6, 5), CN_S(6, 5)), .attrs = &(const cn__index_attrs){ 0 },
               .no_gradient_check = true /* a place is named twice */ },
             { CN_IN(CN_S(40, 31, 7), CN_IDX(31, 40, 60, 7), CN_S(40, 60, 7)),
               .attrs = &(const cn__index_attrs){ 1 }, .no_gradient_check = true /* a place is named twice */ }),
};

const cn_op cn__op_scatter_add = {
    .call = "scatter_add(Tensor input, int dim, Tensor index, Tensor src) -> Tensor",
    .name = "scatter_add", .doc = "x with a source's elements added along an axis at the places an index names.",
    .kind = CN_INDEX, .n_in = 3, .n_out = 1, .dtypes = CN_NUMBERS, .free_dtype = 2, .not_differentiable = 2,
    .checks_index = true, .attr_size = sizeof(cn__index_attrs), .infer = cn__infer_scatter, .grad = grad_scatter_add,
    .cpu = cpu_scatter_add, .gpu = gpu_scatter_add, .onnx = "ScatterElements",
    CN_CASES({ CN_IN(CN_S(4, 5), CN_IDX(4, 6, 5), CN_S(6, 5)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(4, 5), CN_IDX(5, 3, 2), CN_S(4, 3)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S(3, 3, 4), CN_IDX(3, 2, 5, 3), CN_S(2, 5, 4)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S(3, 4), CN_IDX(4, 3, 0), CN_S(3, 4)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S0, CN_IDX(1, 1), CN_S(1)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(40, 31, 7), CN_IDX(31, 40, 60, 7), CN_S(40, 60, 7)),
               .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S(50), CN_IDX(50, 3000), CN_S(3000)), .attrs = &(const cn__index_attrs){ 0 } }),
};

const cn_op cn__op_index_copy = {
    .call = "_index_copy(Tensor input, Tensor index, Tensor source, int dim) -> Tensor",
    .name = "index_copy", .doc = "x with a source's slices along an axis written to the places an index names.",
    .kind = CN_INDEX, .n_in = 3, .n_out = 1, .dtypes = CN_ANY, .free_dtype = 2, .not_differentiable = 2,
    .checks_index = true, .attr_size = sizeof(cn__index_attrs), .infer = infer_rows, .grad = grad_index_copy,
    .cpu = cpu_index_copy, .gpu = gpu_index_copy,
    CN_CASES({ CN_IN(CN_S(5, 4), CN_PERM(5), CN_S(5, 4)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(3, 4, 2), CN_IDX(4, 1), CN_S(3, 1, 2)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S(3, 4), CN_IDX(4, 0), CN_S(3, 0)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S0, CN_IDX(1, 1), CN_S0), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(40, 200), CN_IDX(40, 90), CN_S(90, 200)), .attrs = &(const cn__index_attrs){ 0 },
               .no_gradient_check = true /* a place is named twice */ }),
};

const cn_op cn__op_index_add = {
    .call = "index_add(Tensor input, int dim, Tensor index, Tensor source) -> Tensor",
    .name = "index_add", .doc = "x with a source's slices along an axis added at the places an index names.",
    .kind = CN_INDEX, .n_in = 3, .n_out = 1, .dtypes = CN_NUMBERS, .free_dtype = 2, .not_differentiable = 2,
    .checks_index = true, .attr_size = sizeof(cn__index_attrs), .infer = infer_rows, .grad = grad_index_add,
    .cpu = cpu_index_add, .gpu = gpu_index_add,
    CN_CASES({ CN_IN(CN_S(5, 4), CN_IDX(5, 7), CN_S(7, 4)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(3, 4, 2), CN_IDX(4, 5), CN_S(3, 5, 2)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S(7), CN_IDX(7, 9), CN_S(9)), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(3, 4), CN_IDX(4, 0), CN_S(3, 0)), .attrs = &(const cn__index_attrs){ 1 } },
             { CN_IN(CN_S0, CN_IDX(1, 1), CN_S0), .attrs = &(const cn__index_attrs){ 0 } },
             { CN_IN(CN_S(40, 200), CN_IDX(40, 90), CN_S(90, 200)), .attrs = &(const cn__index_attrs){ 0 } }),
};

const cn_op cn__op_embedding_backward = {
    .call = "_embedding_backward(Tensor grad, Tensor indices, int num_weights) -> Tensor",
    .name = "embedding_backward", .doc = "The gradient of embedding's weight: each row is the sum of its gradients.",
    .kind = CN_INDEX, .n_in = 2, .n_out = 1, .dtypes = CN_NUMBERS, .free_dtype = 2, .not_differentiable = 2,
    .attr_size = sizeof(cn__rows_attrs), .infer = infer_embedding_backward, .grad = grad_embedding_backward,
    .cpu = cpu_embedding_backward, .gpu = gpu_embedding_backward,
    CN_CASES({ CN_IN(CN_S(2, 5, 4), CN_IDX(6, 2, 5)), .attrs = &(const cn__rows_attrs){ 6 } },
             { CN_IN(CN_S(3), CN_IDX0(2)), .attrs = &(const cn__rows_attrs){ 2 } },
             { CN_IN(CN_S(0, 3), CN_IDX(4, 0)), .attrs = &(const cn__rows_attrs){ 4 } },
             { CN_IN(CN_S(20, 11, 130), CN_IDX(70, 20, 11)), .attrs = &(const cn__rows_attrs){ 70 } }),
};

static cn_tensor *put(const cn_op *op, cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source)
{
    cn__index_attrs a;
    if (!cn__index_axis(op->name, x, axis, &a)) return NULL;
    return cn_apply(op, (cn_tensor *[]){ x, index, source }, 3, &a, NULL);
}

/* Bools are counted: the sum of a place is whether any of them is true. */
static cn_tensor *add(const cn_op *op, cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source)
{
    CN__CALL call = cn__enter_tensor(x, op->name);
    if (!call.ctx || !cn__of_context(x->ctx, source, op->name, "the source")) return NULL;
    if (cn__dtype(x) != CN_BOOL || cn__dtype(source) != CN_BOOL) return put(op, x, axis, index, source);
    return cn_ne_s(put(op, cn_cast(x, CN_I32), axis, index, cn_cast(source, CN_I32)), 0);
}

cn_tensor *cn_scatter(cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source)
{
    return put(&cn__op_scatter, x, axis, index, source);
}

cn_tensor *cn_scatter_add(cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source)
{
    return add(&cn__op_scatter_add, x, axis, index, source);
}

cn_tensor *cn__index_copy(cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source)
{
    return put(&cn__op_index_copy, x, axis, index, source);
}

cn_tensor *cn_index_add(cn_tensor *x, int64_t axis, cn_tensor *index, cn_tensor *source)
{
    return add(&cn__op_index_add, x, axis, index, source);
}

cn_tensor *cn__embedding_backward(cn_tensor *g, cn_tensor *index, int64_t rows)
{
    return cn_apply(&cn__op_embedding_backward, (cn_tensor *[]){ g, index }, 2, &(cn__rows_attrs){ rows }, NULL);
}
