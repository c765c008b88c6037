/* attention_gpu.h: the GPU kernels of scaled_dot_product_attention, its backward operator and cached_attention. */
#ifndef CN_OPS_BLOCK_ATTENTION_GPU_H
#define CN_OPS_BLOCK_ATTENTION_GPU_H

#include "cairn/kernel.h"

bool cn__attention_gpu(cn_gpu_call *c);
bool cn__attention_backward_gpu(cn_gpu_call *c);
bool cn__cached_attention_gpu(cn_gpu_call *c);

#endif
