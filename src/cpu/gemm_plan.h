/* cpu/gemm_plan.h: how a product is divided; gemm.c runs it. Sizes and strides alone decide.
 *
 * C is divided into blocks of rows and columns. k is divided into slices so short that what a register tile reads of B
 * stays in the L1 cache. An operand that several blocks read is packed once, by all threads, before the first block
 * begins. An operand that one block reads is packed by that block, just before use or during its first use. An operand
 * that is used too seldom to repay packing is read in place. If what is packed once would take much memory, a round packs
 * and multiplies some slices of k and some columns at a time.
 *
 * If C is too small for enough blocks and k is long, slices of k are multiplied apart: each into a matrix of its own.
 * Then these matrices are added to C in the order of the slices, so the bits are the same. */
#ifndef CN_CPU_GEMM_PLAN_H
#define CN_CPU_GEMM_PLAN_H

#include "gemm.h"

enum {
    CN__GEMM_SLICE = 384,           /* longest slice of k: a panel of B is 24 KB */
    CN__GEMM_BLOCK_BYTES = 1 << 18, /* of a slice of A that a block reads: half of the L2 cache */
    CN__GEMM_GROUP = 4,             /* panels of B that a block packs at a time for itself */
    CN__GEMM_WIDENED = 1 << 14,     /* halves that are widened at a time, before they are packed */
};

/* Where blocks read an operand. ON_THE_WAY: packed during its first use. */
typedef enum cn__gemm_source {
    CN__IN_PLACE,
    CN__PACKED_ON_THE_WAY,
    CN__PACKED_BY_BLOCK,
    CN__PACKED_ONCE,
    CN__GIVEN_PACKED
} cn__gemm_source;

typedef struct cn__gemm_plan {
    cn__gemm g; /* as computed: with the batch folded into rows, perhaps transposed */
    const cn__gemm_kernel *kernel;
    int64_t size; /* of an element of C, and of packed A and B */
    int64_t a_size, b_size;
    int64_t fold;       /* rows of the product as given; g.m is a multiple of it */
    bool transposed;    /* g computes C' = B'·A' */
    bool alone;         /* run by one thread, with little scratch */
    int64_t items;      /* batch items of g */
    int64_t rows, cols; /* of a block */
    int64_t row_blocks, col_blocks;
    int64_t group;      /* blocks in a part */
    bool apart;         /* slices of k are multiplied apart */
    bool dot;           /* C is a single element; each lane of a panel computes one slice */
    int64_t round;      /* slices of k that are packed, or multiplied apart, at a time */
    int64_t round_cols; /* blocks of columns that are multiplied at a time */
    int64_t lines;      /* rows of C as given to which a part adds the slices */
    cn__gemm_source a, b;
    int64_t a_tiles, b_panels;                 /* of a batch item in a round, if packed once */
    size_t counters, a_shared, b_shared, sums; /* bytes of scratch that threads share */
    size_t a_own, b_own, widened;              /* bytes of scratch for each thread */
} cn__gemm_plan;

/* Not `alone`: for cn__gemm_run. False: C is empty. */
bool cn__gemm_make_plan(cn__gemm_plan *p, const cn__gemm *g, bool alone);

/* The length of a slice of k. The last slice may be shorter. */
static inline int64_t cn__gemm_step(int64_t k)
{
    return k <= CN__GEMM_SLICE ? cn__larger(k, 1) : cn__divide_up(k, cn__divide_up(k, CN__GEMM_SLICE));
}

static inline int64_t cn__gemm_slices(const cn__gemm_plan *p) { return cn__divide_up(p->g.k, cn__gemm_step(p->g.k)); }

/* Rows of B that a round packs. */
static inline int64_t cn__gemm_round_rows(const cn__gemm_plan *p)
{
    return cn__smaller(p->g.k, p->round * cn__gemm_step(p->g.k));
}

static inline int64_t cn__gemm_blocks(const cn__gemm_plan *p) { return p->items * p->row_blocks * p->col_blocks; }

#endif
