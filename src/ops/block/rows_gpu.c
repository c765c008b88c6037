/* Decides how many lanes of a workgroup share a row, and launches kernels that use rows.wgsl. */
#include "ops/block/rows_gpu.h"

#include <string.h>

#include "gpu/shaders.h"

/* At most `each` elements a lane; more lanes if there are few rows. Software drivers have few processors, and lanes wait
   for each other at barriers, which are slow there. */
cn__gpu_rows cn__gpu_rows_of(const cn_gpu_call *c, int64_t rows, int64_t n, int64_t inner)
{
    const bool software = strcmp(c->limits->kind, "software") == 0;
    const int64_t each = software ? 512 : 16, enough = software ? 64 : 1 << 14;
    cn__gpu_rows r = { .rows = rows, .lanes = 1, .beside = inner > 1 };
    while (r.lanes < CN__GPU_ROWS_SIZE && n > each * r.lanes && (!r.beside || rows * r.lanes < enough)) r.lanes *= 4;
    while (r.lanes < CN__GPU_ROWS_SIZE && n > r.lanes && rows * r.lanes < enough / 4) r.lanes *= 4;
    return r;
}

static int side_of(int lanes)
{
    int side = 1;
    while (side * side < lanes) side *= 2;
    return side;
}

bool cn__gpu_run_rows(cn_gpu_call *c, const cn__gpu_rows *r, int64_t groups, const char *shader, const char *kernel,
                      const cn_gpu_hole *holes)
{
    enum { OWN = 3, MOST = 10 };
    cn_gpu_hole all[OWN + MOST + 1] = { CN_GPU_NUMBER("lanes", r->lanes), CN_GPU_NUMBER("side", side_of(r->lanes)),
                                        CN_GPU_FLAG("beside", r->beside) };
    for (int n = OWN; holes && holes->name && n < OWN + MOST; n++) all[n] = *holes++;
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = shader,
                                           .kernel = kernel,
                                           .with = cn__wgsl_rows,
                                           .holes = all,
                                           .groups = groups,
                                           .size = CN__GPU_ROWS_SIZE });
}
