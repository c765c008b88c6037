/* onnx/steps.h: the graph that is written: calls of operators in an order in which they can be computed.

   A trace is walked from the results to the inputs. What stands at its ends is an input, a weight (a tensor that has a
   name), a constant or a plain number. A call of a composite for which there is a rule is one call; otherwise the calls
   that it makes are walked. An operator without a rule that can be composed of others is composed.

   Two traces with different sizes of the batch are the same graph if they have the same calls in the same order. Then
   call number i of the second is the twin of call number i of the first, and numbers in which the two differ follow the
   batch. */
#ifndef CN_ONNX_STEPS_H
#define CN_ONNX_STEPS_H

#include "cairn/onnx.h"
#include "core/handle.h"
#include "core/object.h"
#include "core/tracer.h"

typedef enum onnx_end { ONNX_CALL, ONNX_INPUT, ONNX_WEIGHT, ONNX_CONSTANT, ONNX_NUMBER } onnx_end;

typedef struct onnx_step {
    onnx_end kind;
    const cn_op *op;
    cn__ref result; /* a call of a composite, and an end: this result; otherwise all results of the node */
    bool one;       /* it stands for this result of the node alone */
    const cn__ref *in;
    int *from; /* the steps that give the operands; -1: absent */
    int n_in;
    const void *attrs;
    const cn_arg *args;
    const struct onnx_writing *row; /* of a call: the rule, or NULL */
    int number;                     /* of an input or weight: in its list */
    bool varies;                    /* it depends on an input, a weight or random numbers */
    struct onnx_val *value[CN_MAX_OUT];
} onnx_step;

typedef struct onnx_trace {
    cn_ctx *ctx;
    int opset;
    cn__bump memory;
    cn__vec steps; /* of onnx_step, as they were found */
    cn__vec order; /* of int: steps in the order in which they can be computed */
    cn__vec table; /* of int: steps by node, a hash table */
    cn__vec stack; /* of int: calls whose operands are being walked */
    int *outputs;  /* the step of each result */
} onnx_trace;

/* False: an error is set. cn__onnx_trace_free in either case. */
bool cn__onnx_walk(onnx_trace *t, cn_tensor *const *in, int n_in, const cn_named *named, int n_named,
                   cn_tensor *const *out, int n_out);
void cn__onnx_trace_free(onnx_trace *t);
/* Whether the two traces have the same calls. */
bool cn__onnx_alike(const onnx_trace *a, const onnx_trace *b);

static inline onnx_step *cn__onnx_step(const onnx_trace *t, int i) { return (onnx_step *)t->steps.v + i; }
/* The step at a place of the order. */
static inline onnx_step *cn__onnx_at(const onnx_trace *t, size_t place)
{
    return cn__onnx_step(t, ((const int *)t->order.v)[place]);
}

#endif
