/* loops.h: includes the table ROWS once for each element type; see classes.h. A row comes down to
   ROW_LOOP(name, class, real, whole) here: `real` is its expression for floats, `whole` for all others. */
#define ROW_LOOP(name, class, real, whole) ROW_##class(name, real, whole)

#define ROW_REAL(name, real, whole)   DEFINE(name, T, real)
#define ROW_FLOAT(name, real, whole)  DEFINE(name, T, real)
#define ROW_NUMBER(name, real, whole) DEFINE(name, T, real)
#define ROW_ANY(name, real, whole)    DEFINE(name, T, real)
#define ROW_TEST(name, real, whole)   DEFINE(name, uint8_t, real)
#define ROW_BITS(name, real, whole)
#define ROW_WHOLE(name, real, whole)

#define T       float
#define E       float
#define P       float
#define LOOP(n) n##_loop_f32
#include ROWS
#include "loops_end.h"

#define T       double
#define E       double
#define P       double
#define LOOP(n) n##_loop_f64
#include ROWS
#include "loops_end.h"

#undef ROW_REAL
#undef ROW_FLOAT
#undef ROW_NUMBER
#undef ROW_ANY
#undef ROW_TEST
#undef ROW_BITS
#undef ROW_WHOLE
#define ROW_REAL(name, real, whole)
#define ROW_FLOAT(name, real, whole)
#define ROW_NUMBER(name, real, whole) DEFINE(name, T, whole)
#define ROW_ANY(name, real, whole)    DEFINE(name, T, whole)
#define ROW_TEST(name, real, whole)   DEFINE(name, uint8_t, whole)
#define ROW_BITS(name, real, whole)   DEFINE(name, T, whole)
#define ROW_WHOLE(name, real, whole)  DEFINE(name, T, whole)

#define T       uint8_t
#define E       uint8_t
#define U       uint8_t
#define P       int64_t
#define LOOP(n) n##_loop_u8
#include ROWS
#include "loops_end.h"

#define T       int8_t
#define E       int8_t
#define U       uint8_t
#define P       int64_t
#define LOOP(n) n##_loop_i8
#include ROWS
#include "loops_end.h"

#define T       int32_t
#define E       int32_t
#define U       uint32_t
#define P       int64_t
#define LOOP(n) n##_loop_i32
#include ROWS
#include "loops_end.h"

#define T       int64_t
#define E       int64_t
#define U       uint64_t
#define P       int64_t
#define LOOP(n) n##_loop_i64
#include ROWS
#include "loops_end.h"

#undef ROW_NUMBER
#undef ROW_WHOLE
#define ROW_NUMBER(name, real, whole)
#define ROW_WHOLE(name, real, whole)

/* bool arithmetic: sums are "or", products "and"; any byte but 0 is true */
#define T       uint8_t
#define E       bool
#define U       bool
#define P       int64_t
#define LOOP(n) n##_loop_b8
#include ROWS
#include "loops_end.h"

#undef ROW_REAL
#undef ROW_FLOAT
#undef ROW_NUMBER
#undef ROW_ANY
#undef ROW_TEST
#undef ROW_BITS
#undef ROW_WHOLE
#undef ROW_LOOP
