/* versus.h: cases of operators on one device against another: results, a loss that fuses with them, gradients. */
#ifndef TRIALS_VERSUS_H
#define TRIALS_VERSUS_H

#include "trials/trial.h"

typedef struct versus {
    cn_ctx *expected, *tried;                               /* contexts */
    void (*note)(void *user, bool ok, const char *words);   /* of each comparison; words say what is wrong */
    void *user;
    double worst; /* difference of floats so far, as a share of the largest number of its result, or of 1 */
} versus;

void versus_case(versus *v, const trial *t, cn_dtype dtype, trial_layout layout, bool gradients);
bool needs_callbacks(const cn_op *op); /* operators that a user's functions are part of: not to be called by their cases */

#endif
