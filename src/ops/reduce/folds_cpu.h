/* folds_cpu.h: the reducers of sum and prod. */
#ifndef CN_REDUCE_FOLDS_CPU_H
#define CN_REDUCE_FOLDS_CPU_H

#include "ops/loops.h"

CN__ROWS(folds)
CN__ROW(cn__reducers, folds, sum)
CN__ROW(cn__reducers, folds, prod)
CN__ROWS_END(folds)

#endif
