/* loss.h: what the losses share: how they begin and end. */
#ifndef CN_NN_LOSS_H
#define CN_NN_LOSS_H

#include "cairn/loss.h"
#include "ops/shared.h"

/* A loss under way. Tensors made between begin and end are gone after it, but for the result. */
typedef struct cn__loss {
    const char *who;
    cn_ctx *ctx;
    cn_reduction reduction;
    cn_scope scope;
} cn__loss;

/* input is alive and of a floating type, the reduction one of ops.h. False: an error stands, and nothing was begun. */
bool cn__loss_begin(cn__loss *l, const char *who, cn_tensor *input, cn_reduction reduction);
/* The reduced loss from the loss of every element (NULL: an error stands), or NULL. */
cn_tensor *cn__loss_end(cn__loss *l, cn_tensor *each);

/* Refusals, in words. y: the shape of x; w: broadcasts to the shape of x, or NULL. */
bool cn__loss_alike(cn__loss *l, cn_tensor *x, cn_tensor *y, const char *name);
bool cn__loss_spreads(cn__loss *l, cn_tensor *x, cn_tensor *w, const char *name);

#endif
