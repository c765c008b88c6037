/* versus.h: runs a case of an operator on two devices; compares results, a loss that fuses with them, and gradients. */
#ifndef TRIALS_VERSUS_H
#define TRIALS_VERSUS_H

#include "trials/trial.h"

typedef struct versus {
    cn_ctx *expected, *tried; /* contexts: of the device that is trusted, and of the one on trial */
    void (*note)(void *user, bool ok, const char *words); /* of each comparison; words say what is wrong */
    void *user;
    double worst; /* difference of floats so far, as a share of the largest number of its result, or of 1 */
} versus;

void versus_case(versus *v, const trial *t, cn_dtype dtype, trial_layout layout, bool gradients);
bool needs_callbacks(const cn_op *op); /* calls functions of the user: its cases alone cannot call it */

#endif
