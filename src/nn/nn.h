/* nn/nn.h: what makers of modules share. */
#ifndef CN_NN_NN_H
#define CN_NN_NN_H

#include "cairn/nn.h"
#include "core/object.h"

/* Uniform in [-bound, bound), of the context's default dtype: how PyTorch fills most layers. */
cn_tensor *cn__uniform(cn_ctx *ctx, cn_dims shape, double bound);

#endif
