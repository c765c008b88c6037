/* cross_entropy on the GPU: decides on the launches of the kernels of cross_entropy.wgsl. */
#include "gpu/shaders.h"
#include "ops/block/block_gpu.h"
#include "ops/block/rows_gpu.h"

enum { PER_INVOCATION = 8 };

/* first: the number of the logits among the operands; target and weight follow. */
static cn__columns sizes_of(cn_gpu_call *c, int first)
{
    const cn_array *x = &c->in[first];
    const cn__columns s = cn__columns_of(x->ndim, x->shape, cn__class_axis(x->ndim));
    cn_gpu_param(c, s.outer * s.inner);
    cn_gpu_param(c, s.n);
    cn_gpu_param(c, s.inner);
    cn_gpu_param(c, ((const cn__loss_attrs *)c->attrs)->ignore_index);
    return s;
}

/* kept: the launch before stored the sums of weights in scratch memory */
static bool launch(cn_gpu_call *c, const cn__gpu_rows *r, int64_t groups, const char *kernel, int first, bool kept)
{
    const cn__loss_attrs *a = c->attrs;
    const bool ignores = a->has_ignore && a->ignore_index >= INT32_MIN && a->ignore_index <= INT32_MAX;
    return cn__gpu_run_rows(c, r, groups, cn__wgsl_cross_entropy, kernel,
                            CN_GPU_HOLES(CN_GPU_NUMBER("target", first + 1), CN_GPU_NUMBER("weight", first + 2),
                                         CN_GPU_FLAG("ignores", ignores), CN_GPU_FLAG("mean", a->reduction == CN_MEAN),
                                         CN_GPU_FLAG("weighted", c->in[first + 2].data), CN_GPU_FLAG("kept", kept),
                                         CN_GPU_FLAG("each", a->reduction == CN_NONE)));
}

bool cn__gpu_cross_entropy(cn_gpu_call *c)
{
    const cn__columns s = sizes_of(c, 0);
    const int64_t samples = s.outer * s.inner;
    const cn__gpu_rows r = cn__gpu_rows_of(c, samples, s.n, s.inner);
    const int64_t groups = cn__gpu_rows_groups(&r);
    if (((const cn__loss_attrs *)c->attrs)->reduction == CN_NONE) return launch(c, &r, groups, "each", 0, false);
    if (groups == 1) return launch(c, &r, groups, "at_once", 0, false);
    cn_gpu_scratch(c, 2 * (samples ? samples : 1));
    return launch(c, &r, groups, "keep", 0, false) && launch(c, &r, 1, "from_kept", 0, false);
}

/* in: g, logits, target, weight, lse; out: dx. Every workgroup sums the weights for itself, unless that would take
   longer than its elements. */
bool cn__gpu_cross_entropy_backward(cn_gpu_call *c)
{
    enum { LITTLE = 1 << 16 };
    const cn__columns s = sizes_of(c, 1);
    const int64_t samples = s.outer * s.inner, numel = samples * s.n;
    const int64_t groups = (numel + CN__GPU_ROWS_SIZE * PER_INVOCATION - 1) / (CN__GPU_ROWS_SIZE * PER_INVOCATION);
    const bool mean = ((const cn__loss_attrs *)c->attrs)->reduction == CN_MEAN;
    const int64_t to_sum = (mean ? samples : 0) + (c->in[3].data ? s.n : 0);
    const cn__gpu_rows r = { .rows = CN__GPU_ROWS_SIZE, .lanes = 1 };
    if (!numel) return true;
    const bool kept = to_sum * groups > 4 * numel + LITTLE;
    if (kept) {
        cn_gpu_scratch(c, 2);
        if (!launch(c, &r, 1, "keep_totals", 1, false)) return false;
    }
    cn_gpu_param(c, numel);
    cn_gpu_param(c, PER_INVOCATION);
    return launch(c, &r, groups, "backward", 1, kept);
}
