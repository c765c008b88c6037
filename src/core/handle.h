/* core/handle.h: a handle is what a user holds: a cn_tensor. It means one result of one node, is counted, and belongs
   to a scope. */
#ifndef CN_CORE_HANDLE_H
#define CN_CORE_HANDLE_H

#include "core/node.h"

struct cn_tensor {
    uint32_t magic; /* CN__ALIVE or CN__DEAD */
    int refs;       /* 1 for its scope, 1 for each cn_keep */
    int kept;       /* how often cn_keep was called */
    cn_ctx *ctx;
    cn__ref ref;     /* the result it means */
    cn_tensor *grad; /* kept */
    cn_tensor *next_free;
    cn_tensor *prev_all, *next_all; /* in the context's list of handles */
    char name[32];
};
#define CN__ALIVE 0x43414952u
#define CN__DEAD  0x44454144u

/* handle.c */
cn_tensor *cn__handle_new(cn_ctx *ctx, cn__ref ref); /* in the current scope; takes over one reference to the node */
void cn__handle_rebind(cn_tensor *t, cn__ref ref);   /* t means another result; adds a reference to its node */
bool cn__alive(const cn_tensor *t); /* false: t is NULL; in debug builds also: t was released, an error is set */
void cn__handles_close(cn_ctx *ctx);
void cn__hold(cn_tensor *t); /* the handle outlives its scope; unlike cn_keep, this does not store the value */
void cn__unhold(cn_tensor *t);

static inline cn__result *cn__result_of(const cn_tensor *t) { return &t->ref.node->out[t->ref.out]; }

/* tensor.c */
cn_tensor *cn__borrow_layout(cn_ctx *ctx, cn_dtype dtype, const cn_layout *l, void *data, void (*free_fn)(void *user),
                             void *user);
/* Assigns all values or none. value[] is replaced by what was assigned. */
bool cn__assign_all(cn_ctx *ctx, cn_tensor *const *t, cn_tensor **value, int n);
/* Assigns without a copy: value must be a pending result that was made for t and has no other reader. */
bool cn__assign_made(cn_tensor *t, cn_tensor *value);

/* leaf.c */
void cn__make_leaf(cn_tensor *t); /* gradients are accumulated in t */

/* apply.c */
cn_tensor *cn__number(cn_ctx *ctx, double value, cn_dtype dtype, bool weak);
cn_dtype cn__result_dtype(const cn_op *op, cn_tensor *const *in, int n_in); /* promotion among operands */

#endif
