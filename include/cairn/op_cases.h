/* cairn/op_cases.h: test cases of an operator. The tests try every case in every dtype, layout and device.

       #include <cairn/op_cases.h>
       static const cn_op scale = { .name = "scale", ...
           CN_CASES({ CN_IN(CN_S(2, 3)), CN_ARGS({ .f = 2 }) },                 one operand, of shape (2, 3)
                    { CN_IN(CN_RANGE(0, 1, 7)), CN_ARGS({ .f = -1 }) }) };      its elements between 0 and 1

   Only the source file of an operator includes this header: cairn.h does not.

   Size       A case is small, because the library carries all of them: operands are a list of plain numbers, which
              cn_case_operands turns into structs. */
#ifndef CAIRN_OP_CASES_H
#define CAIRN_OP_CASES_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cn_fill {
    CN_FILL_NONE,        /* ends the list */
    CN_FILL_UNIFORM,     /* in the operator's .ranges if it has them, else in [-2, 2] */
    CN_FILL_RANGE,       /* in [low, high] */
    CN_FILL_DISTINCT,    /* no two close to each other: for max, sort */
    CN_FILL_INDEX,       /* integers in [low, high) as i64 */
    CN_FILL_BOOL,
    CN_FILL_PERMUTATION, /* of [0, numel) as i64 */
    CN_FILL_ABSENT,      /* optional operand left out */
} cn_fill;

typedef struct cn_case {
    const float *in;              /* operands, see CN_IN; NULL: none */
    const void *attrs;
    const cn_arg *args;           /* the first n_args; the others are 0 */
    uint8_t n_args;
    bool no_gradient_check;       /* with a comment that says why */
} cn_case;

#define CN_CASES(...) .cases = (const cn_case[]){ __VA_ARGS__ }, \
                      .n_cases = (int)(sizeof((const cn_case[]){ __VA_ARGS__ }) / sizeof(cn_case))
#define CN_CASES_OF(array) .cases = array, .n_cases = (int)(sizeof(array) / sizeof *(array)) /* shared */
#define CN_IN(...)    .in = (const float[]){ __VA_ARGS__, CN_FILL_NONE }
#define CN_ARGS(...)  .args = (const cn_arg[]){ __VA_ARGS__ }, \
                      .n_args = sizeof((const cn_arg[]){ __VA_ARGS__ }) / sizeof(cn_arg)

/* An operand, by how it is filled and its shape. Those that end in 0 have no axes. In the list it is
   16 · ndim + fill, then low and high for RANGE and INDEX, then the shape. */
#define CN_S(...)                CN_HEAD(CN_FILL_UNIFORM, __VA_ARGS__), __VA_ARGS__
#define CN_S0                    CN_FILL_UNIFORM
#define CN_RANGE(low, high, ...) CN_HEAD(CN_FILL_RANGE, __VA_ARGS__), low, high, __VA_ARGS__
#define CN_RANGE0(low, high)     CN_FILL_RANGE, low, high
#define CN_DISTINCT(...)         CN_HEAD(CN_FILL_DISTINCT, __VA_ARGS__), __VA_ARGS__
#define CN_IDX(high, ...)        CN_HEAD(CN_FILL_INDEX, __VA_ARGS__), 0, high, __VA_ARGS__
#define CN_IDX0(high)            CN_FILL_INDEX, 0, high
#define CN_IDX_FROM(low, high, ...) CN_HEAD(CN_FILL_INDEX, __VA_ARGS__), low, high, __VA_ARGS__
#define CN_BOOLS(...)            CN_HEAD(CN_FILL_BOOL, __VA_ARGS__), __VA_ARGS__
#define CN_BOOLS0                CN_FILL_BOOL
#define CN_PERM(...)             CN_HEAD(CN_FILL_PERMUTATION, __VA_ARGS__), __VA_ARGS__
#define CN_ABSENT                CN_FILL_ABSENT
#define CN_HEAD(fill, ...)       (fill) + 16 * (int)(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))

/* The operands of a case as structs. Returns how many there are. */
typedef struct cn_spec {
    cn_fill fill;
    cn_dims shape;
    double low, high;             /* RANGE and INDEX; UNIFORM becomes a RANGE */
} cn_spec;
CN_API int cn_case_operands(const cn_op *op, const cn_case *c, cn_spec out[CN_MAX_IN]);
CN_API void cn_case_args(const cn_case *c, cn_arg out[CN_MAX_ARGS]);

#ifdef __cplusplus
}
#endif
#endif
