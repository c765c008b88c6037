/* layer_norm and rms_norm on the GPU: cuts rows into blocks and launches the kernels of layer_norm.wgsl. */
#include "gpu/shaders.h"
#include "ops/block/block_gpu.h"
#include "ops/block/rows_gpu.h"

enum { MOST_ROWS = 512, /* of a block, whose statistics lie in workgroup memory */ BLOCKS = 128 };

/* x as (rows, n): n counts the elements of the last `axes` axes. */
static void sizes_of(const cn_array *x, int64_t axes, int64_t *rows, int64_t *n)
{
    *rows = *n = 1;
    for (int d = 0; d < x->ndim; d++) *(d < x->ndim - axes ? rows : n) *= x->shape[d];
}

/* x: the number of the normalised operand; blocks: whether blocks of rows store their shares in scratch memory */
static bool run(cn_gpu_call *c, const cn__gpu_rows *r, int64_t groups, const char *kernel, bool centred, int x,
                bool blocks)
{
    return cn__gpu_run_rows(
        c, r, groups, cn__wgsl_layer_norm, kernel,
        CN_GPU_HOLES(CN_GPU_FLAG("centred", centred), CN_GPU_NUMBER("x", x), CN_GPU_FLAG("blocks", blocks)));
}

bool cn__gpu_norm(cn_gpu_call *c, bool centred)
{
    int64_t rows, n;
    sizes_of(&c->out[0], ((const cn__norm_attrs *)c->attrs)->axes, &rows, &n);
    if (!rows || !n) return true;
    const cn__gpu_rows r = cn__gpu_rows_of(c, rows, n, 1);
    cn_gpu_param(c, rows);
    cn_gpu_param(c, n);
    return run(c, &r, cn__gpu_rows_groups(&r), "forward", centred, 0, false);
}

static bool merge_blocks(cn_gpu_call *c, int64_t blocks, int64_t n, bool centred)
{
    const cn__gpu_rows r = cn__gpu_rows_of(c, 2 * n, blocks, 2 * n);
    cn_gpu_params_clear(c);
    cn_gpu_param(c, blocks);
    cn_gpu_param(c, n);
    return run(c, &r, cn__gpu_rows_groups(&r), "merge", centred, 1, true);
}

/* in: g, x, weight; out: dx, dweight, dbias. dweight and dbias are empty if nobody wants them. */
bool cn__gpu_norm_backward(cn_gpu_call *c, bool centred)
{
    int64_t rows, n;
    sizes_of(&c->out[0], ((const cn__norm_backward_attrs *)c->attrs)->axes, &rows, &n);
    const bool dw = c->out[1].numel > 0, db = c->n_out > 2 && c->out[2].numel > 0;
    if (!n || (!rows && !dw && !db)) return true;
    const cn__gpu_rows r = cn__gpu_rows_of(c, rows, n, 1);
    cn_gpu_param(c, rows);
    cn_gpu_param(c, n);
    if (!dw && !db) return run(c, &r, cn__gpu_rows_groups(&r), "backward", centred, 1, false);

    const int64_t at_once = cn__gpu_rows_at_once(&r), even = (rows + BLOCKS - 1) / BLOCKS;
    int64_t block = (even + at_once - 1) / at_once * at_once;
    block = block > MOST_ROWS ? MOST_ROWS : block < at_once ? at_once : block;
    const int64_t blocks = (rows + block - 1) / block;
    cn_gpu_param(c, block);
    if (blocks == 1) return run(c, &r, 1, "backward_blocks", centred, 1, false);
    cn_gpu_scratch(c, 2 * n * (blocks ? blocks : 1));
    return run(c, &r, blocks, "backward_blocks", centred, 1, true) && merge_blocks(c, blocks, n, centred);
}
