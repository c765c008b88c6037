/* cpu/each_type.h: the one template header. It includes TEMPLATE once for each type of TYPES, then undefines both.

       #define TEMPLATE "ops/block/softmax_body.h"
       #define TYPES    CN__FLOAT_TYPES
       #include "cpu/each_type.h"

   In the template:
     T             the type in which an element is stored
     E             the type in which an element is computed with: T, or bool for elements of type bool
     P             the type of a plain number that is an operand: T for floats, int64_t for other types
     U             for whole numbers: an unsigned type whose arithmetic wraps around, and is right in the bits of T
     TYPE, NAME(f) the name of the type (f32; b8 for bool), and f_f32
     IS_FLOAT      1 or 0; IS_F32 and IS_BOOL are defined for these types only
     LEAST, MOST   the least and the greatest value of the type
     IS_NAN(x)     whether x is NaN; false for whole numbers */
#ifndef CN_CPU_EACH_TYPE_H
#define CN_CPU_EACH_TYPE_H
#include "cpu/isa.h"
#define CN__F32_TYPE    1
#define CN__F64_TYPE    2
#define CN__SMALL_TYPES 4 /* u8, i8, i16 */
#define CN__I32_TYPE    8
#define CN__I64_TYPE    16
#define CN__BOOL_TYPE   32
#define CN__FLOAT_TYPES (CN__F32_TYPE | CN__F64_TYPE)
#define CN__WHOLE_TYPES (CN__SMALL_TYPES | CN__I32_TYPE | CN__I64_TYPE)
#define CN__F64_ALWAYS  64 /* f64, even for AVX-512 */
#if !defined(NAME)
#define NAME(f) CN__PASTE(f, TYPE)
#endif

/* Types for which a kernel is compiled in the baseline only: `CN__F32_TYPE | CN__COLD(CN__F64_TYPE)`. */
#if CN__IS_BASELINE
#define CN__COLD(types) (types)
#else
#define CN__COLD(types) 0
#endif

/* Types for which a kernel has no copy for AVX-512, because memory limits its speed. */
#if CN__ONLY_F32
#define CN__UP_TO_AVX2(types) 0
#else
#define CN__UP_TO_AVX2(types) (types)
#endif

/* Around functions that are compiled for size, without vectors. In a browser, which has to load them, these are the
   functions of all types but f32. */
#if defined(__wasm__)
#define CN__FOR_SIZE     _Pragma("clang attribute push(__attribute__((minsize)), apply_to = function)")
#define CN__FOR_SIZE_END _Pragma("clang attribute pop")
#else
#define CN__FOR_SIZE
#define CN__FOR_SIZE_END
#endif
#endif

#if (TYPES) & CN__FLOAT_TYPES
#define IS_FLOAT  1
#define IS_NAN(x) ((x) != (x))
#define LEAST     (-INFINITY)
#define MOST      INFINITY

#if (TYPES) & CN__F32_TYPE
#define TYPE   f32
#define IS_F32 1
#define T      float
#define E      float
#define P      float
#include TEMPLATE
#undef TYPE
#undef IS_F32
#undef T
#undef E
#undef P
#endif

#if (((TYPES) & CN__F64_TYPE && !CN__ONLY_F32) || (TYPES) & CN__F64_ALWAYS) && !CN__NO_F64
#define TYPE f64
#define T    double
#define E    double
#define P    double
CN__FOR_SIZE
#include TEMPLATE
CN__FOR_SIZE_END
#undef TYPE
#undef T
#undef E
#undef P
#endif

#undef IS_FLOAT
#undef IS_NAN
#undef LEAST
#undef MOST
#endif

CN__FOR_SIZE
#define IS_FLOAT  0
#define IS_NAN(x) false
#define P         int64_t

#if (TYPES) & CN__SMALL_TYPES && !CN__ONLY_F32
#define TYPE  u8
#define T     uint8_t
#define E     uint8_t
#define U     uint8_t
#define LEAST 0
#define MOST  UINT8_MAX
#include TEMPLATE
#undef TYPE
#undef T
#undef E
#undef U
#undef LEAST
#undef MOST

#define TYPE  i8
#define T     int8_t
#define E     int8_t
#define U     uint8_t
#define LEAST INT8_MIN
#define MOST  INT8_MAX
#include TEMPLATE
#undef TYPE
#undef T
#undef E
#undef U
#undef LEAST
#undef MOST

/* C would multiply two uint16_t as int, and overflow. */
#define TYPE  i16
#define T     int16_t
#define E     int16_t
#define U     uint32_t
#define LEAST INT16_MIN
#define MOST  INT16_MAX
#include TEMPLATE
#undef TYPE
#undef T
#undef E
#undef U
#undef LEAST
#undef MOST
#endif

#if (TYPES) & CN__I32_TYPE && !CN__ONLY_F32
#define TYPE  i32
#define T     int32_t
#define E     int32_t
#define U     uint32_t
#define LEAST INT32_MIN
#define MOST  INT32_MAX
#include TEMPLATE
#undef TYPE
#undef T
#undef E
#undef U
#undef LEAST
#undef MOST
#endif

#if (TYPES) & CN__I64_TYPE && !CN__ONLY_F32
#define TYPE  i64
#define T     int64_t
#define E     int64_t
#define U     uint64_t
#define LEAST INT64_MIN
#define MOST  INT64_MAX
#include TEMPLATE
#undef TYPE
#undef T
#undef E
#undef U
#undef LEAST
#undef MOST
#endif

/* Arithmetic of bool: a sum is "or", a product is "and"; any byte but 0 is true. */
#if (TYPES) & CN__BOOL_TYPE && !CN__ONLY_F32
#define TYPE    b8
#define IS_BOOL 1
#define T       uint8_t
#define E       bool
#define U       bool
#define LEAST   0
#define MOST    1
#include TEMPLATE
#undef TYPE
#undef IS_BOOL
#undef T
#undef E
#undef U
#undef LEAST
#undef MOST
#endif

CN__FOR_SIZE_END
#undef IS_FLOAT
#undef IS_NAN
#undef P
#undef TEMPLATE
#undef TYPES
