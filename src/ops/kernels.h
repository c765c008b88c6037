/* ops/kernels.h: the table of kernels a context works with.

   cn__kernels holds one struct of pointers for each kernel file (kernels.def). cn__kernels_fill writes the portable
   entries and then, over them, those of every faster instruction set that may be used: see cpu/isa.h. */
#ifndef CN_OPS_KERNELS_H
#define CN_OPS_KERNELS_H

#include <stddef.h>

#include "cpu/gather_cpu.h"
#include "cpu/gemm_cpu.h"
#include "cpu/processor.h"
#include "ops/block/attention_cpu.h"
#include "ops/block/batch_norm_cpu.h"
#include "ops/block/cached_attention_cpu.h"
#include "ops/block/cross_entropy_cpu.h"
#include "ops/block/ctc_cpu.h"
#include "ops/block/dropout_cpu.h"
#include "ops/block/layer_norm_cpu.h"
#include "ops/block/recurrent_cpu.h"
#include "ops/block/softmax_cpu.h"
#include "ops/contract/depthwise_cpu.h"
#include "ops/contract/taps_cpu.h"
#include "ops/contract/whole_cpu.h"
#include "ops/create/random_cpu.h"
#include "ops/fft/fft_cpu.h"
#include "ops/linalg/lapack.h"
#include "ops/map/binary_cpu.h"
#include "ops/map/param_cpu.h"
#include "ops/map/select_cpu.h"
#include "ops/map/slope_cpu.h"
#include "ops/map/ternary_cpu.h"
#include "ops/map/unary_cpu.h"
#include "ops/optim/optim_cpu.h"
#include "ops/reduce/extremes_cpu.h"
#include "ops/reduce/folds_cpu.h"
#include "ops/window/max_pool_cpu.h"

typedef struct cn__kernels {
    void *none; /* no table begins at offset 0, because .kernels_at 0 means none */
#define CN__KERNELS(name) cn__##name##_kernels name;
#include "ops/kernels.def"
#undef CN__KERNELS
    cn__lapack lapack; /* filled by the first call that needs it */
} cn__kernels;

/* For a record, where its loops or reducers are: `.kernels_at = CN__AT(unary, exp)`. */
#if defined(__wasm__)
#define CN__AT(table, row) ((size_t)&cn__##table##_##row##_row)
#else
#define CN__AT(table, row) offsetof(cn__kernels, table.row)
#endif

void cn__kernels_fill(cn__kernels *k, cn__isa best);

/* The index of an entry { f32, f64 } of a kernel table. */
static inline int cn__f64_entry(cn_dtype t) { return t == CN_F64; }

/* The kernel of matrix products of f32 or f64: for .kernel of a cn__gemm. */
static inline const cn__gemm_kernel *cn__kernel_gemm(const cn_kernel *k, cn_dtype t)
{
    return k->kernels->gemm.of[cn__f64_entry(t)];
}

#endif
