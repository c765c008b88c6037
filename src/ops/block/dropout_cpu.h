/* dropout_cpu.h: the CPU loops of dropout_mask. */
#ifndef CN_BLOCK_DROPOUT_CPU_H
#define CN_BLOCK_DROPOUT_CPU_H

#include "ops/loops.h"

CN__ROWS(dropout)
CN__ROW(cn__loops, dropout, mask)
CN__ROWS_END(dropout)

#endif
