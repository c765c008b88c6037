/* slice_assign: x with the slice x[start:end:step] along an axis replaced by a value. */
#include "ops/index/index.h"
#include "gpu/shaders.h"

/* x (..., size, ...), value (..., n, ...); args[0].i is the start. */
static bool infer(cn_infer *i)
{
    const cn__slice_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout, *value = &i->in[1]->layout;
    cn_layout slice = *x;
    slice.shape[a->axis] = a->length;
    int64_t start = i->args[0].i, room = x->shape[a->axis] - start; /* room: elements from the start on */
    if (a->length && (start < 0 || room <= 0 || (a->length - 1) > (room - 1) / a->step))
        return cn_infer_fail(i, CN_BAD_ARGUMENT,
                             "the slice must lie in an axis of size %lld, got %lld elements from %lld on, step %lld",
                             (long long)x->shape[a->axis], (long long)a->length, (long long)start, (long long)a->step);
    if (!cn__same_shape(&slice, value)) {
        char s[96], t[96];
        return cn_infer_fail(i, CN_BAD_SHAPE, "the value must have the shape of the slice %s, got %s",
                             cn__shape_text(&slice, s, sizeof s), cn__shape_text(value, t, sizeof t));
    }
    i->out[0] = *i->in[0];
    return true;
}

static void grad(cn_grad_call *g)
{
    const cn__slice_attrs *a = g->attrs;
    int64_t start = g->args[0].i, end = a->length ? start + (a->length - 1) * a->step + 1 : start;
    if (g->needs[0]) g->in_grad[0] = cn_slice_assign(g->out_grad[0], a->axis, start, end, a->step, cn__zeros_for(g, 1));
    if (g->needs[1]) g->in_grad[1] = cn_slice(g->out_grad[0], a->axis, start, end, a->step);
}

/* Writes elements [begin, end) of the value. With step 1 the slice is contiguous. */
static void body(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__around *x = user;
    const cn__slice_attrs *a = k->attrs;
    bool joined = a->step == 1;
    int64_t item = (int64_t)cn_dtype_size(k->out[0].dtype), inner = x->inner, count;
    int64_t length = joined ? a->length * inner : inner, parts = joined ? 1 : a->length;
    for (int64_t p = begin; p < end; p += count) {
        int64_t part = p / length, skip = p % length;
        int64_t to = (part / parts * x->n + k->args[0].i + part % parts * a->step) * inner + skip;
        count = length - skip < end - p ? length - skip : end - p;
        memcpy((char *)k->out[0].data + to * item, (const char *)k->in[1].data + p * item, (size_t)(count * item));
    }
}

static void cpu(const cn_kernel *k)
{
    const cn_array *out = &k->out[0];
    cn__around x = cn__around_axis(out->ndim, out->shape, ((const cn__slice_attrs *)k->attrs)->axis);
    if (out->data != k->in[0].data)
        cn__copy_all(k, out->data, k->in[0].data, out->numel * (int64_t)cn_dtype_size(out->dtype));
    if (k->in[1].numel) cn_parallel(k, k->in[1].numel, 16384, body, &x);
}

/* In place only the slice is written, otherwise every element. The parameters are those of slice_assign.wgsl. */
static bool gpu(cn_gpu_call *c)
{
    const cn__slice_attrs *a = c->attrs;
    cn__around x = cn__around_axis(c->out[0].ndim, c->out[0].shape, a->axis);
    const int64_t numbers[] = { x.inner, x.n, a->length, a->step };
    for (int k = 0; k < 4; k++) cn_gpu_param(c, numbers[k]);
    const bool in_place = cn_gpu_in_place(c);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_slice_assign,
                                           .kernel = in_place ? "in_place" : "whole",
                                           .each = in_place ? c->in[1].numel : c->out[0].numel });
}

const cn_op cn__op_slice_assign = {
    .call = "slice_assign(Tensor input, int dim, int start, int end, int step, Tensor value) -> Tensor",
    .name = "slice_assign", .doc = "x with a slice along an axis replaced by a value.",
    .kind = CN_INDEX, .n_in = 2, .n_out = 1, .dtypes = CN_ANY, .attr_size = sizeof(cn__slice_attrs), .infer = infer,
    .grad = grad, .in_place = 1, .cpu = cpu, .gpu = gpu,
    CN_CASES({ CN_IN(CN_S(4, 5), CN_S(4, 2)), .attrs = &(const cn__slice_attrs){ 1, 2, 2 }, CN_ARGS({ .i = 1 }) },
             { CN_IN(CN_S(5, 3, 2), CN_S(2, 3, 2)), .attrs = &(const cn__slice_attrs){ 0, 2, 3 } },
             { CN_IN(CN_S(7), CN_S(1)), .attrs = &(const cn__slice_attrs){ 0, 1, 1 }, CN_ARGS({ .i = 6 }) },
             { CN_IN(CN_S(3, 4), CN_S(3, 0)), .attrs = &(const cn__slice_attrs){ 1, 0, 1 }, CN_ARGS({ .i = 4 }) },
             { CN_IN(CN_S(0, 4), CN_S(0, 2)), .attrs = &(const cn__slice_attrs){ 1, 2, 1 } },
             { CN_IN(CN_S(20, 30, 17), CN_S(20, 9, 17)), .attrs = &(const cn__slice_attrs){ 1, 9, 3 },
               CN_ARGS({ .i = 2 }) },
             { CN_IN(CN_S(70, 60, 33), CN_S(70, 20, 33)), .attrs = &(const cn__slice_attrs){ 1, 20, 3 },
               CN_ARGS({ .i = 1 }) }),
};

/* Python's x[start:end:step]: negative numbers count from the end; both ends are limited to the size. */
static void slice_of(int64_t size, int64_t *start, int64_t end, cn__slice_attrs *a)
{
    int64_t ends[2] = { *start, end };
    for (int e = 0; e < 2; e++) {
        if (ends[e] < 0) ends[e] += size;
        ends[e] = ends[e] < 0 ? 0 : ends[e] > size ? size : ends[e];
    }
    *start = ends[0];
    a->length = ends[1] > ends[0] ? (ends[1] - ends[0] - 1) / a->step + 1 : 0;
}

/* Expands the value to the slice. As in PyTorch's assignment, it may have additional axes of size 1 in front. */
static cn_tensor *value_for(cn_tensor *value, cn_dims slice)
{
    if (!value) return NULL;
    cn_dims own = cn_shape(value);
    int drop = 0;
    while (own.n - drop > slice.n && own.v[drop] == 1) drop++;
    if (drop) {
        memmove(own.v, own.v + drop, sizeof *own.v * (size_t)(own.n - drop));
        own.n -= drop;
        value = cn_reshape(value, own);
    }
    return value && cn__index_value("slice_assign", value, slice) ? cn_expand(value, slice) : NULL;
}

cn_tensor *cn_slice_assign(cn_tensor *x, int64_t axis, int64_t start, int64_t end, int64_t step, cn_tensor *value)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx || !cn__of_context(x->ctx, value, __func__, "value")) return NULL;
    cn_dims shape = cn_shape(x);
    cn__slice_attrs a = { cn__axis(axis, shape.n), 0, step };
    if (a.axis < 0 || step < 1) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT,
                 "slice_assign: dim must be an axis of x, which has %d, and step ≥ 1, got dim %lld and step %lld",
                 shape.n, (long long)axis, (long long)step);
        return NULL;
    }
    slice_of(shape.v[a.axis], &start, end, &a);
    shape.v[a.axis] = a.length;
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *v = value_for(cn__dtype(value) == cn__dtype(x) ? value : cn_cast(value, cn__dtype(x)), shape);
    cn_arg args[CN_MAX_ARGS] = { { .i = start } };
    return cn_scope_return(x->ctx, s, cn_apply(&cn__op_slice_assign, (cn_tensor *[]){ x, v }, 2, &a, args));
}

/* Only x refers to the new node, so it can take over x's memory if nobody needs the old value. */
bool cn_slice_assign_(cn_tensor *x, int64_t axis, int64_t start, int64_t end, int64_t step, cn_tensor *value)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return false;
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *y = cn_slice_assign(x, axis, start, end, step, value);
    const cn__node *node = y ? y->ref.node : NULL;
    bool fresh = node && node->state == CN__PENDING && !node->needs_grad && node->op == &cn__op_slice_assign;
    bool ok = fresh ? cn__assign_made(x, y) : cn__rebind(x, y);
    cn_scope_end(x->ctx, s);
    return ok;
}
