/* Times matrix products on the GPU: Cairn's kernels and a textbook kernel (a tile of 16 × 16 in workgroup memory, one
   sum per invocation). Prints the best of some runs in milliseconds, from the call until a number was read back, and the
   processor time of all cores, which matters for software GPUs on a shared machine.

       bench_gpu [RUNS]

   scripts/gpu.sh installs software GPUs. CAIRN_GPU_MATMUL=tiled|direct|block|plain chooses the form of Cairn's kernel. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cairn/cairn.h"
#include "gpu/gpu.h"

typedef struct workload {
    const char *name;
    int64_t batch, m, k, n;
    bool a_turned, b_turned; /* stored as (k, m), as (n, k) */
} workload;

static const workload workloads[] = {
    { "matmul 1024", 1, 1024, 1024, 1024, false, false },
    { "matmul 1024 NT", 1, 1024, 1024, 1024, false, true },
    { "matmul 1024 TN", 1, 1024, 1024, 1024, true, false },
    { "8 x 256", 8, 256, 256, 256, false, false },
    { "8 x 256 NT", 8, 256, 256, 256, false, true },
    { "48 x (64,32,64)", 48, 64, 32, 64, false, false },
    { "48 x (64,32,64) NT", 48, 64, 32, 64, false, true },
    { "weights (64,16384,64) TN", 1, 64, 16384, 64, true, false },
    { "row (1,1024,4096) NT", 1, 1, 1024, 4096, false, true },
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads, ENOUGH_MS = 3000 };

/* P: m, n, k, a, b, c, strides of a (batch, row, col), of b. */
static const char textbook[] =
    "@group(0) @binding(0) var<storage, read> P: array<u32>;\n"
    "@group(0) @binding(1) var<storage, read_write> h: array<f32>;\n"
    "var<workgroup> A: array<f32, 256>;\nvar<workgroup> B: array<f32, 256>;\n"
    "@compute @workgroup_size(16, 16)\n"
    "fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,\n"
    "        @builtin(local_invocation_id) l: vec3<u32>) {\n"
    "    let m = P[0]; let n = P[1]; let k = P[2];\n"
    "    let across = (n + 15u) / 16u; let down = (m + 15u) / 16u;\n"
    "    let group = w.x + w.y * groups.x;\n"
    "    let item = group / (across * down);\n"
    "    let row = (group / across % down) * 16u + l.y; let col = (group % across) * 16u + l.x;\n"
    "    var sum = 0.0;\n"
    "    for (var t = 0u; t < k; t += 16u) {\n"
    "        var a = 0.0; var b = 0.0;\n"
    "        if (row < m && t + l.x < k) { a = h[P[3] + item * P[6] + row * P[7] + (t + l.x) * P[8]]; }\n"
    "        if (col < n && t + l.y < k) { b = h[P[4] + item * P[9] + (t + l.y) * P[10] + col * P[11]]; }\n"
    "        A[l.y * 16u + l.x] = a; B[l.y * 16u + l.x] = b;\n"
    "        workgroupBarrier();\n"
    "        for (var i = 0u; i < 16u; i++) { sum += A[l.y * 16u + i] * B[i * 16u + l.x]; }\n"
    "        workgroupBarrier();\n"
    "    }\n"
    "    if (row < m && col < n) { h[P[5] + item * m * n + row * n + col] = sum; }\n"
    "}\n";

/* Milliseconds: by the clock, and of all processors, which run software GPUs. */
typedef struct spent {
    double wall, busy;
} spent;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double busy_ms(void) { return (double)clock() * 1e3 / CLOCKS_PER_SEC; }

static void keep_best(spent *best, double began, double busy)
{
    best->wall = fmin(best->wall, now_ms() - began);
    best->busy = fmin(best->busy, busy_ms() - busy);
}

static float *numbers(int64_t n, unsigned seed)
{
    float *v = malloc(sizeof *v * (size_t)n);
    for (int64_t i = 0; v && i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(seed >> 8) * 0x1p-23f - 1;
    }
    return v;
}

/* The last element of the result, to compare both kernels. */
static spent time_ours(cn_ctx *cn, const workload *w, const float *av, const float *bv, int runs, float *last)
{
    cn_scope outer = cn_scope_begin(cn);
    cn_tensor *a = cn_from(cn, CN_F32, w->a_turned ? CN_DIMS(w->batch, w->k, w->m) : CN_DIMS(w->batch, w->m, w->k), av);
    cn_tensor *b = cn_from(cn, CN_F32, w->b_turned ? CN_DIMS(w->batch, w->n, w->k) : CN_DIMS(w->batch, w->k, w->n), bv);
    if (w->a_turned) a = cn_transpose(a, 1, 2);
    if (w->b_turned) b = cn_transpose(b, 1, 2);
    spent best = { INFINITY, INFINITY };
    double start = now_ms();
    for (int i = 0; i <= runs && (i < 2 || now_ms() - start < ENOUGH_MS); i++) { /* the first run compiles shaders */
        cn_scope s = cn_scope_begin(cn);
        double began = now_ms(), busy = busy_ms();
        cn_tensor *y = cn_matmul(a, b);
        bool ok = cn_eval(y);
        y = cn_slice(cn_slice(cn_slice(y, 0, w->batch - 1, w->batch, 1), 1, w->m - 1, w->m, 1), 2, w->n - 1, w->n, 1);
        ok = ok && cn_read(y, last, sizeof *last);
        if (i > 0) keep_best(&best, began, busy);
        if (!ok) best.wall = NAN;
        cn_scope_end(cn, s);
    }
    cn_scope_end(cn, outer);
    return best;
}

static spent time_textbook(cn__gpu *g, cn__gpu_program *p, const workload *w, const float *av, const float *bv,
                           int runs, float *last)
{
    size_t na = (size_t)(w->batch * w->m * w->k), nb = (size_t)(w->batch * w->k * w->n);
    size_t nc = (size_t)(w->batch * w->m * w->n);
    cn__gpu_buffer *heap = cn__gpu_buffer_new(g, (na + nb + nc) * sizeof(float)), *params = cn__gpu_buffer_new(g, 64);
    const uint32_t m = (uint32_t)w->m, n = (uint32_t)w->n, k = (uint32_t)w->k;
    const uint32_t words[12] = { m,
                                 n,
                                 k,
                                 0,
                                 (uint32_t)na,
                                 (uint32_t)(na + nb),
                                 m * k,
                                 w->a_turned ? 1 : k,
                                 w->a_turned ? m : 1,
                                 k * n,
                                 w->b_turned ? 1 : n,
                                 w->b_turned ? k : 1 };
    bool ok = heap && params && cn__gpu_upload(g, heap, 0, av, na * sizeof *av) &&
              cn__gpu_upload(g, heap, na * sizeof *bv, bv, nb * sizeof *bv) &&
              cn__gpu_upload(g, params, 0, words, sizeof words);
    int64_t groups = w->batch * ((w->m + 15) / 16) * ((w->n + 15) / 16);
    spent best = { INFINITY, INFINITY };
    double start = now_ms();
    for (int i = 0; i <= runs && ok && (i < 2 || now_ms() - start < ENOUGH_MS); i++) {
        double began = now_ms(), busy = busy_ms();
        ok = cn__gpu_dispatch(g, p, 2, (cn__gpu_binding[]){ { params, 0, 0 }, { heap, 0, 0 } }, groups) &&
             cn__gpu_download(g, heap, (na + nb + nc - 1) * sizeof(float), last, sizeof *last);
        if (i > 0) keep_best(&best, began, busy);
    }
    cn__gpu_buffer_free(g, heap);
    cn__gpu_buffer_free(g, params);
    if (!ok) best.wall = NAN;
    return best;
}

static bool bench(cn_ctx *cn, cn__gpu *g, cn__gpu_program *p, const workload *w, int runs)
{
    float *a = numbers(w->batch * w->m * w->k, 1), *b = numbers(w->batch * w->k * w->n, 2), x = 0, y = 0;
    int64_t before = cn_gpu_counted(cn).pipelines;
    spent ours = { NAN, NAN }, theirs = ours;
    if (a && b) ours = time_ours(cn, w, a, b, runs, &x);
    if (a && b) theirs = time_textbook(g, p, w, a, b, runs, &y);
    double flops = 2e-6 * (double)(w->batch * w->m * w->k * w->n);
    bool same = fabsf(x - y) <= 1e-3f * (float)sqrt((double)w->k);
    printf("%-26s %9.2f ms (busy %8.1f) %6.2f GFLOP/s   16 x 16 tile %9.2f ms (busy %8.1f)   %5.1f times faster   "
           "%lld new pipelines%s\n",
           w->name, ours.wall, ours.busy, flops / ours.wall, theirs.wall, theirs.busy, theirs.wall / ours.wall,
           (long long)(cn_gpu_counted(cn).pipelines - before), same ? "" : "   WRONG");
    fflush(stdout);
    free(a);
    free(b);
    return same && isfinite(ours.wall) && isfinite(theirs.wall);
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? atoi(argv[1]) : 5;
    cn_ctx *cn = cn_open(&(cn_desc){ .device = "gpu", .seed = 1 }), *plain = cn_open(&(cn_desc){ .seed = 1 });
    cn_gpu_info info;
    if (!cn || !plain || !cn_gpu_available(cn) || !cn_gpu_describe(cn, 0, &info)) {
        printf("no GPU: %s\n", cn_gpu_why_not(cn));
        return 0;
    }
    printf("%s, %s, by %s\n", info.name, info.kind, info.implementation);
    cn__gpu *g = cn__gpu_open(plain, 0, NULL);
    cn__gpu_program *p =
        g ? cn__gpu_program_new(
                g,
                &(cn__gpu_program_desc){ .name = "textbook", .source = textbook, .bindings = 2, .group_bytes = 2048 })
          : NULL;
    bool ok = p != NULL;
    for (int i = 0; i < WORKLOADS && p; i++) ok = bench(cn, g, p, &workloads[i], runs < 1 ? 1 : runs) && ok;
    if (!ok) printf("failed: %s %s\n", cn_error(cn), cn_error(plain));
    printf("%lld pipelines in all\n", (long long)cn_gpu_counted(cn).pipelines);
    if (g) cn__gpu_program_free(g, p);
    cn__gpu_close(g);
    cn_close(plain);
    cn_close(cn);
    return ok ? 0 : 1;
}
