/* model.h: what the models of both lists of workloads are made of: parameters, layers, a training step. */
#ifndef BENCH_MODEL_H
#define BENCH_MODEL_H

#include "cairn/cairn.h"

/* A workload: make() returns the argument of step(). Each workload runs in its own process, so make() may use static
   memory. */
typedef struct workload {
    const char *name, *text;
    void *(*make)(cn_ctx *cn);
    void (*step)(void *user);
} workload;
extern const workload reference_workloads[], extra_workloads[];
extern const int n_reference_workloads, n_extra_workloads;

struct bench_options;
/* Chosen by name, or without names as a member of the chosen list. */
bool bench_chosen(const char *name, const char *only, bool list);
/* Times a workload in a process of its own: seconds of a step. Returns 0, or an exit status after an error's line. */
int bench_time(const workload *w, const struct bench_options *o, double *seconds);

/* The parameters of a model, and Adam's state. */
enum { MOST_PARAMS = 256 };
typedef struct model {
    cn_ctx *cn;
    cn_tensor *p[MOST_PARAMS], *m[MOST_PARAMS], *v[MOST_PARAMS];
    int n, steps;
    double decay;
    bool sgd, f64;
    cn_tensor *x, *y;
} model;

typedef struct layer {
    cn_tensor *w, *b;
} layer;

cn_dtype model_dtype(const model *net);
cn_tensor *model_param(model *net, cn_tensor *t);
cn_tensor *model_uniform(model *net, cn_dims shape, double bound);
layer model_linear(model *net, int64_t in, int64_t out, bool bias);
layer model_affine(model *net, int64_t n);
void model_train(model *net, cn_tensor *loss); /* backward, one step of the optimizer, evaluation */
void model_print_plans(bool on);               /* model_train prints the plan of the second step */

/* A transformer block. */
struct block {
    layer ln1, ln2, qkv, proj, up, down;
};

typedef struct pair {
    cn_tensor *a, *b, *c;
} pair;

void *mlp_new(cn_ctx *cn, bool f64, int64_t batch, int layers, const int64_t *width);
void mlp_step(void *user);
void *gpt_new(cn_ctx *cn, int64_t vocab, int64_t context, int layers, int64_t heads, int64_t width, int64_t batch);
void gpt_step(void *user);

#endif
