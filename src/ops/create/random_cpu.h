/* random_cpu.h: random words in bulk, and the loops of rand, randn, randint and bernoulli. */
#ifndef CN_CREATE_RANDOM_CPU_H
#define CN_CREATE_RANDOM_CPU_H

#include "ops/loops.h"

typedef struct cn__random_kernels {
    /* the words of cn__random_words (core/philox.h) */
    void (*words)(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint32_t *words);
    cn__loops rand, randn, randint, bernoulli;
} cn__random_kernels;

#endif
