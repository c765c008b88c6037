/* The reducers of sum and prod. A block is folded in independent lanes, which vectorise; blocks are merged in double,
   so long sums stay accurate. Every instruction set has the same number of lanes, hence the same bits. */
#include "ops/reduce/folds_cpu.h"

#include "cpu/isa.h"

#define BLOCK 512
#define VECTOR 32 /* bytes */

/* f32 is compiled for every instruction set, other types once. */
#define FOLDED(f)  NAME(CN__PASTE(sum, f))
#define FOLD(a, b) ((a) + (b))
#define UNIT       0
#define LANE       ELEMENT
#define TEMPLATE   "ops/reduce/fold_body.h"
#define TYPES      CN__F32_TYPE | CN__COLD(CN__F64_TYPE | CN__I64_TYPE)
#include "cpu/each_type.h"
#undef FOLDED
#undef FOLD
#undef UNIT
#undef LANE

#define FOLDED(f)  NAME(CN__PASTE(prod, f))
#define FOLD(a, b) ((a) * (b))
#define UNIT       1
#define LANE       STATE
#define TEMPLATE   "ops/reduce/fold_body.h"
#define TYPES      CN__F32_TYPE | CN__COLD(CN__F64_TYPE | CN__I64_TYPE)
#include "cpu/each_type.h"

#if CN__IS_BASELINE
#define REDUCERS(r) [CN_F32] = &r##_f32, [CN_F64] = &r##_f64, [CN_I64] = &r##_i64
#else
#define REDUCERS(r) [CN_F32] = &r##_f32
#endif

CN__TABLE(folds)
CN__FILL(cn__reducers, folds, sum, REDUCERS(sum_reducer))
CN__FILL(cn__reducers, folds, prod, REDUCERS(prod_reducer))
CN__TABLE_END
