/* cat joins tensors along an axis; stack joins them along a new axis. */
#include <stdio.h>

#include "ops/join/join.h"
#include "ops/view/move.h"
#include "gpu/shaders.h"

/* As in PyTorch, a tensor of shape [0] may be joined with any shape. */
static bool skipped(const cn_layout *l) { return l->ndim == 1 && l->shape[0] == 0; }

static bool fits(const cn_layout *x, const cn_layout *model, int64_t axis)
{
    if (x->ndim != model->ndim) return false;
    for (int d = 0; d < x->ndim; d++)
        if (d != axis && x->shape[d] != model->shape[d]) return false;
    return true;
}

static bool infer(cn_infer *i)
{
    int64_t axis = ((const cn__axis_attrs *)i->attrs)->axis, total = 0;
    int first = 0;
    while (first + 1 < i->n_in && skipped(&i->in[first]->layout)) first++;
    const cn_layout *model = &i->in[first]->layout;
    char s[128], t[128];
    if (axis < 0 || axis >= model->ndim)
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "axis %lld is out of range for %s", (long long)axis,
                             cn__shape_text(model, s, sizeof s));
    for (int k = 0; k < i->n_in; k++) {
        const cn_layout *x = &i->in[k]->layout;
        if (skipped(x)) continue;
        if (!fits(x, model, axis))
            return cn_infer_fail(i, CN_BAD_SHAPE, "operand %d has shape %s, which differs from %s outside axis %lld", k,
                                 cn__shape_text(x, s, sizeof s), cn__shape_text(model, t, sizeof t), (long long)axis);
        if (__builtin_add_overflow(total, x->shape[axis], &total))
            return cn_infer_fail(i, CN_BAD_SHAPE, "the joined shape is too large");
    }
    i->out[0] = *i->in[first];
    i->out[0].layout.shape[axis] = total;
    return true;
}

static void cpu(const cn_kernel *k)
{
    int axis = (int)((const cn__axis_attrs *)k->attrs)->axis;
    int64_t start = 0;
    for (int n = 0; n < k->n_in; n++) {
        if (k->in[n].numel == 0) continue;
        cn__move m = cn__move_of(k, n);
        cn__move_along(&m, axis, start);
        cn__move_run(k, &m);
        start += k->in[n].shape[axis];
    }
}

/* On the GPU a launch copies a few operands; cat.wgsl lists the parameters. */
typedef struct batch {
    const char *copies, *choice, *raws;
    int64_t end; /* invocations so far */
} batch;

/* length: elements of operand n along the axis and after it; start: their place in the result */
static void add_operand(cn_gpu_call *c, batch *b, int n, int name, int64_t length, int64_t start)
{
    static const char *const from_names[] = { "from0", "from1", "from2", "from3", "from4", "from5" };
    static const char *const raw_names[] = { "raw0 ", "raw1 ", "raw2 ", "raw3 ", "raw4 ", "raw5 " };
    const int at = cn_gpu_params(c);
    const int64_t numbers[] = { b->end + c->in[n].numel, length, b->end, start };
    for (int i = 0; i < 4; i++) cn_gpu_param(c, numbers[i]);
    const char *from = cn__gpu_walk_array(c, from_names[name], &c->in[n]);
    const cn_gpu_hole *holes =
        CN_GPU_HOLES(CN_GPU_TEXT("from", from), CN_GPU_NUMBER("number", name), CN_GPU_NUMBER("at", at));
    b->copies = cn_gpu_join(c, b->copies, cn_gpu_part(c, cn__wgsl_cat, "copy", holes));
    b->choice = cn_gpu_join(c, b->choice, cn_gpu_part(c, cn__wgsl_cat, "choose", holes));
    b->raws = cn_gpu_join(c, b->raws, raw_names[name]);
    b->end += c->in[n].numel;
}

static bool gpu(cn_gpu_call *c)
{
    enum {
        FEW = 6,
        SIZE = 256
    }; /* with the result and the parameters 8 bindings, if each is in another slab; every device has as many */
    int axis = (int)((const cn__axis_attrs *)c->attrs)->axis;
    int64_t start = 0, inner = 1;
    for (int d = axis + 1; d < c->out[0].ndim; d++) inner *= c->out[0].shape[d];
    for (int first = 0; first < c->n_in; first += FEW) {
        batch b = { "", "", "", 0 };
        cn_gpu_params_clear(c);
        cn_gpu_param(c, c->out[0].shape[axis] * inner);
        for (int n = first; n < c->n_in && n < first + FEW; n++) {
            if (c->in[n].numel == 0) continue;
            int64_t length = c->in[n].shape[axis] * inner;
            add_operand(c, &b, n, n - first, length, start);
            start += length;
        }
        if (!cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_cat,
                                             .holes = CN_GPU_HOLES(CN_GPU_TEXT("copies", b.copies),
                                                                   CN_GPU_TEXT("choice", b.choice),
                                                                   CN_GPU_TEXT("raws", b.raws)),
                                             .groups = (b.end + SIZE - 1) / SIZE,
                                             .size = SIZE,
                                             .first = first }))
            return false;
    }
    return true;
}

static void grad(cn_grad_call *g)
{
    int64_t axis = ((const cn__axis_attrs *)g->attrs)->axis, start = 0;
    for (int k = 0; k < g->n_in; k++) {
        const cn_layout *x = cn__layout(g->in[k]);
        bool empty = skipped(x);
        int64_t end = start + (empty ? 0 : x->shape[axis]);
        if (g->needs[k])
            g->in_grad[k] = empty ? cn_zeros_like(g->in[k]) : cn_slice(g->out_grad[0], axis, start, end, 1);
        start = end;
    }
}

const cn_op cn__op_cat = {
    .call = "cat(Tensor[] tensors, int dim=0) -> Tensor",
    .name = "cat",
    .doc = "Tensors one after the other along an axis.",
    .kind = CN_INDEX,
    .onnx = "Concat",
    .n_in = 1,
    .n_out = 1,
    .variadic = true,
    .dtypes = CN_ANY,
    .strided = true,
    .joins = true,
    .attr_size = sizeof(cn__axis_attrs),
    .infer = infer,
    .grad = grad,
    .cpu = cpu,
    .gpu = gpu,
    CN_CASES({ CN_IN(CN_S(2, 3), CN_S(4, 3)), .attrs = &(const cn__axis_attrs){ 0 } },
             { CN_IN(CN_S(2, 1, 3), CN_S(2, 4, 3), CN_S(2, 2, 3)), .attrs = &(const cn__axis_attrs){ 1 } },
             { CN_IN(CN_S(0), CN_S(2, 3), CN_S(0), CN_S(2, 2)), .attrs = &(const cn__axis_attrs){ 1 } },
             { CN_IN(CN_S(3, 0), CN_S(3, 2)), .attrs = &(const cn__axis_attrs){ 1 } },
             { CN_IN(CN_S(0, 2), CN_S(0, 5)), .attrs = &(const cn__axis_attrs){ 1 } },
             { CN_IN(CN_S(5)), .attrs = &(const cn__axis_attrs){ 0 } },
             { CN_IN(CN_S(1), CN_S(2), CN_S(3), CN_S(1), CN_S(2), CN_S(3), CN_S(1), CN_S(2)),
               .attrs = &(const cn__axis_attrs){ 0 } },
             { CN_IN(CN_S(150, 17, 8), CN_S(150, 19, 8)), .attrs = &(const cn__axis_attrs){ 1 } },
             { CN_IN(CN_S(40, 30, 31), CN_S(40, 28, 31)), .attrs = &(const cn__axis_attrs){ 1 } }),
};

cn__call cn__enter_list(cn_tensor *const *x, int n, const char *who)
{
    cn_ctx *ctx = NULL;
    for (int k = 0; k < n && x && !ctx; k++) ctx = x[k] ? x[k]->ctx : NULL;
    for (int k = 0; k < n && ctx; k++)
        if (!cn__of_context(ctx, x[k], who, "a tensor of the list")) ctx = NULL;
    return cn__enter(ctx, who);
}

cn_tensor *cn_cat(cn_tensor *const *x, int n, int64_t axis)
{
    CN__CALL call = cn__enter_list(x, n, __func__);
    if (!call.ctx) return NULL;
    int first = 0;
    while (first + 1 < n && skipped(cn__layout(x[first]))) first++;
    cn__axis_attrs a = { cn__from_front(axis, cn_ndim(x[first])) };
    return cn_apply(&cn__op_cat, x, n, &a, NULL);
}

static cn_tensor *compose_stack(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)args;
    const cn__axis_attrs *a = attrs;
    size_t bytes = sizeof(cn_tensor *) * (size_t)n_in;
    for (int k = 1; k < n_in; k++) {
        char s[128], t[128];
        if (cn__same_shape(cn__layout(in[k]), cn__layout(in[0]))) continue;
        cn__fail(ctx, CN_BAD_SHAPE, "stack: the operands must have one shape, got operand %d %s and operand 0 %s", k,
                 cn__shape_text(cn__layout(in[k]), s, sizeof s), cn__shape_text(cn__layout(in[0]), t, sizeof t));
        return NULL;
    }
    int axis = cn__axis(a->axis, cn_ndim(in[0]) + 1);
    if (axis < 0) {
        char s[128];
        cn__fail(ctx, CN_BAD_ARGUMENT, "stack: dim %lld is out of range for a new axis of %s", (long long)a->axis,
                 cn__shape_text(cn__layout(in[0]), s, sizeof s));
        return NULL;
    }
    cn_tensor **rows = cn__resize(&ctx->memory, NULL, 0, bytes), *y = NULL;
    if (rows) {
        for (int k = 0; k < n_in; k++) rows[k] = cn_unsqueeze(in[k], axis);
        y = cn_cat(rows, n_in, axis);
    } else {
        cn__no_memory(ctx, "stack");
    }
    cn__resize(&ctx->memory, rows, rows ? bytes : 0, 0);
    return y;
}

const cn_op cn__op_stack = {
    .call = "stack(Tensor[] tensors, int dim=0) -> Tensor",
    .name = "stack",
    .doc = "Tensors of one shape along a new axis.",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .variadic = true,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__axis_attrs),
    .compose = compose_stack,
    CN_CASES({ CN_IN(CN_S(2, 3), CN_S(2, 3)), .attrs = &(const cn__axis_attrs){ 0 } },
             { CN_IN(CN_S(2, 3), CN_S(2, 3), CN_S(2, 3)), .attrs = &(const cn__axis_attrs){ -1 } },
             { CN_IN(CN_S0, CN_S0, CN_S0), .attrs = &(const cn__axis_attrs){ 0 } },
             { CN_IN(CN_S(0, 2), CN_S(0, 2)), .attrs = &(const cn__axis_attrs){ 1 } },
             { CN_IN(CN_S(0), CN_S(0)), .attrs = &(const cn__axis_attrs){ 0 } },
             { CN_IN(CN_S(41, 33), CN_S(41, 33)), .attrs = &(const cn__axis_attrs){ 1 } }),
};

cn_tensor *cn_stack(cn_tensor *const *x, int n, int64_t axis)
{
    CN__CALL call = cn__enter_list(x, n, __func__);
    if (!call.ctx) return NULL;
    return cn_apply(&cn__op_stack, x, n, &(cn__axis_attrs){ axis }, NULL);
}
