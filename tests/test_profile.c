/* Profiles: every kernel is counted once, times add up to the whole, products have their FLOPs, traces are JSON and bounded, and
   lack of memory disturbs nothing. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/profile.h"
#include "support/check.h"
#include "support/scratch.h"

/* ---- something to profile: a small network, trained ---- */

typedef struct net {
    cn_ctx *cn;
    cn_tensor *x, *w, *b, *v;
} net;

enum { BATCH = 32, IN = 64, OUT = 16 };

static bool net_new(net *m, cn_ctx *cn)
{
    m->cn = cn;
    m->x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(BATCH, IN)));
    m->w = cn_param(cn_mul_s(cn_randn(cn, CN_F32, CN_DIMS(IN, OUT)), 0.1));
    m->b = cn_param(cn_zeros(cn, CN_F32, CN_DIMS(OUT)));
    m->v = cn_param(cn_mul_s(cn_randn(cn, CN_F32, CN_DIMS(OUT, OUT)), 0.1));
    return m->v && cn_eval_all(cn);
}

static bool train(net *m)
{
    cn_ctx *cn = m->cn;
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *h = cn_gelu(cn_add(cn_matmul(m->x, m->w), m->b));
    cn_tensor *loss = cn_mean(cn_square(cn_softmax(cn_matmul(h, m->v), 1)), CN_ALL, false);
    bool ok = loss && cn_backward(loss);
    cn_tensor *all[] = { m->w, m->b, m->v };
    cn_no_grad_begin(cn);
    for (int i = 0; i < 3 && ok; i++) ok = cn_assign(all[i], cn_sub(all[i], cn_mul_s(cn_grad_of(all[i]), 0.1)));
    cn_no_grad_end(cn);
    for (int i = 0; i < 3; i++) cn_zero_grad(all[i]);
    ok = ok && cn_eval_all(cn) && isfinite(cn_item(loss));
    cn_scope_end(cn, s);
    return ok;
}

static bool find_row(const cn_profile *p, const char *name, cn_profile_row *row)
{
    for (int i = 0; cn_profile_row_at(p, i, row); i++)
        if (strcmp(row->name, name) == 0) return true;
    return false;
}

static int64_t kernels_in_rows(const cn_profile *p)
{
    cn_profile_row r;
    int64_t n = 0;
    for (int i = 0; cn_profile_row_at(p, i, &r); i++) n += r.kind == CN_PROFILE_TRANSFER ? 0 : r.calls;
    return n;
}

static void times_add_up(const cn_profile *p, const char *when)
{
    double share = 0, seconds = 0, rows = 0, kernels = 0;
    int64_t calls = 0;
    cn_profile_row r;
    for (int c = 0; c < CN_PROFILE_CLASSES; c++) {
        r = cn_profile_total(p, (cn_profile_class)c);
        check(r.seconds >= 0, "%s: the time of %s is %g", when, r.name, r.seconds);
        share += r.share;
        seconds += r.seconds;
        if (c < CN_PROFILE_TRANSFER) calls += r.calls;
        if (c <= CN_PROFILE_TRANSFER) kernels += r.seconds;
    }
    for (int i = 0; cn_profile_row_at(p, i, &r); i++) rows += r.seconds;
    check(fabs(share - 1) < 1e-9, "%s: shares add up to %.12f", when, share);
    check(fabs(seconds - cn_profile_seconds(p)) < 1e-9, "%s: times add up to %g of %g", when, seconds,
          cn_profile_seconds(p));
    check(fabs(rows - kernels) < 1e-9, "%s: rows add up to %g, their classes to %g", when, rows, kernels);
    check(calls == cn_profile_kernels(p), "%s: %lld calls in classes, %lld kernels", when, (long long)calls,
          (long long)cn_profile_kernels(p));
    check(kernels_in_rows(p) == calls, "%s: %lld calls in rows, %lld in classes", when, (long long)kernels_in_rows(p),
          (long long)calls);
}

static void kernels_are_counted(void)
{
    check_group("kernels");
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 2 });
    net m;
    net_new(&m, cn);
    const cn_counters before = cn_count(cn);
    cn_profile *p = cn_profile_begin(cn, NULL);
    for (int i = 0; i < 20; i++) check(train(&m), "step %d: %s", i, cn_error(cn));
    check(cn_profile_end(p), "a profile ends");
    const cn_counters after = cn_count(cn);
    train(&m);
    check(cn_profile_kernels(p) == after.kernels - before.kernels && cn_profile_kernels(p) >= 100,
          "%lld kernels, counted %lld", (long long)cn_profile_kernels(p), (long long)(after.kernels - before.kernels));
    const cn_profile_row matmul = cn_profile_total(p, CN_PROFILE_MATMUL),
                         planning = cn_profile_total(p, CN_PROFILE_PLANNING);
    check(matmul.calls == after.contractions - before.contractions && matmul.calls > 0, "%lld products",
          (long long)matmul.calls);
    /* forward x·w and h·v; backward to w, v and h */
    const double flops = 20 * 2.0 * (2.0 * BATCH * IN * OUT + 3.0 * BATCH * OUT * OUT);
    check(matmul.flops == flops, "%.0f FLOPs, expected %.0f", matmul.flops, flops);
    check(cn_profile_total(p, CN_PROFILE_ENGINE).calls == after.evaluations - before.evaluations,
          "evaluations are counted");
    check(planning.seconds > 0 && planning.calls >= 20, "planning: %lld times, %g s", (long long)planning.calls,
          planning.seconds);
    times_add_up(p, "20 steps");
    cn_profile_row r;
    check(find_row(p, "softmax", &r) && r.kind == CN_PROFILE_OTHER && r.calls == 20 && strcmp(r.device, "cpu") == 0,
          "softmax is a row");
    check(find_row(p, "download", &r) && r.bytes >= 20 * 4, "reading the loss is a transfer of %g bytes", r.bytes);
    check(!cn_profile_row_at(p, cn_profile_rows(p), &r) && !cn_profile_row_at(p, -1, &r), "no row beyond the last");
    cn_close(cn);
}

/* A transfer between evaluations is part of none of them. */
static void transfers_between_evaluations(void)
{
    check_group("transfers");
    enum { N = 1 << 20 };
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    float *data = calloc(N, sizeof *data);
    cn_profile *p = cn_profile_begin(cn, NULL);
    for (int i = 0; i < 20; i++) {
        cn_scope s = cn_scope_begin(cn);
        check(cn_from(cn, CN_F32, CN_DIMS(N), data) != NULL, "%s", cn_error(cn));
        cn_eval(cn_ones(cn, CN_F32, CN_DIMS(2)));
        cn_scope_end(cn, s);
    }
    cn_profile_end(p);
    check(cn_profile_total(p, CN_PROFILE_TRANSFER).bytes == 20.0 * N * sizeof *data, "20 uploads");
    times_add_up(p, "uploads");
    free(data);
    cn_close(cn);
}

static void names_are_the_plans(void)
{
    check_group("names");
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_tensor *x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(64, 48)));
    cn_eval_all(cn);
    cn_tensor *y = cn_sum(cn_exp(cn_mul_s(x, 2)), CN_DIMS(1), false);
    char plan[4096];
    cn_plan_print(y, plan, sizeof plan);
    cn_profile *p = cn_profile_begin(cn, NULL);
    cn_eval(y);
    cn_eval(cn_reshape(cn_transpose(x, 0, 1), CN_DIMS(64 * 48)));
    cn_profile_end(p);
    cn_profile_row r;
    check(cn_profile_row_at(p, 0, &r) && strstr(plan, r.name) && r.kind == CN_PROFILE_REDUCE,
          "'%s' is a reduction in %s", r.name, plan);
    check(r.bytes == 4.0 * (64 * 48 + 64), "it moves %g bytes", r.bytes);
    const cn_profile_row moves = cn_profile_total(p, CN_PROFILE_MOVE);
    check(moves.calls == 1 && moves.bytes == 4.0 * 2 * 64 * 48,
          "a transposed view made contiguous is %lld move of %g bytes", (long long)moves.calls, moves.bytes);
    cn_close(cn);
}

static void products_have_flops(void)
{
    check_group("FLOPs");
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_tensor *x = cn_param(cn_randn(cn, CN_F32, CN_DIMS(2, 6, 9, 9))),
              *w = cn_param(cn_randn(cn, CN_F32, CN_DIMS(4, 3, 3, 3)));
    cn_tensor *q = cn_param(cn_randn(cn, CN_F32, CN_DIMS(2, 3, 5, 8))), *k = cn_randn(cn, CN_F32, CN_DIMS(2, 3, 7, 8)),
              *v = cn_randn(cn, CN_F32, CN_DIMS(2, 3, 7, 4));
    cn_keep(k), cn_keep(v);
    cn_eval_all(cn);
    cn_profile *p = cn_profile_begin(cn, NULL);
    cn_backward(cn_sum(cn_conv2d(x, w, NULL, &(cn_conv_desc){ .groups = 2 }), CN_ALL, false));
    cn_backward(cn_sum(cn_scaled_dot_product_attention(q, k, v, NULL), CN_ALL, false));
    cn_eval_all(cn);
    cn_profile_end(p);
    const double conv = 2.0 * (2 * 4 * 7 * 7) * (3 * 3 * 3), one = 2.0 * (2 * 3) * 5 * 7;
    const char *const names[] = { "conv", "conv_input_grad", "conv_weight_grad", "attention",
                                  "attention_backward" };
    const double flops[] = { conv, conv, conv, one * (8 + 4), one * (3 * 8 + 2 * 4) };
    for (int i = 0; i < 5; i++) {
        cn_profile_row r = { 0 };
        check(find_row(p, names[i], &r) || i == 0, "%s was run", names[i]);
        if (r.calls)
            check(r.flops == flops[i] * (double)r.calls, "%s: %.0f FLOPs, expected %.0f", names[i], r.flops, flops[i]);
    }
    check(cn_profile_total(p, CN_PROFILE_ATTENTION).calls >= 1, "attention has a class of its own");
    cn_close(cn);
}

static void it_can_be_used_wrongly(void)
{
    check_group("wrong use");
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    net m;
    net_new(&m, cn);
    cn_profile *p = cn_profile_begin(cn, NULL);
    check(!cn_profile_begin(cn, NULL) && cn_error_code(cn) == CN_UNSUPPORTED, "a second profile: %s", cn_error(cn));
    cn_error_clear(cn);
    check(train(&m), "the first goes on");
    check(kernels_in_rows(p) == cn_profile_kernels(p) && cn_profile_kernels(p) > 0,
          "it can be looked at while it runs");
    cn_profile_free(p);
    check(train(&m) && !cn_failed(cn), "freed while it ran: %s", cn_error(cn));
    p = cn_profile_begin(cn, NULL);
    check(p && cn_profile_end(p) && !cn_profile_end(p), "it ends once");
    check(cn_profile_kernels(p) == 0 && cn_profile_rows(p) == 0, "an empty profile");
    check(cn_profile_total(p, CN_PROFILE_OUTSIDE).share == 1, "all of its time is outside");
    char text[4096];
    check(cn_profile_print(p, text, sizeof text) == strlen(text) && strstr(text, "outside"), "an empty profile prints");
    check(!cn_profile_begin(NULL, NULL) && !cn_profile_end(NULL) && !cn_profile_trace(NULL, "x") &&
              !cn_profile_show(NULL, stdout),
          "NULL is taken");
    check(!cn_profile_trace(p, "no/such/folder/x") && cn_error_code(cn) == CN_BAD_FILE, "a path that cannot be: %s",
          cn_error(cn));
    cn_error_clear(cn);
    cn_profile_free(p);

    static const int64_t bad[2] = { 0, 99 };
    p = cn_profile_begin(cn, NULL);
    check(!cn_eval(cn_embedding(m.v, cn_from(cn, CN_I64, CN_DIMS(2), bad))),
          "an index out of range fails under a profile too");
    cn_error_clear(cn);
    check(train(&m), "and then all is well");
    cn_profile_end(p);
    times_add_up(p, "after an error");
    cn_close(cn);
}

static void the_table_is_aligned(void)
{
    check_group("table");
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    net m;
    net_new(&m, cn);
    cn_profile *p = cn_profile_begin(cn, NULL);
    for (int i = 0; i < 5; i++) train(&m);
    cn_profile_end(p);
    char text[16384], part[64];
    const size_t n = cn_profile_print(p, text, sizeof text);
    check(n == strlen(text) && n > 500, "the whole table: %zu", n);
    check(cn_profile_print(p, part, sizeof part) == n && strlen(part) == sizeof part - 1 &&
              !strncmp(part, text, sizeof part - 1),
          "a part of it");
    check(strstr(text, "outside matmul: ") && strstr(text, "GFLOP/s") && strstr(text, "5 evaluations"),
          "what it says: %s", text);
    int column = -1, rows = 0;
    double share = 0, previous = INFINITY;
    char *kernels = strstr(text, "kernel ");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const char *percent = strchr(line, '%');
        if (!percent || !strncmp(line, "outside matmul", 14)) continue;
        check(column < 0 || percent - line == column, "shares stand under each other: %s", line);
        column = (int)(percent - line);
        const double s = strtod(percent - 9, NULL);
        if (line < kernels && strncmp(line, "all", 3)) share += s;
        if (line > kernels) check(s <= previous + 0.011, "the slowest first: %s", line), previous = s;
        rows++;
    }
    check(rows > 8 && fabs(share - 100) < 0.06, "%d rows; printed shares add up to %.2f %%", rows, share);
    FILE *f = fopen("table.txt", "w+");
    check(cn_profile_show(p, f) && ftell(f) == (long)n, "the same in a file");
    fclose(f);
    cn_close(cn);
}

/* ---- traces: a small reader of JSON that counts events ---- */

typedef struct reader {
    const char *at;
    int complete, instants;
    bool bad;
    char phase;
} reader;

static void blank(reader *r)
{
    while (isspace((unsigned char)*r->at)) r->at++;
}

static void read_text(reader *r, char *out, size_t size)
{
    size_t n = 0;
    if (*r->at++ != '"') r->bad = true;
    for (; !r->bad && *r->at != '"'; r->at++) {
        if (*r->at == 0 || (unsigned char)*r->at < 0x20) r->bad = true;
        if (*r->at == '\\') r->at++;
        if (n + 1 < size) out[n++] = *r->at;
    }
    if (!r->bad) r->at++;
    out[n] = 0;
}

static void read_value(reader *r, int depth, const char *key);

static void read_object(reader *r, int depth)
{
    char key[64];
    r->at++;
    for (blank(r); !r->bad && *r->at != '}'; blank(r)) {
        read_text(r, key, sizeof key);
        blank(r);
        if (*r->at++ != ':') r->bad = true;
        read_value(r, depth + 1, key);
        blank(r);
        if (*r->at == ',') r->at++, blank(r), r->bad |= *r->at != '"';
        else if (*r->at != '}') r->bad = true;
    }
    if (!r->bad) r->at++;
}

static void read_array(reader *r, int depth)
{
    r->at++;
    for (blank(r); !r->bad && *r->at != ']'; blank(r)) {
        r->phase = 0;
        read_value(r, depth + 1, "");
        if (r->phase == 'X') r->complete++;
        if (r->phase == 'i') r->instants++;
        blank(r);
        if (*r->at == ',') r->at++;
        else if (*r->at != ']') r->bad = true;
    }
    if (!r->bad) r->at++;
}

static void read_value(reader *r, int depth, const char *key)
{
    char text[512], *end;
    blank(r);
    if (r->bad || depth > 8) return;
    if (*r->at == '{') read_object(r, depth);
    else if (*r->at == '[') read_array(r, depth);
    else if (*r->at == '"') {
        read_text(r, text, sizeof text);
        if (!strcmp(key, "ph")) r->phase = text[0];
    } else {
        const double x = strtod(r->at, &end);
        r->bad |= end == r->at || ((!strcmp(key, "ts") || !strcmp(key, "dur")) && x < 0);
        r->at = end;
    }
}

static char *read_whole(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return calloc(1, 1);
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    char *text = calloc(1, (size_t)n + 1);
    if (fread(text, 1, (size_t)n, f) != (size_t)n) text[0] = 0;
    fclose(f);
    return text;
}

static reader read_trace(const char *path, char **text)
{
    *text = read_whole(path);
    reader r = { .at = *text };
    read_value(&r, 0, "");
    blank(&r);
    r.bad |= *r.at != 0;
    return r;
}

static void traces_can_be_read(void)
{
    check_group("trace");
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    net m;
    net_new(&m, cn);
    for (int round = 0; round < 3; round++) {
        static const int64_t limits[] = { 0, 10, -1 };
        char *text;
        cn_profile *p = cn_profile_begin(cn, &(cn_profile_desc){ .events = limits[round] });
        for (int i = 0; i < 4; i++) train(&m);
        cn_profile_end(p);
        check(cn_profile_trace(p, "trace.json"), "written: %s", cn_error(cn));
        const reader r = read_trace("trace.json", &text);
        cn_profile_row down = { 0 };
        find_row(p, "download", &down);
        const int64_t evaluations = cn_profile_total(p, CN_PROFILE_ENGINE).calls,
                      planned = cn_profile_total(p, CN_PROFILE_PLANNING).calls;
        const int64_t all = cn_profile_kernels(p) + down.calls + evaluations + planned;
        check(!r.bad, "it is JSON, but for: %.60s", r.at);
        if (round == 0)
            check(r.complete == all && r.instants == 0 && cn_profile_dropped(p) == 0, "%d events of %lld", r.complete,
                  (long long)all);
        if (round == 0)
            check(strstr(text, "f32[32,64], f32[64,16] -> f32[32,16]") && strstr(text, "\"flops\":65536"),
                  "shapes and FLOPs of a product");
        if (round == 1)
            check(r.complete == 10 && r.instants == 1 && cn_profile_dropped(p) == all - 10, "%d events, %lld dropped",
                  r.complete, (long long)cn_profile_dropped(p));
        if (round == 1) check(strstr(text, "were dropped") != NULL, "the file says so");
        if (round == 2) check(r.complete == 0 && cn_profile_dropped(p) == 0, "no events were wanted");
        free(text);
        cn_profile_free(p);
    }
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
    cn_close(cn);
}

/* ---- memory that runs out ---- */

typedef struct faulty {
    int64_t calls, fail_at, fail_till; /* calls that give nothing */
    int64_t blocks;
} faulty;

static void *faulty_resize(void *user, void *p, size_t old_bytes, size_t new_bytes)
{
    faulty *f = user;
    (void)old_bytes;
    if (new_bytes == 0) {
        f->blocks -= p != NULL;
        free(p);
        return NULL;
    }
    f->calls++;
    if (f->calls >= f->fail_at && f->calls < f->fail_till) return NULL;
    void *q = realloc(p, new_bytes);
    if (q) f->blocks += p == NULL;
    return q;
}

static int not_told_apart;

static bool run_short_of_memory(int64_t n)
{
    cn_profile_row row;
    faulty f = { 0 };
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3, .threads = 1, .allocator = { faulty_resize, &f } });
    net m;
    net_new(&m, cn);
    train(&m); /* the plan is known: what fails now are the profile's own wishes, mostly */
    f.fail_at = f.calls + n;
    f.fail_till = f.fail_at + 1;
    cn_profile *p = cn_profile_begin(cn, NULL);
    const bool began = p != NULL;
    const cn_counters before = cn_count(cn);
    const bool ok = began && train(&m);
    const bool reached = f.calls >= f.fail_at;
    check(ok || (reached && cn_error_code(cn) == CN_NO_MEMORY), "allocation %lld: %s", (long long)n, cn_error(cn));
    if (began) {
        cn_profile_end(p);
        check(cn_profile_kernels(p) == cn_count(cn).kernels - before.kernels, "allocation %lld: kernels are counted",
              (long long)n);
        times_add_up(p, "short of memory");
        not_told_apart += find_row(p, "(unknown kernels)", &row);
        cn_error_clear(cn);
        if (!reached) cn_profile_show(p, NULL);
    }
    cn_close(cn);
    check(f.blocks == 0, "allocation %lld: %lld blocks leak", (long long)n, (long long)f.blocks);
    return reached;
}

static void memory_may_run_out(void)
{
    check_group("memory");
    int64_t n = 1;
    while (run_short_of_memory(n)) n++;
    check(n > 3 && not_told_apart > 0, "%lld allocations made to fail, %d of them took a row's name", (long long)n - 1,
          not_told_apart);
}

/* One name with hundreds of shapes is one row. */
static void shapes_are_not_rows(void)
{
    check_group("rows");
    faulty f = { 0 };
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3, .threads = 1, .allocator = { faulty_resize, &f } });
    cn_profile *p = cn_profile_begin(cn, NULL);
    const cn_counters before = cn_count(cn);
    for (int i = 1; i <= 300; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *x = cn_full(cn, CN_F32, CN_DIMS(i), 2), *y = cn_square(x);
        cn_keep(x);
        check(cn_item(cn_sum(y, CN_ALL, false)) == 4.0 * i, "shape %d", i);
        cn_release(x);
        cn_scope_end(cn, s);
    }
    cn_profile_end(p);
    check(cn_profile_kernels(p) == cn_count(cn).kernels - before.kernels && cn_profile_kernels(p) >= 300,
          "%lld kernels", (long long)cn_profile_kernels(p));
    check(cn_profile_rows(p) <= 6, "shapes are not rows: %d", cn_profile_rows(p));
    times_add_up(p, "300 shapes");
    char *text;
    cn_profile_trace(p, "shapes.json");
    const reader r = read_trace("shapes.json", &text);
    check(!r.bad && strstr(text, "f32[300]") && strstr(text, "f32[7]"), "but the trace has them");
    free(text);
    cn_close(cn);
    check(f.blocks == 0, "nothing leaks");
}

int main(void)
{
    if (!enter_scratch()) return finish();
    kernels_are_counted();
    transfers_between_evaluations();
    names_are_the_plans();
    products_have_flops();
    it_can_be_used_wrongly();
    the_table_is_aligned();
    traces_can_be_read();
    memory_may_run_out();
    shapes_are_not_rows();
    return finish();
}
