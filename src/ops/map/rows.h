/* rows.h: selects the rows of a MAP table that have a loop for the present element type and instruction set: see
   classes.h. A template includes this file before the table and rows_end.h after it, and defines LOOP(name, expression)
   and TEST_LOOP(name, expression), whose result is bool. Each row expands to ROW_##cost(class, name, real, whole). */
#if CN__ONLY_F32
#define ROW_CHEAP(class, name, real, whole)
#else
#define ROW_CHEAP(class, name, real, whole) ROW_##class(name, real, whole)
#endif
#if CN__IS_BASELINE || defined(IS_F32)
#define ROW_DEAR(class, name, real, whole) ROW_##class(name, real, whole)
#else
#define ROW_DEAR(class, name, real, whole)
#endif
#if CN__IS_BASELINE
#define ROW_CALL(class, name, real, whole) ROW_##class(name, real, whole)
#else
#define ROW_CALL(class, name, real, whole)
#endif

#if IS_FLOAT
#define ROW_REAL(name, real, whole)   LOOP(name, real)
#define ROW_FLOAT(name, real, whole)  LOOP(name, real)
#define ROW_NUMBER(name, real, whole) LOOP(name, real)
#define ROW_ANY(name, real, whole)    LOOP(name, real)
#define ROW_TEST(name, real, whole)   TEST_LOOP(name, real)
#define ROW_BITS(name, real, whole)
#define ROW_WHOLE(name, real, whole)
#else
#define ROW_REAL(name, real, whole)
#define ROW_FLOAT(name, real, whole)
#define ROW_ANY(name, real, whole)    LOOP(name, whole)
#define ROW_TEST(name, real, whole)   TEST_LOOP(name, whole)
#define ROW_BITS(name, real, whole)   LOOP(name, whole)
#if defined(IS_BOOL)
#define ROW_NUMBER(name, real, whole)
#define ROW_WHOLE(name, real, whole)
#else
#define ROW_NUMBER(name, real, whole) LOOP(name, whole)
#define ROW_WHOLE(name, real, whole)  LOOP(name, whole)
#endif
#endif
