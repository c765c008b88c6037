/* ops/block/attention_gpu.h: attention on the GPU; see attention_gpu.c. */
#ifndef CN_OPS_BLOCK_ATTENTION_GPU_H
#define CN_OPS_BLOCK_ATTENTION_GPU_H

#include "cairn/kernel.h"

bool cn__attention_gpu(cn_gpu_call *c);
bool cn__attention_backward_gpu(cn_gpu_call *c);
bool cn__cached_attention_gpu(cn_gpu_call *c);

#endif
