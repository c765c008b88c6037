/* build.h: what the parts of plan building share. One builder lives as long as one build. */
#ifndef CN_PLAN_BUILD_H
#define CN_PLAN_BUILD_H

#include "plan/plan.h"

#define GROUP_INSTRS 48 /* a group's program stays this short: its tiles stay in L1 */
#define GROUP_LOADS  24
#define CHEAP_CHAIN  8 /* computing this much again costs less than storing and reading */
#define CHEAP_LOADS  3

/* Where an operand comes from: a leaf, or the result of a node of this plan, perhaps through a view. */
typedef struct source {
    int leaf;      /* or -1 */
    int node, out; /* or -1 */
    int view;      /* node whose layout it is seen through, or -1 */
    bool number;
    cn_dtype dtype;
    const cn_layout *layout;
} source;

typedef struct list {
    int first, last, n;
} list;

typedef struct draft_step {
    cn__step step;
    list loads, instrs, stores;
    int n_results; /* of instrs */
    int64_t numel;
} draft_step;

typedef struct linked_load {
    cn__operand operand;
    int next;
} linked_load;
typedef struct linked_instr {
    cn__instr instr;
    int next;
} linked_instr;
typedef struct linked_store {
    cn__store store;
    int value_node; /* node whose value is stored */
    int next;
} linked_store;

/* Where a kernel writes a result, if not row-major to memory of its own. */
typedef struct destination {
    int node;         /* whose (first) result's memory, or -1: its own */
    cn_layout layout; /* of the result there; the offset counts */
} destination;

typedef struct node_info {
    int rep;                   /* the node that computes its value: itself, or an equal one before it */
    int value;                 /* number of its first result among all results */
    int uses;                  /* operands that could take it without storing; assignments in place count once */
    uint8_t needed;            /* bit o: result o is wanted, or some node of the plan reads it */
    int chain, loads;          /* length of what must be computed again if it is not stored */
    int step;                  /* that computes it */
    int in_group, group_value; /* the last group that has it as a value, and which */
    bool stored, materialized, must_store, in_chain;
    bool assigned; /* an assignment in place reads it */
    bool updates;  /* assignment that takes over its donor's memory */
    bool gathered; /* what it copies or joins is written to its place at once: it is no step */
} node_info;

typedef struct builder {
    cn_ctx *ctx;
    cn__node *const *nodes;
    int n;
    const cn__ref *leaves;
    int n_leaves;
    cn__plan *plan;
    cn__bump temporary;
    node_info *info;
    int *leaf_buffer, *value_buffer, *view_copy;
    destination **destinations;       /* by value, or NULL */
    int last_check;     /* the latest step that may find an index out of range */
    int *storage_taken; /* by storage number: the step that takes it over, or -1 */
    int n_storages;
    cn__vec steps, loads, instrs, stores, buffers, stack;
    bool *read;  /* by buffer: some step loads it */
    bool failed; /* out of memory */
} builder;

bool cn__run_passes(builder *b); /* passes.c lists them; false: no memory, an error is set */

/* The passes, each in the file of its name. Returns false if there is no memory. */
bool cn__simplify(builder *b);
bool cn__choose_stored(builder *b);
bool cn__find_destinations(builder *b);
bool cn__fuse(builder *b);
bool cn__check_takeovers(builder *b);
bool cn__find_outputs(builder *b);
bool cn__finish_steps(builder *b);
bool cn__find_epilogues(builder *b);
bool cn__merge_steps(builder *b);
bool cn__name_steps(builder *b);
bool cn__place(builder *b);

/* What passes share. */
void *cn__plan_alloc(builder *b, size_t bytes); /* memory that lives as long as the plan; NULL: b->failed */
source cn__resolve(const builder *b, cn__ref in);
bool cn__flat(const builder *b, source s);                          /* seen in the order in which it is computed */
/* The layout of s, whose value has a destination, as it lies there. */
bool cn__seen_at_destination(const builder *b, source s, cn_layout *seen);
static inline bool cn__elementwise(const cn_op *op) { return op->kind == CN_MAP || op->kind == CN_RANDOM; }

#endif
