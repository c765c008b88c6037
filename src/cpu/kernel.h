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

/* Operand number `operand` in another form, if it is a weight that does not change (cn__storage_fix): *made says whether
   it is there already, or new memory of so many bytes that the kernel fills. It is kept for the next runs. `detail` is
   all that decides the form besides the operand. NULL: the operand is nothing of the kind; the kernel makes the form in
   its scratch memory. Call it before work is shared. */
typedef enum cn__form_kind {
    CN__FORM_PANELS = 1,
    CN__FORM_PIXELS,
    CN__FORM_SQUARES,
    CN__FORM_GATES,
    CN__FORM_WHOLE
} cn__form_kind;
void *cn__kernel_form(const cn_kernel *k, int operand, cn__form_kind kind, uint64_t detail, size_t bytes, bool *made);

/* The table of kernels of a context on the CPU; NULL: the context is on another device. */
struct cn__kernels *cn__cpu_kernels(const cn_ctx *ctx);

#endif
