/* each_type.h: includes TEMPLATE, in terms of T and NAME(f), for f32 and f64. */
#define T       float
#define NAME(f) f##_f32
#include TEMPLATE
#undef T
#undef NAME
#define T       double
#define NAME(f) f##_f64
#include TEMPLATE
#undef T
#undef NAME
#undef TEMPLATE
