/* make.h: operands of a test case: numbers drawn as its cn_spec says, and tensors of them in any layout.

       inputs x;
       if (make_inputs(&x, "matmul", op, c, CN_F32, CN_I64, LAYOUT_STRIDED))
           in[0] = make_tensor(cn, &x.in[0], LAYOUT_STRIDED);
       free_inputs(&x); */
#ifndef TRIALS_MAKE_H
#define TRIALS_MAKE_H

#include "cairn/cairn.h"
#include "cairn/op_cases.h"

/* The numbers of a tensor in f64, whatever its dtype: what operands are drawn as, and what slow references compute. */
typedef struct ref_tensor {
    bool present;   /* an optional operand may be absent */
    cn_dtype dtype; /* what the operator saw; v is always f64 */
    int ndim;
    int64_t shape[CN_MAX_DIMS], numel;
    double *v; /* row-major */
} ref_tensor;

typedef enum trial_layout {
    LAYOUT_CONTIGUOUS,
    LAYOUT_STRIDED,   /* every second element of a larger tensor, from the second on */
    LAYOUT_PERMUTED,  /* column-major */
    LAYOUT_FLIPPED,   /* negative strides */
    LAYOUT_BROADCAST, /* a stride of 0: all numbers along one axis are the same */
    LAYOUTS,
} trial_layout;

const char *layout_name(trial_layout layout);

typedef struct inputs {
    int n;
    ref_tensor in[CN_MAX_IN]; /* numbers already rounded to their dtype */
    bool repeats[CN_MAX_IN];  /* numbers repeat along an axis: LAYOUT_BROADCAST is possible */
} inputs;

void *trial_memory(size_t n, size_t size); /* zeroed, never NULL: without memory the program ends with a message */
int count_operands(const cn_case *c);

/* The same name and case always give the same numbers. Operands get `dtype`, but masks are bool and indices have a
   dtype of their own. False if the case's range holds no whole number for `dtype`. */
bool make_inputs(inputs *x, const char *name, const cn_op *op, const cn_case *c, cn_dtype dtype, cn_dtype index,
                 trial_layout layout);
void free_inputs(inputs *x);

bool layout_applies(const inputs *x, trial_layout layout);                     /* to at least one operand */
cn_tensor *make_tensor(cn_ctx *ctx, const ref_tensor *x, trial_layout layout); /* contiguous where it does not apply */

#endif
