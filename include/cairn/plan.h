/* cairn/plan.h: plans and counters: what an evaluation would run, and what the context has done so far.

       char text[4096];
       cn_plan_print(loss, text, sizeof text);    the plan for evaluating loss: kernels, fusions, memory
       cn_counters c = cn_count(cn);              nodes made, kernels run, plans found ...

   Environment  CAIRN_TRACE=plan sends every new plan to the context's logger, line by line. CAIRN_EAGER=1 evaluates
                every operation at once. cn_open reads both.
   Ownership    The text and the counters are yours.
   Errors       cn_plan_print returns 0 after an error, and if t is evaluated already: then there is no plan. */
#ifndef CAIRN_PLAN_H
#define CAIRN_PLAN_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_counters {
    int64_t nodes;          /* made so far */
    int64_t evaluations;    /* so far */
    int64_t kernels;        /* run so far */
    int64_t contractions;   /* matrix products and convolutions among these kernels */
    int64_t plan_hits;      /* evaluations that found their plan in the cache */
    int64_t plan_misses;    /* evaluations that built their plan */
    int64_t plans;          /* in the cache now */
    int64_t pending;        /* pending nodes now */
    int64_t handles;        /* alive now */
    int64_t live_nodes;     /* alive now */
    int64_t live_bytes;     /* bytes of tensor memory now */
    int64_t peak_bytes;     /* the most bytes of tensor memory so far */
    int64_t arena_bytes;    /* of the arena now */
    int64_t allocations;    /* calls to the allocator so far */
} cn_counters;
CN_API cn_counters cn_count(const cn_ctx *ctx);

/* Prints the plan for evaluating t now; it computes nothing. Returns the length of the whole text. */
CN_API size_t cn_plan_print(cn_tensor *t, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
