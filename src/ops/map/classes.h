/* classes.h: class and cost of the rows of MAP tables. The class of a row decides which element types it has:

   REAL    f32 and f64; whole numbers are converted to f32
   FLOAT   f32 and f64; whole numbers are an error
   NUMBER  f32, f64, u8, i8, i16, i32, i64
   ANY     f32, f64, u8, i8, i16, i32, i64, bool
   TEST    the same; the result is bool
   BITS    u8, i8, i16, i32, i64, bool
   WHOLE   u8, i8, i16, i32, i64

   The cost of a row decides for which instruction sets its loops are compiled (rows.h):

   CHEAP   few instructions, which vectorise for every type. The planner may compute such a row twice. Memory limits the
           speed of these loops, so they have no copy for AVX-512
   DEAR    vector code for f32, for every instruction set; other types call the C library, and are compiled once
   CALL    calls the C library for every type; all loops are compiled once

   Expressions may use the types T, E, U and P of cpu/each_type.h. */
#ifndef CN_MAP_CLASSES_H
#define CN_MAP_CLASSES_H

#include "cpu/isa.h"

/* Which entries a row has in the table of an instruction set. u8, i8 and i16 have loops in the baseline alone. */
#if CN__IS_BASELINE
#define LOOPS_WHOLE(n)                                                                              \
    [CN_U8] = n##_loop_u8, [CN_I8] = n##_loop_i8, [CN_I16] = n##_loop_i16, [CN_I32] = n##_loop_i32, \
    [CN_I64] = n##_loop_i64
#else
#define LOOPS_WHOLE(n) [CN_I32] = n##_loop_i32, [CN_I64] = n##_loop_i64
#endif
#define MAP_TYPES       CN__FLOAT_TYPES | CN__COLD(CN__SMALL_TYPES) | CN__I32_TYPE | CN__I64_TYPE | CN__BOOL_TYPE
#define LOOPS_REAL(n)   [CN_F32] = n##_loop_f32, [CN_F64] = CN__F64_ENTRY(n##_loop_f64)
#define LOOPS_BITS(n)   LOOPS_WHOLE(n), [CN_BOOL] = n##_loop_b8
#define LOOPS_FLOAT(n)  LOOPS_REAL(n)
#define LOOPS_NUMBER(n) LOOPS_WHOLE(n), LOOPS_REAL(n)
#define LOOPS_ANY(n)    LOOPS_BITS(n), LOOPS_REAL(n)
#define LOOPS_TEST(n)   LOOPS_ANY(n)

#if CN__ONLY_F32
#define LOOPS_CHEAP(class, n) 0
#else
#define LOOPS_CHEAP(class, n) LOOPS_##class(n)
#endif
#if CN__IS_BASELINE
#define LOOPS_DEAR(class, n) LOOPS_##class(n)
#define LOOPS_CALL(class, n) LOOPS_##class(n)
#else
#define LOOPS_DEAR(class, n) [CN_F32] = n##_loop_f32
#define LOOPS_CALL(class, n) 0
#endif

#define DTYPES_REAL   .ints_to_float = true
#define DTYPES_FLOAT  .dtypes = CN_FLOATS
#define DTYPES_WHOLE  .dtypes = CN_INTS
#define DTYPES_BITS   .dtypes = CN_INTS | CN_BIT(CN_BOOL)
#define DTYPES_NUMBER .dtypes = CN_NUMBERS
#define DTYPES_ANY    .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL)
#define DTYPES_TEST   DTYPES_ANY

#define INFER_REAL   cn_infer_map
#define INFER_FLOAT  cn_infer_map
#define INFER_WHOLE  cn_infer_map
#define INFER_BITS   cn_infer_map
#define INFER_NUMBER cn_infer_map
#define INFER_ANY    cn_infer_map
#define INFER_TEST   cn_infer_map_bool

#define GRAD_REAL(n)   .grad = n##_grad
#define GRAD_FLOAT(n)  .grad = n##_grad
#define GRAD_NUMBER(n) .grad = n##_grad
#define GRAD_ANY(n)    .grad = n##_grad
#define GRAD_TEST(n)   .no_grad = "its result is true or false"
#define GRAD_BITS(n)   .no_grad = "bits do not change gradually"
#define GRAD_WHOLE(n)  GRAD_BITS(n)

#define CHEAP true
#define DEAR  false
#define CALL  false
#define NONE  0 /* for columns that a class does not have */

/* WGSL for floats, and for whole numbers and bool, as the value of .wgsl */
#define BOTH(real, whole) real, .wgsl_whole = whole

#endif
