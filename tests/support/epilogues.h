/* epilogues.h: an operator's first result with something elementwise behind it, computed together or one after the other.

       output z[EPILOGUE_OUTPUTS] = { 0 };
       bool inside;
       epilogue_run(cn, &trial, &inputs, EPILOGUE_PLAIN, true, z, &inside);   together: the operator's kernel runs it, as the plan says
       free_outputs(z, EPILOGUE_OUTPUTS); */
#ifndef TESTS_EPILOGUES_H
#define TESTS_EPILOGUES_H

#include "trials/trial.h"

typedef enum epilogue_kind {
    EPILOGUE_PLAIN,    /* numbers, and another tensor in order */
    EPILOGUE_ROW,      /* a row that is broadcast */
    EPILOGUE_RESHAPED, /* the result as one axis, and as it is */
    EPILOGUE_RANDOM,   /* random numbers by position */
    TAILS,
} epilogue_kind;

enum { EPILOGUE_OUTPUTS = CN_MAX_OUT }; /* what was computed from the first result in place of it, and the others */

const char *epilogue_name(epilogue_kind kind);
/* False: an error stands. inside: the plan has it as part of the operator's kernel. */
bool epilogue_run(cn_ctx *ctx, const trial *t, const inputs *x, epilogue_kind kind, bool together, output *z, bool *inside);

#endif
