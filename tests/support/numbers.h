/* numbers.h: dtypes, numbers and refusals as in PyTorch: operands without axes, plain numbers outside the range of a
   dtype, divisions by 0. */
#ifndef TESTS_NUMBERS_H
#define TESTS_NUMBERS_H

#include "cairn/cairn.h"

/* Computes every row of the tables and compares it with what PyTorch does. */
void check_numbers(cn_ctx *ctx);

#endif
