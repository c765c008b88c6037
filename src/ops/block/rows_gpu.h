/* rows_gpu.h: kernels on the GPU that reduce rows. A workgroup holds several rows, each shared by `lanes` invocations.

   The code has `fn kernel(group: u32, local: u32)` and may use
     row_of(group, local), lane_of(local)   which row (it may lie behind the last), which of its LANES
     row_sum(local, x), row_sum2, row_max   over the lanes of a row: f32, vec2<f32>, f32; in a fixed order
     group_sum2(local, x)                   over all invocations, vec2<f32>
   All invocations must come to them, those of rows behind the last too. */
#ifndef CN_OPS_ROWS_GPU_H
#define CN_OPS_ROWS_GPU_H

#include "gpu/kernel.h"

enum { CN__GPU_ROWS_SIZE = 256 /* invocations of a group */ };
#define CN__GPU_LOWEST "-3.4028234e38"

typedef struct cn__gpu_rows {
    int64_t rows;
    int lanes;   /* 1, 4, 16, 64 or 256 */
    bool beside; /* neighbouring invocations have neighbouring rows, not neighbours in a row */
} cn__gpu_rows;

/* For rows of n elements, `inner` apart. */
cn__gpu_rows cn__gpu_rows_of(int64_t rows, int64_t n, int64_t inner);
static inline int64_t cn__gpu_rows_at_once(const cn__gpu_rows *r) { return CN__GPU_ROWS_SIZE / r->lanes; }
static inline int64_t cn__gpu_rows_groups(const cn__gpu_rows *r)
{
    return (r->rows + cn__gpu_rows_at_once(r) - 1) / cn__gpu_rows_at_once(r);
}

/* bytes: of var<workgroup> that the code declares itself */
bool cn__gpu_run_rows(cn__gpu_call *c, const cn__gpu_rows *r, int64_t groups, int bytes, const char *code);

#endif
