/* cairn/plan.h: looking at what the engine does.

       char text[4096];
       cn_plan_print(loss, text, sizeof text);    the plan that computing loss would run: kernels, fusions, memory
       cn_counters c = cn_count(cn);              nodes made, kernels run, plans found ...

   CAIRN_TRACE=plan in the environment sends every new plan to the context's logger, line by line; CAIRN_EAGER=1
   evaluates every operation at once. Both are read when a context is opened. */
#ifndef CAIRN_PLAN_H
#define CAIRN_PLAN_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_counters {
    int64_t nodes;          /* made so far */
    int64_t evaluations;
    int64_t kernels;        /* run so far */
    int64_t contractions;   /* of those: matmul, convolution */
    int64_t plan_hits, plan_misses;
    int64_t plans;          /* in the cache now */
    int64_t pending;        /* nodes waiting now */
    int64_t handles;        /* tensors alive now */
    int64_t live_nodes;     /* alive now */
    int64_t live_bytes;     /* of tensor memory now */
    int64_t peak_bytes;
    int64_t arena_bytes;    /* of the shared arena now */
    int64_t allocations;    /* calls to the allocator so far */
} cn_counters;
CN_API cn_counters cn_count(const cn_ctx *ctx);

/* The plan for evaluating t now, as text. Returns the length of the whole text. Nothing is computed. */
CN_API size_t cn_plan_print(cn_tensor *t, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
