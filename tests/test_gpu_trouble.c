/* Failures of a GPU: a lost device, no memory on the GPU, no memory on the host, invalid commands. A small network is
   trained through all of them, and memory must not grow.
   Skipped where there is no GPU, real or software (scripts/gpu.sh). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cairn/grad.h"
#include "cairn/ops.h"
#include "cairn/optim.h"
#include "gpu/backend.h"
#include "support/check.h"
#include "support/faulty.h"

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 }; /* sanitizers keep freed memory */
#else
enum { SANITIZED = 0 };
#endif

enum { BATCH = 8, IN = 4, HIDDEN = 16, OUT = 3, PARAMS = 4, WEIGHTS = IN * HIDDEN + HIDDEN + HIDDEN * OUT + OUT };

#define DROPOUT 0.25

static uint32_t drawn(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void fill(float *v, int n, uint32_t seed)
{
    uint32_t state = seed * 2654435761u + 1;
    for (int i = 0; i < n; i++) v[i] = (float)drawn(&state) / (float)(1 << 23) - 1;
}

/* ---- the network: relu(x w1 + b1), dropped out, w2 + b2, against y ---- */

typedef struct net {
    cn_ctx *cn;
    cn_tensor *p[PARAMS]; /* w1, b1, w2, b2 */
    cn_optim *adam;
    double dropout;
} net;

static cn_tensor *make_param(cn_ctx *cn, cn_dims shape, uint32_t seed)
{
    float v[IN * HIDDEN + HIDDEN * OUT];
    fill(v, IN * HIDDEN + HIDDEN * OUT, seed);
    return cn_param(cn_from(cn, CN_F32, shape, v));
}

static bool net_open(net *n, cn_ctx *cn, double dropout)
{
    *n = (net){ .cn = cn, .dropout = dropout };
    n->p[0] = make_param(cn, CN_DIMS(IN, HIDDEN), 1);
    n->p[1] = make_param(cn, CN_DIMS(1, HIDDEN), 2);
    n->p[2] = make_param(cn, CN_DIMS(HIDDEN, OUT), 3);
    n->p[3] = make_param(cn, CN_DIMS(1, OUT), 4);
    n->adam = cn_adam(cn, (cn_params){ n->p, PARAMS }, &(cn_adam_desc){ .lr = 0.01 });
    return n->adam != NULL;
}

/* Where in a step the device fails. */
enum { BEFORE, BETWEEN_UPLOADS, AFTER_UPLOADS, BEFORE_STEP, PLACES };
typedef struct mishap {
    void (*happen)(cn_ctx *cn, int step, int place, void *user);
    void *user;
} mishap;

static void come_to(const mishap *m, cn_ctx *cn, int step, int place)
{
    if (m) m->happen(cn, step, place, m->user);
}

static bool net_step(net *n, int step, const mishap *m)
{
    float x[BATCH * IN], y[BATCH * OUT];
    fill(x, BATCH * IN, 1000 + (uint32_t)step);
    fill(y, BATCH * OUT, 5000 + (uint32_t)step);
    cn_scope s = cn_scope_begin(n->cn);
    come_to(m, n->cn, step, BEFORE);
    cn_tensor *tx = cn_from(n->cn, CN_F32, CN_DIMS(BATCH, IN), x);
    come_to(m, n->cn, step, BETWEEN_UPLOADS);
    cn_tensor *ty = cn_from(n->cn, CN_F32, CN_DIMS(BATCH, OUT), y);
    come_to(m, n->cn, step, AFTER_UPLOADS);
    cn_tensor *h = cn_relu(cn_add(cn_matmul(tx, n->p[0]), n->p[1]));
    if (n->dropout) h = cn_dropout(h, n->dropout, true);
    cn_tensor *d = cn_sub(cn_add(cn_matmul(h, n->p[2]), n->p[3]), ty);
    bool ok = cn_backward(cn_sum(cn_mul(d, d), CN_ALL, false));
    come_to(m, n->cn, step, BEFORE_STEP);
    ok = ok && cn_step(n->adam);
    if (!ok) cn_optim_zero_grad(n->adam);
    cn_scope_end(n->cn, s);
    return ok;
}

static bool net_read(net *n, float *to)
{
    static const int sizes[PARAMS] = { IN * HIDDEN, HIDDEN, HIDDEN * OUT, OUT };
    bool ok = true;
    for (int i = 0; i < PARAMS; i++) {
        ok = cn_read(n->p[i], to, sizeof *to * (size_t)sizes[i]) && ok;
        to += sizes[i];
    }
    return ok;
}

static cn_ctx *open_with(const char *mirror, faulty *f)
{
    if (mirror) setenv("CAIRN_GPU_MIRROR", mirror, 1);
    else unsetenv("CAIRN_GPU_MIRROR");
    cn_desc desc = { .device = "gpu", .seed = 5, .threads = 1 };
    if (f) desc.allocator = (cn_allocator){ faulty_resize, f };
    return cn_open(&desc);
}

/* Trains the network and returns its weights. */
static bool train(const char *mirror, int steps, double dropout, const mishap *m, float *weights,
                  cn_gpu_counters *count)
{
    cn_ctx *cn = open_with(mirror, NULL);
    net n;
    bool ok = cn_gpu_counted(cn).buffers > 0 && net_open(&n, cn, dropout);
    for (int i = 0; i < steps && ok; i++) ok = net_step(&n, i, m);
    ok = ok && net_read(&n, weights);
    check(ok, "training: %s", cn_error(cn));
    if (count) *count = cn_gpu_counted(cn);
    cn_close(cn);
    return ok;
}

/* ---- loss ---- */

enum { MISHAPS = 20 };
typedef struct plan_of_mishaps {
    int step[MISHAPS], place[MISHAPS], done;
    bool silently; /* the loss is not reported: calls must notice it */
} plan_of_mishaps;

static void lose_silently(cn_ctx *cn)
{
    cn__gpu *g = cn__gpu_of(cn);
    if (!cn__gpu_is_lost(g)) g->w->DeviceDestroy(g->device);
}

static void lose(cn_ctx *cn, int step, int place, void *user)
{
    plan_of_mishaps *p = user;
    for (int i = 0; i < MISHAPS; i++) {
        if (p->step[i] != step || p->place[i] != place) continue;
        if (p->silently) lose_silently(cn);
        else cn__gpu_break(cn);
        p->done++;
    }
}

static void test_recovery(const char *mirror, bool silently, uint32_t seed, int steps, const float *expected)
{
    plan_of_mishaps plan = { .silently = silently };
    for (int i = 0; i < MISHAPS; i++) {
        plan.step[i] = (int)(drawn(&seed) % (uint32_t)steps);
        plan.place[i] = (int)(drawn(&seed) % PLACES);
    }
    float weights[WEIGHTS];
    cn_gpu_counters n = { 0 };
    if (!train(mirror, steps, DROPOUT, &(mishap){ lose, &plan }, weights, &n)) return;
    check(plan.done == MISHAPS && n.recoveries > 0 && n.recoveries <= MISHAPS, "%d losses, %lld recoveries", plan.done,
          (long long)n.recoveries);
    int first = 0;
    while (first < WEIGHTS && !memcmp(&weights[first], &expected[first], sizeof(float))) first++;
    check(first == WEIGHTS, "mirror %s, %s: weight %d: %.9g after losses, %.9g without", mirror ? mirror : "default",
          silently ? "silently" : "noticed", first, (double)weights[first % WEIGHTS],
          (double)expected[first % WEIGHTS]);
}

static void test_lost_and_found(void)
{
    check_group("recovery");
    const int steps = test_is_quick() ? 40 : 200;
    float expected[WEIGHTS], again[WEIGHTS];
    if (!train(NULL, steps, DROPOUT, NULL, expected, NULL) || !train("0", steps, DROPOUT, NULL, again, NULL)) return;
    check(!memcmp(expected, again, sizeof again), "copies are taken without a trace");
    test_recovery(NULL, false, 1, steps, expected);
    test_recovery("7", false, 2, steps, expected);
    test_recovery("1", true, 3, steps, expected);
    test_recovery("1000000", true, 4, steps, expected); /* from the log alone */
}

static void test_lost_for_good(void)
{
    check_group("without recovery");
    for (int place = 0; place < PLACES; place++) {
        cn_ctx *cn = open_with("0", NULL);
        net n;
        float weights[WEIGHTS];
        bool ok = net_open(&n, cn, DROPOUT) && net_step(&n, 0, NULL);
        plan_of_mishaps plan = { .step = { 1 }, .place = { place } };
        for (int i = 1; i < MISHAPS; i++) plan.step[i] = -1;
        check(ok, "a step: %s", cn_error(cn));
        check(!net_step(&n, 1, &(mishap){ lose, &plan }) && cn_error_code(cn) == CN_DEVICE_LOST, "place %d: %s", place,
              cn_error(cn));
        check(strstr(cn_error(cn), cn__gpu_of(cn)->info.name) != NULL, "names the adapter: %s", cn_error(cn));
        cn_error_clear(cn);
        check(!net_step(&n, 2, NULL) && cn_error_code(cn) == CN_DEVICE_LOST, "and again: %s", cn_error(cn));
        cn_error_clear(cn);
        check(!net_read(&n, weights) && cn_error_code(cn) == CN_DEVICE_LOST, "nothing to read: %s", cn_error(cn));
        cn_close(cn);
    }
}

/* Three new devices in a row get no memory. */
static void test_never_found(void)
{
    check_group("no other device");
    cn_ctx *cn = open_with(NULL, NULL);
    net n;
    bool ok = net_open(&n, cn, DROPOUT) && net_step(&n, 0, NULL);
    check(ok, "a step: %s", cn_error(cn));
    cn__gpu_break(cn);
    cn__gpu_of(cn)->fail_after = -1;
    check(!net_step(&n, 1, NULL) && cn_error_code(cn) == CN_DEVICE_LOST, "%s", cn_error(cn));
    check(strstr(cn_error(cn), cn__gpu_of(cn)->info.name) && strstr(cn_error(cn), "refused"), "says why: %s",
          cn_error(cn));
    cn_error_clear(cn);
    cn__gpu_of(cn)->fail_after = 0;
    check(!net_step(&n, 2, NULL) && cn_error_code(cn) == CN_DEVICE_LOST, "it stays so: %s", cn_error(cn));
    cn_close(cn);
}

/* An index out of range is reported once, also if the device is lost before the report. */
static void test_status(void)
{
    check_group("indices");
    cn_ctx *cn = open_with(NULL, NULL);
    float v[6] = { 1, 2, 3, 4, 5, 6 }, out[6];
    int64_t good[2] = { 2, 0 }, bad[2] = { 1, 7 };
    cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(3, 2), v), *i = cn_from(cn, CN_I64, CN_DIMS(2), bad);
    cn_tensor *y = cn_index_select(x, 0, i);
    cn__gpu_break(cn);
    check(!cn_read(y, out, sizeof(float[4])) && cn_error_code(cn) == CN_BAD_INDEX, "%s", cn_error(cn));
    cn_error_clear(cn);
    cn__gpu_break(cn);
    i = cn_from(cn, CN_I64, CN_DIMS(2), good);
    check(cn_read(cn_index_select(x, 0, i), out, sizeof(float[4])) && out[0] == 5 && out[3] == 2, "the next: %s",
          cn_error(cn));
    cn_close(cn);
}

/* Late reads return the value of the time when they began, also after a recovery. */
static void test_late_reads(void)
{
    check_group("late reads");
    enum { STEPS = 30, LATE = 3 };
    float expected[STEPS][IN * HIDDEN], got[IN * HIDDEN];
    for (int disturbed = 0; disturbed < 2; disturbed++) {
        cn_ctx *cn = open_with("4", NULL);
        net n;
        cn_reading *reads[STEPS] = { 0 };
        bool ok = net_open(&n, cn, DROPOUT);
        for (int i = 0; i < STEPS + LATE && ok; i++) {
            if (i < STEPS) {
                ok = net_step(&n, i, NULL) && (reads[i] = cn_read_begin(n.p[0])) != NULL;
                if (disturbed && i % 4 == 1) cn__gpu_break(cn);
                if (disturbed && i % 7 == 2) lose_silently(cn);
            }
            if (!ok || i < LATE) continue;
            ok = cn_read_end(reads[i - LATE], disturbed ? got : expected[i - LATE], sizeof got);
            if (disturbed) check(!memcmp(got, expected[i - LATE], sizeof got), "what was read after step %d", i - LATE);
        }
        check(ok, "reading: %s", cn_error(cn));
        cn_close(cn);
    }
}

/* ---- out of memory: without dropout, because a repeated step would draw other numbers ---- */

static void expect_step(net *n, int step, const float *expected, const char *what, int64_t at)
{
    float weights[WEIGHTS];
    check(net_step(n, step, NULL) && net_read(n, weights), "%s %lld: the next step: %s", what, (long long)at,
          cn_error(n->cn));
    check(!memcmp(weights, expected, sizeof weights), "%s %lld: the failed step has left a trace", what, (long long)at);
}

/* A step in which the n-th buffer is refused, alone or with all later ones. False: the step has fewer buffers. */
static bool refuse_at(int64_t at, bool all, const float *expected, int *errors)
{
    cn_ctx *cn = open_with(NULL, NULL);
    net n;
    bool ok = net_open(&n, cn, 0);
    check(ok, "open: %s", cn_error(cn));
    cn__gpu *g = cn__gpu_of(cn);
    g->fail_after = all ? -at : at;
    ok = net_step(&n, 0, NULL);
    bool reached = all ? g->fail_after == -1 : g->fail_after == 0;
    g->fail_after = 0;
    if (!ok) {
        ++*errors;
        check(cn_error_code(cn) == CN_NO_MEMORY, "buffer %lld: %s", (long long)at, cn_error(cn));
        check(strchr(cn_error(cn), '[') != NULL, "buffer %lld: names no shape: %s", (long long)at, cn_error(cn));
        cn_error_clear(cn);
        expect_step(&n, 0, expected, "buffer", at);
    }
    cn_close(cn);
    return reached;
}

/* The same while the network is created. */
static bool refuse_making(int64_t at, bool all, int *errors)
{
    cn_ctx *cn = open_with(NULL, NULL);
    cn__gpu *g = cn__gpu_of(cn);
    net n;
    g->fail_after = all ? -at : at;
    bool ok = net_open(&n, cn, 0) && !cn_failed(cn), reached = all ? g->fail_after == -1 : g->fail_after == 0;
    check(ok || (reached && cn_error_code(cn) == CN_NO_MEMORY), "making, buffer %lld: %s", (long long)at, cn_error(cn));
    *errors += !ok;
    g->fail_after = 0;
    cn_error_clear(cn);
    check(net_open(&n, cn, 0) && net_step(&n, 0, NULL), "making, buffer %lld: the next: %s", (long long)at,
          cn_error(cn));
    cn_close(cn);
    return reached;
}

static void test_no_buffers(void)
{
    check_group("no buffers");
    float expected[WEIGHTS];
    if (!train(NULL, 1, 0, NULL, expected, NULL)) return;
    for (int all = 0; all < 2; all++) {
        int errors = 0;
        int64_t at = 1;
        while (at < 200 && refuse_making(at, all, &errors)) at++;
        check(errors > 0 && at > 1 && at < 200, "making: %d errors of %lld buffers", errors, (long long)at - 1);
        errors = 0, at = 1;
        while (at < 200 && refuse_at(at, all, expected, &errors)) at++;
        check(errors > 0 && at > 1 && at < 200, "%d errors of %lld buffers", errors, (long long)at - 1);
    }
}

/* Slabs so small that a step needs several. */
static void test_no_slabs(void)
{
    setenv("CAIRN_GPU_SLAB", "2048", 1);
    test_no_buffers();
    unsetenv("CAIRN_GPU_SLAB");
}

/* An upload into a new slab fails half-way, is repeated, and then the device is lost. The log has both slab and upload. */
static void test_cut_log(void)
{
    check_group("cut log");
    enum { N = 1501 }; /* halves: the last one shares its word, which is read first */
    uint16_t v[N], back[N];
    for (int i = 0; i < N; i++) v[i] = (uint16_t)(0x3c00 + i % 900);
    setenv("CAIRN_GPU_SLAB", "4096", 1);
    int cut = 0;
    for (int64_t at = 1; at <= 6; at++) {
        cn_ctx *cn = open_with("2", NULL);
        cn__gpu *g = cn__gpu_of(cn);
        net n;
        bool ok = net_open(&n, cn, 0);
        for (int i = 0; i < 8 && ok; i++) ok = net_step(&n, i, NULL); /* there is a mirror now */
        g->fail_after = at;
        const int slabs = ((cn__gpu_device *)cn->device)->heap.n;
        cn_tensor *x = cn_from(cn, CN_F16, CN_DIMS(N), v);
        cut += !x && ((cn__gpu_device *)cn->device)->heap.n > slabs;
        g->fail_after = 0;
        cn_error_clear(cn);
        if (!x) x = cn_from(cn, CN_F16, CN_DIMS(N), v);
        lose_silently(cn);
        memset(back, 0, sizeof back);
        check(ok && cn_read(x, back, sizeof back) && !memcmp(v, back, sizeof v), "buffer %lld: not what was sent: %s",
              (long long)at, cn_error(cn));
        cn_close(cn);
    }
    unsetenv("CAIRN_GPU_SLAB");
    check(cut > 0, "no upload failed after its slab was made");
}

static void test_no_host_memory(void)
{
    check_group("no host memory");
    float expected[WEIGHTS], weights[WEIGHTS];
    int64_t last = 0, errors = 0;
    for (int64_t at = 0; at <= last; at += at && (test_is_quick() || at > 400) ? 7 : 1) {
        faulty f = { 0 };
        cn_ctx *cn = open_with("2", &f);
        net n;
        bool ok = net_open(&n, cn, 0);
        const int64_t before = f.calls;
        f.fail_at = at ? before + at : 0;
        int done = 0;
        while (ok && done < 4 && net_step(&n, done, NULL)) done++;
        bool reached = at && f.calls >= f.fail_at;
        if (!at) last = f.calls - before;
        f.fail_at = 0;
        if (done < 4) {
            errors++;
            check(reached && cn_error_code(cn) == CN_NO_MEMORY, "allocation %lld: %s", (long long)at, cn_error(cn));
            cn_error_clear(cn);
        }
        for (; done < 4 && ok; done++) ok = net_step(&n, done, NULL);
        ok = ok && net_read(&n, at ? weights : expected);
        check(ok, "allocation %lld: afterwards: %s", (long long)at, cn_error(cn));
        if (at) check(!memcmp(weights, expected, sizeof weights), "allocation %lld left a trace", (long long)at);
        cn_close(cn);
        check(f.blocks == 0 && f.bytes == 0, "allocation %lld: %lld blocks are left", (long long)at,
              (long long)f.blocks);
    }
    check(errors > 5, "%lld of %lld allocations failed a step", (long long)errors, (long long)last);
}

/* ---- invalid commands ---- */

/* An invalid command among recorded ones: all of them are dropped. */
static void record_nonsense(cn__gpu *g, cn__gpu_buffer *b)
{
    WGPUCommandEncoder e = cn__gpu_encoder(g, "test");
    if (check(e != NULL, "an encoder"))
        g->w->CommandEncoderCopyBufferToBuffer(e, b->handle, 0, b->handle, 4, (uint64_t)1 << 40);
}

static void test_bad_commands(void)
{
    check_group("bad commands");
    cn_ctx *cn = open_with(NULL, NULL);
    cn__gpu *g = cn__gpu_of(cn);
    net n;
    float expected[WEIGHTS], weights[WEIGHTS], v[64], out[64];
    bool ok = net_open(&n, cn, DROPOUT) && net_step(&n, 0, NULL) && net_read(&n, expected);
    check(ok, "a step: %s", cn_error(cn));
    for (int round = 0; round < 2; round++) { /* the second round finds the plan */
        fill(v, 64, 77 + (uint32_t)round);
        cn_tensor *x = cn_keep(cn_from(cn, CN_F32, CN_DIMS(64), v));
        record_nonsense(g, g->in_use);
        check(!cn_eval(cn_mul_s(x, 2 + round)) && cn_failed(cn) && strstr(cn_error(cn), "[64]"),
              "an error with a shape: %s", cn_error(cn));
        cn_error_clear(cn);
        check(cn_read(x, out, sizeof out) && !memcmp(v, out, sizeof v), "what was uploaded is there: %s", cn_error(cn));
        check(cn_read(cn_mul_s(x, 2 + round), out, sizeof out) && out[5] == (float)(2 + round) * v[5],
              "the same plan: %s", cn_error(cn));
        cn_release(x);
    }
    cn_tensor *x = cn_keep(cn_from(cn, CN_F32, CN_DIMS(64), v));
    record_nonsense(g, g->in_use);
    check(!cn_read(x, out, sizeof out) && cn_failed(cn), "an error in a download");
    cn_error_clear(cn);
    check(cn_read(x, out, sizeof out) && !memcmp(v, out, sizeof v), "and again: %s", cn_error(cn));
    check(net_read(&n, weights) && !memcmp(weights, expected, sizeof weights), "the weights are there: %s",
          cn_error(cn));
    check(net_step(&n, 1, NULL), "the next step: %s", cn_error(cn));
    check(cn_gpu_counted(cn).recoveries == 0, "the device was lost");
    cn_close(cn);
}

/* ---- memory does not grow ---- */

static long resident_kib(void)
{
    long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%ld %ld", &size, &resident) != 2) resident = 0;
    fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void test_no_growth(void)
{
    check_group("no growth");
    const int steps = test_is_quick() ? 400 : 5000, first = 120;
    cn_ctx *cn = open_with(NULL, NULL);
    net n;
    if (!check(net_open(&n, cn, DROPOUT), "open: %s", cn_error(cn))) return;
    cn_gpu_counters then = { 0 }, before, now = cn_gpu_counted(cn);
    int64_t most = 0, odd = 0;
    long kib = 0;
    for (int i = 0; i < steps; i++) {
        before = now;
        if (!check(net_step(&n, i, NULL), "step %d: %s", i, cn_error(cn))) break;
        now = cn_gpu_counted(cn);
        if (i < first) most = now.buffers > most ? now.buffers : most;
        if (i == first) then = now, kib = resident_kib();
        if (i < first) continue;
        odd += now.submissions != before.submissions + 1 || now.readbacks != before.readbacks;
        check(now.buffers <= most, "step %d: %lld buffers, %lld at first", i, (long long)now.buffers, (long long)most);
    }
    check(odd == 0, "%lld steps had not 1 submission and 0 readbacks", (long long)odd);
    check(now.fallbacks == 0, "%lld steps of the CPU", (long long)now.fallbacks);
    check(now.pipelines == then.pipelines && now.bind_groups == then.bind_groups &&
              now.buffer_bytes <= then.buffer_bytes + (1 << 20),
          "%lld more pipelines, %lld more bind groups, %lld more bytes", (long long)(now.pipelines - then.pipelines),
          (long long)(now.bind_groups - then.bind_groups), (long long)(now.buffer_bytes - then.buffer_bytes));
    check(now.mirrored_bytes > 0 && now.downloaded_bytes == 0, "%lld bytes mirrored, %lld downloaded",
          (long long)now.mirrored_bytes, (long long)now.downloaded_bytes);
    const long more = resident_kib() - kib;
    printf("%d steps: %ld KiB more than after %d; %lld bytes mirrored\n", steps, more, first,
           (long long)now.mirrored_bytes);
    check(more < 4096 || SANITIZED, "%ld KiB more", more);
    cn_close(cn);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = { { "found", test_lost_and_found },  { "lost", test_lost_for_good }, { "never", test_never_found },
                  { "status", test_status },         { "late", test_late_reads },    { "buffers", test_no_buffers },
                  { "cut", test_cut_log },           { "slabs", test_no_slabs },     { "host", test_no_host_memory },
                  { "commands", test_bad_commands }, { "growth", test_no_growth } };
    cn_ctx *cn = cn_open(NULL);
    bool any = cn_gpu_available(cn);
    cn_close(cn);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (argc > 1 && strcmp(argv[1], tests[i].name) != 0) continue;
        if (any) tests[i].run();
        else skip();
    }
    return finish();
}
