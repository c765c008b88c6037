/* cpu/kernel.h: what the CPU kernels of operators use beyond cairn/op.h. */
#ifndef CN_CPU_KERNEL_H
#define CN_CPU_KERNEL_H

#include "cairn/op.h"
#include "cpu/workers.h"

cn__workers *cn__kernel_workers(const cn_kernel *k); /* the threads of the run that the kernel belongs to */

/* cn_kernel_done for the whole first result, by all threads: for a kernel whose result is final only at its end. */
void cn__kernel_done_all(const cn_kernel *k);

/* cn_kernel_done for rows of n elements, several rows at a time, because each call has a cost. Rows before `reported`
   have been reported, rows before `done` are final, `end` is the last row plus one. Returns the new `reported`. */
static inline int64_t cn__rows_done(const cn_kernel *k, int64_t reported, int64_t done, int64_t end, int64_t n,
                                    int thread)
{
    enum { ELEMENTS = 2048 };
    if (done < end && (done - reported) * n < ELEMENTS) return reported;
    cn_kernel_done(k, reported * n, done * n, thread);
    return done;
}

/* The table of kernels of a context on the CPU; NULL: the context is on another device. */
struct cn__kernels *cn__cpu_kernels(const cn_ctx *ctx);

#endif
