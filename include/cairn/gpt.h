/* cairn/gpt.h: a GPT of GPT-2's shape, and sampling from it.

       cn_gpt_desc desc = { .vocab = 256, .context = 128, .layers = 4, .heads = 4, .width = 128 };
       cn_module *gpt = cn_nn_gpt(cn, &desc);
       cn_tensor *logits = cn_forward(gpt, tokens);                      (B,T) whole numbers -> (B,T,vocab)

       cn_sampler *s = cn_sampler_new(gpt, &(cn_sampler_desc){ .temperature = 0.8, .top_k = 40 });
       cn_sampler_feed(s, prompt, n);
       for (int i = 0; i < 200; i++) putchar((int)cn_sampler_next(s));

   Names      Parameters have the names and shapes of Hugging Face's GPT-2 ("h.0.attn.c_attn.weight" is (in, out)), so
              its files load: cn_gpt_from(cn, cn_load(cn, "gpt2/model.safetensors"), NULL). The output layer shares the
              embedding's weight.
   Sampling   A sampler keeps the keys and values of past tokens, in caches of a few fixed lengths. The position is an
              argument of the plan, so all tokens of a cache length share one plan. When the context is full, sampling
              continues with its last half. The same seed gives the same text. Sampling records no gradients and has no
              dropout.
   Ownership  Models and samplers belong to the context until they are freed. Without its model a sampler is an error.
   Errors     NULL, false or -1, and an error in the context that says what is not allowed. */
#ifndef CAIRN_GPT_H
#define CAIRN_GPT_H

#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_gpt_desc {
    int64_t vocab, context, layers, heads, width;
    double dropout; /* of embeddings, attention and residuals, while training */
    bool untied;    /* the output layer has its own weight, "lm_head.weight" */
} cn_gpt_desc;
CN_API cn_module *cn_nn_gpt(cn_ctx *ctx, const cn_gpt_desc *desc);
CN_API const cn_gpt_desc *cn_gpt_config(const cn_module *gpt); /* NULL: the module is not a GPT */

/* The mean cross-entropy of the next tokens; tokens and targets are (B,T). */
CN_API cn_tensor *cn_gpt_loss(cn_module *gpt, cn_tensor *tokens, cn_tensor *targets);

/* Makes a model of a file's shape and loads its parameters. The number of heads and the dropout are not in the shapes:
   they come from desc, else from the file's texts, which cn_gpt_save writes, else they are width / 64 and 0. Names in
   the file may begin with "transformer.". */
CN_API cn_module *cn_gpt_from(cn_ctx *ctx, const cn_dict *file, const cn_gpt_desc *desc);
CN_API bool cn_gpt_save(cn_module *gpt, cn_dict *d); /* saves the parameters and these texts */

/* ---- sampling ---- */
typedef struct cn_sampler cn_sampler;
typedef struct cn_sampler_desc {
    double temperature; /* 0: 1; a lower one prefers likely tokens more */
    bool greedy;        /* always the most likely token */
    int64_t top_k;      /* draw among the k most likely tokens; 0: among all */
    double top_p;       /* draw among the most likely tokens that together have this probability; 0: among all */
    uint64_t seed;      /* 0: a stream of the context's seed */
} cn_sampler_desc;
CN_API cn_sampler *cn_sampler_new(cn_module *gpt, const cn_sampler_desc *desc);
CN_API void cn_sampler_free(cn_sampler *s);
CN_API bool cn_sampler_feed(cn_sampler *s, const int32_t *tokens, int64_t n); /* a prompt, or more tokens of one */
CN_API int64_t cn_sampler_next(cn_sampler *s);        /* draws a token and feeds it; needs a feed first; -1: an error */
CN_API const float *cn_sampler_logits(cn_sampler *s); /* (vocab), of the next token; NULL before the first feed */
CN_API int64_t cn_sampler_used(const cn_sampler *s);  /* tokens in the context now */
CN_API void cn_sampler_reset(cn_sampler *s);          /* empties the context */

#ifdef __cplusplus
}
#endif
#endif
