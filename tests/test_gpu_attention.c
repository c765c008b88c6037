/* Attention on the GPU against the CPU, in sizes that need several tiles: results, saved sums, gradients.
   Skipped where there is no GPU, real or software (scripts/gpu.sh). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/op.h"
#include "ops/block/block.h"
#include "support/check.h"

typedef enum mask_kind { NO_MASK, BOOL_MASK, REAL_MASK, HIDING_MASK } mask_kind; /* hiding: some queries see nothing */

typedef struct setting {
    const char *name;
    int64_t batch, heads, kv_heads, tq, tk, e, ev;
    bool causal;
    mask_kind mask;
    double dropout;
} setting;

enum { RESULTS = 5 }; /* out, lse, dq, dk, dv */
static const char *const result_names[RESULTS] = { "out", "lse", "dq", "dk", "dv" };

static float *noise(int64_t n, uint32_t seed)
{
    float *v = malloc((size_t)(n + 1) * sizeof *v);
    if (!v) abort();
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
    return v;
}

/* (B, heads, T, width) as a view of (B, T, heads, width), as in a model */
static cn_tensor *heads_of(cn_ctx *cn, int64_t b, int64_t heads, int64_t t, int64_t width, uint32_t seed)
{
    float *v = noise(b * t * heads * width, seed);
    cn_tensor *x = cn_transpose(cn_from(cn, CN_F32, CN_DIMS(b, t, heads, width), v), 1, 2);
    free(v);
    return x;
}

static cn_tensor *mask_of(cn_ctx *cn, const setting *s)
{
    if (s->mask == NO_MASK) return NULL;
    float *v = noise(s->batch * s->tq * s->tk, 9);
    for (int64_t i = 0; i < s->batch * s->tq * s->tk; i++) {
        if (s->mask == REAL_MASK && v[i] > 0.5f) v[i] = -INFINITY;
        if (s->mask == HIDING_MASK) v[i] = i / s->tk % 7 == 3 ? -INFINITY : 0;
    }
    const int64_t n = s->batch * s->tq * s->tk;
    bool *seen = calloc((size_t)n, sizeof *seen);
    if (!seen) abort();
    for (int64_t i = 0; i < n; i++) seen[i] = v[i] > -0.3f;
    const bool real = s->mask != BOOL_MASK;
    cn_tensor *m = cn_from(cn, real ? CN_F32 : CN_BOOL, CN_DIMS(s->batch, 1, s->tq, s->tk), real ? (void *)v : seen);
    free(seen);
    free(v);
    return m;
}

static const cn_op *find(const char *name)
{
    int n;
    const cn_op *const *ops = cn_ops(&n);
    for (int i = 0; i < n; i++)
        if (strcmp(ops[i]->name, name) == 0) return ops[i];
    return NULL;
}

static bool compute(cn_ctx *cn, const setting *s, float *to[RESULTS], int64_t n[RESULTS])
{
    cn_scope scope = cn_scope_begin(cn);
    cn_tensor *q = heads_of(cn, s->batch, s->heads, s->tq, s->e, 1);
    cn_tensor *k = heads_of(cn, s->batch, s->kv_heads, s->tk, s->e, 2);
    cn_tensor *v = heads_of(cn, s->batch, s->kv_heads, s->tk, s->ev, 3);
    cn_tensor *g = heads_of(cn, s->batch, s->heads, s->tq, s->ev, 4), *mask = mask_of(cn, s), *all[RESULTS] = { 0 };
    const cn__attention_attrs attrs = { s->causal };
    const cn_arg args[CN_MAX_ARGS] = {
        { .f = 1.3 / sqrt((double)s->e) }, { .f = s->dropout }, { .u = 77 }, { .u = 5 }
    };
    cn_tensor *out[CN_MAX_OUT] = { 0 };
    bool ok = cn_apply_n(find("attention"), CN_TENSORS(q, k, v, mask), &attrs, args, out);
    all[0] = out[0], all[1] = out[1];
    ok = ok && cn_apply_n(find("attention_backward"), CN_TENSORS(g, q, k, v, mask, all[1]), &attrs, args, out);
    for (int i = 0; i < 3; i++) all[2 + i] = out[i];
    for (int i = 0; i < RESULTS && ok; i++) {
        n[i] = cn_numel(all[i]);
        to[i] = malloc((size_t)(n[i] + 1) * sizeof(float));
        ok = to[i] && cn_read(all[i], to[i], (size_t)n[i] * sizeof(float));
    }
    cn_scope_end(cn, scope);
    return ok;
}

/* The first index where a and b differ by more than 1e-4 of the largest, or only one is finite; -1: none. */
static int64_t difference(const float *a, const float *b, int64_t n)
{
    double most = 1e-3;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(a[i])) most = fmax(most, fabs(a[i]));
    for (int64_t i = 0; i < n; i++) {
        bool same = isfinite(a[i]) ? fabs((double)a[i] - b[i]) <= 1e-4 * most
                    : isnan(a[i])  ? isnan(b[i])
                                   : a[i] == b[i];
        if (!same) return i;
    }
    return -1;
}

static void test_setting(cn_ctx *cpu, cn_ctx *gpu, const setting *s)
{
    float *expected[RESULTS] = { 0 }, *got[RESULTS] = { 0 };
    int64_t n[RESULTS] = { 0 }, m[RESULTS] = { 0 };
    const int64_t before = cn_gpu_counted(gpu).fallbacks;
    bool ok = check(compute(cpu, s, expected, n), "%s: cpu: %s", s->name, cn_error(cpu)) &&
              check(compute(gpu, s, got, m), "%s: gpu: %s", s->name, cn_error(gpu));
    for (int i = 0; i < RESULTS && ok; i++) {
        const int64_t at = n[i] == m[i] ? difference(expected[i], got[i], n[i]) : 0;
        check(n[i] == m[i] && at < 0, "%s: %s at %lld: %g instead of %g", s->name, result_names[i], (long long)at,
              got[i][at < 0 ? 0 : at], expected[i][at < 0 ? 0 : at]);
    }
    check(cn_gpu_counted(gpu).fallbacks == before, "%s: some of it ran on the CPU", s->name);
    for (int i = 0; i < RESULTS; i++) free(expected[i]), free(got[i]);
    cn_error_clear(cpu);
    cn_error_clear(gpu);
}

/* A prompt and a single token, over a cache that is partly filled. */
static void test_cached(cn_ctx *cpu, cn_ctx *gpu, int64_t tokens, int64_t used)
{
    enum { HEADS = 4, KV_HEADS = 2, E = 40, EV = 36, PLACES = 150, BATCH = 2 };
    const int64_t n = BATCH * tokens * HEADS * EV;
    float *y[2] = { calloc((size_t)n, sizeof(float)), calloc((size_t)n, sizeof(float)) };
    const int64_t before = cn_gpu_counted(gpu).fallbacks;
    for (int i = 0; i < 2; i++) {
        cn_ctx *cn = i ? gpu : cpu;
        cn_scope scope = cn_scope_begin(cn);
        cn_tensor *x[5];
        const int64_t rows[5] = { tokens, tokens, tokens, PLACES, PLACES }, width[5] = { E, E, EV, E, EV };
        for (int k = 0; k < 5; k++)
            x[k] = cn_transpose(heads_of(cn, BATCH, k ? KV_HEADS : HEADS, rows[k], width[k], 20 + (uint32_t)k), 1, 2);
        cn_tensor *out = cn_cached_attention(x[0], x[1], x[2], x[3], x[4], used, 0);
        check(cn_read(out, y[i], (size_t)n * sizeof(float)), "cached: %s", cn_error(cn));
        cn_scope_end(cn, scope);
    }
    const int64_t at = difference(y[0], y[1], n);
    check(at < 0, "cached, %lld tokens after %lld: differs at %lld", (long long)tokens, (long long)used, (long long)at);
    check(cn_gpu_counted(gpu).fallbacks == before, "cached: some of it ran on the CPU");
    free(y[0]);
    free(y[1]);
}

int main(void)
{
    static const setting settings[] = {
        { "causal", 1, 2, 2, 200, 200, 40, 40, true, NO_MASK, 0 },
        { "all keys", 1, 2, 2, 200, 200, 40, 40, false, NO_MASK, 0 },
        { "narrow heads", 2, 3, 3, 70, 70, 8, 8, true, NO_MASK, 0 },
        { "grouped heads, mask", 2, 4, 2, 65, 100, 40, 24, false, BOOL_MASK, 0 },
        { "grouped heads, dropout", 2, 4, 1, 70, 67, 24, 40, true, NO_MASK, 0.3 },
        { "added mask, dropout", 1, 2, 2, 90, 64, 16, 16, false, REAL_MASK, 0.2 },
        { "queries that see nothing", 1, 2, 2, 40, 40, 16, 16, false, HIDING_MASK, 0 },
        { "wide heads", 1, 2, 1, 37, 45, 130, 150, true, NO_MASK, 0 },
    };
    setenv("CAIRN_GPU_ATTENTION", "block", 0); /* use the kernels of attention on every driver */
    cn_ctx *cpu = cn_open(&(cn_desc){ .device = "cpu" }), *gpu = cn_open(&(cn_desc){ .device = "gpu" });
    if (!cpu || !gpu) return 1;
    if (!cn_gpu_available(gpu)) {
        printf("no GPU: %s\n", cn_gpu_why_not(gpu));
        skip();
    } else if (check(!cn_failed(gpu), "open: %s", cn_error(gpu))) {
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) test_setting(cpu, gpu, &settings[i]);
        test_cached(cpu, gpu, 45, 71);
        test_cached(cpu, gpu, 1, 149);
    }
    cn_close(cpu);
    cn_close(gpu);
    return finish();
}
