/* block_gpu.h: the GPU kernels of block operators that stand in files of their own. */
#ifndef CN_OPS_BLOCK_GPU_H
#define CN_OPS_BLOCK_GPU_H

#include "cairn/kernel.h"
#include "ops/block/block.h"

/* layer_norm_gpu.c; centred: true for layer_norm, false for rms_norm */
bool cn__gpu_norm(cn_gpu_call *c, bool centred);
bool cn__gpu_norm_backward(cn_gpu_call *c, bool centred);
/* batch_norm_gpu.c */
bool cn__gpu_batch_norm(cn_gpu_call *c);
bool cn__gpu_batch_norm_backward(cn_gpu_call *c);
/* cross_entropy_gpu.c */
bool cn__gpu_cross_entropy(cn_gpu_call *c);
bool cn__gpu_cross_entropy_backward(cn_gpu_call *c);
/* recurrent_gpu.c */
bool cn__gpu_recurrent(cn_gpu_call *c);
bool cn__gpu_recurrent_backward(cn_gpu_call *c);
/* ctc_gpu.c */
bool cn__gpu_ctc_loss(cn_gpu_call *c);
bool cn__gpu_ctc_loss_backward(cn_gpu_call *c);

#endif
