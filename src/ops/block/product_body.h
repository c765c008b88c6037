/* Template: matrices with strides and their product on the calling thread, for one element type T. Other templates
   include it; T and NAME must be defined. */
#include "cpu/gemm.h"

typedef struct NAME(matrix) {
    const T *v;
    int64_t row, col;
    int64_t packed; /* not 0: v was written by cn__gemm_pack_b from this many rows */
} NAME(matrix);

static NAME(matrix) NAME(transposed)(NAME(matrix) m) { return (NAME(matrix)){ m.v, m.col, m.row, 0 }; }

/* C (rows, cols) = X (rows, inner) · Y (inner, cols), or += with `add`. Y may be packed. scratch has
   cn__gemm_alone_scratch bytes. */
static void NAME(product)(const cn__gemm_kernel *kernel, void *scratch, bool add, int64_t rows, int64_t cols,
                          int64_t inner, NAME(matrix) x, NAME(matrix) y, T *c, int64_t c_row, int64_t c_col)
{
    const cn__gemm g = { .kernel = kernel,
                         .accumulate = add,
                         .m = rows,
                         .n = cols,
                         .k = inner,
                         .a = x.v,
                         .a_row = x.row,
                         .a_col = x.col,
                         .b = y.v,
                         .b_row = y.row,
                         .b_col = y.col,
                         .b_packed = y.packed,
                         .c = c,
                         .c_row = c_row,
                         .c_col = c_col };
    cn__gemm_run_alone(&g, scratch);
}
