/* cairn/average.h: averages of weights over training: exponential (EMA) or plain (SWA). PyTorch's AveragedModel.

       cn_ema *ema = cn_ema_of(model, &(cn_ema_desc){ .decay = 0.999 });
       cn_step(opt);
       cn_ema_update(ema);                       after every step
       cn_ema_apply(ema);                        the model's weights are the averages
       evaluate(model);
       cn_ema_restore(ema);                      the model's weights are its own again

   Formulas   The first update copies the weights. A later one computes average + share (weight - average), with
              share = 1 - decay, or 1 / (updates + 1) if plain. Averages of halves are f32.
   Buffers    Running statistics are copied, or with average_buffers averaged. Whole numbers are always copied.
   Ownership  An average belongs to its context until cn_ema_free. It keeps the tensors that it averages.
   Errors     Update, apply, restore and load change everything or, after an error, nothing. They evaluate at once. */
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
    double decay;             /* 0: 0.999; from 0 to 1 */
    bool plain;               /* SWA: every update counts the same */
    cn_params buffers;        /* for cn_ema_new only: cn_ema_of finds those of the model */
    bool average_buffers;     /* PyTorch's use_buffers */
} cn_ema_desc;
CN_API cn_ema *cn_ema_new(cn_ctx *ctx, cn_params params, const cn_ema_desc *desc);
CN_API cn_ema *cn_ema_of(cn_module *m, const cn_ema_desc *desc);
CN_API void cn_ema_free(cn_ema *e);                    /* NULL is allowed */

CN_API bool cn_ema_update(cn_ema *e);
CN_API bool cn_ema_apply(cn_ema *e);                   /* assigns the averages to the weights */
CN_API bool cn_ema_restore(cn_ema *e);                 /* assigns the weights' own values again */
CN_API int64_t cn_ema_updates(const cn_ema *e);        /* updates so far */
CN_API cn_params cn_ema_averages(const cn_ema *e);     /* of the parameters, then of the buffers */

/* Saves and loads the tensors prefix + "averages/0", ... and the text prefix + "n_averaged". An error while applied. */
CN_API bool cn_ema_save(cn_ema *e, cn_dict *dict, const char *prefix);
CN_API bool cn_ema_load(cn_ema *e, const cn_dict *dict, const char *prefix);

#ifdef __cplusplus
}
#endif
#endif
