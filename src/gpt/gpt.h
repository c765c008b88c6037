/* gpt/gpt.h: one step of decoding, which the model offers its sampler. */
#ifndef CN_GPT_GPT_H
#define CN_GPT_GPT_H

#include "cairn/cairn.h"
#include "core/errors.h"
#include "core/object.h"

/* Keys and values of past tokens in one layer, each (1, length, heads, width of a head). */
typedef struct cn__gpt_cache {
    cn_tensor *keys, *values;
} cn__gpt_cache;

/* Logits (1,vocab) of the token that follows `tokens` (1,T). `used` tokens came before and are in the caches; this call
   adds keys and values of the T new ones. cache: one for each layer. */
cn_tensor *cn__gpt_step(cn_module *gpt, cn_tensor *tokens, cn__gpt_cache *cache, int64_t used);

#endif
