/* Times matrix products in f32: GFLOP/s of Cairn (cpu/gemm.h), OpenBLAS, BLIS and oneDNN.

       bench_gemm [--threads N]          without it: a table for one thread, then one for two

   The libraries are loaded at run time; a library that is not installed is shown as "-". */
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cpu/gemm.h"
#include "ops/kernels.h"

/* ---- shapes ---- */

/* (m,k)·(k,n), all row-major. at: A is stored (k,m). bt: B is stored (n,k). batch: so many independent products. */
typedef struct shape {
    int m, k, n;
    bool at, bt;
    int batch;
} shape;

static const shape shapes[] = {
    { 32, 32, 32, .batch = 1 },
    { 64, 64, 64, .batch = 1 },
    { 128, 128, 128, .batch = 1 },
    { 256, 256, 256, .batch = 1 },
    { 512, 512, 512, .batch = 1 },
    { 1024, 1024, 1024, .batch = 1 },
    { 2048, 2048, 2048, .batch = 1 },
    { 64, 784, 128, .batch = 1 },
    { 64, 128, 10, .batch = 1 },
    { 1024, 128, 512, .batch = 1 },
    { 1024, 512, 128, .batch = 1 },
    { 64, 32, 64, .batch = 48 },
    { 768, 64, 64, .batch = 48 },
    { 768, 128, 384, .bt = true, .batch = 1 },
    { 1024, 384, 1152, .bt = true, .batch = 1 },
    { 1024, 384, 1152, .at = true, .batch = 1 },
    { 128, 1024, 1024, .bt = true, .batch = 1 },
    { 128, 1024, 1024, .at = true, .batch = 1 },
    { 32, 100000, 32, .batch = 1 },
    { 64, 8192, 64, .at = true, .batch = 1 },
    { 10, 60000, 128, .at = true, .batch = 1 },
    { 1, 1000000, 1, .batch = 1 },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static struct operands {
    float *a, *b, *c;
    double *expected; /* the first row of each batch item, by the definition */
} data;

/* ---- libraries ---- */

typedef void (*cblas_fn)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                         const float *b, int ldb, float beta, float *c, int ldc);
typedef int (*dnnl_fn)(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                       const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

typedef struct library {
    const char *name, *package, *files[4];
    bool dnnl; /* false: its interface is cblas */
    void (*entry)(void);
} library;

static library libraries[] = {
    { .name = "OpenBLAS", .package = "libopenblas0-pthread", .files = { "libopenblas.so.0", "libopenblas.so" } },
    { .name = "BLIS", .package = "libblis4-pthread", .files = { "libblis.so.4", "libblis.so" } },
    { .name = "oneDNN",
      .package = "libdnnl3 (Debian 12: libdnnl2)",
      .files = { "libdnnl.so.3", "libdnnl.so.2", "libdnnl.so" },
      .dnnl = true },
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries, OURS = LIBRARIES, RUNNERS };

static cn__workers *workers;
static cn__kernels kernels; /* of the fastest instruction set */
static void *scratch;

/* A library reads its number of threads when it is loaded. RTLD_LOCAL: two of them have a cblas_sgemm. */
static void load_libraries(int threads)
{
    static const char *const variables[] = { "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS" };
    char text[16];
    snprintf(text, sizeof text, "%d", threads);
    for (int i = 0; i < 3; i++) setenv(variables[i], text, 1);
    for (int i = 0; i < LIBRARIES; i++) {
        library *l = &libraries[i];
        void *handle = NULL;
        for (int k = 0; !handle && k < 4 && l->files[k]; k++) handle = dlopen(l->files[k], RTLD_NOW | RTLD_LOCAL);
        void *entry = handle ? dlsym(handle, l->dnnl ? "dnnl_sgemm" : "cblas_sgemm") : NULL;
        memcpy(&l->entry, &entry, sizeof entry); /* ISO C cannot cast an object pointer to a function pointer */
    }
}

static void ours(const shape *s)
{
    cn__gemm g = { .kernel = kernels.gemm.of[0],
                   .m = s->m,
                   .n = s->n,
                   .k = s->k,
                   .a = data.a,
                   .a_row = s->at ? 1 : s->k,
                   .a_col = s->at ? s->m : 1,
                   .b = data.b,
                   .b_row = s->bt ? 1 : s->n,
                   .b_col = s->bt ? s->k : 1,
                   .c = data.c,
                   .c_row = s->n,
                   .c_col = 1,
                   .batch_dims = s->batch > 1,
                   .batch_shape = { s->batch },
                   .a_batch = { (int64_t)s->m * s->k },
                   .b_batch = { (int64_t)s->k * s->n },
                   .c_batch = { (int64_t)s->m * s->n } };
    if (!scratch) {
        size_t bytes = (cn__gemm_scratch(&g, cn__workers_count(workers)) + 63) / 64 * 64;
        scratch = aligned_alloc(64, bytes ? bytes : 64);
        if (!scratch) abort();
    }
    cn__gemm_run(&g, workers, scratch);
}

static void theirs(const library *l, const shape *s)
{
    enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };
    int lda = s->at ? s->m : s->k, ldb = s->bt ? s->k : s->n;
    for (int i = 0; i < s->batch; i++) {
        const float *a = data.a + (size_t)i * s->m * s->k, *b = data.b + (size_t)i * s->k * s->n;
        float *c = data.c + (size_t)i * s->m * s->n;
        if (l->dnnl)
            ((dnnl_fn)l->entry)(s->at ? 'T' : 'N', s->bt ? 'T' : 'N', s->m, s->n, s->k, 1, a, lda, b, ldb, 0, c, s->n);
        else
            ((cblas_fn)l->entry)(ROW_MAJOR, s->at ? TRANS : NO_TRANS, s->bt ? TRANS : NO_TRANS, s->m, s->n, s->k, 1, a,
                                 lda, b, ldb, 0, c, s->n);
    }
}

static void product(int who, const shape *s)
{
    if (who == OURS) ours(s);
    else theirs(&libraries[who], s);
}

/* ---- operands, and a check of the results ---- */

static float *random_floats(size_t n)
{
    float *v = aligned_alloc(64, (n * sizeof *v + 63) / 64 * 64);
    if (!v) abort();
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        v[i] = (float)(x >> 8) / (1 << 23) - 1;
    }
    return v;
}

static void make_operands(const shape *s)
{
    size_t m = (size_t)s->m, k = (size_t)s->k, n = (size_t)s->n, batch = (size_t)s->batch;
    data = (struct operands){ random_floats(batch * m * k), random_floats(batch * k * n), random_floats(batch * m * n),
                              calloc(batch * n, sizeof(double)) };
    if (!data.expected) abort();
    for (size_t i = 0; i < batch; i++)
        for (size_t col = 0; col < n; col++)
            for (size_t at = 0; at < k; at++) {
                double a = data.a[i * m * k + (s->at ? at * m : at)];
                double b = data.b[i * k * n + (s->bt ? col * k + at : at * n + col)];
                data.expected[i * n + col] += a * b;
            }
}

static bool right(const shape *s)
{
    const double near = 1e-3 + 1e-6 * s->k;
    for (int i = 0; i < s->batch; i++)
        for (int col = 0; col < s->n; col++)
            if (!(fabs(data.c[(size_t)i * s->m * s->n + col] - data.expected[i * s->n + col]) < near)) return false;
    return true;
}

static void free_operands(void)
{
    free(data.a);
    free(data.b);
    free(data.c);
    free(data.expected);
    free(scratch);
    scratch = NULL;
}

/* ---- timing ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds per call, measured over some 15 ms. */
static double measure(int who, const shape *s)
{
    /* Idle threads of another library spin before they sleep, and would use a core meanwhile. */
    if (cn__workers_count(workers) > 1) nanosleep(&(struct timespec){ .tv_nsec = 150000000 }, NULL);
    double start = now(), once;
    int calls = 0;
    do product(who, s), calls++;
    while (now() - start < 2e-3);
    once = (now() - start) / calls;
    int count = once < 15e-3 ? (int)(15e-3 / once) : 1;
    start = now();
    for (int i = 0; i < count; i++) product(who, s);
    return (now() - start) / count;
}

/* GFLOP/s of each library, measured in turns; 0: not installed, -1: a wrong result. */
static void race(const shape *s, double speed[RUNNERS])
{
    enum { ROUNDS = 9 };
    double flops = 2.0 * s->m * s->n * s->k * s->batch;
    for (int who = 0; who < RUNNERS; who++) speed[who] = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int who = 0; who < RUNNERS; who++) {
            if (who != OURS && !libraries[who].entry) continue;
            if (round == 0) {
                memset(data.c, 0xff, sizeof(float) * (size_t)s->batch * s->m * s->n); /* NaN */
                product(who, s);
                if (!right(s)) speed[who] = -1;
            }
            if (speed[who] >= 0) speed[who] = fmax(speed[who], flops / measure(who, s) * 1e-9);
        }
}

/* ---- the table ---- */

static void print_speed(double speed)
{
    if (speed > 0) printf(" %9.1f", speed);
    else printf(" %9s", speed < 0 ? "wrong" : "-");
}

static void table(int threads)
{
    cn__kernels_fill(&kernels, cn__isa_best());
    workers = cn__workers_open(threads);
    if (!workers) abort();
    load_libraries(threads);
    printf("GFLOP/s, f32, %d thread%s; the last column is Cairn's speed divided by the best of the others\n", threads,
           threads > 1 ? "s" : "");
    printf("%-22s %9s", "m x k x n", "Cairn");
    for (int i = 0; i < LIBRARIES; i++) printf(" %9s", libraries[i].name);
    printf(" %9s\n", "ratio");
    for (int i = 0; i < SHAPES; i++) {
        const shape *s = &shapes[i];
        char name[48], times[16] = "";
        if (s->batch > 1) snprintf(times, sizeof times, ", %d of", s->batch);
        snprintf(name, sizeof name, "%dx%dx%d%s%s", s->m, s->k, s->n, s->at ? " TN" : s->bt ? " NT" : "", times);
        double speed[RUNNERS], best = 0;
        make_operands(s);
        race(s, speed);
        free_operands();
        printf("%-22s", name);
        print_speed(speed[OURS]);
        for (int k = 0; k < LIBRARIES; k++) print_speed(speed[k]), best = fmax(best, speed[k]);
        if (best > 0 && speed[OURS] > 0) printf(" %9.2f\n", speed[OURS] / best);
        else printf(" %9s\n", "-");
        fflush(stdout);
    }
    for (int i = 0; i < LIBRARIES; i++)
        if (!libraries[i].entry)
            printf("%s is not installed: apt-get install %s\n", libraries[i].name, libraries[i].package);
    cn__workers_close(workers);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--threads") && atoi(argv[2]) > 0) {
        table(atoi(argv[2]));
        return 0;
    }
    if (argc > 1) {
        printf("usage: bench_gemm [--threads N]\n");
        return strcmp(argv[1], "--help") != 0;
    }
    /* One process for each number of threads, because libraries read it when they are loaded. */
    int bad = 0;
    for (int threads = 1; threads <= 2; threads++) {
        if (threads > 1) printf("\n");
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            table(threads);
            exit(0);
        }
        int status = 1;
        if (child > 0) waitpid(child, &status, 0);
        bad |= status != 0;
    }
    return bad;
}
