/* whole.h: products of 32-bit whole numbers whose values fit into 16 bits, as those of quantised models do. B is packed
   as bytes or as 16-bit numbers: once, if it is a weight that does not change, and otherwise if there are many rows. */
#ifndef CN_OPS_CONTRACT_WHOLE_H
#define CN_OPS_CONTRACT_WHOLE_H

#include "cpu/gemm.h"
#include "ops/contract/contract.h"

/* C = A·B for i32; g has sizes, strides and pointers. False: it is not computed, numbers are larger, or B has a batch. */
bool cn__whole_product(const cn_kernel *k, const cn__gemm *g);
size_t cn__whole_scratch(const cn__gemm *g);

#endif
