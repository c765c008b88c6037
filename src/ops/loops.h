/* ops/loops.h: the loops of an elementwise operator as an entry of a kernel table. */
#ifndef CN_OPS_LOOPS_H
#define CN_OPS_LOOPS_H

#include "cairn/op.h"

typedef cn_loop_fn cn__loops[CN_DTYPES]; /* by element type */

#endif
