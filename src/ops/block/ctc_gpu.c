/* ctc_loss on the GPU: sizes, scratch memory and launches of the kernels of ctc.wgsl. */
#include "gpu/shaders.h"
#include "ops/block/block_gpu.h"
#include "ops/block/rows_gpu.h"

typedef struct sizes {
    int64_t steps, samples, labels, places;
    cn__gpu_rows rows;
} sizes;

/* in: log_probs, targets, input lengths, target lengths */
static sizes sizes_of(cn_gpu_call *c, const cn_array *in)
{
    const cn__ctc_attrs *a = c->attrs;
    const int64_t most = in[1].ndim == 1 ? 0 : in[1].shape[1];
    sizes z = { in[0].shape[0], in[0].shape[1], in[1].numel, 0, { 0 } };
    z.places = 2 * z.labels + 3 * z.samples;
    z.rows = cn__gpu_rows_of(c, z.samples, z.samples ? z.places / z.samples : 1, 1);
    const int64_t params[] = { z.steps, z.samples, in[0].shape[2], most, z.labels, a->blank };
    for (int i = 0; i < 6; i++) cn_gpu_param(c, params[i]);
    return z;
}

/* first: the number of log_probs among the operands */
static bool run(cn_gpu_call *c, const sizes *z, const char *kernel, int first)
{
    const bool flat = c->in[first + 1].ndim == 1, zero = ((const cn__ctc_attrs *)c->attrs)->zero_infinity;
    return cn__gpu_run_rows(c, &z->rows, cn__gpu_rows_groups(&z->rows), cn__wgsl_ctc, kernel,
                            CN_GPU_HOLES(CN_GPU_NUMBER("x", first), CN_GPU_NUMBER("targets", first + 1),
                                         CN_GPU_NUMBER("frames", first + 2), CN_GPU_NUMBER("lengths", first + 3),
                                         CN_GPU_FLAG("flat", flat), CN_GPU_FLAG("zero_infinity", zero),
                                         CN_GPU_FLAG("checked", first == 0)));
}

bool cn__gpu_ctc_loss(cn_gpu_call *c)
{
    const sizes z = sizes_of(c, c->in);
    cn_gpu_scratch(c, 2 * z.places + 1);
    return run(c, &z, "forward", 0);
}

bool cn__gpu_ctc_loss_backward(cn_gpu_call *c)
{
    const sizes z = sizes_of(c, c->in + 1);
    cn_gpu_scratch(c, (z.steps + 4) * z.places + 2 * z.steps * z.samples + 1);
    return run(c, &z, "backward", 1);
}
