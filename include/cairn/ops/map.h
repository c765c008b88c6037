/* cairn/ops/map.h: operators that work element by element. Operands broadcast. In the sentences below, x and y are
   elements of the first and the second operand. */
#ifndef CAIRN_OPS_MAP_H
#define CAIRN_OPS_MAP_H

#include "../tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one operand: cn_NAME, and cn_NAME_ in place ---- */

/* -x. */
CN_PURE cn_tensor *cn_neg(cn_tensor *input);
CN_API bool cn_neg_(cn_tensor *input);

/* |x|. */
CN_PURE cn_tensor *cn_abs(cn_tensor *input);
CN_API bool cn_abs_(cn_tensor *input);

/* -1, 0 or 1; 0 for NaN. */
CN_PURE cn_tensor *cn_sign(cn_tensor *input);
CN_API bool cn_sign_(cn_tensor *input);

/* e to the power of x. */
CN_PURE cn_tensor *cn_exp(cn_tensor *input);
CN_API bool cn_exp_(cn_tensor *input);

/* e^x - 1, exact for small x. */
CN_PURE cn_tensor *cn_expm1(cn_tensor *input);
CN_API bool cn_expm1_(cn_tensor *input);

/* Natural logarithm. */
CN_PURE cn_tensor *cn_log(cn_tensor *input);
CN_API bool cn_log_(cn_tensor *input);

/* log(1 + x), exact for small x. */
CN_PURE cn_tensor *cn_log1p(cn_tensor *input);
CN_API bool cn_log1p_(cn_tensor *input);

/* Logarithm to base 2. */
CN_PURE cn_tensor *cn_log2(cn_tensor *input);
CN_API bool cn_log2_(cn_tensor *input);

/* Logarithm to base 10. */
CN_PURE cn_tensor *cn_log10(cn_tensor *input);
CN_API bool cn_log10_(cn_tensor *input);

/* 2 to the power of x. */
CN_PURE cn_tensor *cn_exp2(cn_tensor *input);
CN_API bool cn_exp2_(cn_tensor *input);

/* √x. */
CN_PURE cn_tensor *cn_sqrt(cn_tensor *input);
CN_API bool cn_sqrt_(cn_tensor *input);

/* 1/√x. */
CN_PURE cn_tensor *cn_rsqrt(cn_tensor *input);
CN_API bool cn_rsqrt_(cn_tensor *input);

/* 1/x. */
CN_PURE cn_tensor *cn_reciprocal(cn_tensor *input);
CN_API bool cn_reciprocal_(cn_tensor *input);

/* x·x. */
CN_PURE cn_tensor *cn_square(cn_tensor *input);
CN_API bool cn_square_(cn_tensor *input);

/* Sine. */
CN_PURE cn_tensor *cn_sin(cn_tensor *input);
CN_API bool cn_sin_(cn_tensor *input);

/* Cosine. */
CN_PURE cn_tensor *cn_cos(cn_tensor *input);
CN_API bool cn_cos_(cn_tensor *input);

/* Tangent. */
CN_PURE cn_tensor *cn_tan(cn_tensor *input);
CN_API bool cn_tan_(cn_tensor *input);

/* Inverse sine. */
CN_PURE cn_tensor *cn_asin(cn_tensor *input);
CN_API bool cn_asin_(cn_tensor *input);

/* Inverse cosine. */
CN_PURE cn_tensor *cn_acos(cn_tensor *input);
CN_API bool cn_acos_(cn_tensor *input);

/* Inverse tangent. */
CN_PURE cn_tensor *cn_atan(cn_tensor *input);
CN_API bool cn_atan_(cn_tensor *input);

/* Hyperbolic sine. */
CN_PURE cn_tensor *cn_sinh(cn_tensor *input);
CN_API bool cn_sinh_(cn_tensor *input);

/* Hyperbolic cosine. */
CN_PURE cn_tensor *cn_cosh(cn_tensor *input);
CN_API bool cn_cosh_(cn_tensor *input);

/* Hyperbolic tangent. */
CN_PURE cn_tensor *cn_tanh(cn_tensor *input);
CN_API bool cn_tanh_(cn_tensor *input);

/* Inverse hyperbolic sine. */
CN_PURE cn_tensor *cn_asinh(cn_tensor *input);
CN_API bool cn_asinh_(cn_tensor *input);

/* Inverse hyperbolic cosine. */
CN_PURE cn_tensor *cn_acosh(cn_tensor *input);
CN_API bool cn_acosh_(cn_tensor *input);

/* Inverse hyperbolic tangent. */
CN_PURE cn_tensor *cn_atanh(cn_tensor *input);
CN_API bool cn_atanh_(cn_tensor *input);

/* sin(πx)/(πx), and 1 at 0. */
CN_PURE cn_tensor *cn_sinc(cn_tensor *input);
CN_API bool cn_sinc_(cn_tensor *input);

/* 2/√π ∫ e^(-t²) dt from 0 to x. */
CN_PURE cn_tensor *cn_erf(cn_tensor *input);
CN_API bool cn_erf_(cn_tensor *input);

/* 1 - erf(x), exact for large x. */
CN_PURE cn_tensor *cn_erfc(cn_tensor *input);
CN_API bool cn_erfc_(cn_tensor *input);

/* The number of which erf is x. */
CN_PURE cn_tensor *cn_erfinv(cn_tensor *input);
CN_API bool cn_erfinv_(cn_tensor *input);

/* log|Γ(x)|. */
CN_PURE cn_tensor *cn_lgamma(cn_tensor *input);
CN_API bool cn_lgamma_(cn_tensor *input);

/* The derivative of log Γ(x). */
CN_PURE cn_tensor *cn_digamma(cn_tensor *input);
CN_API bool cn_digamma_(cn_tensor *input);

/* The largest whole number not above x. */
CN_PURE cn_tensor *cn_floor(cn_tensor *input);
CN_API bool cn_floor_(cn_tensor *input);

/* The smallest whole number not below x. */
CN_PURE cn_tensor *cn_ceil(cn_tensor *input);
CN_API bool cn_ceil_(cn_tensor *input);

/* The nearest whole number, halves to the even one. */
CN_PURE cn_tensor *cn_round(cn_tensor *input);
CN_API bool cn_round_(cn_tensor *input);

/* The whole part of x. */
CN_PURE cn_tensor *cn_trunc(cn_tensor *input);
CN_API bool cn_trunc_(cn_tensor *input);

/* x without its whole part. */
CN_PURE cn_tensor *cn_frac(cn_tensor *input);
CN_API bool cn_frac_(cn_tensor *input);

/* max(x, 0). */
CN_PURE cn_tensor *cn_relu(cn_tensor *input);
CN_API bool cn_relu_(cn_tensor *input);

/* λx for positive x, else λα(e^x - 1). */
CN_PURE cn_tensor *cn_selu(cn_tensor *input);
CN_API bool cn_selu_(cn_tensor *input);

/* x·Φ(x), Φ the normal distribution. */
CN_PURE cn_tensor *cn_gelu(cn_tensor *input);
CN_API bool cn_gelu_(cn_tensor *input);

/* gelu, approximated with tanh. */
CN_PURE cn_tensor *cn_gelu_tanh(cn_tensor *input);
CN_API bool cn_gelu_tanh_(cn_tensor *input);

/* x·sigmoid(x). */
CN_PURE cn_tensor *cn_silu(cn_tensor *input);
CN_API bool cn_silu_(cn_tensor *input);

/* 1/(1 + e^-x). */
CN_PURE cn_tensor *cn_sigmoid(cn_tensor *input);
CN_API bool cn_sigmoid_(cn_tensor *input);

/* log(sigmoid(x)). */
CN_PURE cn_tensor *cn_log_sigmoid(cn_tensor *input);
CN_API bool cn_log_sigmoid_(cn_tensor *input);

/* x/(1 + |x|). */
CN_PURE cn_tensor *cn_softsign(cn_tensor *input);
CN_API bool cn_softsign_(cn_tensor *input);

/* x·tanh(softplus(x)). */
CN_PURE cn_tensor *cn_mish(cn_tensor *input);
CN_API bool cn_mish_(cn_tensor *input);

/* x/6 + 1/2 within 0 and 1. */
CN_PURE cn_tensor *cn_hardsigmoid(cn_tensor *input);
CN_API bool cn_hardsigmoid_(cn_tensor *input);

/* x·hardsigmoid(x). */
CN_PURE cn_tensor *cn_hardswish(cn_tensor *input);
CN_API bool cn_hardswish_(cn_tensor *input);

/* Whether x is not a number. */
CN_PURE cn_tensor *cn_isnan(cn_tensor *input);
CN_API bool cn_isnan_(cn_tensor *input);

/* Whether x is infinite. */
CN_PURE cn_tensor *cn_isinf(cn_tensor *input);
CN_API bool cn_isinf_(cn_tensor *input);

/* Whether x is ∞. */
CN_PURE cn_tensor *cn_isposinf(cn_tensor *input);
CN_API bool cn_isposinf_(cn_tensor *input);

/* Whether x is -∞. */
CN_PURE cn_tensor *cn_isneginf(cn_tensor *input);
CN_API bool cn_isneginf_(cn_tensor *input);

/* Whether x is neither infinite nor NaN. */
CN_PURE cn_tensor *cn_isfinite(cn_tensor *input);
CN_API bool cn_isfinite_(cn_tensor *input);

/* Whether x is 0. */
CN_PURE cn_tensor *cn_logical_not(cn_tensor *input);
CN_API bool cn_logical_not_(cn_tensor *input);

/* Every bit inverted; for bool, logical not. */
CN_PURE cn_tensor *cn_bitwise_not(cn_tensor *input);
CN_API bool cn_bitwise_not_(cn_tensor *input);

/* ---- one operand and numbers ---- */

/* x for positive x, else negative_slope·x. */
CN_PURE cn_tensor *cn_leaky_relu(cn_tensor *input, double negative_slope);

/* x for positive x, else alpha·(e^x - 1). */
CN_PURE cn_tensor *cn_elu(cn_tensor *input, double alpha);

/* x for positive x, else alpha·(e^(x/alpha) - 1). */
CN_PURE cn_tensor *cn_celu(cn_tensor *input, double alpha);

/* log(1 + e^(beta·x))/beta, and x where beta·x > threshold. */
CN_PURE cn_tensor *cn_softplus(cn_tensor *input, double beta, double threshold);

/* x within min_val and max_val; the gradient at the limits is 0. */
CN_PURE cn_tensor *cn_hardtanh(cn_tensor *input, double min_val, double max_val);

/* x within min and max; -INFINITY and INFINITY: no limit. The gradient at the limits is 0. */
CN_PURE cn_tensor *cn_clamp(cn_tensor *input, double min, double max);

/* log(x/(1 - x)), where x is limited to [eps, 1 - eps]; NAN: no limits. */
CN_PURE cn_tensor *cn_logit(cn_tensor *input, double eps);

/* The derivative of order n of digamma. */
CN_PURE cn_tensor *cn_polygamma(int64_t n, cn_tensor *input);

/* x with numbers in place of NaN, ∞ and -∞; NAN in their place means 0, the largest and the lowest number of the
   dtype. */
CN_PURE cn_tensor *cn_nan_to_num(cn_tensor *input, double nan, double posinf, double neginf);

/* The tensor itself, which must not be bool. */
CN_PURE cn_tensor *cn_positive(cn_tensor *input);

/* Angles in degrees as radians. */
CN_PURE cn_tensor *cn_deg2rad(cn_tensor *input);

/* Angles in radians as degrees. */
CN_PURE cn_tensor *cn_rad2deg(cn_tensor *input);

/* The same numbers in another dtype. */
CN_PURE cn_tensor *cn_cast(cn_tensor *input, cn_dtype dtype);

/* ---- two operands: cn_NAME, cn_NAME_s with a number on the right, and both in place ---- */

/* x + y. */
CN_PURE cn_tensor *cn_add(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_add_s(cn_tensor *input, double other);
CN_API bool cn_add_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_add_s_(cn_tensor *input, double other);

/* x - y. */
CN_PURE cn_tensor *cn_sub(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_sub_s(cn_tensor *input, double other);
CN_API bool cn_sub_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_sub_s_(cn_tensor *input, double other);

/* x·y. */
CN_PURE cn_tensor *cn_mul(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_mul_s(cn_tensor *input, double other);
CN_API bool cn_mul_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_mul_s_(cn_tensor *input, double other);

/* x/y. */
CN_PURE cn_tensor *cn_div(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_div_s(cn_tensor *input, double other);
CN_API bool cn_div_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_div_s_(cn_tensor *input, double other);

/* x/y rounded down; to divide a whole number by 0 is an error. */
CN_PURE cn_tensor *cn_floor_div(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_floor_div_s(cn_tensor *input, double other);
CN_API bool cn_floor_div_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_floor_div_s_(cn_tensor *input, double other);

/* x - y·floor(x/y): has the sign of y. */
CN_PURE cn_tensor *cn_remainder(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_remainder_s(cn_tensor *input, double other);
CN_API bool cn_remainder_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_remainder_s_(cn_tensor *input, double other);

/* x - y·trunc(x/y): has the sign of x. */
CN_PURE cn_tensor *cn_fmod(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_fmod_s(cn_tensor *input, double other);
CN_API bool cn_fmod_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_fmod_s_(cn_tensor *input, double other);

/* x to the power of y. */
CN_PURE cn_tensor *cn_pow(cn_tensor *input, cn_tensor *exponent);
CN_PURE cn_tensor *cn_pow_s(cn_tensor *input, double exponent);
CN_API bool cn_pow_(cn_tensor *input, cn_tensor *exponent);
CN_API bool cn_pow_s_(cn_tensor *input, double exponent);

/* The larger of x and y; NaN if either is. */
CN_PURE cn_tensor *cn_maximum(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_maximum_s(cn_tensor *input, double other);
CN_API bool cn_maximum_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_maximum_s_(cn_tensor *input, double other);

/* The smaller of x and y; NaN if either is. */
CN_PURE cn_tensor *cn_minimum(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_minimum_s(cn_tensor *input, double other);
CN_API bool cn_minimum_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_minimum_s_(cn_tensor *input, double other);

/* The larger of x and y; if one is NaN, the other. */
CN_PURE cn_tensor *cn_fmax(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_fmax_s(cn_tensor *input, double other);
CN_API bool cn_fmax_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_fmax_s_(cn_tensor *input, double other);

/* The smaller of x and y; if one is NaN, the other. */
CN_PURE cn_tensor *cn_fmin(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_fmin_s(cn_tensor *input, double other);
CN_API bool cn_fmin_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_fmin_s_(cn_tensor *input, double other);

/* |x| with the sign of y. */
CN_PURE cn_tensor *cn_copysign(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_copysign_s(cn_tensor *input, double other);
CN_API bool cn_copysign_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_copysign_s_(cn_tensor *input, double other);

/* log(e^x + e^y) without overflow. */
CN_PURE cn_tensor *cn_logaddexp(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_logaddexp_s(cn_tensor *input, double other);
CN_API bool cn_logaddexp_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_logaddexp_s_(cn_tensor *input, double other);

/* The logarithm to base 2 of 2^x + 2^y, without overflow. */
CN_PURE cn_tensor *cn_logaddexp2(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_logaddexp2_s(cn_tensor *input, double other);
CN_API bool cn_logaddexp2_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_logaddexp2_s_(cn_tensor *input, double other);

/* x·log(y), and 0 where x is 0, unless y is NaN. */
CN_PURE cn_tensor *cn_xlogy(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_xlogy_s(cn_tensor *input, double other);
CN_API bool cn_xlogy_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_xlogy_s_(cn_tensor *input, double other);

/* √(x² + y²) without overflow. */
CN_PURE cn_tensor *cn_hypot(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_hypot_s(cn_tensor *input, double other);
CN_API bool cn_hypot_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_hypot_s_(cn_tensor *input, double other);

/* The angle of the point (y, x). */
CN_PURE cn_tensor *cn_atan2(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_atan2_s(cn_tensor *input, double other);
CN_API bool cn_atan2_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_atan2_s_(cn_tensor *input, double other);

/* Whether x = y. */
CN_PURE cn_tensor *cn_eq(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_eq_s(cn_tensor *input, double other);
CN_API bool cn_eq_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_eq_s_(cn_tensor *input, double other);

/* Whether x ≠ y. */
CN_PURE cn_tensor *cn_ne(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_ne_s(cn_tensor *input, double other);
CN_API bool cn_ne_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_ne_s_(cn_tensor *input, double other);

/* Whether x < y. */
CN_PURE cn_tensor *cn_lt(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_lt_s(cn_tensor *input, double other);
CN_API bool cn_lt_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_lt_s_(cn_tensor *input, double other);

/* Whether x ≤ y. */
CN_PURE cn_tensor *cn_le(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_le_s(cn_tensor *input, double other);
CN_API bool cn_le_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_le_s_(cn_tensor *input, double other);

/* Whether x > y. */
CN_PURE cn_tensor *cn_gt(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_gt_s(cn_tensor *input, double other);
CN_API bool cn_gt_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_gt_s_(cn_tensor *input, double other);

/* Whether x ≥ y. */
CN_PURE cn_tensor *cn_ge(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_ge_s(cn_tensor *input, double other);
CN_API bool cn_ge_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_ge_s_(cn_tensor *input, double other);

/* Whether x ≠ 0 and y ≠ 0. */
CN_PURE cn_tensor *cn_logical_and(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_logical_and_s(cn_tensor *input, double other);
CN_API bool cn_logical_and_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_logical_and_s_(cn_tensor *input, double other);

/* Whether x ≠ 0 or y ≠ 0. */
CN_PURE cn_tensor *cn_logical_or(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_logical_or_s(cn_tensor *input, double other);
CN_API bool cn_logical_or_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_logical_or_s_(cn_tensor *input, double other);

/* Whether exactly one of x and y is 0. */
CN_PURE cn_tensor *cn_logical_xor(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_logical_xor_s(cn_tensor *input, double other);
CN_API bool cn_logical_xor_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_logical_xor_s_(cn_tensor *input, double other);

/* Bits set in both. */
CN_PURE cn_tensor *cn_bitwise_and(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_bitwise_and_s(cn_tensor *input, double other);
CN_API bool cn_bitwise_and_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_bitwise_and_s_(cn_tensor *input, double other);

/* Bits set in either. */
CN_PURE cn_tensor *cn_bitwise_or(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_bitwise_or_s(cn_tensor *input, double other);
CN_API bool cn_bitwise_or_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_bitwise_or_s_(cn_tensor *input, double other);

/* Bits set in exactly one. */
CN_PURE cn_tensor *cn_bitwise_xor(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_bitwise_xor_s(cn_tensor *input, double other);
CN_API bool cn_bitwise_xor_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_bitwise_xor_s_(cn_tensor *input, double other);

/* x·2^y; 0 where y is negative or not below the width of x. */
CN_PURE cn_tensor *cn_shift_left(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_shift_left_s(cn_tensor *input, double other);
CN_API bool cn_shift_left_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_shift_left_s_(cn_tensor *input, double other);

/* x/2^y rounded down; the sign where y is negative or not below the width of x. */
CN_PURE cn_tensor *cn_shift_right(cn_tensor *input, cn_tensor *other);
CN_PURE cn_tensor *cn_shift_right_s(cn_tensor *input, double other);
CN_API bool cn_shift_right_(cn_tensor *input, cn_tensor *other);
CN_API bool cn_shift_right_s_(cn_tensor *input, double other);

/* A number minus x. */
CN_PURE cn_tensor *cn_rsub_s(cn_tensor *input, double other);

/* A number divided by x. */
CN_PURE cn_tensor *cn_rdiv_s(cn_tensor *input, double other);

/* A number to the power of x. */
CN_PURE cn_tensor *cn_rpow_s(cn_tensor *input, double self);

/* Whether |x - y| ≤ atol + rtol·|y|; also for equal infinities and, with equal_nan, for two NaN. */
CN_PURE cn_tensor *cn_isclose(cn_tensor *input, cn_tensor *other, double rtol, double atol, bool equal_nan);

/* ---- three operands ---- */

/* input where the condition is true, else other. */
CN_PURE cn_tensor *cn_where(cn_tensor *condition, cn_tensor *input, cn_tensor *other);

/* x within min and max; max where they cross. */
CN_PURE cn_tensor *cn_clamp_t(cn_tensor *input, cn_tensor *min, cn_tensor *max);

/* input + weight·(end - input). */
CN_PURE cn_tensor *cn_lerp(cn_tensor *input, cn_tensor *end, cn_tensor *weight);

/* input + value·tensor1·tensor2. */
CN_PURE cn_tensor *cn_addcmul(cn_tensor *input, cn_tensor *tensor1, cn_tensor *tensor2, double value);

/* input + value·tensor1/tensor2. */
CN_PURE cn_tensor *cn_addcdiv(cn_tensor *input, cn_tensor *tensor1, cn_tensor *tensor2, double value);

#ifdef __cplusplus
}
#endif
#endif
