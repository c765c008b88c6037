/* Modules that change shapes: Unflatten, PixelShuffle and the paddings; and Identity. */
#include <stdio.h>

#include "nn/nn.h"

static cn_tensor *identity_forward(cn_module *m, cn_tensor *x) { return (void)m, x; }
static const cn_module_type identity_type = { .name = "Identity", .forward = identity_forward };

cn_module *cn_nn_identity(cn_ctx *ctx) { return cn_module_new(ctx, &identity_type); }

/* ---- unflatten ---- */

typedef struct unflatten {
    int64_t axis;
    cn_dims sizes;
} unflatten;

static cn_tensor *unflatten_forward(cn_module *m, cn_tensor *x)
{
    const unflatten *u = cn_module_data(m);
    const cn_dims from = cn_shape(x);
    const int64_t axis = u->axis < 0 ? u->axis + from.n : u->axis;
    if (axis < 0 || axis >= from.n || from.n - 1 + u->sizes.n > CN_MAX_DIMS)
        return cn__wrong_shape(x, "x must have an axis %lld, and the result at most %d axes", (long long)u->axis,
                               CN_MAX_DIMS);
    int64_t known = 1, open = -1;
    cn_dims to = { 0 };
    for (int d = 0; d < axis; d++) to.v[to.n++] = from.v[d];
    for (int d = 0; d < u->sizes.n; d++) {
        if (u->sizes.v[d] < 0) open = to.n;
        else known *= u->sizes.v[d];
        to.v[to.n++] = u->sizes.v[d];
    }
    for (int d = (int)axis + 1; d < from.n; d++) to.v[to.n++] = from.v[d];
    const int64_t size = from.v[axis];
    if (open < 0 ? known != size : size % known)
        return cn__wrong_shape(x, "the size along axis %lld must be %s%lld", (long long)u->axis,
                               open < 0 ? "" : "a multiple of ", (long long)known);
    if (open >= 0) to.v[open] = size / known;
    return cn_reshape(x, to);
}

static void unflatten_describe(const cn_module *m, char *out, size_t size)
{
    const unflatten *u = cn_module_data(m);
    char sizes[128];
    snprintf(out, size, "axis %lld, %s", (long long)u->axis, cn__by_text(u->sizes.v, u->sizes.n, sizes, sizeof sizes));
}

static const cn_module_type unflatten_type = {
    .name = "Unflatten", .forward = unflatten_forward, .data_bytes = sizeof(unflatten), .describe = unflatten_describe
};

cn_module *cn_nn_unflatten(cn_ctx *ctx, int64_t axis, cn_dims sizes)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    int open = 0;
    int64_t all = 1;
    bool fine = sizes.n >= 1 && sizes.n <= CN_MAX_DIMS;
    for (int d = 0; d < sizes.n && fine; d++) {
        open += sizes.v[d] == -1;
        fine = sizes.v[d] == -1 || (sizes.v[d] >= 1 && !__builtin_mul_overflow(all, sizes.v[d], &all));
    }
    if (!fine || open > 1) {
        char text[160] = "none";
        if (sizes.n >= 1 && sizes.n <= CN_MAX_DIMS) cn__by_text(sizes.v, sizes.n, text, sizeof text);
        cn__fail(ctx, CN_BAD_ARGUMENT, "Unflatten: sizes must be 1 to %d numbers > 0, of which one may be -1, got %s",
                 CN_MAX_DIMS, text);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, &unflatten_type);
    if (m) *(unflatten *)cn_module_data(m) = (unflatten){ axis, sizes };
    return m;
}

/* ---- pixel shuffle ---- */

typedef struct shuffle {
    int64_t factor;
} shuffle;

/* (n,c,r,r,h,w) -> (n,c,h,r,w,r) */
static cn_tensor *shuffled(cn_tensor *x, int64_t r)
{
    cn_dims shape = cn_shape(x);
    int64_t *last = shape.v + shape.n - 3, c = last[0] / (r * r), h = last[1], w = last[2], n = 1;
    for (int d = 0; d < shape.n - 3; d++) n *= shape.v[d];
    cn_tensor *y = cn_permute(cn_reshape(x, CN_DIMS(n, c, r, r, h, w)), CN_DIMS(0, 1, 4, 2, 5, 3));
    last[0] = c, last[1] = h * r, last[2] = w * r;
    return cn_reshape(y, shape);
}

static cn_tensor *shuffle_forward(cn_module *m, cn_tensor *x)
{
    const int64_t r = ((const shuffle *)cn_module_data(m))->factor;
    if (cn_ndim(x) < 3 || cn_size(x, -3) % (r * r))
        return cn__wrong_shape(x, "x must be (..., C, H, W) with C a multiple of %lld", (long long)(r * r));
    cn_scope s = cn_scope_begin(x->ctx);
    return cn_scope_return(x->ctx, s, shuffled(x, r));
}

static void shuffle_describe(const cn_module *m, char *out, size_t size)
{
    snprintf(out, size, "%lld", (long long)((const shuffle *)cn_module_data(m))->factor);
}

static const cn_module_type shuffle_type = {
    .name = "PixelShuffle", .forward = shuffle_forward, .data_bytes = sizeof(shuffle), .describe = shuffle_describe
};

cn_module *cn_nn_pixel_shuffle(cn_ctx *ctx, int64_t factor)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (factor < 1 || factor > INT32_MAX) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "PixelShuffle: factor must be from 1 to %d, got %lld", INT32_MAX,
                 (long long)factor);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, &shuffle_type);
    if (m) ((shuffle *)cn_module_data(m))->factor = factor;
    return m;
}

/* ---- padding ---- */

typedef struct padding {
    cn_dims pad;
    cn_pad_mode mode;
    double value;
} padding;

static cn_tensor *pad_forward(cn_module *m, cn_tensor *x)
{
    const padding *p = cn_module_data(m);
    return cn_pad(x, p->pad, p->mode, p->value);
}

static void pad_describe(const cn_module *m, char *out, size_t size)
{
    const padding *p = cn_module_data(m);
    size_t n = 0;
    for (int d = 0; d < p->pad.n && n < size; d++)
        n += (size_t)snprintf(out + n, size - n, "%s%lld", d ? ", " : "", (long long)p->pad.v[d]);
    if (p->value != 0 && n < size) snprintf(out + n, size - n, ", value %g", p->value);
}

#define PADDING(name_)                                                                                 \
    {                                                                                                  \
        .name = name_, .forward = pad_forward, .data_bytes = sizeof(padding), .describe = pad_describe \
    }
static const cn_module_type zero_type = PADDING("ZeroPad");
static const cn_module_type constant_type = PADDING("ConstantPad");
static const cn_module_type reflection_type = PADDING("ReflectionPad");
static const cn_module_type replication_type = PADDING("ReplicationPad");
static const cn_module_type circular_type = PADDING("CircularPad");

static cn_module *make_padding(cn_ctx *ctx, const cn_module_type *type, padding p)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (p.pad.n < 2 || p.pad.n > 6 || p.pad.n % 2) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: pad must have 2, 4 or 6 numbers, two for each axis, got %d", type->name,
                 p.pad.n);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, type);
    if (m) *(padding *)cn_module_data(m) = p;
    return m;
}

cn_module *cn_nn_zero_pad(cn_ctx *ctx, cn_dims pad)
{
    return make_padding(ctx, &zero_type, (padding){ pad, CN_PAD_CONSTANT, 0 });
}
cn_module *cn_nn_constant_pad(cn_ctx *ctx, cn_dims pad, double value)
{
    return make_padding(ctx, &constant_type, (padding){ pad, CN_PAD_CONSTANT, value });
}
cn_module *cn_nn_reflection_pad(cn_ctx *ctx, cn_dims pad)
{
    return make_padding(ctx, &reflection_type, (padding){ pad, CN_PAD_REFLECT, 0 });
}
cn_module *cn_nn_replication_pad(cn_ctx *ctx, cn_dims pad)
{
    return make_padding(ctx, &replication_type, (padding){ pad, CN_PAD_REPLICATE, 0 });
}
cn_module *cn_nn_circular_pad(cn_ctx *ctx, cn_dims pad)
{
    return make_padding(ctx, &circular_type, (padding){ pad, CN_PAD_CIRCULAR, 0 });
}
