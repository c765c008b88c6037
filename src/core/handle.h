/* core/handle.h: a handle is what a user holds: a cn_tensor. It means one result of one node, is counted, and belongs
   to a scope. */
#ifndef CN_CORE_HANDLE_H
#define CN_CORE_HANDLE_H

#include "core/call.h"
#include "core/node.h"

/* A released handle keeps its context and its mark, and its memory is reused as late as possible (handle.c): a use
   after release is an error. One cache line: handles pass through the cache in the order of their release. */
struct cn_tensor {
    uint32_t mark;   /* CN__ALIVE or CN__RELEASED */
    int refs;        /* 1 for its scope, 1 for each keep */
    int kept;        /* how often it was kept */
    int kept_inside; /* how often of these by the library: a program cannot release them */
    cn_ctx *ctx;
    cn__ref ref;     /* the result it means */
    cn_tensor *grad; /* kept */
    cn_tensor *next_free;
    char *name; /* or NULL */
};
#define CN__ALIVE    0x43414952u
#define CN__RELEASED 0x44454144u

/* handle.c */
cn_tensor *cn__handle_new(cn_ctx *ctx, cn__ref ref); /* in the current scope; takes over one reference to the node */
void cn__handle_rebind(cn_tensor *t, cn__ref ref);   /* t means another result; adds a reference to its node */
void cn__handles_close(cn_ctx *ctx);
const char *cn__name_of(cn__ref ref); /* a name that a handle gave the result, or its operator's */
bool cn__set_name(cn_tensor *t, const char *name, size_t bytes); /* false: no memory */
cn_tensor *cn__keep(cn_tensor *t);                               /* as cn_keep, but only the library can release it */
cn_tensor *cn__take_keep(cn_tensor *t);                          /* a cn_keep becomes a cn__keep; NULL in, NULL out */
void cn__release(cn_tensor *t);                                  /* undoes cn__keep; NULL is fine */
void cn__hold(cn_tensor *t); /* the handle outlives its scope; unlike cn_keep, this does not store the value */
void cn__unhold(cn_tensor *t);

/* What a function that a program called is given: false for NULL and, with an error, for a released handle. */
bool cn__stale(const cn_tensor *t, const char *who); /* sets the error; false */
static inline bool cn__alive_in(const cn_tensor *t, const char *who)
{
    return t && (t->mark == CN__ALIVE || cn__stale(t, who));
}
#define cn__alive(t) cn__alive_in(t, __func__)
/* A call with a tensor, as its first lines: CN__CALL call = cn__call_tensor(t); if (!call.ctx) return false; */
static inline cn__call cn__enter_tensor(const cn_tensor *t, const char *who)
{
    cn__call call = cn__enter(t ? t->ctx : NULL, who);
    if (!call.ctx || cn__alive_in(t, who)) return call;
    cn__leave(&call);
    return (cn__call){ NULL, false };
}
#define cn__call_tensor(t) cn__enter_tensor(t, __func__)
/* For a further tensor of a call: an error also if it is NULL or of another context. That error stands in both. */
/* Ends the scope, but the n tensors outlive it, as with cn_scope_return. False if one is NULL, or after an error. */
bool cn__scope_return_n(cn_ctx *ctx, cn_scope scope, cn_tensor **t, int n);
bool cn__of_context(cn_ctx *ctx, const cn_tensor *t, const char *who, const char *what);

static inline cn__result *cn__result_of(const cn_tensor *t) { return &t->ref.node->out[t->ref.out]; }

/* tensor.c */
/* A tensor in two parts: the values go to the device now, and become a tensor later. Contiguous. cn__tensor_over takes
   the storage over, also when it fails; free_fn(user) is called as by cn_borrow. */
cn__storage *cn__upload_ahead(cn_ctx *ctx, cn_dtype dtype, cn_dims shape, const void *data);
cn_tensor *cn__tensor_over(cn_ctx *ctx, cn_dtype dtype, cn_dims shape, cn__storage *s, void (*free_fn)(void *user),
                           void *user);
cn_tensor *cn__borrow_layout(cn_ctx *ctx, cn_dtype dtype, const cn_layout *l, void *data, void (*free_fn)(void *user),
                             void *user);
/* Assigns all values or none. value[] is replaced by what was assigned. */
bool cn__assign_all(cn_ctx *ctx, cn_tensor *const *t, cn_tensor **value, int n);
/* The same for an optimizer, whose values are results that it has just made: the memory of parameters and states may be
   taken over, even if they were never assigned before, and what an operator writes over t is not copied. */
bool cn__update_all(cn_ctx *ctx, cn_tensor *const *t, cn_tensor **value, int n);
/* Assigns without a copy: value must be a pending result that was made for t and has no other reader. */
bool cn__assign_made(cn_tensor *t, cn_tensor *value);

/* leaf.c */
void cn__make_leaf(cn_tensor *t); /* gradients are accumulated in t */

/* apply.c */
cn_tensor *cn__number(cn_ctx *ctx, double value, cn_dtype dtype, bool weak);
/* Adds to an error what the named operands are: "; logits is f32 [3,4], w2 is f32 [5,6]". */
void cn__name_operands(cn_ctx *ctx, cn_tensor *const *in, int n_in);
cn_dtype cn__result_dtype(const cn_op *op, cn_tensor *const *in, int n_in); /* promotion among operands */

#endif
