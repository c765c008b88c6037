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
FN(xlogy, cn_xlogy(x, in[1]))
FN(of_fmax, cn_fmax(x, in[1]))
FN(of_fmin, cn_fmin(x, in[1]))
FN(of_copysign, cn_copysign(x, in[1]))
FN(logaddexp, cn_logaddexp(x, in[1]))
FN(logaddexp2, cn_logaddexp2(x, in[1]))
FN(of_hypot, cn_hypot(x, in[1]))
FN(log_gamma, cn_lgamma(x))
FN(of_digamma, cn_digamma(x))
FN(polygamma_1, cn_polygamma(1, x))
FN(polygamma_2, cn_polygamma(2, x))
FN(erfinv, cn_erfinv(x))
FN(of_erfc, cn_erfc(x))
FN(sinc, cn_sinc(x))
FN(of_asinh, cn_asinh(x))
FN(of_acosh, cn_acosh(x))
FN(of_atanh, cn_atanh(x))
FN(log10_exp2, cn_exp2(cn_log10(x)))
FN(of_frac, cn_frac(x))
FN(logit, cn_logit(x, NAN_))
FN(logit_limited, cn_logit(x, 0.125))
FN(nan_to_num, cn_nan_to_num(x, 3, 4, -5))
FN(rpow, cn_rpow_s(x, 2))
FN(nansum, cn_nansum(x, CN_ALL, false))
FN(nanmean, cn_nanmean(x, CN_DIMS(1), false))
FN(normalize, cn_normalize(x, 2, 1, 1e-12))
FN(cdist_1, cn_cdist(x, in[1], 1))
FN(cdist_2, cn_cdist(x, in[1], 2))
FN(cdist_inf, cn_cdist(x, in[1], INF))
FN(logcumsumexp, cn_logcumsumexp(x, 0))
FN(cummin, cn_cummin(x, 0, NULL))

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
    { "xlogy", xlogy, VECTOR(9), { { 0, 0, 0, 0, 1, 2, -1, NAN_, 0.5 }, { 0, -1, INF, NAN_, 0, 3, 2, 1, NAN_ } }, { 0,
      0, 0, NAN_, -INF, 2.1972245773362196, -0.6931471805599453, NAN_, NAN_ },
      { { 0, 0, INF, NAN_, -INF, 1.0986122886681098, 0.6931471805599453, 0, NAN_ }, { NAN_, -0.0, 0, NAN_, INF,
      0.6666666666666666, -0.5, NAN_, NAN_ } }, 2 },
    { "fmax", of_fmax, VECTOR(6), { { 1, NAN_, 2, NAN_, 3, -INF }, { 2, 1, NAN_, NAN_, 3, INF } }, { 2, 1, 2, NAN_, 3,
      INF },
      { { 0, 0, 1, 1, 0.5 }, { 1, 1, 0, 0, 0.5, 1 } }, 2 },
    { "fmin", of_fmin, VECTOR(6), { { 1, NAN_, 2, NAN_, 3, -INF }, { 2, 1, NAN_, NAN_, 3, INF } }, { 1, 1, 2, NAN_, 3,
      -INF },
      { { 1, 0, 1, 1, 0.5, 1 }, { 0, 1, 0, 0, 0.5 } }, 2 },
    { "copysign", of_copysign, VECTOR(6), { { 1, -2, 0, 3, -3, 2 }, { -0.0, 2, -1, 0, -1, 3 } }, { -1, 2, -0.0, 3, -3,
      2 },
      { { -1, -1, 0, 1, 1, 1 }, { 0 } }, 2 },
    { "logaddexp", logaddexp, VECTOR(7), { { INF, -INF, -INF, INF, 1000, 0, NAN_ }, { INF, -INF, 1, -INF, 1000, -3, 1
      } }, { INF, -INF, 1, INF, 1000.6931471805599, 0.04858735157374206, NAN_ },
      { { NAN_, NAN_, 0, 1, 0.5, 0.9525741268224334, NAN_ }, { NAN_, NAN_, 1, 0, 0.5, 0.04742587317756678, NAN_ } }, 2
      },
    { "logaddexp2", logaddexp2, VECTOR(7), { { INF, -INF, -INF, INF, 1000, 0, NAN_ }, { INF, -INF, 1, -INF, 1000, -3,
      1 } }, { INF, -INF, 1, INF, 1001, 0.16992500144231237, NAN_ },
      { { NAN_, NAN_, 0, 1, 0.5, 0.8888888888888888, NAN_ }, { NAN_, NAN_, 1, 0, 0.5, 0.1111111111111111, NAN_ } }, 2
      },
    { "hypot", of_hypot, VECTOR(6), { { 3, INF, NAN_, 1e+30, 0, -5 }, { 4, NAN_, 1, 1e+30, 2, 12 } }, { 5, INF, NAN_,
      1.414213562373095e+30, 2, 13 },
      { { 0.6, NAN_, NAN_, 0.7071067811865476, 0, -0.38461538461538464 }, { 0.8, NAN_, NAN_, 0.7071067811865476, 1,
      0.9230769230769231 } }, 2 },
    { "lgamma", log_gamma, VECTOR(9), { { 0, -1, 1, 2, -0.5, -2.25, 30, INF, 0.001 } }, { INF, INF, 0, 0,
      1.2655121234846454, 0.5555015450206475, 71.25703896716801, INF, 6.907178885383853 },
      { { -INF, NAN_, -0.5772156649015328, 0.422784335098467, 0.03648997397857639, 4.158583564657972,
      3.384438132685525, INF, -1000.5755719318104 } }, 1 },
    { "digamma", of_digamma, VECTOR(8), { { 0, -0.0, 1, -0.5, -2.25, 30, 0.001, 4 } }, { -INF, INF,
      -0.5772156649015328, 0.03648997397857639, 4.158583564657972, 3.384438132685525, -1000.5755719318104,
      1.2561176684318003 },
      { { INF, INF, 1.6449340668482264, 8.934802200544679, 19.37941051186914, 0.033895060357739946,
      1000001.6425331958, 0.2838229557371153 } }, 1 },
    { "trigamma", polygamma_1, VECTOR(6), { { 1, -0.5, -2.25, 30, 0.5, 4 } }, { 1.6449340668482264, 8.934802200544679,
      19.37941051186914, 0.033895060357739946, 4.934802200544679, 0.2838229557371153 },
      { { -2.404113806319188, -0.82879664423432, 123.89694977406015, -0.0011487652037285997, -16.828796644234316,
      -0.0800397322451145 } }, 1 },
    { "polygamma of order 2", polygamma_2, VECTOR(6), { { 1, -0.5, -2.25, 30, 0.5, 3 } }, { -2.404113806319188,
      -0.82879664423432, 123.89694977406015, -0.0011487652037285997, -16.828796644234316, -0.15411380631918856 },
      { { 6.493939402266829, 193.40909103400242, 1558.4550231887147, 7.786003664736127e-05, 97.40909103400242,
      0.11893940226682916 } }, 1 },
    { "erfinv", erfinv, VECTOR(7), { { 0, 1, -1, 1.5, 0.5, -0.9990234375, NAN_ } }, { 0, INF, -INF, NAN_,
      0.4769362762044699, -2.331467773621948, NAN_ },
      { { 0.8862269254527579, INF, INF, NAN_, 1.1125848189719496, 203.35632620489739, NAN_ } }, 1 },
    { "erfc", of_erfc, VECTOR(6), { { 0, INF, -INF, 3, -2, 0.5 } }, { 1, 0, 2, 2.209049699858544e-05,
      1.9953222650189528, 0.4795001221869535 },
      { { -1.1283791670955126, -0.0, -0.0, -0.00013925305194674786, -0.020666985354092053, -0.8787825789354448 } }, 1
      },
    { "sinc", sinc, VECTOR(5), { { 0, 1, 0.5, -2.5, INF } }, { 1, 3.8981718325193755e-17, 0.6366197723675814,
      0.12732395447351627, NAN_ },
      { { 0, -1, -1.2732395447351625, 0.05092958178940638, NAN_ } }, 1 },
    { "asinh", of_asinh, VECTOR(5), { { 0, INF, -INF, 10000000000, -0.5 } }, { 0, INF, -INF, 23.7189981105004,
      -0.48121182505960347 },
      { { 1, 0, 0, 1e-10, 0.8944271909999159 } }, 1 },
    { "acosh", of_acosh, VECTOR(5), { { 1, 0.5, INF, 10000000000, 3 } }, { 0, NAN_, INF, 23.7189981105004,
      1.762747174039086 },
      { { INF, NAN_, 0, 1e-10, 0.35355339059327373 } }, 1 },
    { "atanh", of_atanh, VECTOR(5), { { 1, -1, 2, 0.5 } }, { INF, -INF, NAN_, 0.5493061443340548 },
      { { INF, INF, -0.3333333333333333, 1.3333333333333333, 1 } }, 1 },
    { "log10 and exp2", log10_exp2, VECTOR(3), { { -1, 1000, 1 } }, { NAN_, 8, 1 },
      { { NAN_, 0.0024082399653118495, 0.30102999566398114 } }, 1 },
    { "frac", of_frac, VECTOR(5), { { 2.5, -2.5, INF, 3, NAN_ } }, { 0.5, -0.5, NAN_, 0, NAN_ },
      { { 1, 1, 1, 1, 1 } }, 1 },
    { "logit", logit, VECTOR(6), { { 0, 1, 0.25, -0.5, 1.5, NAN_ } }, { -INF, INF, -1.0986122886681098, NAN_, NAN_,
      NAN_ },
      { { INF, INF, 5.333333333333333, NAN_, NAN_, NAN_ } }, 1 },
    { "logit with limits", logit_limited, VECTOR(6), { { 0, 1, 0.25, -0.5, 0.875, 0.125 } }, { -1.9459101490553135,
      1.9459101490553132, -1.0986122886681098, -1.9459101490553135, 1.9459101490553132, -1.9459101490553135 },
      { { 0, 0, 5.333333333333333, 0, 9.142857142857142, 9.142857142857142 } }, 1 },
    { "nan_to_num", nan_to_num, VECTOR(5), { { 1, NAN_, INF, -INF, -2 } }, { 1, 3, 4, -5, -2 },
      { { 1, 0, 0, 0, 1 } }, 1 },
    { "rpow_s", rpow, VECTOR(5), { { 0, 1, -1, NAN_, INF } }, { 1, 2, 0.5, NAN_, INF },
      { { 0.6931471805599453, 1.3862943611198906, 0.34657359027997264, NAN_, INF } }, 1 },
    { "nansum", nansum, VECTOR(4), { { 1, NAN_, 2, -3 } }, { 0 },
      { { 1, 0, 1, 1 } }, 1 },
    { "nanmean", nanmean, MATRIX(2, 3), { { 1, NAN_, 2, NAN_, NAN_, 3 } }, { 1.5, 3 },
      { { 0.5, 0, 0.5, 0, 0, 1 } }, 1 },
    { "normalize, a row of 0", normalize, MATRIX(2, 2), { { 3, 4 } }, { 0.6, 0.8 },
      { { 0.032, -0.02400000000000002, 1000000000000, 1000000000000 } }, 1 },
    { "cdist, equal rows", cdist_2, MATRIX(2, 2), { { 1, 2, 3, 4 }, { 1, 2 } }, { 0, 2.23606797749979,
      2.8284271247461903, 5 },
      { { 0.4472135954999579, 0.8944271909999159, 1.3071067811865476, 1.5071067811865475 }, { -0.7071067811865475,
      -0.7071067811865475, -1.047213595499958, -1.694427190999916 } }, 2 },
    { "cdist, p = 1", cdist_1, MATRIX(2, 2), { { 1, 2, 3, 4 }, { 1, 3 } }, { 1, 3, 3, 7 },
      { { 1, 0, 2, 2 }, { -1, 0, -2, -2 } }, 2 },
    { "cdist, p = inf", cdist_inf, MATRIX(2, 2), { { 1, 2, 3, 4 }, { 1, 3 } }, { 1, 2, 2, 4 },
      { { 0, 0, 1, 1 }, { -1, 1, 0, -2 } }, 2 },
    { "logcumsumexp", logcumsumexp, VECTOR(5), { { -2, 1, 0, 2, 900 } }, { -2, 1.048587351573742, 1.3490122167681864,
      2.4197166463153392, 900 },
      { { 1.094582542848846, 1.899741156679475, 0.3484432776398234, 0.6572330228318556, 1 } }, 1 },
    { "cummin", cummin, VECTOR(6), { { 3, 4, 1, 1, NAN_ } }, { 3, 3, 1, 1, NAN_, NAN_ },
      { { 2, 0, 1, 1, 2 } }, 1 },
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
