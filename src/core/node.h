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
    cn_meta meta;
    int64_t numel;
    cn__storage *storage;      /* NULL: pending or let go */
    cn__ref base;              /* of a pending VIEW: the value that it is a view of; otherwise the result itself */
    int handles, kept;         /* handles that mean the result, and how many of them are kept */
    int consumers;             /* operands of nodes that read the result */
    uint32_t leaf_stamp, leaf; /* its number as a leaf in evaluation number leaf_stamp */
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
    uint64_t seq;          /* counts nodes in the order in which they are made */
    int refs;              /* of handles, of nodes that read it, of assignments that replace it */
    uint8_t state;         /* cn__state */
    bool needs_grad;       /* a gradient flows to the node or through it */
    bool grad_leaf;        /* a gradient ends here: it is accumulated in owner */
    bool spent;            /* a backward has gone through the node */
    bool weak;             /* a plain number that does not decide a dtype */
    bool donates;          /* the present evaluation may take over the memory of donor */
    uint8_t want;          /* bit i: the present evaluation stores result i */
    bool assignable;       /* the value of a handle that is assigned to: its memory may be taken over */
    uint16_t variant;      /* nodes of different variants are never found equal: cn_checkpoint computes twice */
    int n_in, n_out;
    uint32_t component, component_epoch; /* of the pending graph, valid in this epoch of the context */
    uint32_t stamp, index;               /* its number in evaluation number `stamp` */
    cn__ref *in; /* NULL after cn__node_cut: neither the value nor a gradient will be computed again */
    cn__result *out;
    void *attrs;
    size_t block_bytes; /* one block of memory holds the node, its operands, results and attributes */
    cn_arg args[CN_MAX_ARGS];
    cn__storage *takeover; /* assignment: the storage that will own the memory of donor; made before a run */
    cn__node *donor;       /* assignment: the replaced value, whose memory may be taken over */
    cn_tensor *owner;      /* of an assigned value or gradient leaf: the handle that has it */
    cn__hook *hooks;
    bool replaced;       /* its handle was assigned another value */
    const void *walk_of; /* the backward walk that has reached the node; walks nest */
    cn_tensor **walk;    /* in that walk: the gradient so far of each result, held */
    uint32_t walk_index;
};

extern const cn_op cn__leaf;

cn__node *cn__node_new(cn_ctx *ctx, const cn_op *op, int n_in, int n_out, size_t attr_size);
/* Takes over a reference to s. */
cn__node *cn__leaf_new(cn_ctx *ctx, cn_dtype dtype, const cn_layout *l, cn__storage *s);
void cn__node_release(cn__node *n);
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
