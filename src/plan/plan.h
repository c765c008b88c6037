/* plan.h: a plan, as devices see it: steps in order, over buffers.

   A step is one kernel, or a group: a straight-line program over elements that may end in a reduction. Values of a
   group are numbered: first its loads, then the results of its instructions. What changes from run to run (memory,
   scalars, random counters, offsets of views) is found through node and leaf numbers in cn__run. */
#ifndef CN_PLAN_PLAN_H
#define CN_PLAN_PLAN_H

#include "core/context.h"
#include "core/node.h"

typedef enum cn__where {
    CN__AT_LEAF,   /* memory of an operand from outside: index = leaf */
    CN__AT_OUTPUT, /* memory made for this run: index = output */
    CN__AT_ARENA,  /* offset in the arena */
    CN__AT_DONOR,  /* the memory of leaf `index`, which an assignment takes over */
} cn__where;

typedef struct cn__buffer {
    cn__where where;
    int index;
    size_t offset, bytes;
    int first, last; /* steps between which it holds a value */
} cn__buffer;

/* How a step reads or writes a value. */
typedef struct cn__operand {
    int buffer;               /* -1: none, or a number */
    int number;               /* leaf that is a plain number, or -1 */
    int view_node, view_leaf; /* whose layout.offset counts, since it may change from run to run; or -1 */
    cn_dtype dtype;
    cn_layout layout; /* its own offset counts where there is neither: a part of a buffer */
} cn__operand;

typedef struct cn__instr {
    const cn_op *op;
    int node;       /* for its args */
    cn_dtype dtype; /* which loop: of the first promoted operand */
    cn_dtype out_dtype[CN_MAX_OUT];
    int n_in, in[CN_MAX_IN]; /* values */
    int n_out, out;          /* values out, out + 1, .. are its results */
    const void *attrs;
} cn__instr;

typedef struct cn__store {
    int value;
    cn__operand to;
} cn__store;

typedef struct cn__step {
    const cn_op *op; /* kernel, or the reduction that ends a group; NULL: elementwise group */
    bool group;
    int node; /* of op */
    const void *attrs;
    cn_layout space; /* group: what is iterated over, row-major */
    int n_loads, n_instrs, n_stores;
    int n_values;       /* group: loads and results of instructions */
    cn__operand *loads; /* kernel: operands */
    cn__instr *instrs;
    cn__store *stores; /* kernel: results; reduction: one, of value reduced */
    int reduced;       /* reduction: which value */
    bool contraction, checks;
    bool tail;      /* group that runs inside the kernel before it, on what that has finished */
    bool joined;    /* elementwise group that is part of the kernel of the one before it */
    int together;   /* steps that this one begins a kernel of: itself and those joined to it */
    bool updates;   /* writes memory that an assignment takes over */
    size_t scratch; /* offset in the arena */
    char name[56];
} cn__step;

typedef struct cn__plan {
    struct cn__plan *chain;         /* same slot of the cache */
    struct cn__plan *newer, *older; /* by use */
    uint64_t hash;
    uint64_t *key; /* all that decides the plan, as numbers: the cache finds the plan by it */
    size_t key_length;
    cn__bump memory;
    cn__device *device;
    int n_nodes, n_leaves, n_steps, n_buffers, n_outputs;
    cn__step *steps;
    cn__buffer *buffers;
    struct cn__output {
        int node, out, buffer;
    } * outputs;
    int n_memories; /* outputs that need memory of their own */
    size_t arena_bytes, scratch_bytes;
    int contractions, kernels; /* what is a tail or joined is no kernel of its own */
    void *prepared;            /* the device's own */
} cn__plan;

/* One run of a plan. */
typedef struct cn__run {
    cn_ctx *ctx;
    cn__node *const *nodes;
    const cn__ref *leaves;
    void *const *outputs; /* memory of their own, by number */
    void *arena;
    struct {
        int step;
        int64_t index, size;
    } fault;
} cn__run;

/* Whether the present evaluation computes the operand. A node that is computed again for one of its results stands late
   in the list. Its other results, if they are stored, are read as they are, by nodes that may stand before it. */
static inline bool cn__computed_here(const cn_ctx *ctx, cn__ref in)
{
    return in.node->state == CN__PENDING && in.node->stamp == ctx->stamp && !cn__stored(cn__res(in));
}

static inline bool cn__has_args(const cn__node *n)
{
    uint64_t any = 0;
    for (int i = 0; i < CN_MAX_ARGS; i++) any |= n->args[i].u;
    return any != 0;
}

/* build.c */
cn__plan *cn__plan_build(cn_ctx *ctx, cn__node *const *nodes, int n_nodes, const cn__ref *leaves, int n_leaves,
                         int n_storages);
void cn__plan_free(cn_ctx *ctx, cn__plan *plan);
/* show.c */
size_t cn__plan_show(const cn__plan *plan, char *out, size_t size);
void cn__plan_trace(cn_ctx *ctx, const cn__plan *plan); /* to the logger, line by line */

#endif
