/* bench_limits: what the machine gives, to compare workloads with: multiplications from registers and memory.

       bench_limits [--threads N]        without it: for one thread, then for two
       bench_limits --gain N             by how much N threads are faster than one now: less than N on a shared machine

   The register tile of products multiplies a panel that stays in the L1 cache: no product can be faster. Memory is read,
   written and copied in arrays much larger than the caches. Each figure is the best of many short turns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/workers.h"
#include "ops/kernels.h"

enum {
    DEPTH = 256,        /* rows of a panel: with a tile of A it fills less than the L1 cache */
    TILES = 2000,       /* in a turn */
    ELEMENTS = 1 << 26, /* floats in an array: 256 MB */
    PARTS = 64,         /* of an array */
    TURNS = 15,
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static float *floats(size_t n)
{
    float *v = aligned_alloc(64, n * sizeof *v);
    if (!v) abort();
    for (size_t i = 0; i < n; i++) v[i] = 1.0f / 3;
    return v;
}

/* The least time of a run on all threads. */
static double least(cn__workers *w, int turns, int64_t parts, cn__work body, void *user)
{
    double best = 1e9;
    for (int turn = 0; turn < turns; turn++) {
        const double start = now();
        cn__workers_run(w, parts, body, user);
        const double took = now() - start;
        if (took < best) best = took;
    }
    return best;
}

static void multiply_tiles(void *user, int64_t part, int thread)
{
    (void)part, (void)thread;
    const cn__gemm_kernel *kernel = user;
    float *a = floats((size_t)(DEPTH * kernel->rows)), *b = floats((size_t)(DEPTH * kernel->width)),
          *c = floats((size_t)(kernel->rows * kernel->width));
    cn__gemm_block tile = { .m = kernel->rows,
                            .n = kernel->width,
                            .k = DEPTH,
                            .a = a,
                            .a_row = 1,
                            .a_col = kernel->rows,
                            .b = b,
                            .b_row = kernel->width,
                            .c = c,
                            .c_row = kernel->width,
                            .c_col = 1 };
    for (int i = 0; i < TILES; i++) kernel->multiply(&tile);
    free(a), free(b), free(c);
}

typedef struct arrays {
    float *from, *to;
    float sums[PARTS];
} arrays;

static void read_part(void *user, int64_t part, int thread)
{
    (void)thread;
    arrays *x = user;
    const float *from = x->from + part * (ELEMENTS / PARTS);
    float sums[64] = { 0 }; /* many, so that the compiler adds vectors */
    for (int64_t i = 0; i < ELEMENTS / PARTS; i += 64)
        for (int k = 0; k < 64; k++) sums[k] += from[i + k];
    for (int k = 0; k < 64; k++) x->sums[part] += sums[k];
}

static void write_part(void *user, int64_t part, int thread)
{
    (void)thread;
    arrays *x = user;
    memset(x->to + part * (ELEMENTS / PARTS), 0, ELEMENTS / PARTS * sizeof(float));
}

static void copy_part(void *user, int64_t part, int thread)
{
    (void)thread;
    arrays *x = user;
    const int64_t first = part * (ELEMENTS / PARTS);
    memcpy(x->to + first, x->from + first, ELEMENTS / PARTS * sizeof(float));
}

static void measure(int threads)
{
    cn__kernels kernels;
    cn__kernels_fill(&kernels, cn__isa_best());
    cn__workers *w = cn__workers_open(threads);
    if (!w) abort();
    const cn__gemm_kernel *kernel = kernels.gemm.of[0];
    const double flops = 2.0 * kernel->rows * kernel->width * DEPTH * TILES * threads;
    arrays x = { .from = floats(ELEMENTS), .to = floats(ELEMENTS) };
    const double gigabytes = ELEMENTS * sizeof(float) * 1e-9;
    printf("%d thread%s: products %.0f GFLOP/s (f32); memory: read %.1f, written %.1f, copied %.1f GB/s\n", threads,
           threads > 1 ? "s" : "", flops / least(w, TURNS, threads, multiply_tiles, (void *)kernel) * 1e-9,
           gigabytes / least(w, TURNS, PARTS, read_part, &x), gigabytes / least(w, TURNS, PARTS, write_part, &x),
           2 * gigabytes / least(w, TURNS, PARTS, copy_part, &x));
    free(x.from), free(x.to);
    cn__workers_close(w);
}

static double gain(int threads)
{
    enum { FEW = 3 };
    cn__kernels kernels;
    cn__kernels_fill(&kernels, cn__isa_best());
    cn__workers *one = cn__workers_open(1), *all = cn__workers_open(threads);
    if (!one || !all) abort();
    void *kernel = (void *)kernels.gemm.of[0];
    const double alone = least(one, FEW, 1, multiply_tiles, kernel),
                 together = least(all, FEW, threads, multiply_tiles, kernel);
    cn__workers_close(one), cn__workers_close(all);
    return threads * alone / together;
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        measure(1);
        measure(2);
        return 0;
    }
    if (argc == 3 && !strcmp(argv[1], "--threads") && atoi(argv[2]) > 0) {
        measure(atoi(argv[2]));
        return 0;
    }
    if (argc == 3 && !strcmp(argv[1], "--gain") && atoi(argv[2]) > 0) {
        printf("%.2f\n", gain(atoi(argv[2])));
        return 0;
    }
    printf("usage: bench_limits [--threads N | --gain N]\n");
    return strcmp(argv[1], "--help") != 0;
}
