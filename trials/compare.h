/* compare.h: results read out of tensors and compared with each other, bit for bit or as numbers. */
#ifndef TRIALS_COMPARE_H
#define TRIALS_COMPARE_H

#include "cairn/cairn.h"

typedef struct output {
    bool present;
    cn_dtype dtype;
    cn_dims shape;
    int64_t numel;
    char *data;
} output;

bool take_output(output *o, cn_tensor *t); /* false: an error stands in the context. NULL gives an absent one */
void free_outputs(output *o, int n);
double output_at(const output *o, int64_t i);

/* Where two results differ first. */
typedef struct difference {
    char words[160];
} difference;

bool same_bits(const output *expected, const output *got, difference *d); /* any NaN is any other NaN */

/* |expected - got| <= relative · max(1, scale, |expected|), with NaN for NaN and inf for inf. Whole numbers must be
   equal, modulo the size of their type. `relative` 0: equal once rounded to the dtype. */
typedef struct tolerance {
    double relative, scale;
} tolerance;
bool close_to(const double *expected, const output *got, tolerance t, difference *d);

#endif
