/* gpt/gpt.h: what the model and its sampler share. */
#ifndef CN_GPT_GPT_H
#define CN_GPT_GPT_H

#include "cairn/cairn.h"
#include "core/errors.h"
#include "core/object.h"

/* Keys and values of past tokens in one layer, each (1, length, heads, width of a head). */
typedef struct cn__gpt_cache {
    cn_tensor *keys, *values;
} cn__gpt_cache;

/* Logits (1, vocab) of the token after tokens (1,T), of which `used` came before; the caches take the new ones in.
   cache: one a layer. */
cn_tensor *cn__gpt_step(cn_module *gpt, cn_tensor *tokens, cn__gpt_cache *cache, int64_t used);

#endif
