/* plan/plan.h: a plan as devices see it: steps in order, and the buffers that they read and write.

   A step is one kernel, or a group: a straight-line program over elements that may end in a reduction. Values of a
   group are numbered: first its loads, then the results of its instructions. What changes from run to run (memory,
   scalars, random counters, offsets of views) is found through node and leaf numbers in cn__run. */
#ifndef CN_PLAN_PLAN_H
#define CN_PLAN_PLAN_H

#include "core/context.h"
#include "core/node.h"

typedef enum cn__where {
    CN__AT_LEAF,   /* the memory of leaf `index`, a value from outside */
    CN__AT_OUTPUT, /* output `index`, memory allocated for this run */
    CN__AT_ARENA,  /* the arena, at `offset` */
    CN__AT_DONOR,  /* the memory of leaf `index`, which an assignment takes over */
} cn__where;

typedef struct cn__buffer {
    cn__where where;
    int index;
    size_t offset, bytes;
    int first, last; /* the steps that first write and last read it */
} cn__buffer;

/* How a step reads or writes a value. */
typedef struct cn__operand {
    int buffer;               /* -1: the operand is missing, or it is a plain number */
    int number;               /* the leaf that is a plain number, or -1 */
    int view_node, view_leaf; /* the node or leaf whose layout has the offset, which changes from run to run; or -1 */
    cn_dtype dtype;
    cn_layout layout; /* its offset counts if view_node and view_leaf are both -1 */
} cn__operand;

/* One elementwise operator of a group. */
typedef struct cn__instr {
    const cn_op *op;
    const void *attrs;
    int node;      /* the node whose arguments it reads */
    uint8_t dtype; /* of the first promoted operand: it selects the loop */
    uint8_t out_dtype[CN_MAX_OUT];
    uint8_t n_in, n_out;
    int16_t in[CN_MAX_IN]; /* values it reads; a group has few */
    int16_t out;           /* its results are the values out, out + 1, .. */
} cn__instr;

typedef struct cn__store {
    int value;
    cn__operand to;
} cn__store;

/* One kernel, or one group. */
typedef struct cn__step {
    const cn_op *op; /* the kernel, or the reduction that ends a group; NULL: an elementwise group */
    bool group;
    int node; /* of op */
    const void *attrs;
    cn_layout space; /* group: the elements it iterates over, row-major */
    int n_loads, n_instrs, n_stores;
    int n_values;       /* group: loads, and results of instructions */
    cn__operand *loads; /* of a kernel: its operands */
    cn__instr *instrs;
    cn__store *stores; /* of a kernel: its results */
    int reduced;       /* of a reduction: the value that is reduced */
    bool contraction;
    bool checks;    /* the kernel may find an index out of range */
    bool epilogue;  /* a group that runs inside the kernel before it */
    bool joined;    /* an elementwise group that is merged with the step before it */
    int merged;     /* how many merged steps run as one kernel, of which this step is the first */
    bool updates;   /* the step writes memory that an assignment takes over */
    size_t scratch; /* offset in the arena */
    char name[56];
} cn__step;

typedef struct cn__plan {
    struct cn__plan *chain;         /* the next plan in the same slot of the cache */
    struct cn__plan *newer, *older; /* in the order of last use */
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
    int n_memories; /* outputs that need memory allocated for the run */
    size_t arena_bytes, scratch_bytes;
    int contractions, kernels; /* an epilogue and a merged step are no kernels of their own */
    void *prepared;            /* what the device made of the plan */
    int recordings;            /* that need the plan */
    bool removed;              /* from the cache, while recordings need it */
} cn__plan;

/* One run of a plan: all that changes from run to run. */
typedef struct cn__run {
    cn_ctx *ctx;
    cn__node *const *nodes;
    const cn__ref *leaves;
    void *const *outputs; /* the memory of each CN__AT_OUTPUT buffer, by its index */
    void *arena;
    struct {
        int step;
        int64_t index, size;
    } fault; /* which step failed; for an index out of range, the index and the size of its axis */
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
/* evaluate.c: evaluates the component of root, and calls seen before it runs the plan; false from seen is an error. */
typedef bool cn__plan_seen(void *user, cn__plan *p, cn__node *const *nodes, const cn__ref *leaves);
bool cn__plan_evaluate_seen(cn_ctx *ctx, cn__node *root, cn__plan_seen *seen, void *user);
/* evaluate.c: allocates memory for the outputs and runs the plan. The memory is in ctx->cache, by index, until it is
   released. False: an error is set; *failed is the node that could not be computed, or -1. */
bool cn__plan_run(cn_ctx *ctx, cn__plan *p, cn__node *const *nodes, const cn__ref *leaves, int *failed);
void cn__plan_release_memories(cn_ctx *ctx, const cn__plan *p);
/* cache.c: a recording needs the plan no longer. */
void cn__cache_unpin(cn_ctx *ctx, cn__plan *p);
/* show.c */
size_t cn__plan_show(const cn__plan *plan, char *out, size_t size); /* returns the length of the whole text */
void cn__plan_trace(cn_ctx *ctx, const cn__plan *plan);             /* to the logger, line by line */

#endif
