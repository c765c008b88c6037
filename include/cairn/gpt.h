/* cairn/gpt.h: a GPT of GPT-2's shape, and sampling from it.

       cn_module *gpt = cn_nn_gpt(cn, &(cn_gpt_desc){ .vocab = 256, .context = 128, .layers = 4, .heads = 4, .width = 128 });
       cn_tensor *logits = cn_forward(gpt, tokens);                      (B,T) whole numbers -> (B,T,vocab)

       cn_sampler *s = cn_sampler_new(gpt, &(cn_sampler_desc){ .temperature = 0.8, .top_k = 40 });
       cn_sampler_feed(s, prompt, n);
       for (int i = 0; i < 200; i++) putchar((int)cn_sampler_next(s));

   Names      Parameters have the names and shapes of Hugging Face's GPT-2 ("h.0.attn.c_attn.weight" is (in, out)), so its
              files load: cn_gpt_from(cn, cn_load(cn, "gpt2/model.safetensors"), NULL). The output shares the embedding's weight.
   Sampling   Keys and values of past tokens are kept, in caches of a few fixed lengths; the position is a number, so every token
              after the first runs a plan that is there already. A full context goes on with its last half.
              The same seed gives the same text. Sampling records no gradients and does as evaluation does: no dropout.
   Ownership  Objects of the context, or until freed. A sampler refers to its model: free it first. */
#ifndef CAIRN_GPT_H
#define CAIRN_GPT_H

#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_gpt_desc {
    int64_t vocab, context, layers, heads, width;
    double dropout; /* of embeddings, attention and residuals, while training */
    bool untied;    /* an output weight of its own: "lm_head.weight" */
} cn_gpt_desc;
CN_API cn_module *cn_nn_gpt(cn_ctx *ctx, const cn_gpt_desc *desc);
CN_API const cn_gpt_desc *cn_gpt_config(const cn_module *gpt); /* NULL: not a GPT */

/* Mean cross-entropy of the next tokens: tokens and targets (B,T). */
CN_API cn_tensor *cn_gpt_loss(cn_module *gpt, cn_tensor *tokens, cn_tensor *targets);

/* A model of the shape that a file has. What only the file's author knows comes from its texts (cn_gpt_save writes them) or from
   desc: heads (default: width / 64) and dropout. Names may begin with "transformer.". */
CN_API cn_module *cn_gpt_from(cn_ctx *ctx, const cn_dict *file, const cn_gpt_desc *desc);
CN_API bool cn_gpt_save(cn_module *gpt, cn_dict *d); /* parameters and those texts */

/* ---- sampling ---- */
typedef struct cn_sampler cn_sampler;
typedef struct cn_sampler_desc {
    double temperature; /* 0: 1; less is more certain */
    bool greedy;        /* always the most likely token */
    int64_t top_k;      /* among the k most likely only; 0: all */
    double top_p;       /* among the most likely that together have this probability; 0: all */
    uint64_t seed;      /* 0: numbers of the context's own */
} cn_sampler_desc;
CN_API cn_sampler *cn_sampler_new(cn_module *gpt, const cn_sampler_desc *desc);
CN_API void cn_sampler_free(cn_sampler *s);
CN_API bool cn_sampler_feed(cn_sampler *s, const int32_t *tokens, int64_t n); /* a prompt, or more of one */
CN_API int64_t cn_sampler_next(cn_sampler *s);              /* draws a token and takes it in; -1 on error. Feed something first */
CN_API const float *cn_sampler_logits(cn_sampler *s);       /* of the next token, (vocab): after a feed; NULL before */
CN_API int64_t cn_sampler_used(const cn_sampler *s);        /* tokens looked back at now */
CN_API void cn_sampler_reset(cn_sampler *s);                /* forgets them */

#ifdef __cplusplus
}
#endif
#endif
