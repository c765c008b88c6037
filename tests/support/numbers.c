#include "support/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

enum { MOST = 6 };
typedef cn_tensor *(*program)(cn_ctx *cn);

/* A tensor of one axis from doubles, in any dtype. */
static cn_tensor *list(cn_ctx *cn, cn_dtype t, int n, const double *v)
{
    return cn_cast(cn_from(cn, CN_F64, CN_DIMS(n), v), t);
}
#define LIST(t, ...) list(cn, t, (int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)), (double[]){ __VA_ARGS__ })
/* A tensor without axes that is no plain number. */
#define ZERO_D(t, v) cn_reshape(LIST(t, v), CN_SCALAR)
#define FN(name, expression) \
    static cn_tensor *name(cn_ctx *cn) { return (void)cn, (expression); }

/* ---- results ---- */

FN(u8_over_0d, cn_div(LIST(CN_U8, 1, 0, 255), ZERO_D(CN_I64, 300)))
FN(i32_plus_far, cn_add_s(LIST(CN_I32, 3, 0, -128), 1e10))
FN(i32_from_far, cn_rsub_s(LIST(CN_I32, 3, 0, -128), 1e10))
FN(i32_bits_of_far, cn_bitwise_and_s(LIST(CN_I32, 3, 0, -128), 1e10))
FN(u8_angle_0d, cn_atan2(LIST(CN_U8, 3), ZERO_D(CN_I8, -1)))
FN(u8_times_0d, cn_mul(LIST(CN_U8, 3), ZERO_D(CN_I8, -1)))
FN(half_times_0d, cn_mul(LIST(CN_F16, 1026, 1), ZERO_D(CN_F32, 1 + 0x1p-11)))
FN(half_times_0d_first, cn_mul(ZERO_D(CN_F32, 1 + 0x1p-11), LIST(CN_F16, 1026, 1)))
FN(half_below_0d, cn_lt(LIST(CN_F16, 2048, 2046), ZERO_D(CN_F32, 2048.5)))
FN(half_below_number, cn_lt_s(LIST(CN_F16, 2048, 2046), 2048.5))
FN(i8_at_least_huge, cn_ge_s(LIST(CN_I8, 127, -128), 1e300))
FN(i8_above_minus_huge, cn_gt_s(LIST(CN_I8, 127, -128), -1e300))
FN(i8_times_wide, cn_mul_s(LIST(CN_I8, 2, 1), 300))
FN(i64_plus_huge, cn_add_s(LIST(CN_I64, 2), 1e20))
FN(u8_plus_i8, cn_add(LIST(CN_U8, 255, 0), LIST(CN_I8, 127, -128)))
FN(i16_times, cn_mul(LIST(CN_I16, 300, -32768), LIST(CN_I16, 300, -1)))
FN(i16_times_wide, cn_mul_s(LIST(CN_I16, 2), 65537))
FN(i16_product, cn_matmul(LIST(CN_I16, 300, 7), LIST(CN_I16, 300, 1)))
FN(i16_shifted, cn_shift_left(LIST(CN_I16, 1, 1), LIST(CN_I16, 15, 16)))
FN(i16_sum, cn_sum(LIST(CN_I16, 32767, 32767), CN_ALL, false))
FN(any_u8, cn_any(LIST(CN_U8, 0, 7), CN_ALL, false))
FN(all_i32, cn_all(LIST(CN_I32, 0, 7), CN_ALL, false))
FN(any_of_no_axes, cn_any(LIST(CN_F32, 0, 7, NAN), (cn_dims){ 0 }, true))
FN(all_u8_of_no_axes, cn_all(LIST(CN_U8, 0, 7), (cn_dims){ 0 }, false))
FN(where_u8, cn_where(LIST(CN_U8, 0, 2), LIST(CN_F32, 1, 2), LIST(CN_F32, 3, 4)))
FN(square_bool, cn_square(LIST(CN_BOOL, 1, 0)))
FN(power_bool, cn_pow_s(LIST(CN_BOOL, 1, 0), 2))
FN(hardtanh_i8, cn_hardtanh(LIST(CN_I8, 3, -3, 0), -2.5, 1.5))
FN(clamp_u8, cn_clamp(LIST(CN_U8, 1, 200), -1, 300))
FN(clamp_bool, cn_clamp(LIST(CN_BOOL, 1, 0), 0, 1))
FN(arange_halves, cn_arange(cn, CN_I32, 0, 3, 0.5))
FN(arange_fraction, cn_arange(cn, CN_I64, 0, 4, 1.5))
FN(arange_part, cn_arange(cn, CN_I8, 1, 1.5, 1))
FN(linspace_whole, cn_linspace(cn, CN_I32, -0.5, 2.5, 7))
FN(full_negative_u8, cn_full(cn, CN_U8, CN_DIMS(2), -3))
FN(full_half, cn_full(cn, CN_F16, CN_DIMS(1), 1e6))
FN(addcmul_whole, cn_addcmul(LIST(CN_I32, 1, 2), LIST(CN_I32, 1, 2), LIST(CN_I32, 1, 2), 2.5))
FN(add_bools, cn_index_add(LIST(CN_BOOL, 0, 0, 1), 0, LIST(CN_I64, 0, 0, 2), LIST(CN_BOOL, 1, 1, 0)))
FN(scatter_bools, cn_scatter_add(LIST(CN_BOOL, 0, 0), 0, LIST(CN_I64, 1, 1), LIST(CN_BOOL, 1, 1)))
FN(norm_of_one, cn_norm(cn_reshape(LIST(CN_F32, 2.5, -3), CN_DIMS(2, 1)), 300, CN_DIMS(1), false))
FN(var_of_none, cn_var(cn_zeros(cn, CN_F32, CN_DIMS(2, 0)), CN_DIMS(1), -0.5, false))
FN(divide_none, cn_floor_div_s(cn_zeros(cn, CN_I32, CN_DIMS(0)), 0))
FN(floats_by_0, cn_floor_div_s(LIST(CN_F32, 1, -1), 0))

typedef struct result {
    const char *name;
    program fn;
    cn_dtype dtype;
    int n;
    double v[MOST];
} result;

/* clang-format off */
static const result results[] = {
    { "u8 / 0-d i64", u8_over_0d, CN_F32, 3, { 1 / 300.0, 0, 0.85 } },
    { "i32 + 1e10", i32_plus_far, CN_I32, 3, { 1410065411, 1410065408, 1410065280 } },
    { "1e10 - i32", i32_from_far, CN_I32, 3, { 1410065405, 1410065408, 1410065536 } },
    { "i32 & 1e10", i32_bits_of_far, CN_I32, 3, { 0, 0, 1410065408 } },
    { "atan2 of u8 and a 0-d i8", u8_angle_0d, CN_F32, 1, { 1.8925468811915387 } },
    { "u8 times a 0-d i8", u8_times_0d, CN_U8, 1, { 253 } },
    { "f16 times a 0-d f32", half_times_0d, CN_F16, 2, { 1027, 1 } },
    { "a 0-d f32 times f16", half_times_0d_first, CN_F16, 2, { 1027, 1 } },
    { "f16 < 0-d f32", half_below_0d, CN_BOOL, 2, { 0, 1 } },
    { "f16 < number", half_below_number, CN_BOOL, 2, { 0, 1 } },
    { "i8 >= 1e300", i8_at_least_huge, CN_BOOL, 2, { 0, 0 } },
    { "i8 > -1e300", i8_above_minus_huge, CN_BOOL, 2, { 1, 1 } },
    { "i8 times 300", i8_times_wide, CN_I8, 2, { 88, 44 } },
    { "i64 + 1e20", i64_plus_huge, CN_F32, 1, { 1e20 } },
    { "u8 plus i8", u8_plus_i8, CN_I16, 2, { 382, -128 } },
    { "i16 times i16", i16_times, CN_I16, 2, { 24464, -32768 } },
    { "i16 times 65537", i16_times_wide, CN_I16, 1, { 2 } },
    { "matmul of i16", i16_product, CN_I16, 1, { 24471 } },
    { "i16 shifted", i16_shifted, CN_I16, 2, { -32768, 0 } },
    { "sum of i16", i16_sum, CN_I64, 1, { 65534 } },
    { "any of u8", any_u8, CN_U8, 1, { 1 } },
    { "all of i32", all_i32, CN_BOOL, 1, { 0 } },
    { "any over no axes", any_of_no_axes, CN_BOOL, 3, { 0, 1, 1 } },
    { "all of u8 over no axes", all_u8_of_no_axes, CN_U8, 2, { 0, 1 } },
    { "where with u8", where_u8, CN_F32, 2, { 3, 2 } },
    { "square of bool", square_bool, CN_I64, 2, { 1, 0 } },
    { "bool to the power of 2", power_bool, CN_I64, 2, { 1, 0 } },
    { "hardtanh of i8", hardtanh_i8, CN_I8, 3, { 1, -2, 0 } },
    { "clamp of u8, limits outside", clamp_u8, CN_U8, 2, { 1, 200 } },
    { "clamp of bool", clamp_bool, CN_I64, 2, { 1, 0 } },
    { "arange of i32, step 0.5", arange_halves, CN_I32, 6, { 0, 0, 0, 0, 0, 0 } },
    { "arange of i64, step 1.5", arange_fraction, CN_I64, 3, { 0, 1, 2 } },
    { "arange of i8 up to 1.5", arange_part, CN_I8, 1, { 1 } },
    { "linspace of i32", linspace_whole, CN_I32, 6, { 0, 0, 0, 1, 1, 1 } },
    { "full of u8, -3", full_negative_u8, CN_U8, 2, { 253, 253 } },
    { "full of f16, 1e6", full_half, CN_F16, 1, { (double)INFINITY } },
    { "addcmul of i32, value 2.5", addcmul_whole, CN_I32, 2, { 3, 10 } },
    { "index_add of bool", add_bools, CN_BOOL, 3, { 1, 0, 1 } },
    { "scatter_add of bool", scatter_bools, CN_BOOL, 2, { 0, 1 } },
    { "norm of order 300 of one element", norm_of_one, CN_F32, 2, { 2.5, 3 } },
    { "var of nothing", var_of_none, CN_F32, 2, { (double)NAN, (double)NAN } },
    { "nothing // 0", divide_none, CN_I32, 0, { 0 } },
    { "floats // 0", floats_by_0, CN_F32, 2, { (double)INFINITY, -(double)INFINITY } },
};
/* clang-format on */

static void check_result(cn_ctx *cn, const result *r)
{
    double got[16];
    cn_tensor *y = r->fn(cn);
    int64_t n = y ? cn_numel(y) : 0;
    bool same = y && n <= 16 && n >= r->n && cn_type(y) == r->dtype && cn_read_f64(y, got, n);
    for (int i = 0; i < r->n && same; i++)
        same = got[i] == r->v[i] || (isnan(got[i]) && isnan(r->v[i])) || fabs(got[i] - r->v[i]) <= 1e-6 * fabs(r->v[i]) + 1e-12;
    check(same, "%s: %s, %lld elements, first %g; %s", r->name, y ? cn_dtype_name(cn_type(y)) : "nothing", (long long)n,
          n ? got[0] : 0, cn_error(cn));
    cn_error_clear(cn);
}

/* ---- refusals: at the call, or when the value is read ---- */

FN(divide_by_zero, cn_floor_div_s(LIST(CN_I32, 3), 0))
FN(divide_by_wrapped_far, cn_floor_div_s(LIST(CN_I32, 3), 0x1p32))
FN(divide_by_wrapped_zero, cn_floor_div_s(LIST(CN_U8, 3), 256))
FN(remainder_of_zero, cn_remainder(LIST(CN_I64, 3, 4), LIST(CN_I64, 1, 0)))
FN(modulo_of_zero, cn_fmod(LIST(CN_I8, 3, 4), LIST(CN_BOOL, 1, 0)))
FN(negative_power, cn_pow_s(LIST(CN_I32, 3), -1))
FN(wide_power, cn_pow_s(LIST(CN_I8, 3), 300))
FN(full_wide, cn_full(cn, CN_I8, CN_DIMS(2), 300))
FN(full_nan, cn_full(cn, CN_I64, CN_DIMS(2), NAN))
FN(full_f32, cn_full(cn, CN_F32, CN_DIMS(2), 1e39))
FN(fill_wide, cn_masked_fill(LIST(CN_F16, 1), LIST(CN_BOOL, 1), 1e6))
FN(pad_wide, cn_pad(LIST(CN_U8, 1), CN_DIMS(1, 1), CN_PAD_CONSTANT, 256))
FN(pad_value, cn_pad(LIST(CN_F32, 1, 2), CN_DIMS(1, 0), CN_PAD_REFLECT, 1))
FN(clamp_none, cn_clamp(LIST(CN_I8, 1), 300, (double)INFINITY))
FN(hardtanh_none, cn_hardtanh(LIST(CN_U8, 1), -3, -2))
FN(linspace_wide, cn_linspace(cn, CN_U8, -2.5, 3, 4))
FN(norm_of_none, cn_norm(cn_zeros(cn, CN_F32, CN_DIMS(0)), -1, CN_ALL, false))
FN(draw_above_1, cn_bernoulli(LIST(CN_F32, 0.5, 1.5)))
FN(draw_nan, cn_bernoulli(LIST(CN_F16, 0.5, NAN)))
FN(drop_more, cn_dropout(LIST(CN_F32, 1), 2, false))
FN(step_backwards, cn_arange(cn, CN_I64, 0.5, 0, 2.5))

typedef struct refusal {
    program fn;
    const char *words; /* the beginning of the message */
} refusal;

static const refusal refusals[] = {
    { divide_by_zero, "floor_div_s: the divisor of whole numbers must not be 0" },
    { divide_by_wrapped_far, "floor_div_s: the divisor of whole numbers must not be 0" },
    { divide_by_wrapped_zero, "floor_div_s: the divisor of whole numbers must not be 0" },
    { remainder_of_zero, "a whole number must not be divided by 0" },
    { modulo_of_zero, "a whole number must not be divided by 0" },
    { negative_power, "pow_s: the exponent of whole numbers must be" },
    { wide_power, "pow_s: exponent must be within the range of i8, got 300" },
    { full_wide, "full: fill_value must be within the range of i8, got 300" },
    { full_nan, "full: fill_value must be within the range of i64" },
    { full_f32, "full: fill_value must be within the range of f32" },
    { fill_wide, "masked_fill: value must be within the range of f16" },
    { pad_wide, "pad: value must be within the range of u8, got 256" },
    { pad_value, "pad: value must be 0 unless the mode is constant, got 1" },
    { clamp_none, "clamp: there must be a i8 within the limits" },
    { hardtanh_none, "hardtanh: there must be a u8 within the limits" },
    { linspace_wide, "linspace: start must be within the range of u8" },
    { norm_of_none, "norm: an order below 0 needs elements" },
    { draw_above_1, "bernoulli: probabilities must be from 0 to 1" },
    { draw_nan, "bernoulli: probabilities must be from 0 to 1" },
    { drop_more, "dropout: p must be from 0 to 1" },
    { step_backwards, "arange: step must lead from start to end" },
};

static void check_refusal(cn_ctx *cn, const refusal *r)
{
    double got[16];
    cn_tensor *y = r->fn(cn);
    bool read = y && cn_read_f64(y, got, cn_numel(y));
    cn_item(cn_sum(cn_ones(cn, CN_F32, CN_DIMS(3)), CN_ALL, false)); /* on a GPU the next read reports it */
    check(!read || cn_failed(cn), "\"%s\": was computed", r->words);
    check(cn_failed(cn) && !strncmp(cn_error(cn), r->words, strlen(r->words)), "says \"%s\", not \"%s\"", cn_error(cn),
          r->words);
    cn_error_clear(cn);
}

void check_numbers(cn_ctx *cn)
{
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        cn_scope s = cn_scope_begin(cn);
        check_result(cn, &results[i]);
        cn_scope_end(cn, s);
    }
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        cn_scope s = cn_scope_begin(cn);
        check_refusal(cn, &refusals[i]);
        cn_scope_end(cn, s);
    }
}
