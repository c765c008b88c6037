/* rows_gpu.h: launches of GPU kernels that reduce rows with the parts of rows.wgsl. A workgroup holds several rows, and
   `lanes` invocations share each row. */
#ifndef CN_OPS_ROWS_GPU_H
#define CN_OPS_ROWS_GPU_H

#include "cairn/kernel.h"

enum { CN__GPU_ROWS_SIZE = 256 /* invocations of a workgroup */ };

typedef struct cn__gpu_rows {
    int64_t rows;
    int lanes;   /* 1, 4, 16, 64 or 256 */
    bool beside; /* neighbouring invocations have neighbouring rows, not neighbouring elements of a row */
} cn__gpu_rows;

/* For rows of n elements that lie `inner` apart. */
cn__gpu_rows cn__gpu_rows_of(const cn_gpu_call *c, int64_t rows, int64_t n, int64_t inner);
static inline int64_t cn__gpu_rows_at_once(const cn__gpu_rows *r) { return CN__GPU_ROWS_SIZE / r->lanes; }
static inline int64_t cn__gpu_rows_groups(const cn__gpu_rows *r)
{
    return (r->rows + cn__gpu_rows_at_once(r) - 1) / cn__gpu_rows_at_once(r);
}

/* Launches a kernel of a shader that uses parts of rows.wgsl. */
bool cn__gpu_run_rows(cn_gpu_call *c, const cn__gpu_rows *r, int64_t groups, const char *shader, const char *kernel,
                      const cn_gpu_hole *holes);

#endif
