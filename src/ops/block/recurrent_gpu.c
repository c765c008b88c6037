/* recurrent on the GPU: one launch of a kernel of recurrent.wgsl for all steps, or one for each step. */
#include "gpu/shaders.h"
#include "ops/block/block_gpu.h"
#include "ops/block/recurrent.h"

enum { TILE = 16, SIZE = TILE * TILE, SMALL = 64 /* the largest width with one launch for all steps */ };

typedef struct sizes {
    int64_t kind, gates, steps, batch, width;
} sizes;

/* y: any array (T,B,H) */
static sizes sizes_of(const cn_gpu_call *c, const cn_array *y)
{
    const int64_t kind = ((const cn__recurrent_attrs *)c->attrs)->kind;
    return (sizes){ kind, cn__recurrent_gates(kind), y->shape[0], y->shape[1], y->shape[2] };
}

/* Runs steps [0, steps) of a kernel. */
static bool run_steps(cn_gpu_call *c, const sizes *z, int64_t steps, const char *kernel, bool lengths)
{
    static const char *const kinds[] = {
        [CN__RNN_TANH] = "tanh", [CN__RNN_RELU] = "relu", [CN__LSTM] = "lstm", [CN__GRU] = "gru"
    };
    const bool whole = z->width <= SMALL;
    const int64_t tiles = (z->width + TILE - 1) / TILE, rows = (z->batch + TILE - 1) / TILE;
    for (int64_t s = 0; s < steps; s += whole ? steps : 1) {
        const int64_t params[] = { z->steps, z->batch, z->width, s, whole ? steps : s + 1, whole ? tiles : 1 };
        cn_gpu_params_clear(c);
        for (int i = 0; i < 6; i++) cn_gpu_param(c, params[i]);
        const cn_gpu_launch l = { .shader = cn__wgsl_recurrent,
                                  .kernel = kernel,
                                  .holes = CN_GPU_HOLES(
                                      CN_GPU_TEXT("kind", kinds[z->kind]), CN_GPU_NUMBER("gates", z->gates),
                                      CN_GPU_FLAG("reverse", ((const cn__recurrent_attrs *)c->attrs)->reverse),
                                      CN_GPU_FLAG("lengths", lengths)),
                                  .groups = rows * (whole ? 1 : tiles),
                                  .size = SIZE };
        if (!cn_gpu_run(c, &l)) return false;
    }
    return true;
}

bool cn__gpu_recurrent(cn_gpu_call *c)
{
    const sizes z = sizes_of(c, &c->out[0]);
    if (!c->out[0].numel) return true;
    cn_gpu_scratch(c, 3 * z.batch * z.width);
    return run_steps(c, &z, z.steps, "forward", c->in[5].numel > 0);
}

/* in: g, gc, w, first, lengths, y, c, saved */
bool cn__gpu_recurrent_backward(cn_gpu_call *c)
{
    const sizes z = sizes_of(c, &c->in[0]);
    if (!c->in[0].numel) return true;
    cn_gpu_scratch(c, (2 * z.gates + 2) * z.batch * z.width);
    return run_steps(c, &z, z.steps + 1, "backward", c->in[4].numel > 0);
}
