/* Tests the WebGPU device below plans: adapters, transfers, memory, programs, loss, with the library that
   CAIRN_WEBGPU_LIB names. Without a card, real or software (scripts/gpu.sh), only the messages about it are tested. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/gpu.h"
#include "support/check.h"

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static bool says(cn_ctx *ctx, cn_code code, const char *part)
{
    bool ok = cn_error_code(ctx) == code && strstr(cn_error(ctx), part);
    if (!ok) printf("  stands: %s \"%s\"\n", cn_code_name(cn_error_code(ctx)), cn_error(ctx));
    cn_error_clear(ctx);
    return ok;
}

/* Fills memory with bytes that depend on place and seed. */
static void fill(unsigned char *p, size_t n, unsigned seed)
{
    uint32_t x = seed * 2654435761u + 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        p[i] = (unsigned char)(x >> 24);
    }
}

/* ---- without a library ---- */

static void test_missing_library(void)
{
    check_group("loading");
    const char *set = getenv("CAIRN_WEBGPU_LIB");
    char *kept = set ? strdup(set) : NULL;
    setenv("CAIRN_WEBGPU_LIB", "/nowhere/libwebgpu_none.so", 1);
    cn_ctx *ctx = cn_open(NULL);
    check(cn_gpu_look(ctx) && cn_gpu_count(ctx) == 0 && !cn_gpu_available(ctx), "a library out of nowhere");
    check(strstr(cn_gpu_why_not(ctx), "/nowhere/libwebgpu_none.so") && strstr(cn_gpu_why_not(ctx), "scripts/gpu.sh"),
          "says \"%s\"", cn_gpu_why_not(ctx));
    check(!cn_failed(ctx), "to look is no error: %s", cn_error(ctx));
    check(cn_gpu_find(ctx, "gpu") == -1 && says(ctx, CN_BAD_DEVICE, "/nowhere/"), "to want one is");
    cn_close(ctx);

    setenv("CAIRN_WEBGPU_LIB", "libm.so.6", 1);
    ctx = cn_open(NULL);
    check(cn_gpu_count(ctx) == 0 && strstr(cn_gpu_why_not(ctx), "wgpuCreateInstance"), "another library: \"%s\"",
          cn_gpu_why_not(ctx));
    cn_gpu_info info;
    check(!cn_gpu_describe(ctx, 0, &info) && says(ctx, CN_BAD_DEVICE, "wgpuCreateInstance"), "nothing to describe");
    check(!cn__gpu_open(ctx, 0, NULL) && says(ctx, CN_BAD_DEVICE, "no GPU"), "nothing to open");
    cn_close(ctx);

    unsetenv("CAIRN_WEBGPU_LIB");
    ctx = cn_open(NULL);
    if (cn_gpu_count(ctx) == 0) check(strlen(cn_gpu_why_not(ctx)) > 20, "no reason given");
    cn_close(ctx);
    check(cn_gpu_count(NULL) == 0 && !cn_gpu_describe(NULL, 0, &info) && cn_gpu_find(NULL, "gpu") == -1 &&
              cn_gpu_why_not(NULL)[0],
          "without a context");
    if (kept) setenv("CAIRN_WEBGPU_LIB", kept, 1);
    free(kept);
}

/* ---- the list ---- */

static int rank_of(const cn_gpu_info *g)
{
    static const char *const kinds[] = { "discrete", "integrated", "other", "software" };
    for (int i = 0; i < 4; i++) {
        if (strcmp(g->kind, kinds[i]) == 0) return i;
    }
    return -1;
}

static void test_listing(cn_ctx *ctx)
{
    check_group("listing");
    int n = cn_gpu_count(ctx), last = 0;
    for (int i = 0; i < n; i++) {
        cn_gpu_info g;
        if (!check(cn_gpu_describe(ctx, i, &g), "gpu:%d", i)) continue;
        printf(
            "gpu:%d \"%s\" of \"%s\", driver \"%s\", %s, %s, by %s%s%s%s; buffers to %llu MiB, bindings %llu MiB x %u "
            "from %u, groups of %u with %u bytes\n",
            i, g.name, g.vendor, g.driver, g.kind, g.backend, g.implementation, g.f16 ? ", f16" : "",
            g.subgroups ? ", subgroups" : "", g.timestamps ? ", timestamps" : "",
            (unsigned long long)g.buffer_bytes >> 20, (unsigned long long)g.binding_bytes >> 20, g.bindings,
            g.binding_step, g.group_size, g.group_bytes);
        check(g.name[0] && strcmp(g.backend, "null") && rank_of(&g) >= last, "gpu:%d: %s, %s, %s", i, g.name, g.backend,
              g.kind);
        last = rank_of(&g);
        /* limits that WebGPU guarantees */
        check(g.buffer_bytes >= 256 << 20 && g.binding_bytes >= 128 << 20 && g.bindings >= 8 && g.binding_step <= 256 &&
                  g.group_size >= 256 && g.group_bytes >= 16384 && g.groups >= 65535,
              "gpu:%d: limits", i);
    }
    check(cn_gpu_why_not(ctx)[0] == 0, "available, and yet: %s", cn_gpu_why_not(ctx));
    cn_gpu_info g;
    check(!cn_gpu_describe(ctx, n, &g) && says(ctx, CN_BAD_DEVICE, "there are"), "one too many");
    check(!cn_gpu_describe(ctx, -1, &g) && says(ctx, CN_BAD_DEVICE, "gpu:-1"), "minus one");
    check(!cn_gpu_describe(ctx, 0, NULL) && says(ctx, CN_BAD_ARGUMENT, "must not be NULL"), "nowhere to write");

    cn_ctx *other = cn_open(NULL);
    int looks = 1;
    while (!cn_gpu_look(other)) looks++;
    check(cn_gpu_count(other) == n, "%d cards after %d looks, %d by waiting", cn_gpu_count(other), looks, n);
    cn_close(other);
    other = cn_open(NULL);
    cn_gpu_look(other); /* closed during the search */
    cn_close(other);
}

static void test_choice(cn_ctx *ctx)
{
    check_group("choice");
    unsetenv("CAIRN_GPU");
    check(cn_gpu_find(ctx, "gpu") == 0 && cn_gpu_find(ctx, "gpu:0") == 0, "the first");
    static const char *const bad[] = { "gpu:99", "gpu:99999999999999999999", "gpu:-1", "gpu:", "gpu:0x", "gpux", "",
                                       "cpu" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check(cn_gpu_find(ctx, bad[i]) == -1 && says(ctx, CN_BAD_DEVICE, "gpu_find"), "\"%s\"", bad[i]);
    check(cn_gpu_find(ctx, NULL) == -1 && says(ctx, CN_BAD_ARGUMENT, "must not be NULL"), "no name");
    for (int i = 0; i < cn_gpu_count(ctx); i++) {
        cn_gpu_info g;
        cn_gpu_describe(ctx, i, &g);
        for (char *c = g.name; *c; c++) *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
        setenv("CAIRN_GPU", g.name + 1, 1); /* a part, in capitals */
        cn_gpu_info found;
        int k = cn_gpu_find(ctx, "gpu");
        check(k >= 0 && k <= i && cn_gpu_describe(ctx, k, &found), "CAIRN_GPU=%s: %d", g.name, k);
    }
    setenv("CAIRN_GPU", "no such card", 1);
    check(cn_gpu_find(ctx, "gpu") == -1 && says(ctx, CN_BAD_DEVICE, "no such card"), "a name nobody has");
    check(cn_gpu_find(ctx, "gpu:0") == 0, "a number needs no name");
    unsetenv("CAIRN_GPU");
}

/* Opens a context on a device, with the adapters counting as this kind, and CAIRN_DEVICE set to this (NULL: not). */
static int opened_on(const char *device, const char *kind, const char *variable, char *why, size_t size)
{
    setenv("CAIRN_GPU_KIND", kind, 1);
    if (variable) setenv("CAIRN_DEVICE", variable, 1);
    cn_ctx *ctx = cn_open(&(cn_desc){ .device = device, .threads = 1 });
    const int number = cn_gpu_current(ctx);
    check(ctx && !cn_failed(ctx), "\"%s\": %s", device ? device : "none", cn_error(ctx));
    cn_gpu_auto(ctx, why, size);
    cn_close(ctx);
    unsetenv("CAIRN_DEVICE");
    unsetenv("CAIRN_GPU_KIND");
    return number;
}

static void test_auto(void)
{
    check_group("auto");
    char why[800];
    static const char *const hardware[] = { "discrete", "integrated", "other" };
    for (int i = 0; i < 3; i++)
        check(opened_on("auto", hardware[i], NULL, why, sizeof why) == 0 && strstr(why, hardware[i]), "%s: %s",
              hardware[i], why);
    check(opened_on("auto", "software", NULL, why, sizeof why) == -1 && strstr(why, "in software"), "software: %s",
          why);
    check(opened_on(NULL, "discrete", NULL, why, sizeof why) == -1, "no name: the CPU");
    check(opened_on(NULL, "discrete", "auto", why, sizeof why) == 0, "CAIRN_DEVICE=auto");
    check(opened_on("auto", "discrete", "cpu", why, sizeof why) == 0, "a name outweighs CAIRN_DEVICE");
    check(opened_on("gpu", "software", NULL, why, sizeof why) == 0, "gpu: also one in software");
    check(cn_gpu_current(NULL) == -1 && cn_gpu_auto(NULL, NULL, 0) == -1, "no context");
}

/* ---- transfers ---- */

static void test_round_trips(cn__gpu *g)
{
    check_group("round trips");
    static const size_t sizes[] = { 0,
                                    1,
                                    2,
                                    3,
                                    4,
                                    5,
                                    7,
                                    255,
                                    256,
                                    257,
                                    4095,
                                    65537,
                                    1000003,
                                    CN__GPU_CHUNK - 1,
                                    CN__GPU_CHUNK,
                                    CN__GPU_CHUNK + 5,
                                    3 * CN__GPU_CHUNK + 1,
                                    (64 << 20) - 3,
                                    64 << 20 };
    size_t most = 64 << 20;
    unsigned char *sent = malloc(most), *got = malloc(most);
    fill(sent, most, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        cn__gpu_buffer *b = cn__gpu_buffer_new(g, n);
        memset(got, 0, n);
        bool ok = b && cn__gpu_upload(g, b, 0, sent + (most - n) / 2, n) && cn__gpu_download(g, b, 0, got, n);
        check(ok && memcmp(sent + (most - n) / 2, got, n) == 0, "%zu bytes: %s", n, cn_error(g->ctx));
        cn_error_clear(g->ctx);
        cn__gpu_buffer_free(g, b);
    }
    free(sent);
    free(got);
}

/* Writes and reads random pieces of a buffer and compares with a copy on the host. */
static void test_pieces(cn__gpu *g)
{
    check_group("pieces");
    enum { SIZE = 1003 };
    unsigned char mirror[SIZE], piece[SIZE], got[SIZE];
    cn__gpu_buffer *b = cn__gpu_buffer_new(g, SIZE);
    fill(mirror, SIZE, 2);
    check(cn__gpu_upload(g, b, 0, mirror, SIZE), "whole");
    srand(7);
    for (int i = 0; i < 150; i++) {
        size_t offset = (size_t)rand() % (SIZE + 1), n = (size_t)rand() % (SIZE + 1 - offset);
        if (i % 2) n %= 9;
        fill(piece, n, (unsigned)i + 3);
        memcpy(mirror + offset, piece, n);
        check(cn__gpu_upload(g, b, offset, piece, n), "upload %zu at %zu: %s", n, offset, cn_error(g->ctx));
        offset = (size_t)rand() % (SIZE + 1), n = (size_t)rand() % (SIZE + 1 - offset);
        if (i % 3) continue;
        check(cn__gpu_download(g, b, offset, got, n) && memcmp(got, mirror + offset, n) == 0, "download %zu at %zu", n,
              offset);
    }
    check(cn__gpu_download(g, b, 0, got, SIZE) && memcmp(got, mirror, SIZE) == 0, "all of it, at the end");

    cn__gpu_buffer *c = cn__gpu_buffer_new(g, SIZE);
    check(cn__gpu_copy(g, c, 0, b, 0, SIZE) && cn__gpu_download(g, c, 0, got, SIZE) && memcmp(got, mirror, SIZE) == 0,
          "copy");
    check(cn__gpu_copy(g, c, 8, b, 100, 400) && cn__gpu_download(g, c, 8, got, 400) &&
              memcmp(got, mirror + 100, 400) == 0,
          "copy a part");
    check(!cn__gpu_copy(g, c, 1, b, 0, 4) && says(g->ctx, CN_BAD_ARGUMENT, "steps of 4"), "copy to an odd place");
    check(!cn__gpu_copy(g, b, 0, b, 8, 4) && says(g->ctx, CN_BAD_ARGUMENT, "one buffer"), "copy within");
    check(!cn__gpu_copy(g, c, 0, b, 0, 6) && says(g->ctx, CN_BAD_ARGUMENT, "steps of 4"), "copy that would spill");
    check(!cn__gpu_upload(g, b, 1000, piece, 4) && says(g->ctx, CN_BAD_ARGUMENT, "buffer of 1003"), "past the end");
    check(!cn__gpu_upload(g, b, SIZE_MAX, piece, 4) && says(g->ctx, CN_BAD_ARGUMENT, "upload"), "far past the end");
    check(!cn__gpu_download(g, b, 4, got, SIZE_MAX) && says(g->ctx, CN_BAD_ARGUMENT, "download"), "too much");
    cn__gpu_buffer_free(g, b);
    cn__gpu_buffer_free(g, c);
}

static void test_later_reads(cn__gpu *g)
{
    check_group("reads for later");
    enum { READS = 6 };
    cn__gpu_buffer *b = cn__gpu_buffer_new(g, 400);
    cn__gpu_read *r[READS];
    unsigned char sent[400], got[400];
    for (int i = 0; i < READS; i++) {
        fill(sent, 400, (unsigned)i);
        check(cn__gpu_upload(g, b, 0, sent, 400), "upload %d", i);
        r[i] = cn__gpu_read_begin(g, b, (size_t)i, 301);
        check(r[i] != NULL, "begin %d", i);
    }
    while (!cn__gpu_read_done(r[READS - 1])) {}
    for (int i = READS - 1; i >= 1; i--) {
        fill(sent, 400, (unsigned)i);
        check(cn__gpu_read_end(r[i], got) && memcmp(got, sent + i, 301) == 0,
              "read %d has what was there when it began", i);
    }
    check(cn__gpu_read_end(r[0], NULL), "not wanted");
    check(g->reads == NULL, "none left");
    cn__gpu_buffer_free(g, b);
}

/* ---- memory ---- */

static void test_pool(cn__gpu *g)
{
    check_group("pool");
    enum { MANY = 1000 };
    static cn__gpu_buffer *all[MANY];
    cn__gpu_trim(g);
    cn__gpu_stats before = g->stats;
    check(before.pooled == 0 && before.pooled_bytes == 0 && before.live == 0, "trimmed: %lld pooled, %lld live",
          (long long)before.pooled, (long long)before.live);
    size_t asked = 0;
    for (int i = 0; i < MANY; i++) {
        size_t bytes = (size_t)(i % 50) * 37 + 4;
        asked += bytes;
        all[i] = cn__gpu_buffer_new(g, bytes);
        if (!check(all[i] != NULL, "buffer %d: %s", i, cn_error(g->ctx))) return;
        check(all[i]->capacity >= bytes && (bytes <= 256 || all[i]->capacity <= bytes + bytes / 4 + 64),
              "%zu bytes for %zu", all[i]->capacity, bytes);
        check(cn__gpu_upload(g, all[i], 0, &i, sizeof i), "tag %d", i);
    }
    check(g->stats.live == MANY && g->stats.live_bytes >= asked && g->stats.peak_bytes >= g->stats.live_bytes,
          "counted");
    for (int i = 0; i < MANY; i += 7) {
        int tag = -1;
        check(cn__gpu_download(g, all[i], 0, &tag, sizeof tag) && tag == i, "buffer %d has %d", i, tag);
    }
    for (int i = 0; i < MANY; i++) cn__gpu_buffer_free(g, all[i]);
    check(g->stats.live == 0 && g->stats.live_bytes == 0 && g->stats.pooled >= MANY, "given back");
    int64_t created = g->stats.created;
    for (int i = 0; i < MANY; i++) all[i] = cn__gpu_buffer_new(g, (size_t)(i % 50) * 37 + 4);
    check(g->stats.created == created && g->stats.reused >= before.reused + MANY, "taken from the pool: %lld new",
          (long long)(g->stats.created - created));
    for (int i = 0; i < MANY; i++) cn__gpu_buffer_free(g, all[i]);
    cn__gpu_trim(g);
    check(g->stats.pooled == 0 && g->stats.pooled_bytes == 0, "trimmed again");

    /* recorded commands stay valid when their buffers are freed and the pool is trimmed */
    cn__gpu_buffer *from = cn__gpu_buffer_new(g, 64), *to = cn__gpu_buffer_new(g, 64);
    int sent = 77, got = 0;
    check(cn__gpu_upload(g, from, 0, &sent, 4) && cn__gpu_copy(g, to, 0, from, 0, 64), "recorded");
    cn__gpu_buffer_free(g, from);
    cn__gpu_trim(g);
    check(cn__gpu_download(g, to, 0, &got, 4) && got == 77, "%d from a buffer that is gone: %s", got, cn_error(g->ctx));
    cn__gpu_buffer_free(g, to);
}

static void test_limits(cn__gpu *g)
{
    check_group("limits");
    size_t most = (size_t)g->limits.maxBufferSize;
    check(!cn__gpu_buffer_new(g, most + 1) && says(g->ctx, CN_NO_MEMORY, "no buffers above"), "one byte too many");
    check(!cn__gpu_buffer_new(g, SIZE_MAX) && says(g->ctx, CN_NO_MEMORY, "no buffers above"), "everything");
    check(!cn__gpu_make_buffer(g, (size_t)1 << 40, WGPUBufferUsage_MapWrite | WGPUBufferUsage_CopySrc, true) &&
              says(g->ctx, CN_NO_MEMORY, "no buffers above"),
          "a mapped TiB");
    int x = 5, y = 0;
    cn__gpu_buffer *b = cn__gpu_buffer_new(g, 4);
    check(cn__gpu_upload(g, b, 0, &x, 4) && cn__gpu_download(g, b, 0, &y, 4) && y == 5, "works after");
    cn__gpu_buffer_free(g, b);
}

static void test_budget(cn_ctx *ctx)
{
    check_group("budget");
    cn__gpu *g = cn__gpu_open(ctx, 0, &(cn__gpu_desc){ .memory_limit = 8 << 20 });
    if (!check(g != NULL, "open: %s", cn_error(ctx))) return;
    cn__gpu_buffer *b[16] = { 0 };
    int n = 0;
    while (n < 16 && (b[n] = cn__gpu_buffer_new(g, 1 << 20))) n++;
    check(n == 8 && says(ctx, CN_NO_MEMORY, "limit of 8388608"), "%d of 1 MiB in 8 MiB", n);
    for (int i = 0; i < n; i++) cn__gpu_buffer_free(g, b[i]);
    cn__gpu_buffer *large = cn__gpu_buffer_new(g, 5 << 20); /* the pool must be emptied for it */
    check(large && g->stats.pooled == 0 && g->stats.peak_bytes <= 8 << 20, "5 MiB instead: %s", cn_error(ctx));
    check(!cn__gpu_buffer_new(g, 4 << 20) && says(ctx, CN_NO_MEMORY, "in use"), "and no more");
    cn__gpu_close(g);
}

enum { CANNOT_HAPPEN = 77 };

/* The driver runs out of memory: runs in a process with little address space. lavapipe allocates more than there is, so
   the memory limit of the device is needed as well. */
static int run_out(void)
{
    cn_ctx *ctx = cn_open(NULL);
    cn__gpu *g = cn__gpu_open(ctx, 0, &(cn__gpu_desc){ .memory_limit = SIZE_MAX });
    if (!g) return 2;
    int x = 1;
    cn__gpu_buffer *b = cn__gpu_buffer_new(g, 4);
    if (!b || !cn__gpu_upload(g, b, 0, &x, 4) || !cn__gpu_download(g, b, 0, &x, 4)) return 3;
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (!f || fscanf(f, "%lu", &pages) != 1) return 4;
    fclose(f);
    struct rlimit room = { .rlim_cur = (pages * 4096) + (900ul << 20), .rlim_max = RLIM_INFINITY };
    setrlimit(RLIMIT_AS, &room);
    int n = 0;
    while (n < 64 && cn__gpu_buffer_new(g, 256 << 20)) n++;
    if (n == 64) return CANNOT_HAPPEN;
    bool ok = cn_error_code(ctx) == CN_NO_MEMORY;
    printf("out of memory after %d x 256 MiB: %s \"%.90s\"\n", n, cn_code_name(cn_error_code(ctx)), cn_error(ctx));
    cn_error_clear(ctx);
    int y = 0;
    x = 9;
    ok = cn__gpu_upload(g, b, 0, &x, 4) && cn__gpu_download(g, b, 0, &y, 4) && y == 9 && ok;
    cn__gpu_close(g);
    cn_close(ctx);
    return ok ? 0 : 5;
}

static void test_out_of_memory(const char *self)
{
    check_group("out of memory");
    if (SANITIZED) return; /* sanitizers need the address space */
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, "run-out", (char *)NULL);
        _exit(127);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_HAPPEN) skip();
    else
        check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the process ended with %d, signal %d",
              WEXITSTATUS(status), WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* ---- programs ---- */

static const char axpb[] = "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
                           "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n"
                           "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3u) {\n"
                           "    if (i.x < arrayLength(&y)) { y[i.x] = 2.0 * x[i.x] + 1.0; }\n"
                           "}\n";

static cn__gpu_program *make_axpb(cn__gpu *g)
{
    return cn__gpu_program_new(g, &(cn__gpu_program_desc){ .name = "axpb", .source = axpb, .bindings = 2 });
}

/* Computes y = 2 x + 1 twice; another x is uploaded between. */
static bool computes(cn__gpu *g)
{
    enum { N = 1000 };
    float x[N], y[N];
    cn__gpu_program *p = make_axpb(g);
    cn__gpu_buffer *b[3] = { cn__gpu_buffer_new(g, sizeof x), cn__gpu_buffer_new(g, sizeof x),
                             cn__gpu_buffer_new(g, sizeof x) };
    bool ok = p && b[0] && b[1] && b[2];
    for (int i = 0; i < N; i++) x[i] = (float)i;
    ok = ok && cn__gpu_upload(g, b[0], 0, x, sizeof x);
    ok = ok && cn__gpu_dispatch(g, p, 2, (cn__gpu_binding[]){ { .buffer = b[0] }, { .buffer = b[1] } }, (N + 63) / 64);
    for (int i = 0; i < N; i++) x[i] = -1;
    ok = ok && cn__gpu_upload(g, b[0], 0, x, sizeof x); /* recorded after the dispatch, which must not see it */
    ok = ok && cn__gpu_dispatch(g, p, 2, (cn__gpu_binding[]){ { .buffer = b[1] }, { .buffer = b[2] } }, (N + 63) / 64);
    ok = ok && cn__gpu_download(g, b[2], 0, y, sizeof y);
    for (int i = 0; i < N && ok; i++) ok = y[i] == 4 * (float)i + 3;
    for (int i = 0; i < 3; i++) cn__gpu_buffer_free(g, b[i]);
    cn__gpu_program_free(g, p);
    return ok;
}

static bool refuses(cn__gpu *g, const char *name, const char *source, cn_code code, const char *part)
{
    cn__gpu_program *p =
        cn__gpu_program_new(g, &(cn__gpu_program_desc){ .name = name, .source = source, .bindings = 2 });
    bool ok = !p && strstr(cn_error(g->ctx), name) && says(g->ctx, code, part);
    cn__gpu_program_free(g, p);
    return ok;
}

static void test_programs(cn__gpu *g)
{
    check_group("programs");
    check(computes(g), "4 x + 3: %s", cn_error(g->ctx));
    cn_error_clear(g->ctx);
    check(refuses(g, "unknown_name", "@compute @workgroup_size(1) fn main() { let a = nonsense_42; }", CN_BAD_ARGUMENT,
                  "nonsense_42"),
          "a name nobody declared");
    check(refuses(g, "not_wgsl", "fn main( { this is not wgsl", CN_BAD_ARGUMENT, "expected"), "not WGSL");
    check(refuses(g, "no_main", "@compute @workgroup_size(1) fn other() {}", CN_BAD_ARGUMENT, "main"), "no such entry");
    check(refuses(g, "too_wide", "@compute @workgroup_size(4096) fn main() {}", CN_BAD_ARGUMENT, "4096"),
          "too large a group");
    check(!cn__gpu_program_new(
              g, &(cn__gpu_program_desc){ .name = "greedy", .source = axpb, .bindings = 2, .group_bytes = 1 << 30 }) &&
              says(g->ctx, CN_UNSUPPORTED, "workgroup memory"),
          "too much shared memory");
    check(computes(g), "works after: %s", cn_error(g->ctx));
    cn_error_clear(g->ctx);

    cn__gpu_program *p = make_axpb(g);
    cn__gpu_buffer *a = cn__gpu_buffer_new(g, 4096), *b = cn__gpu_buffer_new(g, 4096);
    cn__gpu_binding same[] = { { .buffer = a }, { .buffer = a } },
                    odd[] = { { .buffer = a, .offset = 4 }, { .buffer = b } },
                    past[] = { { .buffer = a, .bytes = 5000 }, { .buffer = b } },
                    good[] = { { .buffer = a }, { .buffer = b } };
    bool aliased = cn__gpu_dispatch(g, p, 2, same, 1) && cn__gpu_submit(g);
    check(!aliased && cn_error_code(g->ctx) == CN_BAD_ARGUMENT, "one buffer read and written: %s", cn_error(g->ctx));
    cn_error_clear(g->ctx);
    check(!cn__gpu_dispatch(g, p, 2, odd, 1) && says(g->ctx, CN_BAD_ARGUMENT, "binding 0"), "an odd offset");
    check(!cn__gpu_dispatch(g, p, 2, past, 1) && says(g->ctx, CN_BAD_ARGUMENT, "binding 0"), "past the end");
    check(!cn__gpu_dispatch(g, p, 1, good, 1) && says(g->ctx, CN_BAD_ARGUMENT, "1 bindings given"), "one binding");
    check(!cn__gpu_dispatch(g, p, 2, good, (int64_t)65535 * 65535 + 1) && says(g->ctx, CN_UNSUPPORTED, "at most"),
          "too many groups");
    check(cn__gpu_dispatch(g, p, 2, good, 0) && cn__gpu_submit(g), "none at all");
    check(cn__gpu_dispatch(g, p, 2, good, 1) && cn__gpu_submit(g), "one: %s", cn_error(g->ctx));
    cn__gpu_buffer_free(g, a);
    cn__gpu_buffer_free(g, b);
    cn__gpu_program_free(g, p);
    check(computes(g), "works after those too: %s", cn_error(g->ctx));
    cn_error_clear(g->ctx);
}

/* An error drops the recorded commands with their uploads. After it was reported the device works again. */
static void test_dropped_commands(cn__gpu *g)
{
    check_group("dropped commands");
    enum { SIZE = CN__GPU_CHUNK + 100 };
    unsigned char *sent = calloc(1, SIZE), *got = calloc(1, SIZE);
    cn__gpu_buffer *b = cn__gpu_buffer_new(g, SIZE);
    check(cn__gpu_upload(g, b, 0, sent, CN__GPU_CHUNK), "a chunk full");
    WGPUBufferDescriptor bad = { .label = { NULL, WGPU_STRLEN },
                                 .usage = WGPUBufferUsage_MapRead | WGPUBufferUsage_Storage,
                                 .size = 64 };
    WGPUBuffer made = g->w->DeviceCreateBuffer(g->device, &bad);
    check(!cn__gpu_submit(g) && says(g->ctx, CN_BAD_ARGUMENT, "submit"), "the error shows");
    check(g->chunks[g->chunk].used == 0 && cn__gpu_submit(g), "nothing is left of the upload");
    fill(sent, SIZE, 8);
    check(g->chunks[g->chunk].used == 0 && cn__gpu_upload(g, b, 0, sent, SIZE) &&
              cn__gpu_download(g, b, 0, got, SIZE) && memcmp(sent, got, SIZE) == 0,
          "again: %s", cn_error(g->ctx));
    if (made) g->w->BufferRelease(made);
    cn__gpu_buffer_free(g, b);
    free(sent);
    free(got);
}

/* ---- loss ---- */

static void test_loss(cn_ctx *ctx)
{
    check_group("loss");
    cn__gpu *g = cn__gpu_open(ctx, 0, NULL);
    if (!check(g != NULL, "open: %s", cn_error(ctx))) return;
    char bytes[64] = { 1 };
    cn__gpu_program *p = make_axpb(g);
    cn__gpu_buffer *a = cn__gpu_buffer_new(g, 64), *b = cn__gpu_buffer_new(g, 64);
    check(cn__gpu_upload(g, a, 0, bytes, 64), "upload");
    cn__gpu_read *under_way = cn__gpu_read_begin(g, a, 0, 64);
    check(cn__gpu_upload(g, b, 0, bytes, 64), "upload that is not submitted");
    check(under_way && !cn__gpu_is_lost(g), "alive");
    cn__gpu_lose(g);
    check(cn__gpu_is_lost(g), "lost");
    cn__gpu_binding both[] = { { .buffer = a }, { .buffer = b } };
    check(!cn__gpu_upload(g, a, 0, bytes, 64) && says(ctx, CN_DEVICE_LOST, "was lost"), "upload");
    check(!cn__gpu_upload(g, a, 1, bytes, 2) && says(ctx, CN_DEVICE_LOST, "was lost"), "upload of a part");
    check(!cn__gpu_download(g, a, 0, bytes, 64) && says(ctx, CN_DEVICE_LOST, "was lost"), "download");
    check(!cn__gpu_read_begin(g, a, 0, 64) && says(ctx, CN_DEVICE_LOST, "was lost"), "read");
    check(!cn__gpu_buffer_new(g, 64) && says(ctx, CN_DEVICE_LOST, "was lost"), "buffer");
    check(!cn__gpu_copy(g, a, 0, b, 0, 64) && says(ctx, CN_DEVICE_LOST, "was lost"), "copy");
    check(!make_axpb(g) && says(ctx, CN_DEVICE_LOST, "was lost"), "program");
    check(!cn__gpu_dispatch(g, p, 2, both, 1) && says(ctx, CN_DEVICE_LOST, "was lost"), "dispatch");
    check(!cn__gpu_submit(g) && says(ctx, CN_DEVICE_LOST, "was lost"), "submit");
    bool read = cn__gpu_read_end(under_way, bytes); /* may have ended before the loss or not */
    check(read || says(ctx, CN_DEVICE_LOST, "was lost"), "the read under way");
    cn_error_clear(ctx);
    cn__gpu_lose(g);
    cn__gpu_trim(g);
    cn__gpu_buffer_free(g, a);
    cn__gpu_program_free(g, p);
    cn__gpu_close(g);
    cn_error_clear(ctx);

    g = cn__gpu_open(ctx, 0, NULL);
    check(g && computes(g), "another device: %s", cn_error(ctx));
    cn__gpu_close(g);
}

/* The device is destroyed without our knowledge, as a driver would do it. Each call that can notice it gets its own
   device. */
static void test_sudden_loss(cn_ctx *ctx)
{
    check_group("sudden loss");
    for (int way = 0; way < 6; way++) {
        cn__gpu *g = cn__gpu_open(ctx, 0, NULL);
        if (!check(g != NULL, "open: %s", cn_error(ctx))) return;
        char bytes[64] = { 1 };
        cn__gpu_program *p = make_axpb(g), *q = NULL;
        cn__gpu_buffer *a = cn__gpu_buffer_new(g, 64), *b = cn__gpu_buffer_new(g, 64);
        cn__gpu_upload(g, a, 0, bytes, 64);
        if (way % 2) cn__gpu_submit(g);
        g->w->DeviceDestroy(g->device);
        bool ok = true;
        if (way / 2 == 0) ok = cn__gpu_download(g, a, 0, bytes, 64);
        if (way / 2 == 1) ok = (q = make_axpb(g)) && cn__gpu_submit(g) && cn__gpu_download(g, a, 0, bytes, 64);
        if (way / 2 == 2) {
            cn__gpu_binding both[] = { { .buffer = a }, { .buffer = b } };
            ok = cn__gpu_dispatch(g, p, 2, both, 1) && cn__gpu_upload(g, b, 0, bytes, 64) && cn__gpu_submit(g) &&
                 cn__gpu_download(g, a, 0, bytes, 64);
        }
        check(!ok && cn__gpu_is_lost(g) && says(ctx, CN_DEVICE_LOST, "was lost"), "way %d: %s", way, cn_error(ctx));
        cn__gpu_program_free(g, p);
        cn__gpu_program_free(g, q);
        cn__gpu_close(g);
        cn_error_clear(ctx);
    }
}

/* ---- several ---- */

static void test_two(cn_ctx *ctx)
{
    check_group("two devices");
    cn__gpu *a = cn__gpu_open_begin(ctx, 0, NULL), *b = cn__gpu_open_begin(ctx, cn_gpu_count(ctx) - 1, NULL);
    int looks = 0;
    while (!cn__gpu_open_done(a) || !cn__gpu_open_done(b)) looks++;
    check(cn__gpu_open_end(a) && cn__gpu_open_end(b), "opened at once, in %d looks: %s", looks, cn_error(ctx));
    cn__gpu_buffer *x = cn__gpu_buffer_new(a, 1000), *y = cn__gpu_buffer_new(b, 1000);
    unsigned char p[1000], q[1000], got[1000];
    fill(p, 1000, 5);
    fill(q, 1000, 6);
    check(cn__gpu_upload(a, x, 0, p, 1000) && cn__gpu_upload(b, y, 0, q, 1000), "upload");
    check(cn__gpu_download(a, x, 0, got, 1000) && memcmp(got, p, 1000) == 0, "from one");
    check(cn__gpu_download(b, y, 0, got, 1000) && memcmp(got, q, 1000) == 0, "from the other");
    cn__gpu_lose(a);
    check(!cn__gpu_submit(a) && says(ctx, CN_DEVICE_LOST, "was lost"), "one lost");
    check(computes(b), "the other not: %s", cn_error(ctx));
    cn__gpu_close(a);
    cn__gpu_close(cn__gpu_open_begin(ctx, 0, NULL)); /* closed while it opens */
    check(computes(b), "and still not: %s", cn_error(ctx));
    cn__gpu_close(b);
}

static void *work(void *unused)
{
    (void)unused;
    intptr_t good = 0;
    for (int round = 0; round < 3; round++) {
        cn_ctx *ctx = cn_open(&(cn_desc){ .threads = 1 });
        cn__gpu *g = cn__gpu_open(ctx, 0, NULL);
        for (int i = 0; i < 5 && g; i++) good += computes(g);
        cn__gpu_close(g);
        cn_close(ctx);
    }
    return (void *)good;
}

static void test_threads(void)
{
    check_group("threads");
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) {
        void *good = NULL;
        pthread_join(threads[i], &good);
        check((intptr_t)good == 15, "thread %d: %d of 15 right", i, (int)(intptr_t)good);
    }
}

/* ---- nothing grows, nothing is left ---- */

typedef struct meter {
    int64_t live, calls, fail_at; /* fail_at: the first call that fails; 0: none */
} meter;

static void *metered(void *user, void *p, size_t old_bytes, size_t new_bytes)
{
    meter *m = user;
    if (new_bytes && m->fail_at && ++m->calls >= m->fail_at) return NULL;
    m->live += (int64_t)new_bytes - (int64_t)(p ? old_bytes : 0);
    if (new_bytes) return realloc(p, new_bytes);
    free(p);
    return NULL;
}

static long resident_kib(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0;
    if (f && fscanf(f, "%*d %ld", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void test_cycles(void)
{
    check_group("cycles");
    int cycles = test_is_quick() ? 60 : 200;
    meter m = { 0 };
    cn_ctx *ctx = cn_open(&(cn_desc){ .allocator = { metered, &m }, .threads = 1 });
    int64_t live = 0;
    long before = 0;
    for (int i = 0; i < cycles; i++) {
        cn__gpu *g = cn__gpu_open(ctx, 0, NULL);
        if (!check(g && computes(g), "cycle %d: %s", i, cn_error(ctx))) break;
        cn__gpu_close(g);
        if (i != cycles / 4) continue;
        live = m.live;
        before = resident_kib();
    }
    long grown = resident_kib() - before;
    printf("%d devices opened and closed: %ld KiB more in the last %d\n", cycles, grown, cycles - cycles / 4 - 1);
    check(m.live == live, "%lld bytes more of ours", (long long)(m.live - live));
    check(SANITIZED || grown < 16 * 1024, "the process grew by %ld KiB", grown);
    cn_close(ctx);
    check(m.live == 0, "%lld bytes left", (long long)m.live);
}

static void test_whole_cycles(void)
{
    check_group("whole cycles");
    int cycles = test_is_quick() ? 10 : 40;
    long before = 0;
    for (int i = 0; i < cycles; i++) {
        meter m = { 0 };
        cn_ctx *ctx = cn_open(&(cn_desc){ .allocator = { metered, &m }, .threads = 1 });
        cn__gpu *g = cn__gpu_open(ctx, 0, NULL);
        if (!check(g && computes(g), "cycle %d: %s", i, cn_error(ctx))) break;
        cn__gpu_close(g);
        cn_close(ctx);
        check(m.live == 0, "%lld bytes left", (long long)m.live);
        if (i == cycles / 2) before = resident_kib();
    }
    long grown = resident_kib() - before;
    printf("%d contexts with a device: %ld KiB more in the last %d\n", cycles, grown, cycles - cycles / 2 - 1);
    check(SANITIZED || grown < 16 * 1024, "the process grew by %ld KiB", grown);
}

/* All allocations from the n-th on fail. */
static void test_no_host_memory(void)
{
    check_group("no host memory");
    int failures = 0, step = test_is_quick() ? 3 : 1;
    for (int n = 1; n < 200; n += step) {
        meter m = { 0 };
        cn_ctx *ctx = cn_open(&(cn_desc){ .allocator = { metered, &m }, .threads = 1 });
        m.fail_at = n;
        cn__gpu *g = cn__gpu_open(ctx, 0, NULL);
        bool ok = g && computes(g);
        check(ok || cn_error_code(ctx) == CN_NO_MEMORY, "allocation %d: %s \"%s\"", n, cn_code_name(cn_error_code(ctx)),
              cn_error(ctx));
        cn__gpu_close(g);
        m.fail_at = 0;
        cn_close(ctx);
        check(m.live == 0, "allocation %d: %lld bytes left", n, (long long)m.live);
        failures += !ok;
        if (ok) break;
    }
    check(failures > 3 / step, "only %d allocations failed", failures);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "run-out") == 0) return run_out();
    test_missing_library();
    cn_ctx *ctx = cn_open(NULL);
    if (!cn_gpu_available(ctx)) {
        printf("skipped: %s\n", cn_gpu_why_not(ctx));
        skip();
        cn_close(ctx);
        return finish();
    }
    test_listing(ctx);
    test_choice(ctx);
    test_auto();
    cn__gpu *g = cn__gpu_open(ctx, 0, NULL);
    if (check(g != NULL, "open: %s", cn_error(ctx))) {
        test_round_trips(g);
        test_pieces(g);
        test_later_reads(g);
        test_pool(g);
        test_limits(g);
        test_programs(g);
        test_dropped_commands(g);
    }
    cn__gpu_close(g);
    test_budget(ctx);
    test_loss(ctx);
    test_sudden_loss(ctx);
    test_two(ctx);
    check(!cn_failed(ctx), "left standing: %s", cn_error(ctx));
    cn_close(ctx);
    test_threads();
    test_cycles();
    test_whole_cycles();
    test_no_host_memory();
    test_out_of_memory(argv[0]);
    return finish();
}
