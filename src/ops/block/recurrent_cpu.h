/* recurrent_cpu.h: the CPU kernels of recurrent layers and their backward operator. */
#ifndef CN_BLOCK_RECURRENT_CPU_H
#define CN_BLOCK_RECURRENT_CPU_H

#include "cairn/op.h"
#include "cpu/gemm.h"

/* One call: sizes, and what lies in scratch memory. A unit is a column of the state; threads share the rows of the
   batch, or the units in `parts` parts. */
typedef struct cn__recurrent {
    int64_t kind, gates, steps, batch, width, parts;
    bool reverse;
    const int64_t *lengths; /* steps of each row of the batch; NULL: all */
    const void *bias;       /* (G·H); zeros if there is none. NULL backward */
    const cn__gemm_kernel *gemm;
    char *state; /* (2, B, state_row): what the product reads; a step reads one copy and writes the other */
    int64_t state_row;
    char *packed;        /* w for the product of each part */
    int64_t packed_step; /* bytes */
    char *product; /* (parts, B, product_row): the product of each part; gate g of unit u at column g·(units) + u */
    int64_t product_row;
} cn__recurrent;

/* The time of step number s. */
static inline int64_t cn__recurrent_step(const cn__recurrent *r, int64_t s)
{
    return r->reverse ? r->steps - 1 - s : s;
}

/* Whether time t belongs to the sequence of row i. */
static inline bool cn__recurrent_has(const cn__recurrent *r, int64_t t, int64_t i)
{
    return !r->lengths || t < r->lengths[i];
}

/* The first unit of a part; the last unit + 1 is the first of the next part. */
static inline int64_t cn__recurrent_unit(const cn__recurrent *r, int64_t part) { return r->width * part / r->parts; }

/* The gates of rows [begin, end) and of a part's units in step number s, after its product. The backward kernel counts
   steps from the last, s = 0, and has one more for the gradient of the first state. */
typedef void (*cn__recurrent_body)(const cn_kernel *k, const cn__recurrent *r, int64_t s, int64_t part, int64_t begin,
                                   int64_t end);

typedef struct cn__recurrent_kernels {
    cn__recurrent_body forward[2], backward[2]; /* f32, f64 */
} cn__recurrent_kernels;

/* recurrent_run.c: the operators on the CPU */
void cn__recurrent_cpu(const cn_kernel *k);
void cn__recurrent_backward_cpu(const cn_kernel *k);
size_t cn__recurrent_scratch(const cn_kernel *k, int threads);
size_t cn__recurrent_backward_scratch(const cn_kernel *k, int threads);

#endif
