/* Modules that change shapes: Unflatten, the shuffles and the paddings; and Identity. */
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

/* ---- shuffles ---- */

typedef struct shuffle {
    int64_t n; /* the factor, or the number of groups */
    cn_tensor *(*apply)(cn_tensor *x, int64_t n);
} shuffle;

static cn_tensor *shuffle_forward(cn_module *m, cn_tensor *x)
{
    const shuffle *s = cn_module_data(m);
    return s->apply(x, s->n);
}

static void shuffle_describe(const cn_module *m, char *out, size_t size)
{
    snprintf(out, size, "%lld", (long long)((const shuffle *)cn_module_data(m))->n);
}

#define SHUFFLE(name_)                                                                                         \
    {                                                                                                          \
        .name = name_, .forward = shuffle_forward, .data_bytes = sizeof(shuffle), .describe = shuffle_describe \
    }
static const cn_module_type pixel_shuffle_type = SHUFFLE("PixelShuffle");
static const cn_module_type pixel_unshuffle_type = SHUFFLE("PixelUnshuffle");
static const cn_module_type channel_shuffle_type = SHUFFLE("ChannelShuffle");

static cn_module *make_shuffle(cn_ctx *ctx, const cn_module_type *type, const char *what, shuffle s)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (s.n < 1 || s.n > INT32_MAX) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "%s: %s must be from 1 to %d, got %lld", type->name, what, INT32_MAX,
                 (long long)s.n);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, type);
    if (m) *(shuffle *)cn_module_data(m) = s;
    return m;
}

cn_module *cn_nn_pixel_shuffle(cn_ctx *ctx, int64_t factor)
{
    return make_shuffle(ctx, &pixel_shuffle_type, "factor", (shuffle){ factor, cn_pixel_shuffle });
}
cn_module *cn_nn_pixel_unshuffle(cn_ctx *ctx, int64_t factor)
{
    return make_shuffle(ctx, &pixel_unshuffle_type, "factor", (shuffle){ factor, cn_pixel_unshuffle });
}
cn_module *cn_nn_channel_shuffle(cn_ctx *ctx, int64_t groups)
{
    return make_shuffle(ctx, &channel_shuffle_type, "groups", (shuffle){ groups, cn_channel_shuffle });
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
