/* param_body.h: a function and a loop for each row of param.def that has the element type T. */
#include "ops/map/rows.h"

CN__INLINE void NAME(param)(const cn_loop *l, T (*f)(E, P, P))
{
    const T *in = l->in[0];
    T *out = l->out;
    const P p0 = PLAIN(P, l->args[0].f), p1 = PLAIN(P, l->args[1].f);
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) out[i] = f((E)in[i], p0, p1);
}

#define LOOP(name, expression)                                                                                         \
    CN__INLINE T NAME(name##_of)(E x, P p0, P p1) { return (void)p1, (T)(expression); }                                \
    static void NAME(name##_loop)(const cn_loop *l) { NAME(param)(l, NAME(name##_of)); }
#define PARAM(name, class, cost, doc, real, whole, ...) ROW_##cost(class, name, real, whole)
#include "ops/map/param.def"
#undef PARAM

#include "ops/map/rows_end.h"
