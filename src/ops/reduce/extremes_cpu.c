/* The reducers of max, min, argmax and argmin. */
#include "ops/reduce/extremes_cpu.h"

#include <math.h>
#include <string.h>

#include "cpu/isa.h"

#define VECTOR 32 /* bytes */

/* f32 has copies for the baseline and AVX2, since 512-bit vectors gain nothing. Other types are compiled once. */
#define DIRECTED(f) NAME(CN__PASTE(max, f))
#define BEATS(x, y) ((x) > (y))
#define WORST       LEAST
#define TEMPLATE    "ops/reduce/extreme_body.h"
#define TYPES       CN__UP_TO_AVX2(CN__F32_TYPE) | CN__COLD(CN__F64_TYPE | CN__WHOLE_TYPES)
#include "cpu/each_type.h"
#undef DIRECTED
#undef BEATS
#undef WORST

#define DIRECTED(f) NAME(CN__PASTE(min, f))
#define BEATS(x, y) ((x) < (y))
#define WORST       MOST
#define TEMPLATE    "ops/reduce/extreme_body.h"
#define TYPES       CN__UP_TO_AVX2(CN__F32_TYPE) | CN__COLD(CN__F64_TYPE | CN__WHOLE_TYPES)
#include "cpu/each_type.h"

/* a bool is a byte 0 or 1, ordered like u8 */
#if CN__IS_BASELINE
#define REDUCERS(r)                                                                                                    \
    [CN_BOOL] = &r##_u8, [CN_U8] = &r##_u8, [CN_I8] = &r##_i8, [CN_I16] = &r##_i16, [CN_I32] = &r##_i32,             \
      [CN_I64] = &r##_i64, [CN_F32] = &r##_f32, [CN_F64] = &r##_f64
#elif CN__ONLY_F32
#define REDUCERS(r) 0
#else
#define REDUCERS(r) [CN_F32] = &r##_f32
#endif

CN__TABLE(extremes)
CN__FILL(cn__reducers, extremes, max, REDUCERS(max_reducer))
CN__FILL(cn__reducers, extremes, min, REDUCERS(min_reducer))
CN__FILL(cn__reducers, extremes, argmax, REDUCERS(max_arg_reducer))
CN__FILL(cn__reducers, extremes, argmin, REDUCERS(min_arg_reducer))
CN__TABLE_END
