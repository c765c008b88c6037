/* select_cpu.h: the loops of where. */
#ifndef CN_MAP_SELECT_CPU_H
#define CN_MAP_SELECT_CPU_H

#include "ops/loops.h"

CN__ROWS(select)
CN__ROW(cn__loops, select, where)
CN__ROWS_END(select)

#endif
