/* each_type.h: includes BODY, a template of T, NAME(f) and EXP, for f32 and f64; on x86 once more for AVX2. Nothing is
   contracted in either and sums run in the same order, so both give the same bits. PICK(f, dtype) is the f to call. */
#include "ops/map/vector.h"

#define T       float
#define EXP     cn__exp_f32
#define NAME(f) f##_f32
#include BODY
#undef NAME
#if defined(__x86_64__) && !defined(__AVX2__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
#define NAME(f) f##_f32_avx2
#include BODY
#undef T
#undef EXP
#undef NAME
#define T       double
#define EXP     exp
#define NAME(f) f##_f64_avx2
#include BODY
#undef NAME
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#define PICK(f, dtype)                                                                \
    (__builtin_cpu_supports("avx2") ? (dtype) == CN_F64 ? f##_f64_avx2 : f##_f32_avx2 \
     : (dtype) == CN_F64            ? f##_f64                                         \
                                    : f##_f32)
#else
#define PICK(f, dtype) ((dtype) == CN_F64 ? f##_f64 : f##_f32)
#endif
#undef T
#undef EXP
#define T       double
#define EXP     exp
#define NAME(f) f##_f64
#include BODY
#undef T
#undef EXP
#undef NAME
#undef BODY
