/* ops/loops.h: tables of loops of elementwise operators, and of reducers. A header declares a table, row by row, and a
   kernel file defines it:

       CN__ROWS(unary)                            CN__TABLE(unary)
       CN__ROW(cn__loops, unary, exp)             CN__FILL(cn__loops, unary, exp, [CN_F32] = exp_loop_f32, ...)
       CN__ROWS_END(unary)                        CN__TABLE_END

   A table is a struct, of which a context has a copy (ops/kernels.h). On the web, where there is one instruction set, each
   row is an object of its own, to which the operator's record points: so the linker leaves out the loops of operators that
   a program does not use. */
#ifndef CN_OPS_LOOPS_H
#define CN_OPS_LOOPS_H

#include "cairn/op.h"
#include "cpu/isa.h"

/* By element type. */
typedef cn_loop_fn cn__loops[CN_DTYPES];
typedef const cn_reducer *cn__reducers[CN_DTYPES];

#if defined(__wasm__)
#define CN__ROWS(table)
#define CN__ROW(type, table, name) extern const type cn__##table##_##name##_row;
#define CN__ROWS_END(table)
#define CN__TABLE(table)
#define CN__FILL(type, table, name, ...) const type cn__##table##_##name##_row = { __VA_ARGS__ };
#define CN__TABLE_END
#else
#define CN__ROWS(table)                  typedef struct cn__##table##_kernels {
#define CN__ROW(type, table, name)       type name;
#define CN__ROWS_END(table)              } cn__##table##_kernels;
#define CN__TABLE(table)                 const cn__##table##_kernels CN__FOR_ISA(cn__##table##_kernels) = {
#define CN__FILL(type, table, name, ...) .name = { __VA_ARGS__ },
#define CN__TABLE_END                    };
#endif

#endif
