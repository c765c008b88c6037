/* cairn/ops.h: what can be done with tensors.

       cn_tensor *y = cn_relu(cn_add(cn_matmul(x, w), b));      operators nest; shapes broadcast as in PyTorch
       cn_tensor *p = cn_softmax(y, -1);                        axes may count from the end
       cn_tensor *s = cn_sum(p, CN_DIMS(0, 2), true);           several axes; CN_ALL for all
       cn_tensor *h = cn_mul_s(y, 0.5);                         _s: the other operand is a plain number
       cn_add_(y, h);                                           trailing _: gives the handle y a new value

   Names, argument order, defaults and results are PyTorch's. Results belong to the current scope. A mistake in shapes,
   dtypes or arguments gives NULL and an error in the context at once. docs/operators.md lists all operators with their
   signatures, dtypes and gradients. The prototypes are in the headers below, a family in each. */
#ifndef CAIRN_OPS_H
#define CAIRN_OPS_H

#include "ops/create.h"
#include "ops/map.h"
#include "ops/reduce.h"
#include "ops/view.h"
#include "ops/index.h"
#include "ops/contract.h"
#include "ops/block.h"
#include "ops/fft.h"
#include "ops/linalg.h"

#endif
