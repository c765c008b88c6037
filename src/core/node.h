/* core/node.h: a node is one application of an operator: operands, attributes, arguments, results. Its value never
   changes.

   A node is pending (its value is still to be computed) or evaluated: then each result has a storage or was let go. A
   plain number is a node without memory. A failed node could not be computed. */
#ifndef CN_CORE_NODE_H
#define CN_CORE_NODE_H

#include "cairn/grad.h"
#include "cairn/op.h"
#include "core/storage.h"

typedef struct cn__node cn__node;

/* One result of a node. */
typedef struct cn__ref {
    cn__node *node;
    int out;
} cn__ref;

typedef struct cn__result {
    const cn_meta *meta; /* one for all results that are alike: meta.c */
    int64_t numel;
    cn__storage *storage; /* NULL: pending or let go */
    cn__ref base;         /* of a pending VIEW: the value that it is a view of; otherwise the result itself */
    int handles, kept;    /* handles that mean the result, and how many of them are kept */
    int64_t consumers;    /* operands of nodes that read the result */
    uint64_t leaf_stamp;  /* the evaluation in which the result is leaf number `leaf` */
    uint32_t leaf;
} cn__result;

typedef enum cn__state { CN__PENDING, CN__EVALUATED, CN__NUMBER, CN__FAILED } cn__state;

typedef struct cn__hook {
    cn_hook fn;
    void *user;
    void (*ended)(void *user); /* or NULL */
    struct cn__hook *next;
} cn__hook;

/* A graph may have millions of nodes: fields are packed. Numbers of evaluations and epochs are compared for equality
   long after they were written, so they have 64 bits and never come round again. */
struct cn__node {
    const cn_op *op;
    cn_ctx *ctx;
    cn__node *prev, *next; /* in the list of pending nodes */
    uint64_t seq;          /* counts nodes in the order in which they are made */
    int64_t refs;          /* of handles, of nodes that read it, of assignments that replace it */
    uint8_t state;         /* cn__state */
    uint8_t want;          /* bit i: the present evaluation stores result i */
    uint8_t n_out, n_args;
    bool needs_grad : 1; /* a gradient flows to the node or through it */
    bool grad_leaf : 1;  /* a gradient ends here: it is accumulated in owner */
    bool spent : 1;      /* a backward has gone through the node */
    bool weak : 1;       /* a plain number that does not decide a dtype */
    bool donates : 1;    /* the present evaluation may take over the memory of donor */
    bool assignable : 1; /* the value of a handle that is assigned to: its memory may be taken over */
    bool replaced : 1;   /* its handle was assigned another value */
    int n_in;
    uint32_t variant;   /* nodes of different variants are never found equal: cn_checkpoint computes twice */
    uint32_t component; /* of the pending graph, valid in this epoch of the context: */
    uint64_t component_epoch;
    uint64_t stamp; /* the evaluation in which the node has number `index` */
    uint32_t index;
    uint32_t walk_index; /* its number in walk_of */
    cn__ref *in;         /* NULL after cn__node_cut: neither the value nor a gradient will be computed again */
    cn__result *out;
    void *attrs;
    const cn_arg *args;    /* CN_MAX_ARGS of them, and 1 of a plain number */
    cn__storage *takeover; /* assignment: the storage that will own the memory of donor; made before a run */
    cn__node *donor;       /* assignment: the replaced value, whose memory may be taken over */
    cn_tensor *owner;      /* of an assigned value or gradient leaf: the handle that has it */
    cn__hook *hooks;
    const void *walk_of; /* the backward walk that has reached the node; walks nest */
    cn_tensor **walk;    /* in that walk: the gradient so far of each result, held */
};

#define CN__COMPONENTS 65536 /* more numbers of components than this are not wasted on nodes that are gone */

extern const cn_op cn__leaf;

/* A node whose results have no meta yet. It copies the arguments; n_args 0: all are zero. */
cn__node *cn__node_new(cn_ctx *ctx, const cn_op *op, int n_in, const cn_arg *args, int n_args);
bool cn__result_describe(cn__node *n, int out, const cn_meta *meta); /* sets meta and numel; false: no memory */
/* Takes over a reference to s. */
cn__node *cn__leaf_new(cn_ctx *ctx, cn_dtype dtype, const cn_layout *l, cn__storage *s);
void cn__node_release(cn__node *n);
void cn__node_end_hooks(cn__node *n); /* no backward will reach the node any more */
void cn__node_cut(cn__node *n); /* releases the operands if they will not be needed again */
void cn__pending_add(cn__node *n);
void cn__pending_remove(cn__node *n);
bool cn__revive(cn__ref r);            /* makes a value that was let go pending again, and all it is computed from */
bool cn__component_join(cn__node *n);  /* call it when the operands are set; false: no memory */
void cn__make_assignable(cn__node *n); /* from now on, all nodes that read its memory form one component */
uint32_t cn__component_find(cn_ctx *ctx, uint32_t c);

static inline cn__result *cn__res(cn__ref r) { return &r.node->out[r.out]; }
static inline bool cn__stored(const cn__result *r) { return r->storage && !r->storage->lost; }

#endif
