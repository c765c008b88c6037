/* random_cpu.h: random words in bulk, and the loops of rand, randn, randint and bernoulli. */
#ifndef CN_CREATE_RANDOM_CPU_H
#define CN_CREATE_RANDOM_CPU_H

#include "ops/loops.h"

typedef struct cn__random_kernels {
    /* the words of cn__random_words (core/philox.h) */
    void (*words)(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint32_t *words);
} cn__random_kernels;

CN__ROWS(draws)
CN__ROW(cn__loops, draws, rand)
CN__ROW(cn__loops, draws, randn)
CN__ROW(cn__loops, draws, randint)
CN__ROW(cn__loops, draws, bernoulli)
CN__ROWS_END(draws)

#endif
