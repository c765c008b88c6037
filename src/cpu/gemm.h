/* cpu/gemm.h: C = A·B or C += A·B for f32 and f64, with any strides and any batch.
 *
 *     cn__gemm g = {.kernel = cn__kernel_gemm(k, CN_F32),   // ops/kernels.h
 *                   .m = 2, .n = 3, .k = 4, .a = a, .a_row = 4, .a_col = 1, .b = b, .b_row = 3, .b_col = 1,
 *                   .c = c, .c_row = 3, .c_col = 1};
 *     void *scratch = ...;                       // cn__gemm_scratch(&g, cn__workers_count(w)) bytes, 64-byte aligned
 *     cn__gemm_run(&g, w, scratch);
 *
 * Nothing is allocated and nothing fails. The bits of an element of C depend only on its row of A, its column of B, k
 * and the instruction set: not on m, n, strides, batch or threads. (k is divided into equal slices of at most 384. A
 * slice is summed in ascending order from zero; the slices are added to C in ascending order.) */
#ifndef CN_CPU_GEMM_H
#define CN_CPU_GEMM_H

#include "gemm_cpu.h"
#include "workers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CN__GEMM_BATCH_DIMS = 6 };

/* Called when rows [row_begin, row_end) of a batch item are final, by the thread that finished them. Batch items are
 * numbered in row-major order of batch_shape. Every row is reported once; nothing is reported if C is empty. */
typedef void (*cn__gemm_done)(void *user, int64_t batch, int64_t row_begin, int64_t row_end, int thread);

/* How elements of A or B are stored: in the type they are computed in, or as halves, which packing widens to f32. */
typedef enum cn__gemm_storage { CN__GEMM_PLAIN, CN__GEMM_F16, CN__GEMM_BF16 } cn__gemm_storage;

/* Strides are in elements. Those of A and B may be 0 or negative. Elements of C overlap neither each other nor A
 * nor B. */
typedef struct cn__gemm {
    const cn__gemm_kernel *kernel;         /* for f32 or f64, of the instruction set in use */
    cn__gemm_storage a_storage, b_storage; /* halves only with f32 */
    bool accumulate;                       /* C += A·B, else C = A·B */
    int64_t m, n, k;                       /* (m,k)·(k,n) -> (m,n); k = 0 gives zeros */
    const void *a;
    int64_t a_row, a_col;
    const void *b;
    int64_t b_row, b_col;
    int64_t b_packed; /* not 0: b was packed by cn__gemm_pack_b from this many rows; b_row and b_col are ignored */
    void *c;
    int64_t c_row, c_col;
    int batch_dims; /* 0..6 */
    int64_t batch_shape[CN__GEMM_BATCH_DIMS];
    int64_t a_batch[CN__GEMM_BATCH_DIMS], b_batch[CN__GEMM_BATCH_DIMS], c_batch[CN__GEMM_BATCH_DIMS]; /* 0: broadcast */
    cn__gemm_done done;                                                                               /* may be NULL */
    void *user;
} cn__gemm;

/* Bytes of scratch that cn__gemm_run needs. They depend on sizes, strides and threads, not on the pointers. */
size_t cn__gemm_scratch(const cn__gemm *g, int threads);

/* scratch: 64-byte aligned, of the size for cn__workers_count(w) threads. Its contents do not matter. */
void cn__gemm_run(const cn__gemm *g, cn__workers *w, void *scratch);

/* Computes the same bits on the calling thread alone, for kernels that share their own work among threads. `done` is
 * not called. scratch: cn__gemm_alone_scratch bytes, 64-byte aligned, enough for any sizes. */
size_t cn__gemm_alone_scratch(const cn__gemm_kernel *kernel);
void cn__gemm_run_alone(const cn__gemm *g, void *scratch);

/* Packs B once for many calls of run_alone. `to` has cn__gemm_pack_bytes(kernel, k, n) bytes, 64-byte aligned. A
 * product with .b = to and .b_packed = k may use all of B, its first rows, or its first columns. B must have neither a
 * batch nor halves. The bits are those of the product with B itself.
 *
 *     cn__gemm_pack_b(kernel, packed, k, n, b, n, 1);
 *     g.b = packed, g.b_packed = k;
 *     for (...) cn__gemm_run_alone(&g, scratch); */
size_t cn__gemm_pack_bytes(const cn__gemm_kernel *kernel, int64_t k, int64_t n);
void cn__gemm_pack_b(const cn__gemm_kernel *kernel, void *to, int64_t k, int64_t n, const void *b, int64_t b_row,
                     int64_t b_col);

/* The same bits without any choice of how to divide the product: for many small products whose B was packed. C has room
 * for n rounded up to whole panels of kernel->width columns. */
void cn__gemm_run_packed(const cn__gemm *g);

#endif
