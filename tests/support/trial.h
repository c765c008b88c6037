/* trial.h: one case of one operator, called in any context, and the properties it is tried for. */
#ifndef TESTS_TRIAL_H
#define TESTS_TRIAL_H

#include "support/check.h"
#include "support/compare.h"
#include "support/make.h"

typedef enum property { RECORD, FORWARD, LAYOUT, GRADIENT, SECOND_ORDER, EAGER, THREADS, REFUSAL, TIDY, PROPERTIES } property;

typedef struct trial {
    const cn_op *op;
    const cn_case *c;
    int number, n_in;
} trial;

/* A check that is counted under its property; words say what is wrong. Returns ok. */
bool expect(const trial *t, property p, bool ok, const char *what, const char *words);
void print_counts(int operators, int cases);

bool is_thin(const trial *t);                 /* a later case of a quick run: not everything is tried */
bool takes(const trial *t, cn_dtype dtype);   /* as the operator's record says */
bool has_grad(const cn_op *op);               /* of its own, or by what it is composed of */
bool is_differentiable(const trial *t, const inputs *x, int operand);

bool draw(const trial *t, cn_dtype dtype, test_layout layout, inputs *x); /* false: not possible in this dtype */
void make_tensors(cn_ctx *ctx, const inputs *x, test_layout layout, cn_tensor **in);
bool call(cn_ctx *ctx, const trial *t, cn_tensor *const *in, cn_tensor **out);

/* trial_gradients.c: first and second order against finite differences */
void try_gradients(cn_ctx *ctx, const trial *t);

#endif
