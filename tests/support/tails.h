/* tails.h: an operator's first result with something elementwise behind it, computed together or one after the other.

       output z[TAIL_OUTPUTS] = { 0 };
       bool inside;
       tail_run(cn, &trial, &inputs, TAIL_PLAIN, true, z, &inside);   together: the operator's kernel runs it, as the plan says
       free_outputs(z, TAIL_OUTPUTS); */
#ifndef TESTS_TAILS_H
#define TESTS_TAILS_H

#include "trials/trial.h"

typedef enum tail_kind {
    TAIL_PLAIN,    /* numbers, and another tensor in order */
    TAIL_ROW,      /* a row that is broadcast */
    TAIL_RESHAPED, /* the result as one axis, and as it is */
    TAIL_RANDOM,   /* random numbers by position */
    TAILS,
} tail_kind;

enum { TAIL_OUTPUTS = CN_MAX_OUT }; /* what was computed from the first result in place of it, and the others */

const char *tail_name(tail_kind kind);
/* False: an error stands. inside: the plan has it as part of the operator's kernel. */
bool tail_run(cn_ctx *ctx, const trial *t, const inputs *x, tail_kind kind, bool together, output *z, bool *inside);

#endif
