/* extremes_cpu.h: the reducers of max, min, argmax and argmin. */
#ifndef CN_REDUCE_EXTREMES_CPU_H
#define CN_REDUCE_EXTREMES_CPU_H

#include "ops/loops.h"

CN__ROWS(extremes)
CN__ROW(cn__reducers, extremes, max)
CN__ROW(cn__reducers, extremes, min)
CN__ROW(cn__reducers, extremes, argmax)
CN__ROW(cn__reducers, extremes, argmin)
CN__ROWS_END(extremes)

#endif
