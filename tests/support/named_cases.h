/* named_cases.h: references written by tests/reference/named_cases.py: cases of named tensors, and how results are held
   against them.

       FILE *f = named_open(CAIRN_SOURCE_DIR "/tests/reference/recurrent.bin", &n);
       named_case c;
       while (named_next(f, cn, &c)) { ... cn_dict_get(c.d, "in.0") ... named_free(&c); } */
#ifndef TESTS_NAMED_CASES_H
#define TESTS_NAMED_CASES_H

#include <stdio.h>

#include "cairn/cairn.h"

typedef struct named_case {
    char name[64], options[512];
    cn_dict *d;
} named_case;

FILE *named_open(const char *path, int *cases); /* NULL: a failed check says so */
bool named_next(FILE *f, cn_ctx *ctx, named_case *c);
void named_free(named_case *c);

double named_option(const named_case *c, const char *key); /* of "key=value ..."; 0 if it is not there */
bool named_has(const named_case *c, const char *key);

cn_tensor *named_get(const named_case *c, const char *prefix, int number); /* "in.0"; NULL: not there */

/* Checks that got has the shape of what is expected, and its numbers: within relative · the largest of them; NaN where
   there is NaN. named_check: what is stored as `name`. */
bool named_compare(const named_case *c, const char *name, cn_tensor *expected, cn_tensor *got, double relative);
bool named_check(const named_case *c, const char *name, cn_tensor *got, double relative);

/* The sum of all outputs, each times the fixed wave that named_cases.weights gives for its number. */
cn_tensor *named_loss(cn_tensor *const *out, int n);

/* Gradients of the inputs (gi.K) and parameters (gp.NAME), after cn_backward. What has none stored must have none. */
void named_check_gradients(const named_case *c, cn_module *m, cn_tensor *const *in, int n_in, double relative);

#endif
