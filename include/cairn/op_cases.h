/* cairn/op_cases.h: test cases of an operator. The tests run every case in every dtype and layout, on every device.

       #include <cairn/op_cases.h>
       static const cn_op scale = { .name = "scale", ...
           CN_CASES({ CN_IN(CN_S(2, 3)), CN_ARGS({ .f = 2 }) },                 an operand of shape (2, 3)
                    { CN_IN(CN_RANGE(0, 1, 7)), CN_ARGS({ .f = -1 }) }) };      of shape (7), from 0 to 1

   Only the source file of an operator includes this header: cairn.h does not.

   Size       The library contains all cases, so a case is small: its operands are a list of numbers. cn_case_operands
              converts the list to structs. A source file that is compiled with CAIRN_NO_CASES has none: cn_op.n_cases
              is 0. Modules for browsers are made of such files. */
#ifndef CAIRN_OP_CASES_H
#define CAIRN_OP_CASES_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cn_fill {
    CN_FILL_NONE,        /* ends the list */
    CN_FILL_UNIFORM,     /* in the range of the operator's .ranges, or [-2, 2] if it has none */
    CN_FILL_RANGE,       /* in [low, high] */
    CN_FILL_DISTINCT,    /* no two elements are close to each other: for max, sort */
    CN_FILL_INDEX,       /* whole numbers in [low, high), as i64 */
    CN_FILL_BOOL,
    CN_FILL_PERMUTATION, /* of the numbers 0 to numel - 1, as i64 */
    CN_FILL_ABSENT,      /* an optional operand that is not passed */
    CN_FILL_POSITIVE,    /* symmetric positive definite matrices, over the last two axes, which are equal */
} cn_fill;

typedef struct cn_case {
    const float *in;              /* operands, written with CN_IN; NULL: none */
    const void *attrs;
    const cn_arg *args;           /* the first n_args; the others are 0 */
    uint8_t n_args;
    bool no_gradient_check;       /* a comment beside it says why */
} cn_case;

#ifdef CAIRN_NO_CASES /* sizeof computes nothing, but counts as a use of what the cases are made of */
#define CN_CASES(...)      .n_cases = 0 * (int)sizeof((const cn_case[]){ __VA_ARGS__ })
#define CN_CASES_OF(array) .n_cases = 0 * (int)sizeof(array)
#else
#define CN_CASES(...) .cases = (const cn_case[]){ __VA_ARGS__ }, \
                      .n_cases = (int)(sizeof((const cn_case[]){ __VA_ARGS__ }) / sizeof(cn_case))
#define CN_CASES_OF(array) .cases = array, .n_cases = (int)(sizeof(array) / sizeof *(array))  /* shared cases */
#endif
#define CN_IN(...)    .in = (const float[]){ __VA_ARGS__, CN_FILL_NONE }
#define CN_ARGS(...)  .args = (const cn_arg[]){ __VA_ARGS__ }, \
                      .n_args = sizeof((const cn_arg[]){ __VA_ARGS__ }) / sizeof(cn_arg)

/* One operand in CN_IN: how it is filled, and its shape. Macros that end in 0 are for operands without axes. In the
   list an operand is 16·ndim + fill, then low and high for RANGE and INDEX, then the sizes. */
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
#define CN_POSITIVE(...)         CN_HEAD(CN_FILL_POSITIVE, __VA_ARGS__), __VA_ARGS__
#define CN_HEAD(fill, ...)       (fill) + 16 * (int)(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))

/* The operands of a case as structs. Returns their number. */
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
