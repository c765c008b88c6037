/* plan/record.h: evaluations that can be repeated with other inputs: no node is made, and no plan is looked up. */
#ifndef CN_PLAN_RECORD_H
#define CN_PLAN_RECORD_H

#include "core/context.h"

typedef struct cn__recording cn__recording;

/* Evaluates all of `out` and records how; `in` are the values that may differ the next time. Sets *made, to NULL if it
   cannot be repeated: in several evaluations, with random numbers or assignments. False: an error. */
bool cn__plan_record(cn_ctx *ctx, cn_tensor *const *in, int n_in, cn_tensor *const *out, int n_out,
                     cn__recording **made);
/* Evaluates the same for inputs of the same dtypes, shapes, strides and offsets; out: new handles. */
bool cn__plan_replay(cn__recording *r, cn_tensor *const *in, cn_tensor **out);
void cn__recording_free(cn__recording *r); /* NULL is fine */

#endif
