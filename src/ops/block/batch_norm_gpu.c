/* batch_norm on the GPU: cuts channels into parts and launches the kernels of batch_norm.wgsl. */
#include "gpu/shaders.h"
#include "ops/block/block_gpu.h"
#include "ops/block/rows_gpu.h"

enum { MOMENTS = 4, PART = 2048 /* elements of a part */, MOST_PARTS = 64 };

/* How many parts a channel is cut into: several only where the channels are too few to occupy the device. */
static int64_t parts_of(int64_t channels, int64_t n)
{
    enum { GROUPS = 512 };
    int64_t parts = n / PART, most = GROUPS / (channels ? channels : 1);
    if (parts > most) parts = most;
    return parts < 1 ? 1 : parts > MOST_PARTS ? MOST_PARTS : parts;
}

static bool launch(cn_gpu_call *c, const cn__gpu_rows *r, const char *kernel, bool back, bool merged)
{
    return cn__gpu_run_rows(c, r, cn__gpu_rows_groups(r), cn__wgsl_batch_norm, kernel,
                            CN_GPU_HOLES(CN_GPU_FLAG("back", back), CN_GPU_FLAG("merged", merged)));
}

static bool run(cn_gpu_call *c, bool back)
{
    const char *kernel = back ? "backward" : "forward";
    const int64_t *shape = c->out[0].shape;
    int64_t space = 1;
    for (int d = 2; d < c->out[0].ndim; d++) space *= shape[d];
    const int64_t n = shape[0] * space, parts = parts_of(shape[1], n);
    if (!shape[1]) return true;
    const cn__gpu_rows r = cn__gpu_rows_of(c, shape[1] * parts, (n + parts - 1) / parts, space == 1 ? shape[1] : 1);
    cn_gpu_param(c, shape[0]);
    cn_gpu_param(c, shape[1]);
    cn_gpu_param(c, space);
    cn_gpu_param(c, parts);
    if (parts == 1) return launch(c, &r, kernel, back, false);
    cn_gpu_scratch(c, MOMENTS * shape[1] * parts);
    return launch(c, &r, "keep", back, false) && launch(c, &r, kernel, back, true);
}

bool cn__gpu_batch_norm(cn_gpu_call *c) { return run(c, false); }
bool cn__gpu_batch_norm_backward(cn_gpu_call *c) { return run(c, true); }
