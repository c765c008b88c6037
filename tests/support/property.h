/* property.h: the properties that the tests try every case of every operator for, and how often each was tried. */
#ifndef TESTS_PROPERTY_H
#define TESTS_PROPERTY_H

#include "support/check.h"
#include "trials/trial.h"

typedef enum property {
    RECORD,
    FORWARD,
    LAYOUT,
    GRADIENT,
    SECOND_ORDER,
    EAGER,
    THREADS,
    REFUSAL,
    TIDY,
    PROPERTIES
} property;

/* A check that is counted under its property; words say what is wrong. Returns ok. */
bool expect(const trial *t, property p, bool ok, const char *what, const char *words);
void print_counts(int operators, int cases);

bool is_thin(const trial *t); /* a later case of a quick run: not everything is tried */

/* trial_gradients.c: first and second order against finite differences */
void try_gradients(cn_ctx *ctx, const trial *t);

#endif
