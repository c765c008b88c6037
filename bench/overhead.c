/* Times the engine itself: µs per node when a plan is found and when it is built, allocations per step, and planning
   time by the size of the graph. The tensors are tiny, so that arithmetic does not matter.

       bench_overhead [--steps N] [--products N]      products: length of the chain that a backward goes through */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cairn/cairn.h"

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

/* x + y + y + ... on four elements. */
static cn_tensor *chain(cn_tensor *x, cn_tensor *y, int n)
{
    for (int i = 0; i < n; i++) x = cn_add(x, y);
    return x;
}

static void bench_chain(int n, int steps)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1, .pending_limit = 1 << 20 });
    float v[4] = { 1, 2, 3, 4 };
    cn_tensor *x = cn_keep(cn_from(cn, CN_F32, CN_DIMS(4), v)), *y = cn_keep(cn_from(cn, CN_F32, CN_DIMS(4), v));
    double *hit = malloc(sizeof *hit * (size_t)steps), miss = 0;
    int64_t allocations = 0;
    for (int s = 0; s < steps; s++) {
        cn_scope scope = cn_scope_begin(cn);
        int64_t before = cn_count(cn).allocations;
        double t = now_us();
        cn_eval(chain(x, y, n));
        t = now_us() - t;
        if (s == 0) miss = t;
        else hit[s - 1] = t;
        cn_scope_end(cn, scope);
        allocations = cn_count(cn).allocations - before;
    }
    printf(
        "chain of %d additions    hit %7.3f us per node   miss %7.3f us per node   %lld allocations in the last step\n",
        n, median(hit, steps - 1) / n, miss / n, (long long)allocations);
    free(hit);
    cn_close(cn);
}

typedef struct mlp {
    cn_tensor *w[6], *m[6], *v[6];
} mlp;

static cn_tensor *forward(const mlp *p, cn_tensor *x)
{
    for (int l = 0; l < 3; l++) {
        x = cn_linear(x, p->w[2 * l], p->w[2 * l + 1]);
        if (l < 2) x = cn_relu(x);
    }
    return x;
}

static void bench_mlp(int steps)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    static const int64_t width[4] = { 2, 16, 16, 2 };
    mlp p;
    for (int l = 0; l < 3; l++) {
        p.w[2 * l] = cn_param(cn_mul_s(cn_randn(cn, CN_F32, CN_DIMS(width[l + 1], width[l])), 0.5));
        p.w[2 * l + 1] = cn_param(cn_zeros(cn, CN_F32, CN_DIMS(width[l + 1])));
    }
    for (int i = 0; i < 6; i++) {
        p.m[i] = cn_keep(cn_zeros_like(p.w[i]));
        p.v[i] = cn_keep(cn_zeros_like(p.w[i]));
    }
    cn_tensor *x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(16, 2))),
              *y = cn_keep(cn_randint(cn, CN_I64, 0, 2, CN_DIMS(16)));
    cn_eval_all(cn);
    double *hit = malloc(sizeof *hit * (size_t)steps), miss = 0;
    int64_t allocations = 0, nodes = 0, kernels = 0;
    for (int s = 0; s < steps; s++) {
        cn_counters before = cn_count(cn);
        double t = now_us();
        cn_scope scope = cn_scope_begin(cn);
        cn_backward(cn_cross_entropy(forward(&p, x), y, NULL));
        cn_adam_step(p.w, p.m, p.v, 6, &(cn_adam_step_desc){ .lr = 1e-3, .step = s + 1 });
        for (int i = 0; i < 6; i++) cn_zero_grad(p.w[i]);
        cn_eval_all(cn);
        cn_scope_end(cn, scope);
        t = now_us() - t;
        if (s == 0) miss = t;
        else hit[s - 1] = t;
        cn_counters after = cn_count(cn);
        allocations = after.allocations - before.allocations;
        nodes = after.nodes - before.nodes;
        kernels = after.kernels - before.kernels;
    }
    if (cn_failed(cn)) printf("failed: %s\n", cn_error(cn));
    double us = median(hit, steps - 1);
    printf(
        "mlp 2-16-16-2, Adam        hit %7.1f us per step (%lld nodes, %lld kernels: %.3f us per node)   miss %.0f us   %lld allocations in the last step\n",
        us, (long long)nodes, (long long)kernels, us / (double)nodes, miss, (long long)allocations);
    free(hit);
    cn_close(cn);
}

/* Counts the bytes that a context has and had at most. */
typedef struct meter {
    size_t live, peak;
} meter;

static void *metered(void *user, void *p, size_t old_bytes, size_t new_bytes)
{
    meter *m = user;
    m->live += new_bytes - old_bytes;
    if (m->live > m->peak) m->peak = m->live;
    if (new_bytes) return realloc(p, new_bytes);
    free(p);
    return NULL;
}

/* Forward and backward through a chain of products of four elements by a 4 x 4 matrix. */
static void bench_backward(int n)
{
    meter m = { 0, 0 };
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1, .allocator = { metered, &m } });
    cn_tensor *w = cn_param(cn_eye(cn, CN_F32, 4, 4)), *x = cn_param(cn_ones(cn, CN_F32, CN_DIMS(4))), *y = x;
    double t0 = now_us();
    for (int i = 0; i < n; i++) y = cn_matmul(y, w);
    double t1 = now_us();
    const size_t forward = m.peak;
    cn_backward(cn_sum(y, CN_ALL, false));
    cn_eval(cn_grad_of(x));
    double t2 = now_us();
    if (cn_failed(cn)) printf("failed: %s\n", cn_error(cn));
    printf("backward over %7d products   forward %.2f us and %zu bytes, both %.2f us and %zu bytes for each: %.0f MB\n",
           n, (t1 - t0) / n, forward / (size_t)n, (t2 - t0) / n, m.peak / (size_t)n, (double)m.peak / 1e6);
    cn_close(cn);
}

/* A graph with branches, built and planned once. */
static void bench_planning(int n)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1, .pending_limit = 1 << 20 });
    float v[4] = { 1, 2, 3, 4 };
    cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(2, 2), v), *y = x;
    double t0 = now_us();
    for (int i = 0; i < n / 5; i++) {
        cn_tensor *a = cn_mul(x, y), *b = cn_matmul(a, y);
        x = cn_add(cn_tanh(b), cn_mul_s(a, 0.5));
    }
    double t1 = now_us();
    cn_eval(x);
    double t2 = now_us();
    printf("graph of %6d nodes       made in %8.1f us, planned and run in %9.1f us: %.3f us per node\n", n, t1 - t0,
           t2 - t1, (t2 - t0) / n);
    cn_close(cn);
}

int main(int argc, char **argv)
{
    int steps = 2000, products = 100000;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--steps") && i + 1 < argc) steps = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--products") && i + 1 < argc) products = atoi(argv[++i]);
        else {
            printf("usage: bench_overhead [--steps N] [--products N]\n");
            return strcmp(argv[i], "--help") != 0;
        }
    }
    if (steps < 3) steps = 3;
    if (products < 1) products = 1;
    bench_chain(1000, steps < 500 ? steps : 500);
    bench_mlp(steps);
    bench_planning(100);
    bench_planning(10000);
    bench_planning(100000);
    bench_backward(products);
    return 0;
}
