/* cairn/checkpoint.h: a training run in one file, so that it goes on bit for bit where it was.

       cn_training run = { .model = gpt, .optim = opt, .schedule = cosine, .loader = loader, .step = step };
       cn_checkpoint_save(&run, NULL, "run.safetensors");

       cn_checkpoint_load(&run, "run.safetensors");            run.step is the step it was saved at

   The file is a safetensors file of the model, under the model's own names: PyTorch opens it. Beside the model stand the states
   of what else is given, under "optim/", "schedule/", "loader/", the context's random numbers under "random/", and "step".
   Saving     To a temporary file that takes the name when it is complete (io.h): the last good checkpoint is never lost.
   Loading    Everything given must be in the file, and must fit; what is not given is passed over. If something does not fit, the
              model is as it was before.
   Errors     false, and an error in the context. */
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
    cn_module *model;      /* must be given; all others may be NULL */
    cn_optim *optim;
    cn_schedule *schedule;
    cn_loader *loader;
    int64_t step;
} cn_training;
/* extra: more tensors and texts for the file, which must have other names; may be NULL. */
CN_API bool cn_checkpoint_save(const cn_training *run, const cn_dict *extra, const char *path);
CN_API bool cn_checkpoint_load(cn_training *run, const char *path);
CN_API bool cn_checkpoint_from(cn_training *run, const cn_dict *file); /* the same, from a file that is loaded */

#ifdef __cplusplus
}
#endif
#endif
