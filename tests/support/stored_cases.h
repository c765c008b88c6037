/* stored_cases.h: cases of another framework's results, read from a file (the format: tests/reference/make_layers.py).

       FILE *f = stored_cases_open(CAIRN_SOURCE_DIR "/tests/reference/layers.bin");
       for (stored_case c; stored_next(f, &c); stored_free(&c)) ...
       fclose(f); */
#ifndef TESTS_STORED_CASES_H
#define TESTS_STORED_CASES_H

#include <stdio.h>

#include "cairn/cairn.h"

typedef struct stored_tensor {
    char role[16], name[64];
    cn_dtype dtype;
    cn_dims shape;
    int64_t numel;
    void *data;
} stored_tensor;

typedef struct stored_case {
    char name[64], mode[16], words[256];
    cn_dtype dtype;
    stored_tensor v[48];
    int n;
} stored_case;

FILE *stored_cases_open(const char *path);       /* past its first line; NULL: not there */
bool stored_next(FILE *f, stored_case *c); /* false: no more, or damaged: then !feof(f) */
void stored_free(stored_case *c);

cn_tensor *stored_tensor_of(cn_ctx *cn, const stored_tensor *t);
/* The largest difference between t and what is stored, in units of the largest stored number. NaN or another shape: infinite. */
double stored_difference(const stored_tensor *expected, cn_tensor *t);

#endif
