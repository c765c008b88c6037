/* pad: adds elements before and after each axis, or removes them where a number is negative. */
#include "ops/join/join.h"
#include "ops/view/move.h"
#include "gpu/shaders.h"

/* The index along the axis of x that index p of the result comes from; -1: the constant. */
static inline int64_t source(int64_t mode, int64_t p, int64_t size, int64_t before, int64_t after)
{
    int64_t q = p - before;
    if (q >= 0 && q < size) return q;
    if (mode == CN_PAD_REFLECT) return q < 0 ? -q : 2 * (size - 1) - q;
    if (mode == CN_PAD_REPLICATE) return q < 0 ? 0 : size - 1;
    if (mode != CN_PAD_CIRCULAR) return -1;
    /* within the part that is left after removing */
    return q < 0 ? q + size + (after < 0 ? after : 0) : q - size - (before < 0 ? before : 0);
}

/* After removing, the axis must have elements left, and enough of them to pad with. */
static bool possible(int64_t mode, int64_t size, int64_t before, int64_t after)
{
    if (before < -size || after < -size) return false;
    int64_t left = size + (before < 0 ? before : 0) + (after < 0 ? after : 0), most = before > after ? before : after;
    if (left < 0) return false;
    switch (mode) {
    case CN_PAD_CONSTANT: return true;
    case CN_PAD_REFLECT: return most <= 0 || most < size;
    case CN_PAD_REPLICATE: return most <= 0 || size > 0;
    case CN_PAD_CIRCULAR: return most <= left;
    default: return false;
    }
}

static bool infer(cn_infer *i)
{
    static const char *const name[] = { "constant", "reflect", "replicate", "circular" };
    const cn__pad_attrs *a = i->attrs;
    cn_layout *out = &i->out[0].layout;
    i->out[0] = *i->in[0];
    if (a->mode < CN_PAD_CONSTANT || a->mode > CN_PAD_CIRCULAR)
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "mode must be one of cn_pad_mode, got %lld", (long long)a->mode);
    for (int d = 0; d < out->ndim; d++) {
        int64_t size = out->shape[d];
        if (!possible(a->mode, size, a->before[d], a->after[d]))
            return cn_infer_fail(i, CN_BAD_SHAPE, "axis %d of size %lld cannot be padded by %lld and %lld in mode %s",
                                 d, (long long)size, (long long)a->before[d], (long long)a->after[d], name[a->mode]);
        if (__builtin_add_overflow(size, a->before[d], &size) ||
            __builtin_add_overflow(size, a->after[d], &out->shape[d]))
            return cn_infer_fail(i, CN_BAD_SHAPE, "the padded shape is too large");
    }
    return true;
}

/* ---- kernel: rows of the result, each from one row of x ---- */

typedef struct job {
    const cn__pad_attrs *a;
    int64_t bytes;
    uint64_t value; /* the constant, as an element */
} job;

/* The start of the row of x that row `at` of the result comes from; NULL: the whole row is the constant. */
static const char *row_source(const cn_kernel *k, const job *j, const int64_t *at)
{
    int64_t from = 0;
    for (int d = 0; d < k->out[0].ndim - 1; d++) {
        int64_t q = source(j->a->mode, at[d], k->in[0].shape[d], j->a->before[d], j->a->after[d]);
        if (q < 0) return NULL;
        from += q * k->in[0].stride[d];
    }
    return (const char *)k->in[0].data + from * j->bytes;
}

/* Elements [p, end) of one row: those inside x are copied at once, those before and after one by one. */
static void pad_row(const cn_kernel *k, const job *j, char *to, const char *from, int64_t p, int64_t end)
{
    int last = k->out[0].ndim - 1;
    int64_t size = k->in[0].shape[last], stride = k->in[0].stride[last], before = j->a->before[last];
    if (!from) size = 0;
    for (int64_t n; p < end; p += n, to += n * j->bytes) {
        int64_t q = p - before;
        if (q >= 0 && q < size) {
            n = size - q < end - p ? size - q : end - p;
            cn__move_row(to, 1, from + q * stride * j->bytes, stride, n, j->bytes);
        } else if (j->a->mode == CN_PAD_CONSTANT) {
            n = q < 0 && -q < end - p && size ? -q : end - p;
            cn__move_row(to, 1, (const char *)&j->value, 0, n, j->bytes);
        } else {
            n = 1;
            q = source(j->a->mode, p, size, before, j->a->after[last]);
            cn__move_row(to, 1, from + q * stride * j->bytes, 1, n, j->bytes);
        }
    }
}

static void body(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = user;
    const int64_t *shape = k->out[0].shape;
    int last = k->out[0].ndim - 1;
    int64_t at[CN_MAX_DIMS], rest = begin;
    for (int d = last; d >= 0; d--) at[d] = rest % shape[d], rest /= shape[d];
    while (begin < end) {
        int64_t n = shape[last] - at[last];
        if (n > end - begin) n = end - begin;
        pad_row(k, j, (char *)k->out[0].data + begin * j->bytes, row_source(k, j, at), at[last], at[last] + n);
        begin += n;
        at[last] = 0;
        for (int d = last - 1; d >= 0 && ++at[d] == shape[d]; d--) at[d] = 0;
    }
}

static void cpu(const cn_kernel *k)
{
    job j = { .a = k->attrs, .bytes = (int64_t)cn_dtype_size(k->out[0].dtype) };
    cn__store_f64(k->out[0].dtype, &j.value, k->args[0].f);
    if (k->out[0].numel == 0) return;
    if (k->out[0].ndim == 0) memcpy(k->out[0].data, k->in[0].data, (size_t)j.bytes);
    else cn_parallel(k, k->out[0].numel, CN__MOVE_GRAIN, body, &j);
}

/* ---- on the GPU ---- */

static const char *gpu_type(cn_dtype t) { return cn_dtype_is_float(t) ? "float" : t == CN_BOOL ? "bool" : "whole"; }

/* One axis of the kernel. Neighbouring axes that are not padded are merged where possible. */
typedef struct gpu_axis {
    int64_t size, stride, before, after;
} gpu_axis;

static int gpu_axes(const cn_gpu_call *c, gpu_axis *axes)
{
    const cn__pad_attrs *a = c->attrs;
    int n = 0;
    for (int d = 0; d < c->in[0].ndim; d++) {
        gpu_axis x = { c->in[0].shape[d], c->in[0].stride[d], a->before[d], a->after[d] };
        gpu_axis *last = n ? &axes[n - 1] : NULL;
        bool plain = x.before == 0 && x.after == 0;
        if (plain && last && last->before == 0 && last->after == 0 && last->stride == x.stride * x.size)
            *last = (gpu_axis){ last->size * x.size, x.stride, 0, 0 };
        else axes[n++] = x;
    }
    return n;
}

static const char *gpu_mode(int64_t mode)
{
    switch (mode) {
    case CN_PAD_REFLECT: return "reflect";
    case CN_PAD_REPLICATE: return "replicate";
    case CN_PAD_CIRCULAR: return "circular";
    default: return "constant";
    }
}

/* The statements of pad.wgsl for one axis. */
static const char *gpu_walk(cn_gpu_call *c, int64_t mode, const gpu_axis *x)
{
    const int at = cn_gpu_params(c);
    const int64_t numbers[] = { x->size + x->before + x->after,
                                x->before,
                                x->stride,
                                x->size,
                                x->size + (x->after < 0 ? x->after : 0),
                                x->size + (x->before < 0 ? x->before : 0) };
    for (int i = 0; i < 6; i++) cn_gpu_param(c, numbers[i]);
    return cn_gpu_part(c, cn__wgsl_pad, "axis",
                       CN_GPU_HOLES(CN_GPU_NUMBER("at", at),
                                    CN_GPU_TEXT("mode", x->before || x->after ? gpu_mode(mode) : "plain")));
}

static bool gpu(cn_gpu_call *c)
{
    gpu_axis axes[CN_MAX_DIMS];
    const char *walk = "";
    for (int d = gpu_axes(c, axes) - 1; d >= 0; d--)
        walk = cn_gpu_join(c, walk, gpu_walk(c, ((const cn__pad_attrs *)c->attrs)->mode, &axes[d]));
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_pad,
                                           .holes = CN_GPU_HOLES(CN_GPU_TEXT("type", gpu_type(c->out[0].dtype)),
                                                                 CN_GPU_TEXT("walk", walk)),
                                           .each = c->out[0].numel });
}

/* ---- gradient: margins are added to the elements they came from, one axis at a time ---- */

static cn_tensor *with_zeros(cn_tensor *x, int axis, int64_t before, int64_t after)
{
    cn__pad_attrs a = { .mode = CN_PAD_CONSTANT };
    a.before[axis] = before;
    a.after[axis] = after;
    return cn_apply(&cn__op_pad, &x, 1, &a, (cn_arg[CN_MAX_ARGS]){ { .f = 0 } });
}

/* The gradient of the whole axis from the margin g, which came from indices [first, first + width) of x: in reverse
   order for CN_PAD_REFLECT, all from `first` for CN_PAD_REPLICATE. */
static cn_tensor *fold_margin(cn_tensor *g, int64_t mode, int axis, int64_t first, int64_t size)
{
    if (mode == CN_PAD_REFLECT) g = cn_flip(g, CN_DIMS(axis));
    if (mode == CN_PAD_REPLICATE) g = cn_sum(g, CN_DIMS(axis), true);
    return g ? with_zeros(g, axis, first, size - first - cn_size(g, axis)) : NULL;
}

static cn_tensor *fold_axis(cn_tensor *g, int64_t mode, int axis, int64_t before, int64_t after)
{
    if (!g || (before == 0 && after == 0)) return g;
    int64_t padded = cn_size(g, axis), size = padded - before - after;
    cn_tensor *sum = with_zeros(g, axis, -before, -after); /* the part inside x */
    if (mode == CN_PAD_CONSTANT) return sum;
    if (before > 0) {
        int64_t left = size + (after < 0 ? after : 0);
        int64_t first = mode == CN_PAD_REFLECT ? 1 : mode == CN_PAD_REPLICATE ? 0 : left - before;
        sum = cn_add(sum, fold_margin(cn_slice(g, axis, 0, before, 1), mode, axis, first, size));
    }
    if (after > 0) {
        int64_t cut = before < 0 ? -before : 0;
        int64_t first = mode == CN_PAD_REFLECT ? size - 1 - after : mode == CN_PAD_REPLICATE ? size - 1 : cut;
        sum = cn_add(sum, fold_margin(cn_slice(g, axis, padded - after, padded, 1), mode, axis, first, size));
    }
    return sum;
}

static void grad(cn_grad_call *g)
{
    const cn__pad_attrs *a = g->attrs;
    cn_tensor *x = g->out_grad[0];
    for (int d = 0; d < cn_ndim(g->in[0]); d++) x = fold_axis(x, a->mode, d, a->before[d], a->after[d]);
    g->in_grad[0] = x;
}

const cn_op cn__op_pad = {
    .call = "pad(Tensor input, int[] pad, constant|reflect|replicate|circular mode=constant, float value=0) -> Tensor",
    .name = "pad",
    .doc = "Axes made longer by a constant, by reflection, by their ends or by going round.",
    .kind = CN_INDEX,
    .onnx = "Pad",
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .strided = true,
    .attr_size = sizeof(cn__pad_attrs),
    .infer = infer,
    .grad = grad,
    .cpu = cpu,
    .gpu = gpu,
    CN_CASES(
        { CN_IN(CN_S(2, 3)),
          .attrs = &(const cn__pad_attrs){ CN_PAD_CONSTANT, { 1, 2 }, { 0, 1 } },
          CN_ARGS({ .f = 1 }) },
        { CN_IN(CN_S(3, 5)),
          .attrs = &(const cn__pad_attrs){ CN_PAD_CONSTANT, { -1, 2 }, { 1, -3 } },
          CN_ARGS({ .f = 1 }) },
        { CN_IN(CN_S(0, 2)),
          .attrs = &(const cn__pad_attrs){ CN_PAD_CONSTANT, { 2, 0 }, { 1, 1 } },
          CN_ARGS({ .f = 1 }) },
        { CN_IN(CN_S(4)), .attrs = &(const cn__pad_attrs){ CN_PAD_CONSTANT, { -4 }, { 0 } } },
        { CN_IN(CN_S0), .attrs = &(const cn__pad_attrs){ CN_PAD_CONSTANT, { 0 }, { 0 } } },
        { CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__pad_attrs){ CN_PAD_REFLECT, { 0, 2, 1 }, { 0, 1, 3 } } },
        { CN_IN(CN_S(6)), .attrs = &(const cn__pad_attrs){ CN_PAD_REFLECT, { 3 }, { -2 } } },
        { CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__pad_attrs){ CN_PAD_REPLICATE, { 0, 2, 0 }, { 0, 1, 5 } } },
        { CN_IN(CN_S(5)), .attrs = &(const cn__pad_attrs){ CN_PAD_REPLICATE, { -2 }, { 3 } } },
        { CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__pad_attrs){ CN_PAD_CIRCULAR, { 0, 3, 1 }, { 0, 1, 4 } } },
        { CN_IN(CN_S(6)), .attrs = &(const cn__pad_attrs){ CN_PAD_CIRCULAR, { 2 }, { -2 } } },
        { CN_IN(CN_S(6)), .attrs = &(const cn__pad_attrs){ CN_PAD_CIRCULAR, { -1 }, { 3 } } },
        { CN_IN(CN_S(0, 3)), .attrs = &(const cn__pad_attrs){ CN_PAD_REFLECT, { 0, 1 }, { 0, 2 } } },
        { CN_IN(CN_S(5, 63, 99)), .attrs = &(const cn__pad_attrs){ CN_PAD_CONSTANT, { 1, 1, 2 }, { 0, 1, 3 } } },
        { CN_IN(CN_S(3, 23, 29)), .attrs = &(const cn__pad_attrs){ CN_PAD_REFLECT, { 0, 3, 3 }, { 0, 3, 3 } } }),
};

cn_tensor *cn_pad(cn_tensor *x, cn_dims pad, cn_pad_mode mode, double value)
{
    if (!cn__alive(x)) return NULL;
    const cn_layout *l = cn__layout(x);
    cn__pad_attrs a = { .mode = mode };
    if (pad.n < 0 || pad.n > CN_MAX_DIMS || pad.n % 2 || pad.n / 2 > l->ndim) {
        char s[128];
        cn__fail(x->ctx, CN_BAD_ARGUMENT,
                 "pad: expects two numbers for each axis, from the last one, got %d for shape %s", pad.n,
                 cn__shape_text(l, s, sizeof s));
        return NULL;
    }
    if (mode != CN_PAD_CONSTANT && value != 0) {
        cn__fail(x->ctx, CN_BAD_ARGUMENT, "pad: value must be 0 unless the mode is constant, got %g", value);
        return NULL;
    }
    if (!cn__check_fits(x->ctx, "pad", "value", cn__dtype(x), value)) return NULL;
    for (int p = 0; p < pad.n / 2; p++) {
        a.before[l->ndim - 1 - p] = pad.v[2 * p];
        a.after[l->ndim - 1 - p] = pad.v[2 * p + 1];
    }
    return cn_apply(&cn__op_pad, &x, 1, &a, (cn_arg[CN_MAX_ARGS]){ { .f = value } });
}
