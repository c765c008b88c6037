/* linalg_checks.h: what factors of matrices promise, checked on any device: products give the matrix again, columns are
   orthonormal, values are in order, residuals are small. */
#ifndef TESTS_LINALG_CHECKS_H
#define TESTS_LINALG_CHECKS_H

#include "cairn/cairn.h"

/* Matrices of a dtype of up to `most` rows and columns. Errors may be some multiple of epsilon. */
void check_factors(cn_ctx *cn, cn_dtype dtype, double epsilon, int64_t most);
void check_faults(cn_ctx *cn); /* matrices that have no result */

#endif
