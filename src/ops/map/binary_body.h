/* binary_body.h: a function and a loop for each row of binary.def that has the element type T. */
#include "ops/map/rows.h"

CN__INLINE void NAME(binary)(const cn_loop *l, T (*f)(E, E))
{
    const T *left = l->in[0], *right = l->in[1];
    T *out = l->out;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) out[i] = f((E)left[i], (E)right[i]);
}

CN__INLINE void NAME(binary_test)(const cn_loop *l, uint8_t (*f)(E, E))
{
    const T *left = l->in[0], *right = l->in[1];
    uint8_t *out = l->out;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) out[i] = f((E)left[i], (E)right[i]);
}

#define LOOP(name, expression)                                                                                         \
    CN__INLINE T NAME(name##_of)(E x, E y) { return (T)(expression); }                                                 \
    static void NAME(name##_loop)(const cn_loop *l) { NAME(binary)(l, NAME(name##_of)); }
#define TEST_LOOP(name, expression)                                                                                    \
    CN__INLINE uint8_t NAME(name##_of)(E x, E y) { return (uint8_t)(expression); }                                     \
    static void NAME(name##_loop)(const cn_loop *l) { NAME(binary_test)(l, NAME(name##_of)); }
#define BINARY(name, class, cost, doc, real, whole, ...) ROW_##cost(class, name, real, whole)
#include "ops/map/binary.def"
#undef BINARY

#include "ops/map/rows_end.h"
