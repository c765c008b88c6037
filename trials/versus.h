/* versus.h: runs a case of an operator on two devices; compares results, a loss that fuses with them, and gradients. */
#ifndef TRIALS_VERSUS_H
#define TRIALS_VERSUS_H

#include "trials/trial.h"

/* What trace_case computes of a case: results, a loss made from them by a chain that fuses, the gradients of all operands. */
enum { TRACED = CN_MAX_OUT + 1 + CN_MAX_IN };

/* Computes a case in a context. *n: how many results to look at; fewer afterwards where the operator is composed of others
   and has only the first. False: an error stands. */
bool trace_case(cn_ctx *ctx, const trial *t, const inputs *x, trial_layout layout, bool gradients, int *n,
                output *traced);
void name_traced(char *to, size_t room, int i); /* "result 0", "loss 0", "gradient of operand 1" */

typedef struct versus {
    cn_ctx *expected, *tried; /* contexts: of the device that is trusted, and of the one on trial */
    void (*note)(void *user, bool ok, const char *words); /* of each comparison; words say what is wrong */
    void *user;
    double worst; /* difference of floats so far, as a share of the largest number of its result, or of 1 */
} versus;

void versus_case(versus *v, const trial *t, cn_dtype dtype, trial_layout layout, bool gradients);
bool needs_callbacks(const cn_op *op); /* calls functions of the user: its cases alone cannot call it */

#endif
