/* core/tracer.h: a trace: what operators were called with, so that a graph can be written to a file.

   The nodes of the pending graph are the trace. While there is a tracer, nodes keep their operands, nothing is evaluated
   unless its numbers are asked for, and elementwise results are row-major, so that no views stand around them. A
   COMPOSITE leaves no node. The tracer notes its call: which operator, with what, and which value came out of it. */
#ifndef CN_CORE_TRACER_H
#define CN_CORE_TRACER_H

#include "core/context.h"
#include "core/node.h"

/* A call of an operator that was computed by other operators. */
typedef struct cn__composed {
    const cn_op *op;
    cn_tensor *const *in;
    int n_in;
    const void *attrs;
    const cn_arg *args;
    cn_tensor *out;
} cn__composed;

typedef struct cn__note {
    const cn_op *op;
    cn__ref result;
    cn__ref *in; /* node NULL: absent */
    int n_in;
    const void *attrs;
    const cn_arg *args; /* CN_MAX_ARGS of them */
    int64_t earlier;    /* the note before this one that has the same result; -1: none */
} cn__note;

typedef struct cn__tracer {
    cn__bump memory;
    cn__vec notes; /* of cn__note: an inner call stands before the outer one */
    cn__vec table; /* of int64_t: the latest note of each result, by hash; -1: none */
    int depth;     /* how many cn__trace_begin are open */
} cn__tracer;

bool cn__trace_begin(cn_ctx *ctx); /* false: an error is set. Calls nest; inner ones share the notes */
void cn__trace_end(cn_ctx *ctx);
bool cn__trace_composed(cn_ctx *ctx, const cn__composed *call); /* false: no memory */
/* The latest, outermost call that gave this result; NULL: none. */
const cn__note *cn__trace_note(const cn_ctx *ctx, cn__ref result);
const cn__note *cn__trace_earlier(const cn_ctx *ctx, const cn__note *note); /* the one inside it, or NULL */

#endif
