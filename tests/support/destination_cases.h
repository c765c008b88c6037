/* destination_cases.h: programs whose kernels can write results where they are wanted: as a permuted copy, as parts of a joined
   tensor, as a kernel reads them. */
#ifndef TESTS_DESTINATION_CASES_H
#define TESTS_DESTINATION_CASES_H

#include "cairn/cairn.h"

typedef struct given {
    cn_ctx *cn;
    cn_tensor *qkv;           /* (B, T, 3, H, D) */
    cn_tensor *w;             /* (H·D, 20) */
    cn_tensor *a, *b, *c, *d; /* (2, 3, 5, 4), (4, 7), (5, 7), (7, 4) */
    cn_tensor *ints[2];       /* (3, 5, 4), (4, 6) */
    cn_tensor *signs;         /* (2, 3, 4), many of them -0 */
    cn_tensor *p, *pa;        /* qkv and a, as parameters */
} given;

enum { B = 2, T = 9, H = 3, D = 8 };

given given_new(cn_ctx *cn);
cn_tensor *ready(cn_tensor *x); /* kept and computed */
cn_tensor *gradient(cn_tensor *loss, cn_tensor *of);
cn_tensor *attend(cn_tensor *qkv, bool causal); /* → (B, H, T, D) */
cn_tensor *side_by_side(cn_tensor *heads);      /* (B, H, T, D) → (B, T, H·D) */

typedef struct home_case {
    const char *name;
    cn_tensor *(*run)(const given *g);
    const char *with, *without; /* names of steps, separated by spaces; NULL: none */
} home_case;

extern const home_case destination_cases[];
extern const int n_destination_cases;

/* The last values of a program drawn by the seed, joined; or a gradient of its loss. p: (3, 4, 3, 4) */
cn_tensor *random_program(uint64_t seed, cn_tensor *p);

#endif
