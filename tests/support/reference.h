/* reference.h: the slow, obvious version of each operator, in f64, that the tests hold every kernel against. */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H

#include "trials/make.h" /* ref_tensor: a tensor as the references see it */

typedef struct ref_call {
    int n_in, n_out;
    const ref_tensor *in;
    ref_tensor *out;        /* shapes set, v to fill */
    const void *attrs;
    const cn_arg *args;
} ref_call;

typedef struct ref_entry {
    const char *op;
    void (*fn)(const ref_call *call);
} ref_entry;

/* Each family's table ends with { NULL, NULL }. */
extern const ref_entry ref_map[], ref_create[], ref_reduce[], ref_scan[], ref_view[], ref_join[], ref_index[], ref_window[],
    ref_contract[], ref_block[], ref_fft[], ref_linalg[], ref_optim[];

/* Those of ref_block in a file of their own. */
void ref_recurrent(const ref_call *c), ref_recurrent_backward(const ref_call *c);
/* Those of ref_window in a file of their own. */
void ref_interpolate(const ref_call *c), ref_grid_sample(const ref_call *c), ref_affine_grid(const ref_call *c);
void ref_im2col(const ref_call *c), ref_col2im(const ref_call *c);

#endif
