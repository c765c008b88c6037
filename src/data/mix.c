/* MixUp and CutMix: batches mixed with themselves, rolled by one item, as torchvision.transforms.v2 does. The weight
   and the rectangle are arguments of plans, so another draw does not make another plan. */
#include <math.h>

#include "cairn/image.h"
#include "core/handle.h"
#include "data/data.h"

/* Marsaglia and Tsang, 2000. */
static double draw_gamma(cn_draw *d, double shape)
{
    if (shape < 1) return draw_gamma(d, shape + 1) * pow(1 - cn_draw_unit(d), 1 / shape);
    const double a = shape - 1.0 / 3, c = 1 / sqrt(9 * a);
    for (;;) {
        const double x = cn_draw_normal(d), v = pow(1 + c * x, 3);
        if (v > 0 && log(1 - cn_draw_unit(d)) < x * x / 2 + a - a * v + a * log(v)) return a * v;
    }
}

static double draw_beta(cn_draw *d, double alpha)
{
    const double a = draw_gamma(d, alpha), b = draw_gamma(d, alpha);
    return a + b > 0 ? a / (a + b) : cn_draw_chance(d, 0.5);
}

static cn_tensor *number(cn_tensor *like, double v) { return cn_scalar(like->ctx, cn_type(like), v); }

/* lambda t + (1 - lambda) (t rolled by one) */
static cn_tensor *blend(cn_tensor *t, double lambda)
{
    cn_tensor *rolled = cn_roll(t, CN_DIMS(1), CN_DIMS(0));
    return cn_add(cn_mul(rolled, number(t, 1 - lambda)), cn_mul(t, number(t, lambda)));
}

/* Where n positions are from `from` to `to`. */
static cn_tensor *between(cn_ctx *ctx, int64_t n, int64_t from, int64_t to)
{
    cn_tensor *at = cn_arange(ctx, CN_F32, 0, (double)n, 1);
    return cn_logical_and(cn_ge(at, number(at, (double)from)), cn_lt(at, number(at, (double)to)));
}

static int64_t within(int64_t v, int64_t most) { return v < 0 ? 0 : v > most ? most : v; }

/* Puts a rectangle of the rolled batch into x (n, ..., h, w). Returns the share of x that is left in *lambda. */
static cn_tensor *cut(cn_tensor *x, cn_draw *d, double *lambda)
{
    const int64_t h = cn_size(x, -2), w = cn_size(x, -1);
    const int64_t col = cn_draw_below(d, w), row = cn_draw_below(d, h);
    const double r = 0.5 * sqrt(1 - *lambda);
    const int64_t half_w = (int64_t)(r * (double)w), half_h = (int64_t)(r * (double)h);
    const int64_t left = within(col - half_w, w), right = within(col + half_w, w), top = within(row - half_h, h),
                  bottom = within(row + half_h, h);
    *lambda = 1 - (double)((right - left) * (bottom - top)) / (double)(w * h);
    cn_tensor *inside =
        cn_logical_and(cn_unsqueeze(between(x->ctx, h, top, bottom), 1), between(x->ctx, w, left, right)); /* (h, w) */
    return cn_where(inside, cn_roll(x, CN_DIMS(1), CN_DIMS(0)), x);
}

static bool check(const char *who, cn_tensor *x, cn_tensor *y, const cn_mix_desc *desc, bool cuts)
{
    cn_ctx *ctx = x->ctx;
    const bool shares = cn_dtype_is_float(cn_type(y));
    if (!(desc->alpha > 0 && desc->alpha <= 1e6))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: alpha must be above 0 and at most 1e6, got %g", who, desc->alpha);
    if (!cn_dtype_is_float(cn_type(x)) || cn_ndim(x) < (cuts ? 3 : 1) || cn_numel(x) == 0)
        return cn__fail(ctx, CN_BAD_SHAPE, "%s: x must be a batch (n, ...%s) in floating point, got %d axes of %s", who,
                        cuts ? ", height, width" : "", cn_ndim(x), cn_dtype_name(cn_type(x)));
    if (cn_ndim(y) != (shares ? 2 : 1) || cn_size(y, 0) != cn_size(x, 0) || (!shares && desc->classes < 1))
        return cn__fail(ctx, CN_BAD_SHAPE,
                        "%s: y must be classes (n), with desc.classes, or shares (n, classes); got %d axes of %s and "
                        "%lld classes",
                        who, cn_ndim(y), cn_dtype_name(cn_type(y)), (long long)desc->classes);
    return true;
}

static bool mix(const char *who, cn_tensor **x, cn_tensor **y, const cn_mix_desc *desc, bool cuts)
{
    cn_mix_desc d = desc ? *desc : (cn_mix_desc){ 0 };
    if (d.alpha == 0) d.alpha = 1;
    CN__CALL call = cn__enter(x && *x ? (*x)->ctx : y && *y ? (*y)->ctx : NULL, who);
    cn_ctx *ctx = call.ctx;
    if (!ctx || cn_failed(ctx)) return false;
    if (!x || !y) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: x and y must not be NULL", who);
    if (!cn__of_context(ctx, *x, who, "x") || !cn__of_context(ctx, *y, who, "y")) return false;
    if (!check(who, *x, *y, &d, cuts)) return false;
    cn_draw draw = cn__order_draw(d.seed, 0, CN__STREAM_BATCH);
    double lambda = draw_beta(&draw, d.alpha);
    cn_tensor *images = cuts ? cut(*x, &draw, &lambda) : blend(*x, lambda);
    cn_tensor *shares = cn_dtype_is_float(cn_type(*y)) ? *y : cn_cast(cn_one_hot(*y, d.classes), CN_F32);
    cn_tensor *targets = shares ? blend(shares, lambda) : NULL;
    if (!images || !targets) return false;
    *x = images;
    *y = targets;
    return true;
}

bool cn_mixup(cn_tensor **x, cn_tensor **y, const cn_mix_desc *desc) { return mix("mixup", x, y, desc, false); }
bool cn_cutmix(cn_tensor **x, cn_tensor **y, const cn_mix_desc *desc) { return mix("cutmix", x, y, desc, true); }
