/* conv_gpu.h: the GPU kernels of convolution and its two gradients. */
#ifndef CN_OPS_CONTRACT_CONV_GPU_H
#define CN_OPS_CONTRACT_CONV_GPU_H

#include "cairn/kernel.h"
#include "ops/contract/contract.h"

bool cn__conv_gpu(cn_gpu_call *c);
bool cn__conv_input_gpu(cn_gpu_call *c);
bool cn__conv_weight_gpu(cn_gpu_call *c);

#endif
