/* cairn/profile.h: measures where the time goes.

       cn_profile *p = cn_profile_begin(cn, NULL);
       for (int i = 0; i < 100; i++) train_step();
       cn_profile_end(p);
       cn_profile_show(p, stdout);                 a table: classes, then kernels, with shares of the time
       cn_profile_trace(p, "trace.json");          a timeline of all kernels: chrome://tracing, ui.perfetto.dev

   Measured   Every kernel of every plan between begin and end, under the name that cn_plan_print shows; finding and
              building plans; the rest of each evaluation; copies between your memory and tensors. All other time is
              "outside": your code, and recording operations. Shares are of the whole time and sum to 100 %.
   On a GPU   A profile counts dispatches, submissions and transferred bytes. If programs may read the clock of the GPU
              (gpu.h: timestamps), that clock times kernels. Each evaluation is then waited for, and each kernel is a
              pass of its own, so that everything takes longer than without a profile. Without such a clock, the time of
              a kernel is the time of recording its commands. A clock may be coarse: a time of 0 is shorter than its
              step.
   Cost       While a profile runs, a kernel costs two readings of the clock and a table lookup more; otherwise nothing.
   Ownership  A profile belongs to its context, until cn_profile_free. Names in rows live as long as the profile.
   Errors     A context runs one profile at a time: a second one is an error. Lack of memory does not disturb the
              program: the profile puts further kernels into one row, and drops events of the trace. */
#ifndef CAIRN_PROFILE_H
#define CAIRN_PROFILE_H

#include <stdio.h>

#include "gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_profile cn_profile;

typedef enum cn_profile_class {
    CN_PROFILE_MATMUL,      /* matrix products and convolutions, with their epilogues */
    CN_PROFILE_ATTENTION,
    CN_PROFILE_ELEMENTWISE,
    CN_PROFILE_REDUCE,
    CN_PROFILE_OTHER,       /* indexing, joining, pooling, scans, sorting, normalisation, losses */
    CN_PROFILE_MOVE,        /* copies: views made contiguous */
    CN_PROFILE_TRANSFER,    /* between your memory and a device: cn_from, cn_read */
    CN_PROFILE_PLANNING,
    CN_PROFILE_ENGINE,      /* evaluations, without their kernels and planning */
    CN_PROFILE_OUTSIDE,     /* between evaluations */
} cn_profile_class;
#define CN_PROFILE_CLASSES 10
CN_API const char *cn_profile_class_name(cn_profile_class c);

typedef struct cn_profile_desc {
    int64_t events; /* at most so many in the trace; 0: 200,000; negative: none */
} cn_profile_desc;

CN_API cn_profile *cn_profile_begin(cn_ctx *ctx, const cn_profile_desc *desc);
CN_API bool cn_profile_end(cn_profile *p); /* false: it has ended already */
CN_API void cn_profile_free(cn_profile *p);

/* One row is one name on one device. */
typedef struct cn_profile_row {
    const char *name, *device; /* device: "" if the row belongs to none */
    cn_profile_class kind;
    int64_t calls;
    double seconds;
    double share;              /* of the whole time, 0..1 */
    double flops;              /* of all calls; 0: not known. Known for products, and for attention without its mask */
    double bytes;              /* at least so many are read and written by all calls */
} cn_profile_row;
CN_API int cn_profile_rows(const cn_profile *p);                              /* kernels and transfers */
CN_API bool cn_profile_row_at(const cn_profile *p, int i, cn_profile_row *row); /* in the order of their first call */
CN_API cn_profile_row cn_profile_total(const cn_profile *p, cn_profile_class c); /* all devices */
CN_API double cn_profile_seconds(const cn_profile *p);                        /* from begin to end, or until now */
CN_API int64_t cn_profile_kernels(const cn_profile *p);                       /* runs of kernels, as cn_count counts */

CN_API cn_gpu_counters cn_profile_gpu(const cn_profile *p);                   /* from begin to end, or until now */
CN_API bool cn_profile_gpu_timed(const cn_profile *p);                        /* the GPU's clock timed the kernels */

/* Prints the table. Returns the length of the whole text; writes at most size bytes, ended by 0. */
CN_API size_t cn_profile_print(const cn_profile *p, char *out, size_t size);
CN_API bool cn_profile_show(const cn_profile *p, FILE *out);

/* Writes the trace as JSON. If events were dropped, the file has their number. */
CN_API bool cn_profile_trace(const cn_profile *p, const char *path);
CN_API int64_t cn_profile_dropped(const cn_profile *p);

#ifdef __cplusplus
}
#endif
#endif
