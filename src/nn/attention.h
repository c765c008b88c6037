/* nn/attention.h: first values that attention and transformers share. */
#ifndef CN_NN_ATTENTION_H
#define CN_NN_ATTENTION_H

#include "nn/nn.h"
#include "ops/shared.h"

cn_tensor *cn__xavier(cn_ctx *ctx, int64_t out, int64_t in); /* (out,in), uniform within √(6 / (in + out)) */
bool cn__set_param(cn_tensor *param, cn_tensor *value);      /* unrecorded; NULL param or value: false */

#endif
