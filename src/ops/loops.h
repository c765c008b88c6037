/* ops/loops.h: the loops of an elementwise operator, and the reducers of a reduction, as an entry of a kernel table. */
#ifndef CN_OPS_LOOPS_H
#define CN_OPS_LOOPS_H

#include "cairn/op.h"

/* By element type. */
typedef cn_loop_fn cn__loops[CN_DTYPES];
typedef const cn_reducer *cn__reducers[CN_DTYPES];

#endif
