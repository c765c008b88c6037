/* cairn/checkpoint.h: a training run in one file. A resumed run has the same bits as one that was never stopped.

       cn_training run = { .model = gpt, .optim = opt, .schedule = cosine, .loader = loader, .step = step };
       cn_checkpoint_save(&run, NULL, "run.safetensors");

       cn_checkpoint_load(&run, "run.safetensors");            run.step is the step it was saved at

   The file is a safetensors file of the model, under the model's own names: PyTorch can open it. It also has the states
   of optimizer, schedule and loader under "optim/", "schedule/" and "loader/", the context's random numbers under
   "random/", and "step".
   Saving     A temporary file is renamed when it is complete (io.h): the last good checkpoint is never lost.
   Loading    The states of all members that are not NULL must be in the file, and must fit. Other states are ignored.
              After an error the model is unchanged.
   Ownership  cn_training only borrows its members.
   Errors     Functions return false and set the error of the context. */
#ifndef CAIRN_CHECKPOINT_H
#define CAIRN_CHECKPOINT_H

#include "data.h"
#include "nn.h"
#include "optim.h"
#include "schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_training {
    cn_module *model;      /* required; all others may be NULL */
    cn_optim *optim;
    cn_schedule *schedule;
    cn_loader *loader;
    int64_t step;
} cn_training;
/* extra: more tensors and texts for the file, with names of their own; may be NULL. */
CN_API bool cn_checkpoint_save(const cn_training *run, const cn_dict *extra, const char *path);
CN_API bool cn_checkpoint_load(cn_training *run, const char *path);
CN_API bool cn_checkpoint_from(cn_training *run, const cn_dict *file); /* the same, from a loaded file */

#ifdef __cplusplus
}
#endif
#endif
