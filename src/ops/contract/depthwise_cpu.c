/* The CPU kernels of depthwise convolution (see depthwise.h), with the vector size of each instruction set. */
#include "ops/contract/depthwise_cpu.h"

#include <string.h>

#include "cpu/fma.h"
#include "cpu/isa.h"
#include "ops/contract/depthwise.h"

/* Nothing for AVX-512: a tap reads a vector for each multiplication, and two of 32 bytes are read as fast as one of
   64. */
#define TEMPLATE "ops/contract/depthwise_body.h"
#define TYPES    CN__UP_TO_AVX2(CN__FLOAT_TYPES)
#include "cpu/each_type.h"

const cn__depthwise_kernels CN__FOR_ISA(cn__depthwise_kernels) = { .convolve = CN__F32_F64_UP_TO_AVX2(convolve) };
