#include "support/edges.h"

#include <math.h>
#include <string.h>

#include "cairn/loss.h"
#include "support/check.h"

enum { MOST = 9, OPERANDS = 3 };
typedef cn_tensor *(*edge_fn)(cn_tensor *const *in);

/* All operands have the same shape. The gradients are those of the sum of y. */
typedef struct edge {
    const char *name;
    edge_fn fn;
    cn_dims shape;
    double in[OPERANDS][MOST], y[MOST], grad[OPERANDS][MOST];
    int n_in;
} edge;

#define FN(name, expression)                     \
    static cn_tensor *name(cn_tensor *const *in) \
    {                                            \
        cn_tensor *x = in[0];                    \
        return (expression);                     \
    }
#define NAN_ (double)NAN
#define INF  (double)INFINITY

FN(clamp, cn_clamp(x, -1, 1))
FN(clamp_crossed, cn_clamp(x, 1, -1))
FN(clamp_below, cn_clamp(x, -INF, 1))
FN(clamp_above, cn_clamp(x, -1, INF))
FN(clamp_nothing, cn_clamp(x, -INF, INF))
FN(clamp_to_nan, cn_clamp(x, NAN_, 1))
FN(clamp_from_nan, cn_clamp(x, -1, NAN_))
FN(hardtanh_nan, cn_hardtanh(x, NAN_, 1))
FN(clamp_t, cn_clamp_t(x, in[1], in[2]))
FN(softshrink, cn_softshrink(x, 1))
FN(prelu, cn_prelu(x, cn_scalar(cn_context(x), cn_type(x), 0.25)))
FN(angle, cn_atan2(x, in[1]))
FN(power, cn_pow(x, in[1]))
FN(power_0, cn_pow_s(x, 0))
FN(power_3, cn_pow_s(x, 3))
FN(power_minus_2, cn_pow_s(x, -2))
FN(power_far, cn_pow_s(x, 1e30))
FN(var_0, cn_var(x, CN_DIMS(-1), 0, false))
FN(var_1, cn_var(x, CN_DIMS(-1), 1, false))
FN(var_2, cn_var(x, CN_DIMS(-1), 2, false))
FN(std_0, cn_std(x, CN_DIMS(-1), 0, false))
FN(std_1, cn_std(x, CN_DIMS(-1), 1, false))
FN(resized, cn_reshape(cn_interpolate_bilinear(cn_reshape(x, CN_DIMS(1, 1, 1, 3)), 1, 3, false), CN_DIMS(3)))
FN(resized_corners, cn_reshape(cn_interpolate_bilinear(cn_reshape(x, CN_DIMS(1, 1, 3, 1)), 3, 1, true), CN_DIMS(3)))
FN(cosine, cn_cosine_similarity(x, in[1], -1, 1e-8))
FN(cosine_short, cn_cosine_similarity(x, in[1], -1, 10))

#define VECTOR(n) \
    {             \
        1, { n }  \
    }
#define MATRIX(n, m) \
    {                \
        2, { n, m }  \
    }
#define SIDES                            \
    {                                    \
        -2, -1, 0, 1, 2, NAN_, INF, -INF \
    }

/* clang-format off */
static const edge table[] = {
    { "clamp", clamp, VECTOR(8), { SIDES }, { -1, -1, 0, 1, 1, NAN_, 1, -1 }, { { 0, 0, 1, 0, 0, 0, 0, 0 } }, 1 },
    { "clamp, limits crossed", clamp_crossed, VECTOR(5), { SIDES }, { -1, -1, -1, -1, -1 }, { { 0 } }, 1 },
    { "clamp, no limits", clamp_nothing, VECTOR(8), { SIDES }, { -2, -1, 0, 1, 2, NAN_, INF, -INF },
      { { 1, 1, 1, 1, 1, 0, 1, 1 } }, 1 },
    { "clamp, max", clamp_below, VECTOR(8), { SIDES }, { -2, -1, 0, 1, 1, NAN_, 1, -INF },
      { { 1, 1, 1, 0, 0, 0, 0, 1 } }, 1 },
    { "clamp, min", clamp_above, VECTOR(8), { SIDES }, { -1, -1, 0, 1, 2, NAN_, INF, -1 },
      { { 0, 0, 1, 1, 1, 0, 1, 0 } }, 1 },
    { "clamp, min NaN", clamp_to_nan, VECTOR(3), { SIDES }, { NAN_, NAN_, NAN_ }, { { 0 } }, 1 },
    { "clamp, max NaN", clamp_from_nan, VECTOR(3), { SIDES }, { NAN_, NAN_, NAN_ }, { { 0 } }, 1 },
    { "hardtanh, min NaN", hardtanh_nan, VECTOR(3), { SIDES }, { NAN_, NAN_, NAN_ }, { { 0 } }, 1 },
    { "clamp_t", clamp_t, VECTOR(6), { SIDES, { -1, -1, -1, -1, -1, -1 }, { 1, 1, 1, 1, 1, 1 } },
      { -1, -1, 0, 1, 1, NAN_ }, { { 0, 0.5, 1, 0.5, 0, 1 }, { 1, 0.5 }, { 0, 0, 0, 0.5, 1 } }, 3 },
    { "clamp_t, equal limits", clamp_t, VECTOR(6), { SIDES, { 1, 1, 1, 1, 1, 1 }, { 1, 1, 1, 1, 1, 1 } },
      { 1, 1, 1, 1, 1, NAN_ }, { { 0, 0, 0, 1, 0, 1 }, { 1, 1, 1 }, { 0, 0, 0, 0, 1 } }, 3 },
    { "clamp_t, crossed", clamp_t, VECTOR(6), { SIDES, { 1, 1, 1, 1, 1, 1 }, { -1, -1, -1, -1, -1, -1 } },
      { -1, -1, -1, -1, -1, NAN_ }, { { 0, 0, 0, 0, 0, 1 }, { 0 }, { 1, 1, 1, 1, 1, 1 } }, 3 },
    { "clamp_t, min NaN", clamp_t, VECTOR(5), { SIDES, { NAN_, NAN_, NAN_, NAN_, NAN_ }, { 1, 1, 1, 1, 1 } },
      { NAN_, NAN_, NAN_, NAN_, NAN_ }, { { 1, 1, 1, 1, 0 }, { 0 }, { 0 } }, 3 },
    { "clamp_t, max NaN", clamp_t, VECTOR(5), { SIDES, { -1, -1, -1, -1, -1 }, { NAN_, NAN_, NAN_, NAN_, NAN_ } },
      { NAN_, NAN_, NAN_, NAN_, NAN_ }, { { 0, 1, 1, 1, 1 }, { 0 }, { 0 } }, 3 },
    { "softshrink", softshrink, VECTOR(5), { SIDES }, { -1, 0, 0, 0, 1 }, { { 1, 0, 0, 0, 1 } }, 1 },
    { "prelu", prelu, VECTOR(5), { SIDES }, { -0.5, -0.25, 0, 1, 2 }, { { 0.25, 0.25, 0.25, 1, 1 } }, 1 },
    { "atan2", angle, VECTOR(5), { { 0, -0.0, 1, 0, 2 }, { 0, 0, 0, 1, 2 } }, { 0, 0, M_PI / 2, 0, M_PI / 4 },
      { { 0, 0, 0, 1, 0.25 }, { 0, 0, -1, 0, -0.25 } }, 2 },
    { "pow", power, VECTOR(9), { { 0, 0, 0, 0, -2, -2, -2, 1, 2 }, { 0, 1, 2, 0.5, 0, 2, 3, 0, 3 } },
      { 1, 0, 0, 0, 1, 4, -8, 1, 8 }, { { 0, 1, 0, INF, 0, -4, 12, 0, 12 },
      { 0, 0, 0, 0, NAN_, NAN_, NAN_, 0, 5.545177444479562 } }, 2 },
    { "pow, exponent 0", power_0, VECTOR(5), { { 0, -0.0, -2, 2, NAN_ } }, { 1, 1, 1, 1, 1 }, { { 0 } }, 1 },
    { "pow, exponent 3", power_3, VECTOR(4), { { 0, -1, -2, 2 } }, { 0, -1, -8, 8 }, { { 0, 3, 12, 12 } }, 1 },
    { "pow, exponent -2", power_minus_2, VECTOR(4), { { 0, -0.0, -2, 2 } }, { INF, INF, 0.25, 0.25 },
      { { -INF, INF, 0.25, -0.25 } }, 1 },
    { "pow, exponent 1e30", power_far, VECTOR(5), { { 0, 1, -1, 0.5, 2 } }, { 0, 1, 1, 0, INF },
      { { 0, 1e30, 1e30, 0, INF } }, 1 },
    { "var of one", var_1, VECTOR(1), { { 1.5 } }, { NAN_ }, { { NAN_ } }, 1 },
    { "var of one, correction 0", var_0, VECTOR(1), { { 1.5 } }, { 0 }, { { 0 } }, 1 },
    { "var of one, correction 2", var_2, VECTOR(1), { { 1.5 } }, { NAN_ }, { { 0 } }, 1 },
    { "var of two, correction 2", var_2, VECTOR(2), { { 1, 2 } }, { INF }, { { -INF, INF } }, 1 },
    { "var of equal numbers", var_1, VECTOR(2), { { 1, 1 } }, { 0 }, { { 0, 0 } }, 1 },
    { "std of one", std_1, VECTOR(1), { { 1.5 } }, { NAN_ }, { { NAN_ } }, 1 },
    { "std of one, correction 0", std_0, VECTOR(1), { { 1.5 } }, { 0 }, { { 0 } }, 1 },
    { "std of equal numbers", std_1, VECTOR(2), { { 1, 1 } }, { 0 }, { { 0, 0 } }, 1 },
    { "interpolate to the same size", resized, VECTOR(3), { { 1, NAN_, 3 } }, { 1, NAN_, 3 }, { { 1, 1, 1 } }, 1 },
    { "interpolate, corners aligned", resized_corners, VECTOR(3), { { 1, NAN_, 3 } }, { 1, NAN_, 3 }, { { 1, 1, 1 } }, 1 },
    { "cosine_similarity, rows of 0", cosine, MATRIX(3, 2), { { 0, 0, 3, 4, 0, 0 }, { 3, 4, 0, 0, 0, 0 } },
      { 0, 0, 0 }, { { 6e7, 8e7, 0, 0, 0, 0 }, { 0, 0, 6e7, 8e7, 0, 0 } }, 2 },
    { "cosine_similarity, short rows", cosine_short, MATRIX(1, 2), { { 3, 4 }, { 1, 0 } }, { 0.03 },
      { { 0.0082, -0.0024 }, { 0.027, 0.04 } }, 2 },
};
/* clang-format on */

static bool is_close(double a, double b, double allowed)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= allowed * (1 + fabs(b));
}

static void compare(const char *what, cn_tensor *t, const double *expected, double allowed)
{
    double got[MOST] = { 0 };
    const int64_t n = t ? cn_numel(t) : 0;
    if (!check(t && n <= MOST && cn_read_f64(t, got, n), "no %s: %s", what,
               t ? cn_error(cn_context(t)) : ""))
        return;
    for (int64_t i = 0; i < n; i++)
        check(is_close(got[i], expected[i], allowed), "%s %d must be %g, got %g", what, (int)i, expected[i],
              got[i]);
}

static void check_edge(cn_ctx *ctx, const edge *e, cn_dtype dtype)
{
    const cn_scope scope = cn_scope_begin(ctx);
    const double allowed = dtype == CN_F64 ? 1e-12 : 1e-5;
    cn_tensor *in[OPERANDS], *grads[OPERANDS] = { 0 };
    for (int k = 0; k < e->n_in; k++) in[k] = cn_param(cn_cast(cn_from(ctx, CN_F64, e->shape, e->in[k]), dtype));
    cn_tensor *y = e->fn(in), *seed = y ? cn_ones_like(y) : NULL;
    compare("value", y, e->y, allowed);
    check(cn_grad(&y, 1, in, e->n_in, grads, &(cn_grad_desc){ .gradients = &seed }), "%s", cn_error(ctx));
    for (int k = 0; k < e->n_in; k++) compare("gradient", grads[k], e->grad[k], allowed);
    cn_error_clear(ctx);
    for (int k = 0; k < e->n_in; k++) cn_release(in[k]);
    cn_scope_end(ctx, scope);
}

/* Norms of halves with parameters of f32: the norm of the same numbers in f32, rounded to halves. */
static void check_mixed_norm(cn_ctx *ctx, const char *name, edge_fn norm, cn_dtype half)
{
    check_group(name);
    const cn_scope scope = cn_scope_begin(ctx);
    cn_tensor *x = cn_cast(cn_randn(ctx, CN_F32, CN_DIMS(3, 4, 5)), half), *y[2], *g[2][3], *seed[2];
    cn_tensor *weight = cn_add_s(cn_rand(ctx, CN_F32, CN_DIMS(5)), 1), *bias = cn_rand(ctx, CN_F32, CN_DIMS(5));
    cn_tensor *in[2][3] = { { cn_param(x), cn_param(weight), cn_param(bias) },
                            { cn_param(cn_cast(x, CN_F32)), cn_param(weight), cn_param(bias) } };
    for (int k = 0; k < 2; k++) {
        y[k] = norm(in[k]);
        seed[k] = y[k] ? cn_ones_like(y[k]) : NULL;
        check(y[k] && cn_grad(&y[k], 1, in[k], 3, g[k], &(cn_grad_desc){ .gradients = &seed[k], .allow_unused = true }),
              "%s", cn_error(ctx));
    }
    check(y[0] && cn_type(y[0]) == half && cn_type(g[0][0]) == half && cn_type(g[0][1]) == CN_F32, "dtypes");
    const double allowed = half == CN_F16 ? 2e-3 : 2e-2;
    double wanted[60], got[60];
    for (int k = 0; y[0] && y[1] && k < 4; k++) {
        cn_tensor *a = k ? g[0][k - 1] : y[0], *b = k ? g[1][k - 1] : y[1];
        const int64_t n = a ? cn_numel(a) : 0;
        bool same = !a == !b && (!a || (cn_read_f64(a, got, n) && cn_read_f64(b, wanted, n)));
        for (int64_t i = 0; i < n; i++) same &= is_close(got[i], wanted[i], allowed);
        check(same, "%s %d", k ? "gradient" : "value", k);
    }
    cn_error_clear(ctx);
    for (int k = 0; k < 6; k++) cn_release(in[k / 3][k % 3]);
    cn_scope_end(ctx, scope);
}

FN(layer_norm, cn_layer_norm(x, 1, in[1], in[2], 1e-5))
FN(rms_norm, cn_rms_norm(x, 1, in[1], 1e-5))
FN(group_norm, cn_group_norm(cn_permute(x, CN_DIMS(0, 2, 1)), 1, in[1], in[2], 1e-5))

void check_edges(cn_ctx *ctx, cn_dtype dtype)
{
    for (int k = 0; k < 2; k++) {
        const cn_dtype half = k ? CN_F16 : CN_BF16;
        check_mixed_norm(ctx, "layer_norm, weights of f32", layer_norm, half);
        check_mixed_norm(ctx, "rms_norm, weights of f32", rms_norm, half);
        check_mixed_norm(ctx, "group_norm, weights of f32", group_norm, half);
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        check_group(table[i].name);
        check_edge(ctx, &table[i], dtype);
    }
}
