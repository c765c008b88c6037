/* plan/build.h: what the passes of the planner share: the builder, and the draft of a plan that they work on. A builder
   lives as long as one build. Files of plan/ alone include it. */
#ifndef CN_PLAN_BUILD_H
#define CN_PLAN_BUILD_H

#include "plan/plan.h"

#define GROUP_INSTRS 48 /* a group has at most this many instructions, so that its tiles stay in the L1 cache */
#define GROUP_LOADS  24
#define CHEAP_CHAIN  8 /* to compute up to this many loops again costs less than to store a value and read it */
#define CHEAP_LOADS  3

/* Where an operand comes from: a leaf, or a result of a node of this plan, perhaps through a view. */
typedef struct source {
    int leaf;      /* number of the leaf, or -1 */
    int node, out; /* the node that computes the value, and which of its results; node is -1 for a leaf */
    int view;      /* the VIEW node through which the value is read, or -1 */
    bool number;   /* the leaf is a plain number */
    cn_dtype dtype;
    const cn_layout *layout;
} source;

/* A linked list. The elements of all lists of a kind lie in one vector of the builder; links are indices into it. */
typedef struct list {
    int first, last, n;
} list;

/* A step while groups still grow. Pass "steps" turns its lists into the arrays of a cn__step. */
typedef struct draft_step {
    cn__step step;
    list loads, instrs, stores;
    int n_results; /* of all instructions together */
    int64_t numel; /* elements that a group iterates over */
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
    int value_node; /* the node whose value is stored */
    int next;
} linked_store;

/* Where a kernel writes a result, if not row-major to memory of its own. */
typedef struct destination {
    int node;         /* the result lies inside the first result of this node; -1: in memory of its own */
    cn_layout layout; /* of the result there, with its offset */
} destination;

/* What the passes know of a node. */
typedef struct node_info {
    int rep;                   /* the node that computes the value: the node itself, or an equal one before it */
    int value;                 /* number of the node's first result among the results of all nodes */
    int uses;                  /* readers that could compute the value in their own group; assignments count once */
    uint8_t needed;            /* bit o: result o is wanted, or some node of the plan reads it */
    int chain, loads;          /* loops and loads it takes to compute the value again, if the value is not stored */
    int step;                  /* the step that computes the value */
    int in_group, group_value; /* the last group that computes the value, and the value's number in that group */
    bool stored;               /* the caller wants a result in memory */
    bool must_store;           /* a reader cannot compute the value in its own group */
    bool materialized;         /* the value is written to memory */
    bool in_chain;             /* mark of a walk over operands */
    bool assigned;             /* an assignment in place reads the value */
    bool updates;              /* the node is an assignment that takes over the memory of its donor */
    bool elided;               /* a copy or join whose operands are written to their destination: it needs no step */
} node_info;

typedef struct builder {
    cn_ctx *ctx;
    cn__node *const *nodes;
    int n;
    const cn__ref *leaves;
    int n_leaves;
    cn__plan *plan;
    cn__bump temporary;         /* freed when the plan is built */
    node_info *info;            /* by node */
    int *leaf_buffer;           /* by leaf: its buffer, or -1 */
    int *value_buffer;          /* by value: its buffer, or -1 */
    int *view_copy;             /* by VIEW node, then by leaf: the buffer of its row-major copy, or -1 */
    destination **destinations; /* by value; NULL: row-major in memory of its own */
    int last_check;             /* the latest step that may find an index out of range */
    int *storage_taken;         /* by storage number: the step that takes the memory over, or -1 */
    int n_storages;
    cn__vec steps, loads, instrs, stores; /* of draft_step, linked_load, linked_instr, linked_store */
    cn__vec buffers;                      /* of cn__buffer */
    cn__vec stack;                        /* of int: nodes of a walk */
    bool *read;                           /* by buffer: some step loads it */
    bool failed;                          /* out of memory */
} builder;

bool cn__run_passes(builder *b); /* passes.c lists the passes; false: no memory, an error is set */

/* The passes, each in the file of its name. They return false if there is no memory. */
bool cn__simplify(builder *b);
bool cn__choose_stored(builder *b);
bool cn__find_destinations(builder *b);
bool cn__fuse(builder *b);
bool cn__check_takeovers(builder *b);
bool cn__find_outputs(builder *b);
bool cn__finish_steps(builder *b);
bool cn__find_epilogues(builder *b);
bool cn__move_updates(builder *b);
bool cn__merge_steps(builder *b);
bool cn__name_steps(builder *b);
bool cn__place(builder *b);

/* What passes share. */
void cn__free_drafts(builder *b);
void *cn__plan_alloc(builder *b, size_t bytes); /* memory that lives as long as the plan; NULL: b->failed is set */
source cn__resolve(const builder *b, cn__ref in);
/* Whether the operand is the whole value, read in the order in which the value is computed. */
bool cn__flat(const builder *b, source s);
/* The layout through which s reads a value that has a destination. False: no layout describes it. */
bool cn__seen_at_destination(const builder *b, source s, cn_layout *seen);
static inline bool cn__elementwise(const cn_op *op) { return op->kind == CN_MAP || op->kind == CN_RANDOM; }

#endif
