/* ternary_body.h: a function and a loop for each row of ternary.def that has the element type T. */
#include "ops/map/rows.h"

CN__INLINE void NAME(ternary)(const cn_loop *l, T (*f)(E, E, E, P))
{
    const T *a = l->in[0], *b = l->in[1], *c = l->in[2];
    T *out = l->out;
    const P p0 = PLAIN(P, l->args[0].f);
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) out[i] = f((E)a[i], (E)b[i], (E)c[i], p0);
}

#define LOOP(name, expression)                                                                                         \
    CN__INLINE T NAME(name##_of)(E x, E y, E z, P p0) { return (void)p0, (T)(expression); }                            \
    static void NAME(name##_loop)(const cn_loop *l) { NAME(ternary)(l, NAME(name##_of)); }
#define TERNARY(name, class, cost, doc, real, whole, ...) ROW_##cost(class, name, real, whole)
#include "ops/map/ternary.def"
#undef TERNARY

#include "ops/map/rows_end.h"
