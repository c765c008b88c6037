/* unary_body.h: a function and a loop for each row of unary.def that has the element type T. */
#include "ops/map/rows.h"

CN__INLINE void NAME(unary)(const cn_loop *l, T (*f)(E))
{
    const T *in = l->in[0];
    T *out = l->out;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) out[i] = f((E)in[i]);
}

CN__INLINE void NAME(unary_test)(const cn_loop *l, uint8_t (*f)(E))
{
    const T *in = l->in[0];
    uint8_t *out = l->out;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) out[i] = f((E)in[i]);
}

#define LOOP(name, expression)                                                                                         \
    CN__INLINE T NAME(name##_of)(E x) { return (void)x, (T)(expression); }                                             \
    static void NAME(name##_loop)(const cn_loop *l) { NAME(unary)(l, NAME(name##_of)); }
#define TEST_LOOP(name, expression)                                                                                    \
    CN__INLINE uint8_t NAME(name##_of)(E x) { return (void)x, (uint8_t)(expression); }                                 \
    static void NAME(name##_loop)(const cn_loop *l) { NAME(unary_test)(l, NAME(name##_of)); }
#define UNARY(name, class, cost, doc, real, whole, ...) ROW_##cost(class, name, real, whole)
#include "ops/map/unary.def"
#undef UNARY

#include "ops/map/rows_end.h"
