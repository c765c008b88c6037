/* cairn doctor: compares every operator on a GPU with the CPU, at ordinary sizes and at sizes where drivers and kernels
   tend to fail; then every form of the kernels that have several. It writes a verdict, which contexts on that GPU
   read. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "trials/versus.h"

typedef struct doctor_visit {
    settings *s;
    cn_ctx *cpu, *gpu;
    cn_gpu_info card;
    cn_progress *bar;
    text verdict;
    int failed, passed, skipped;
    /* of the operator, cliff or form that is being tried */
    int checks, bad;
    double worst;
    char message[400]; /* about the first failed check */
} visit;

static bool open_gpu(visit *v)
{
    v->gpu = cn_open(&(cn_desc){ .device = text_of(v->s, "device"), .seed = 7 });
    if (v->gpu && !cn_failed(v->gpu)) return true;
    fail("--device %s: %s", text_of(v->s, "device"), v->gpu ? cn_error(v->gpu) : "out of memory");
    return false;
}

/* A new context, because a failed operator may have lost the device of the last one. */
static bool reopen_gpu(visit *v)
{
    cn_close(v->gpu);
    return open_gpu(v);
}

/* ---- what is found ---- */

static void begin(visit *v)
{
    v->checks = v->bad = 0;
    v->worst = 0;
    v->message[0] = 0;
}

static void note(void *user, bool ok, const char *message)
{
    visit *v = user;
    v->checks++;
    if (ok) return;
    if (!v->bad++) snprintf(v->message, sizeof v->message, "%s", message);
}

static void write_line(visit *v, const char *line)
{
    text *t = &v->verdict;
    const size_t n = strlen(line);
    t->bytes = grow(t->bytes, t->n + n + 2);
    memcpy(t->bytes + t->n, line, n);
    memcpy(t->bytes + (t->n += n), "\n", 2);
    t->n++;
    if (v->bar) cn_progress_note(v->bar, "%s", line);
    else printf("%s\n", line);
}

/* Prints one line about what was tried; true if no check failed. */
static bool report(visit *v, const char *name)
{
    char line[640];
    if (!v->checks) snprintf(line, sizeof line, "SKIP  %-36s %s", name, v->message);
    else if (!v->bad) snprintf(line, sizeof line, "PASS  %-36s %5d checks  worst %.1e", name, v->checks, v->worst);
    else
        snprintf(line, sizeof line, "FAIL  %-36s %5d of %d checks  worst %.1e  %s", name, v->bad, v->checks, v->worst,
                 v->message);
    line[strcspn(line, "\n")] = 0;
    write_line(v, line);
    v->skipped += !v->checks;
    v->passed += v->checks && !v->bad;
    v->failed += v->bad > 0;
    cn_progress_step(v->bar, 1, "%s", name);
    return v->bad == 0;
}

/* ---- operators, by their own cases ---- */

static void try_operator(visit *v, const cn_op *op)
{
    versus vs = { .expected = v->cpu, .tried = v->gpu, .note = note, .user = v };
    for (int c = 0; c < op->n_cases; c++) {
        const trial t = { op, &op->cases[c], c, count_operands(&op->cases[c]) };
        const cn_dtype dtype = takes(&t, CN_F32) ? CN_F32 : CN_I64;
        versus_case(&vs, &t, dtype, LAYOUT_CONTIGUOUS, false);
        if (t.n_in) versus_case(&vs, &t, dtype, LAYOUT_STRIDED, false);
        if (t.n_in && dtype == CN_F32) versus_case(&vs, &t, CN_I64, LAYOUT_CONTIGUOUS, false);
        if (has_grad(op) && dtype == CN_F32) versus_case(&vs, &t, CN_F32, LAYOUT_CONTIGUOUS, true);
    }
    v->worst = fmax(v->worst, vs.worst);
}

static bool wanted(const visit *v, const char *name)
{
    return !given(v->s, "only") || strstr(name, text_of(v->s, "only"));
}

static bool operators(visit *v)
{
    int n;
    const cn_op *const *ops = cn_ops(&n);
    for (int i = 0; i < n; i++) {
        if (needs_callbacks(ops[i]) || !wanted(v, ops[i]->name)) continue;
        begin(v);
        try_operator(v, ops[i]);
        if (!report(v, ops[i]->name) && !reopen_gpu(v)) return false;
    }
    return true;
}

/* ---- cliffs: sizes just below and above a limit of workgroup counts, reductions or bindings ---- */

typedef enum cliff_kind { EACH, SUM, ROWS, COLUMNS, PRODUCT } cliff_kind;
static const char *const kind_names[] = { "elementwise", "sum", "row sums", "column sums", "product" };

typedef struct cliff {
    cliff_kind kind;
    int64_t m, k, n; /* the operand is (m, k); a product has a second one, (k, n) */
} cliff;

static const cliff small_cliffs[] = {
    { EACH, 1, 1, 0 },        { EACH, 1, 255, 0 },      { EACH, 1, 257, 0 },      { EACH, 1, 32767, 0 },
    { EACH, 1, 32768, 0 },    { EACH, 1, 65537, 0 },    { EACH, 7919, 13, 0 },    { SUM, 1, 1, 0 },
    { SUM, 1, 32767, 0 },     { SUM, 1, 32768, 0 },     { SUM, 1, 65535, 0 },     { SUM, 1, 65536, 0 },
    { SUM, 1, 104729, 0 },    { ROWS, 257, 3, 0 },      { ROWS, 3, 32769, 0 },    { ROWS, 65537, 2, 0 },
    { COLUMNS, 3, 257, 0 },   { COLUMNS, 32769, 3, 0 }, { COLUMNS, 2, 65537, 0 }, { PRODUCT, 64, 1, 64 },
    { PRODUCT, 1, 37, 1 },    { PRODUCT, 1, 1, 1 },     { PRODUCT, 31, 37, 41 },  { PRODUCT, 127, 131, 137 },
    { PRODUCT, 65, 33, 129 }, { PRODUCT, 256, 64, 1 },  { PRODUCT, 1, 64, 256 },  { PRODUCT, 32, 1031, 32 },
};
enum { SMALL = sizeof small_cliffs / sizeof *small_cliffs, LARGE = 10 };

/* More workgroups than one axis of a dispatch counts, and more bytes than one binding holds. */
static void large_cliffs(const visit *v, cliff *out)
{
    const int64_t groups = v->card.groups, words = (int64_t)(v->card.binding_bytes / sizeof(float));
    const int64_t sizes[LARGE / 2] = { groups * 1024 - 1, groups * 1024 + 1, words - 1, words, words + 1 };
    for (int i = 0; i < LARGE; i++) out[i] = (cliff){ i % 2 ? SUM : EACH, 1, sizes[i / 2], 0 };
}

static float *numbers(int64_t n)
{
    float *x = grow(NULL, (size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = (float)((uint32_t)i * 2654435761u >> 20) / 2048 - 1;
    return x;
}

static cn_tensor *compute(cn_ctx *cn, const cliff *c, const float *x, const float *y)
{
    cn_tensor *a = cn_from(cn, CN_F32, CN_DIMS(c->m, c->k), x);
    switch (c->kind) {
    case EACH: return cn_relu(cn_add_s(cn_mul_s(a, 1.5), 0.25));
    case SUM: return cn_sum(a, CN_ALL, false);
    case ROWS: return cn_sum(a, CN_DIMS(1), false);
    case COLUMNS: return cn_sum(a, CN_DIMS(0), false);
    case PRODUCT: return cn_matmul(a, cn_from(cn, CN_F32, CN_DIMS(c->k, c->n), y));
    }
    return NULL;
}

/* The result, or NULL; *n: how many. */
static float *result_of(cn_ctx *cn, const cliff *c, const float *x, const float *y, int64_t *n)
{
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *t = compute(cn, c, x, y);
    *n = t ? cn_numel(t) : 0;
    float *out = t ? grow(NULL, (size_t)*n * sizeof *out) : NULL;
    if (t && !cn_read(t, out, (size_t)*n * sizeof *out)) free(out), out = NULL;
    cn_scope_end(cn, s);
    return out;
}

static void compare(visit *v, const float *expected, const float *got, int64_t n)
{
    double scale = 1, most = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) scale = fmax(scale, fabs((double)expected[i]));
    for (int64_t i = 0; i < n; i++) {
        const double d = isfinite(got[i]) ? fabs((double)expected[i] - got[i]) / scale : INFINITY;
        if (d > most) most = d, at = i;
    }
    char message[120];
    snprintf(message, sizeof message, "element %" PRId64 ": expected %.9g, got %.9g", at, expected[at], got[at]);
    v->worst = fmax(v->worst, most);
    note(v, most <= 1e-4, message);
}

static void try_cliff(visit *v, const cliff *c)
{
    float *x = numbers(c->m * c->k), *y = numbers(c->k * c->n);
    int64_t n, m;
    float *expected = result_of(v->cpu, c, x, y, &n), *got = expected ? result_of(v->gpu, c, x, y, &m) : NULL;
    if (expected && got) compare(v, expected, got, n);
    else if (!expected || cn_error_code(v->gpu) == CN_NO_MEMORY)
        snprintf(v->message, sizeof v->message, "not enough memory");
    else note(v, false, cn_error(v->gpu));
    cn_error_clear(v->cpu);
    cn_error_clear(v->gpu);
    free(x), free(y), free(expected), free(got);
}

static void name_cliff(const cliff *c, char *out, size_t size)
{
    if (c->kind == PRODUCT)
        snprintf(out, size, "%s %" PRId64 "x%" PRId64 "x%" PRId64, kind_names[c->kind], c->m, c->k, c->n);
    else if (c->m == 1) snprintf(out, size, "%s of %" PRId64, kind_names[c->kind], c->k);
    else snprintf(out, size, "%s of %" PRId64 "x%" PRId64, kind_names[c->kind], c->m, c->k);
}

static bool cliffs(visit *v, const cliff *c, int n)
{
    for (int i = 0; i < n; i++) {
        char name[96];
        name_cliff(&c[i], name, sizeof name);
        if (!wanted(v, name)) continue;
        begin(v);
        try_cliff(v, &c[i]);
        if (!report(v, name) && !reopen_gpu(v)) return false;
    }
    return true;
}

static bool with_large(const visit *v) { return flag_of(v->s, "large") || strcmp(v->card.kind, "software") != 0; }

/* ---- kernels in several forms ---- */

static const cn_op *find_operator(const char *name)
{
    int n;
    const cn_op *const *ops = cn_ops(&n);
    for (int i = 0; i < n; i++)
        if (!strcmp(ops[i]->name, name)) return ops[i];
    return NULL;
}

static void try_choice(visit *v, const cn_gpu_variant *of)
{
    char name[64];
    for (const char *at = of->operators; *at; at += strcspn(at, " "), at += *at == ' ') {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
        const cn_op *op = find_operator(name);
        if (op) try_operator(v, op);
    }
    for (int i = 0; i < SMALL && !strcmp(of->name, "matmul"); i++)
        if (small_cliffs[i].kind == PRODUCT) try_cliff(v, &small_cliffs[i]);
}

static bool choices(visit *v, const cn_gpu_variant *of)
{
    const char *was = getenv(of->variable);
    char *kept = was ? copy_text(was) : NULL, name[96], line[128];
    bool ok = true;
    for (int i = 0; i < CN_GPU_CHOICES && of->choices[i] && ok; i++) {
        snprintf(name, sizeof name, "%s kernels: %s", of->name, of->choices[i]);
        if (!wanted(v, name)) continue;
        setenv(of->variable, of->choices[i], 1);
        ok = reopen_gpu(v);
        begin(v);
        if (ok) try_choice(v, of);
        if (!ok || report(v, name) || !strcmp(of->choices[i], of->safe)) continue;
        snprintf(line, sizeof line, "quarantine %s %s", of->name, of->choices[i]);
        write_line(v, line);
    }
    if (kept) setenv(of->variable, kept, 1);
    else unsetenv(of->variable);
    free(kept);
    return ok;
}

static bool variants(visit *v)
{
    int n;
    const cn_gpu_variant *all = cn_gpu_variants(&n);
    for (int i = 0; i < n; i++)
        if (!choices(v, &all[i])) return false;
    return true;
}

/* ---- the verdict ---- */

static int count_all(const visit *v)
{
    int n_ops, n_variants, n = SMALL + (with_large(v) ? LARGE : 0);
    cn_ops(&n_ops);
    const cn_gpu_variant *all = cn_gpu_variants(&n_variants);
    for (int i = 0; i < n_variants; i++)
        for (int c = 0; c < CN_GPU_CHOICES && all[i].choices[c]; c++) n++;
    return n + n_ops - 2;
}

#define NO_CACHE \
    "no folder for the verdict: set HOME, or XDG_CACHE_HOME to an absolute path (with --only no verdict is kept)"

/* Before the examination, which takes minutes: a verdict of all of it can be kept. */
static int check_cache(const visit *v)
{
    char path[1024];
    return given(v->s, "only") || cn_gpu_verdict_path(v->gpu, path, sizeof path) ? DONE : fail(NO_CACHE);
}

static int write_verdict(visit *v, const char *text)
{
    char path[1024];
    if (!cn_gpu_verdict_path(v->gpu, path, sizeof path)) return fail(NO_CACHE);
    char *folder = folder_of(path);
    int code = make_folder(folder);
    free(folder);
    if (code != DONE) return code;
    FILE *f = fopen(path, "w");
    bool ok = f && fputs(text, f) >= 0;
    if (f && fclose(f)) ok = false;
    if (!ok) return fail("%s: %s", path, strerror(errno));
    printf("The verdict is in %s; contexts on this GPU read it\n", path);
    return DONE;
}

static bool examine(visit *v)
{
    cliff large[LARGE];
    large_cliffs(v, large);
    return operators(v) && cliffs(v, small_cliffs, SMALL) && (!with_large(v) || cliffs(v, large, LARGE)) && variants(v);
}

int doctor(settings *s)
{
    visit v = { .s = s, .cpu = cn_open(&(cn_desc){ .device = "cpu", .seed = 7 }) };
    int code = v.cpu && open_gpu(&v) ? DONE : FAILED;
    if (code == DONE)
        code = cn_gpu_describe(v.gpu, cn_gpu_find(v.gpu, text_of(s, "device")), &v.card) ? DONE : fail_in(v.gpu);
    if (code == DONE) code = check_cache(&v);
    if (code == DONE) {
        cn_progress_desc bar = { .total = count_all(&v), .label = "doctor", .out = stdout };
        v.bar = cn_progress_new(v.cpu, &bar);
        char line[640];
        snprintf(line, sizeof line, "cairn %s: %s (%s, %s, by %s), driver %s", cn_version(), v.card.name, v.card.kind,
                 v.card.backend, v.card.implementation, v.card.driver[0] ? v.card.driver : "not named");
        write_line(&v, line);
        const bool complete = examine(&v);
        cn_progress_finish(v.bar);
        snprintf(line, sizeof line, "%d passed, %d failed, %d skipped", v.passed, v.failed, v.skipped);
        v.bar = NULL;
        write_line(&v, line);
        code = complete && !v.failed ? DONE : FAILED;
        if (complete && !given(s, "only") && write_verdict(&v, v.verdict.bytes) != DONE) code = FAILED;
    }
    free(v.verdict.bytes);
    cn_close(v.gpu);
    cn_close(v.cpu);
    return code;
}
