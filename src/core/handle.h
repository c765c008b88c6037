/* core/handle.h: a handle is what a user holds: a cn_tensor. It is counted, belongs to a scope, and means one result of
   one node. */
#ifndef CN_CORE_HANDLE_H
#define CN_CORE_HANDLE_H

#include "core/node.h"

struct cn_tensor {
    uint32_t magic;
    int refs; /* scope and keeps */
    int kept;
    cn_ctx *ctx;
    cn__ref ref;
    cn_tensor *grad; /* owned */
    cn_tensor *next_free;
    cn_tensor *prev_all, *next_all; /* of the context */
    char name[32];
};
#define CN__ALIVE 0x43414952u
#define CN__DEAD  0x44454144u

/* handle.c */
cn_tensor *cn__handle_new(cn_ctx *ctx, cn__ref ref); /* in the current scope; takes over one reference to the node */
void cn__handle_rebind(cn_tensor *t, cn__ref ref);   /* adds its own reference to the new node */
bool cn__alive(const cn_tensor *t);                  /* not NULL; in debug builds: not released, else an error */
void cn__handles_close(cn_ctx *ctx);
void cn__hold(cn_tensor *t); /* keeps the handle beyond its scope; this is no wish to store the value */
void cn__unhold(cn_tensor *t);

static inline cn__result *cn__result_of(const cn_tensor *t) { return &t->ref.node->out[t->ref.out]; }

/* tensor.c */
cn_tensor *cn__borrow_layout(cn_ctx *ctx, cn_dtype dtype, const cn_layout *l, void *data, void (*free_fn)(void *user),
                             void *user);
/* Assigns all of them or none; value[] is replaced by what was assigned. */
bool cn__assign_all(cn_ctx *ctx, cn_tensor *const *t, cn_tensor **value, int n);
/* Without a copy: value is a pending result that was made for t and that nobody else has. */
bool cn__assign_made(cn_tensor *t, cn_tensor *value);

/* leaf.c */
void cn__make_leaf(cn_tensor *t); /* gradients end in t */

/* apply.c */
cn_tensor *cn__number(cn_ctx *ctx, double value, cn_dtype dtype, bool weak);
cn_dtype cn__result_dtype(const cn_op *op, cn_tensor *const *in, int n_in); /* promotion among operands */

#endif
