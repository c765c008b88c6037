/* Empty tables in the place of CPU kernels that no room uses: cmake/web.cmake leaves these files out. And what would call
   them: no convolution of a room is depthwise, and no room multiplies whole numbers, keeps weights or writes ONNX. */
#include "ops/kernels.h"

#include "core/tracer.h"
#include "cpu/kernel.h"
#include "ops/contract/depthwise.h"
#include "ops/contract/whole.h"

const cn__recurrent_kernels cn__recurrent_kernels_rooms = { 0 };
const cn__ctc_kernels cn__ctc_kernels_rooms = { 0 };
const cn__fft_kernels cn__fft_kernels_rooms = { 0 };
const cn__depthwise_kernels cn__depthwise_kernels_rooms = { 0 };
const cn__whole_kernels cn__whole_kernels_rooms = { 0 };

cn__depthwise cn__depthwise_of(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y)
{
    (void)x, (void)weight, (void)y;
    return (cn__depthwise){ .k = k, .suits = false };
}
void cn__depthwise_run(const cn__depthwise *d) { (void)d; }
size_t cn__depthwise_scratch(const cn__depthwise *d, int threads) { return (void)d, (void)threads, 0; }

bool cn__whole_product(const cn_kernel *k, const cn__gemm *g) { return (void)k, (void)g, false; }
size_t cn__whole_scratch(const cn__gemm *g) { return (void)g, 0; }

void *cn__kernel_form(const cn_kernel *k, int operand, cn__form_kind kind, uint64_t detail, size_t bytes, bool *made)
{
    (void)k, (void)operand, (void)kind, (void)detail, (void)bytes;
    *made = true;
    return NULL;
}

bool cn__trace_composed(cn_ctx *ctx, const cn__composed *call) { return (void)ctx, (void)call, true; }
void cn__trace_end(cn_ctx *ctx) { (void)ctx; }
