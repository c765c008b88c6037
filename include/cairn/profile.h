/* cairn/profile.h: where the time goes.

       cn_profile *p = cn_profile_begin(cn, NULL);
       for (int i = 0; i < 100; i++) train_step();
       cn_profile_end(p);
       cn_profile_show(p, stdout);                 a table: classes, then kernels, with shares of the time
       cn_profile_trace(p, "trace.json");          every kernel on a line of time: chrome://tracing, ui.perfetto.dev

   What is timed  Every kernel of every plan that runs between begin and end, under the name cn_plan_print shows for it; looking
              for plans and building them; the rest of each evaluation; copies between your memory and tensors. What remains
              is time outside: your code, and recording operations. Shares are of the whole and add up to 100 %.
   On a GPU   What it did is counted: dispatches, submissions, bytes there and back. Kernels are timed by its own clock, where
              it has one that programs may read (gpu.h: timestamps); each evaluation is then waited for, and each kernel is a
              pass of its own, which takes longer than without a profile. Without such a clock, a kernel's time is that of
              recording its commands. Drivers may round their clock: a time of 0 is one below its step.
   Cost       Two readings of the clock and a table lookup a kernel while a profile runs; nothing otherwise.
   Ownership  A profile belongs to its context, or until cn_profile_free. Names in rows are good while the profile is.
   Errors     One profile runs at a time in a context: another is an error. Lack of memory never disturbs what is profiled:
              kernels that cannot be told apart for want of it are one row, and events of the trace are dropped. */
#ifndef CAIRN_PROFILE_H
#define CAIRN_PROFILE_H

#include <stdio.h>

#include "gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_profile cn_profile;

typedef enum cn_profile_class {
    CN_PROFILE_MATMUL,      /* contractions: matrix products, convolutions; with what is computed on their results on the way */
    CN_PROFILE_ATTENTION,
    CN_PROFILE_ELEMENTWISE,
    CN_PROFILE_REDUCE,
    CN_PROFILE_OTHER,       /* indexing, joining, pooling, scans, sorting, normalisation, losses */
    CN_PROFILE_MOVE,        /* copies: views made contiguous, casts of layout */
    CN_PROFILE_TRANSFER,    /* between your memory and a device's: cn_from, cn_read */
    CN_PROFILE_PLANNING,
    CN_PROFILE_ENGINE,      /* evaluations, without their kernels and planning */
    CN_PROFILE_OUTSIDE,     /* between evaluations */
} cn_profile_class;
#define CN_PROFILE_CLASSES 10
CN_API const char *cn_profile_class_name(cn_profile_class c);

typedef struct cn_profile_desc {
    int64_t events; /* kept for the trace; 0: 200,000; negative: none */
} cn_profile_desc;

CN_API cn_profile *cn_profile_begin(cn_ctx *ctx, const cn_profile_desc *desc);
CN_API bool cn_profile_end(cn_profile *p); /* false: it had ended */
CN_API void cn_profile_free(cn_profile *p);

/* One row is one name on one device. */
typedef struct cn_profile_row {
    const char *name, *device; /* device: "" for what belongs to none */
    cn_profile_class kind;
    int64_t calls;
    double seconds;
    double share;              /* of the whole time, 0..1 */
    double flops;              /* of all calls; 0: not known. Of products only; attention without regard to its mask */
    double bytes;              /* read and written at least, by all calls */
} cn_profile_row;
CN_API int cn_profile_rows(const cn_profile *p);                              /* kernels and transfers */
CN_API bool cn_profile_row_at(const cn_profile *p, int i, cn_profile_row *row); /* in the order in which they were first seen */
CN_API cn_profile_row cn_profile_total(const cn_profile *p, cn_profile_class c); /* all devices */
CN_API double cn_profile_seconds(const cn_profile *p);                        /* from begin to end, or till now */
CN_API int64_t cn_profile_kernels(const cn_profile *p);                       /* run so far: as cn_count counts them */

CN_API cn_gpu_counters cn_profile_gpu(const cn_profile *p);                   /* counted from begin to end, or till now */
CN_API bool cn_profile_gpu_timed(const cn_profile *p);                        /* kernels were timed by the GPU's clock */

/* The table. Returns the length of the whole text; writes at most size bytes, always ended by 0. */
CN_API size_t cn_profile_print(const cn_profile *p, char *out, size_t size);
CN_API bool cn_profile_show(const cn_profile *p, FILE *out);

/* The trace as JSON. False: it could not be written. If events were dropped, the file says how many. */
CN_API bool cn_profile_trace(const cn_profile *p, const char *path);
CN_API int64_t cn_profile_dropped(const cn_profile *p);

#ifdef __cplusplus
}
#endif
#endif
