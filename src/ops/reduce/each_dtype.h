/* Includes BODY once for each element type kernels see (bool as u8): T is the C type, TYPE its name, LEAST and MOST
   its ends; NAME(f) is f_TYPE. */
#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(f) PASTE(f, TYPE)

#define IS_NAN(x) false
#define T uint8_t
#define TYPE u8
#define LEAST 0
#define MOST UINT8_MAX
#include BODY
#undef T
#undef TYPE
#undef LEAST
#undef MOST
#define T int8_t
#define TYPE i8
#define LEAST INT8_MIN
#define MOST INT8_MAX
#include BODY
#undef T
#undef TYPE
#undef LEAST
#undef MOST
#define T int32_t
#define TYPE i32
#define LEAST INT32_MIN
#define MOST INT32_MAX
#include BODY
#undef T
#undef TYPE
#undef LEAST
#undef MOST
#define T int64_t
#define TYPE i64
#define LEAST INT64_MIN
#define MOST INT64_MAX
#include BODY
#undef IS_NAN
#undef T
#undef TYPE
#undef LEAST
#undef MOST

#define IS_NAN(x) ((x) != (x))
#define LEAST (-INFINITY)
#define MOST INFINITY
#define T float
#define TYPE f32
#include BODY
#undef T
#undef TYPE
#define T double
#define TYPE f64
#include BODY
#undef IS_NAN
#undef T
#undef TYPE
#undef LEAST
#undef MOST

#undef NAME
#undef PASTE
#undef PASTE_
#undef BODY
