/* cairn/average.h: averages of weights over training: exponential (EMA) or plain (SWA). PyTorch's AveragedModel.

       cn_ema *ema = cn_ema_of(model, &(cn_ema_desc){ .decay = 0.999 });
       cn_step(opt);
       cn_ema_update(ema);                       after every step
       cn_ema_apply(ema);                        the model has the averages
       evaluate(model);
       cn_ema_restore(ema);                      and its own weights again

   Formulas   The first update copies. Then average + (1 - decay)(weight - average), or, plain, by 1 / (updates + 1).
              Averages of halves are kept in f32.
   Buffers    Running statistics are copied, or averaged too if asked for; whole numbers are always copied.
   Ownership  It belongs to its context until cn_ema_free, and keeps what it averages.
   Errors     An update computes what it assigns; it, apply, restore and load change everything or nothing. */
#ifndef CAIRN_AVERAGE_H
#define CAIRN_AVERAGE_H

#include "dict.h"
#include "grad.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_ema cn_ema;
typedef struct cn_module cn_module;

typedef struct cn_ema_desc {
    double decay;             /* 0.999; at most 1 */
    bool plain;               /* every update counts the same: SWA */
    cn_params buffers;        /* cn_ema_new alone: cn_ema_of knows the model's */
    bool average_buffers;     /* PyTorch's use_buffers */
} cn_ema_desc;
CN_API cn_ema *cn_ema_new(cn_ctx *ctx, cn_params params, const cn_ema_desc *desc);
CN_API cn_ema *cn_ema_of(cn_module *m, const cn_ema_desc *desc);
CN_API void cn_ema_free(cn_ema *e);                    /* NULL is fine */

CN_API bool cn_ema_update(cn_ema *e);
CN_API bool cn_ema_apply(cn_ema *e);                   /* gives the weights the averages */
CN_API bool cn_ema_restore(cn_ema *e);                 /* and what they were before */
CN_API int64_t cn_ema_updates(const cn_ema *e);        /* so far */
CN_API cn_params cn_ema_averages(const cn_ema *e);     /* of parameters, then buffers */

/* Tensors prefix + "averages/0", texts prefix + "n_averaged". Not while applied. */
CN_API bool cn_ema_save(cn_ema *e, cn_dict *dict, const char *prefix);
CN_API bool cn_ema_load(cn_ema *e, const cn_dict *dict, const char *prefix);

#ifdef __cplusplus
}
#endif
#endif
