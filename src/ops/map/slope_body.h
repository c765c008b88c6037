/* slope_body.h: a function and a loop for each row of slope.def, for the element type T. */
#include "ops/map/rows.h"

CN__INLINE void NAME(slope)(const cn_loop *l, T (*f)(T, T))
{
    const T *arrived = l->in[0], *at = l->in[1];
    T *out = l->out;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) out[i] = f(arrived[i], at[i]);
}

#define LOOP(name, expression)                                                                                         \
    CN__INLINE T NAME(name##_of)(T g, T v) { return (T)(expression); }                                                 \
    static void NAME(name##_loop)(const cn_loop *l) { NAME(slope)(l, NAME(name##_of)); }
#define SLOPE(name, cost, doc, expression, ...) ROW_##cost(REAL, name, expression, NONE)
#include "ops/map/slope.def"
#undef SLOPE

#include "ops/map/rows_end.h"
