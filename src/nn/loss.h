/* nn/loss.h: functions that all losses share: how a loss begins, checks and ends. */
#ifndef CN_NN_LOSS_H
#define CN_NN_LOSS_H

#include "cairn/loss.h"
#include "core/call.h"
#include "ops/shared.h"

/* One call of a loss. cn__loss_end frees the tensors made since cn__loss_begin, except the result. */
typedef struct cn__loss {
    const char *who;
    cn_ctx *ctx;
    cn_reduction reduction;
    cn_scope scope;
    cn__call call;
} cn__loss;

/* Begins the call, and checks that input is alive and of a floating type, and that the reduction exists. False: an
   error, in the context of `other` if input is NULL; no end follows. */
bool cn__loss_begin(cn__loss *l, const char *who, cn_tensor *input, const cn_tensor *other, cn_reduction reduction);
/* Reduces the loss of every element. each NULL, after an error: NULL. */
cn_tensor *cn__loss_end(cn__loss *l, cn_tensor *each);

/* Checks, with an error if they fail: y has the shape of x; w broadcasts to the shape of x, or is NULL. */
bool cn__loss_alike(cn__loss *l, cn_tensor *x, cn_tensor *y, const char *name);
bool cn__loss_spreads(cn__loss *l, cn_tensor *x, cn_tensor *w, const char *name);

/* max(v, eps) for v ≥ 0, with the gradient of v everywhere */
cn_tensor *cn__loss_raised(cn_tensor *v, double eps);

#endif
