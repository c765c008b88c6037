/* edges.h: values and gradients at the edges of functions, as PyTorch computes them: at limits and kinks, where a divisor
   is 0, for vectors of length 0. */
#ifndef TESTS_EDGES_H
#define TESTS_EDGES_H

#include "cairn/cairn.h"

/* Computes every row of the table in this dtype and compares it with PyTorch's numbers. */
void check_edges(cn_ctx *ctx, cn_dtype dtype);

#endif
