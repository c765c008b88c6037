/* core/node.h: a node is one application of an operator: its operands, attributes and results. It denotes its value
   for ever.

   A node is pending (its value is still to be computed), or evaluated: then each result either has a storage or was
   let go. The context lists its pending nodes in an order in which they can be computed. */
#ifndef CN_CORE_NODE_H
#define CN_CORE_NODE_H

#include "cairn/grad.h"
#include "cairn/op.h"
#include "core/storage.h"

typedef struct cn__node cn__node;

typedef struct cn__ref {
    cn__node *node;
    int out;
} cn__ref;

typedef struct cn__result {
    cn_meta meta;
    int64_t numel;
    cn__storage *storage;      /* NULL: pending or let go */
    cn__ref base;              /* VIEW: the computed value it looks at; otherwise itself */
    int handles, kept;         /* handles that mean it; kept ones among them */
    int consumers;             /* nodes that take it as operand */
    uint32_t leaf_stamp, leaf; /* its number as a leaf in the present evaluation */
} cn__result;

typedef enum cn__state { CN__PENDING, CN__EVALUATED, CN__NUMBER, CN__FAILED } cn__state;

typedef struct cn__hook {
    cn_hook fn;
    void *user;
    struct cn__hook *next;
} cn__hook;

struct cn__node {
    const cn_op *op;
    cn_ctx *ctx;
    cn__device *device;
    cn__node *prev, *next; /* in the list of pending nodes */
    uint64_t seq;          /* order of making */
    int refs;              /* handles, consumers, donations */
    uint8_t state;         /* cn__state */
    bool needs_grad;       /* a gradient can flow to or through it */
    bool grad_leaf;        /* a gradient ends here, in owner */
    bool spent;            /* a backward has walked it */
    bool weak;             /* a plain number: does not decide a dtype */
    bool donates;          /* the present evaluation may take the memory of donor */
    uint8_t want;          /* bit i: the present evaluation stores result i */
    bool assignable;       /* the value of a handle that is assigned to: its memory may be taken over */
    uint16_t variant;      /* recomputation: never shared with the same node of another variant */
    int n_in, n_out;
    uint32_t component, component_epoch; /* its connected part of the pending graph */
    uint32_t stamp, index;     /* its number in the present evaluation */
    cn__ref *in;               /* NULL once cut: the value is known, and no gradient is wanted */
    cn__result *out;
    void *attrs;
    size_t block_bytes; /* of the one block of memory that holds the node with its operands, results and attributes */
    cn_arg args[CN_MAX_ARGS];
    cn__storage *takeover; /* assignment: the storage that will own the memory of donor; made before a run */
    cn__node *donor;   /* assignment: the value assigned over, whose memory may be taken */
    cn_tensor *owner;  /* the handle whose value this is, for assigned values and gradient leaves */
    cn__hook *hooks;
    bool replaced;       /* its handle was assigned to */
    const void *walk_of; /* the backward walk that has reached it; walks nest */
    cn_tensor **walk;    /* there: the gradient gathered for each result, held */
    uint32_t walk_index;
};

extern const cn_op cn__leaf;

cn__node *cn__node_new(cn_ctx *ctx, const cn_op *op, int n_in, int n_out, size_t attr_size);
cn__node *cn__leaf_new(cn_ctx *ctx, cn_dtype dtype, const cn_layout *l, cn__storage *s); /* takes the reference to s */
void cn__node_release(cn__node *n);
void cn__node_cut(cn__node *n); /* gives up operands that nobody will ask for again */
void cn__pending_add(cn__node *n);
void cn__pending_remove(cn__node *n);
bool cn__revive(cn__ref r);            /* makes a let-go value pending again, with all it needs */
bool cn__component_join(cn__node *n);       /* after its operands are set */
void cn__make_assignable(cn__node *n); /* what reads its memory joins what will take the memory over */
uint32_t cn__component_find(cn_ctx *ctx, uint32_t c);

static inline cn__result *cn__res(cn__ref r) { return &r.node->out[r.out]; }
static inline bool cn__stored(const cn__result *r) { return r->storage && !r->storage->lost; }

#endif
