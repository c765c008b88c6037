/* each_type.h: includes BODY, a template of T, NAME(f), EXP(x) and EXP_DOWN(x), which is EXP(x) for x ≤ 0, for f32 and
   f64; on x86 once more for AVX2 with FMA. Nothing is contracted in either and sums run in the same order; only EXP
   multiplies and adds in one instruction where there is one (FUSED). On one machine a value therefore always has the
   same bits. PICK(f, dtype) is the f to call. */
#include "ops/map/vector.h"

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define FUSED true
#else
#define FUSED false
#endif
#define T           float
#define EXP(x)      cn__f32_exp(x, FUSED)
#define EXP_DOWN(x) cn__f32_exp_down(x, FUSED)
#define NAME(f)     f##_f32
#include BODY
#undef T
#undef EXP
#undef EXP_DOWN
#undef NAME
#define T           double
#define EXP(x)      exp(x)
#define EXP_DOWN(x) exp(x)
#define NAME(f)     f##_f64
#include BODY
#undef T
#undef EXP
#undef EXP_DOWN
#undef NAME
#undef FUSED

#if defined(__x86_64__) && !defined(__AVX2__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define FUSED       true
#define T           float
#define EXP(x)      cn__f32_exp(x, FUSED)
#define EXP_DOWN(x) cn__f32_exp_down(x, FUSED)
#define NAME(f)     f##_f32_avx2
#include BODY
#undef T
#undef EXP
#undef EXP_DOWN
#undef NAME
#define T           double
#define EXP(x)      exp(x)
#define EXP_DOWN(x) exp(x)
#define NAME(f)     f##_f64_avx2
#include BODY
#undef T
#undef EXP
#undef EXP_DOWN
#undef NAME
#undef FUSED
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#define PICK(f, dtype)                                                                                                 \
    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? (dtype) == CN_F64 ? f##_f64_avx2 : f##_f32_avx2 \
     : (dtype) == CN_F64                                             ? f##_f64                                         \
                                                                     : f##_f32)
#else
#define PICK(f, dtype) ((dtype) == CN_F64 ? f##_f64 : f##_f32)
#endif
#undef BODY
