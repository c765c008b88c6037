/* The numbers of a profile, printed as a table and written as a trace. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/errors.h"
#include "look/profile.h"

static const char *const class_names[CN_PROFILE_CLASSES] = {
    "matmul", "attention", "elementwise", "reduce", "other kernels",
    "moves",  "transfers", "planning",    "engine", "outside",
};

const char *cn_profile_class_name(cn_profile_class c) { return (unsigned)c < CN_PROFILE_CLASSES ? class_names[c] : ""; }

/* ---- numbers ---- */

static int64_t whole_ns(const cn_profile *p) { return (p->running ? cn__nanoseconds() : p->ended) - p->began; }

static bool is_profile(const cn_profile *p, const char *who) { return cn__object_fits(p, &cn__profile_type, who); }

double cn_profile_seconds(const cn_profile *p) { return is_profile(p, __func__) ? (double)whole_ns(p) * 1e-9 : 0; }
int64_t cn_profile_kernels(const cn_profile *p) { return is_profile(p, __func__) ? p->kernels : 0; }
int64_t cn_profile_dropped(const cn_profile *p) { return is_profile(p, __func__) ? p->dropped : 0; }
bool cn_profile_gpu_timed(const cn_profile *p) { return is_profile(p, __func__) && p->observer.by_device; }

cn_gpu_counters cn_profile_gpu(const cn_profile *p)
{
    if (!is_profile(p, __func__)) return (cn_gpu_counters){ 0 };
    if (!p->running) return p->gpu;
    cn_gpu_counters c = cn_gpu_counted(p->object.ctx);
    c.dispatches -= p->gpu.dispatches;
    c.submissions -= p->gpu.submissions;
    c.uploaded_bytes -= p->gpu.uploaded_bytes;
    c.downloaded_bytes -= p->gpu.downloaded_bytes;
    c.parameter_bytes -= p->gpu.parameter_bytes;
    c.readbacks -= p->gpu.readbacks;
    c.fallbacks -= p->gpu.fallbacks;
    c.pipelines -= p->gpu.pipelines;
    c.bind_groups -= p->gpu.bind_groups;
    return c;
}

int cn_profile_rows(const cn_profile *p)
{
    return is_profile(p, __func__) ? (int)p->rows.n - 1 + (cn__profile_rows_of(p)->tally.calls > 0) : 0;
}

static cn_profile_row row_from(const char *name, const char *device, cn_profile_class kind, const cn__tally *t,
                               int64_t whole)
{
    return (cn_profile_row){ .name = name,
                             .device = device,
                             .kind = kind,
                             .calls = t->calls,
                             .seconds = (double)t->ns * 1e-9,
                             .share = whole > 0 ? (double)t->ns / (double)whole : 0,
                             .flops = t->flops,
                             .bytes = t->bytes };
}

/* The row of unknown kernels is the first one in memory. It is returned last, and only if it was used. */
bool cn_profile_row_at(const cn_profile *p, int i, cn_profile_row *row)
{
    CN__CALL call = cn__call_object(p, &cn__profile_type);
    if (!call.ctx || i < 0 || i >= cn_profile_rows(p)) return false;
    if (!row) return cn__fail(call.ctx, CN_BAD_ARGUMENT, "profile_row_at: the row must not be NULL");
    const cn__profile_row *r = &cn__profile_rows_of(p)[((size_t)i + 1) % p->rows.n];
    *row = row_from(r->name, p->device[r->device].name, r->kind, &r->tally, whole_ns(p));
    return true;
}

static cn__tally sum_of(const cn_profile *p, cn_profile_class c)
{
    cn__tally t = { 0 };
    for (int d = 0; d < p->n_devices; d++) {
        const cn__tally *one = &p->device[d].kind[c];
        t.calls += one->calls;
        t.ns += one->ns;
        t.flops += one->flops;
        t.bytes += one->bytes;
    }
    return t;
}

static int64_t kernels_ns(const cn_profile *p)
{
    int64_t ns = 0;
    for (int c = 0; c < CN_PROFILE_TRANSFER; c++) ns += sum_of(p, (cn_profile_class)c).ns;
    return ns;
}

/* Kernels, transfers and planning are measured. The rest of evaluations is the engine; all other time is outside. */
static cn__tally tally_of(const cn_profile *p, cn_profile_class c, int64_t whole)
{
    const cn__tally transfers = sum_of(p, CN_PROFILE_TRANSFER);
    switch (c) {
    case CN_PROFILE_PLANNING: return p->planning;
    case CN_PROFILE_ENGINE:
        return (cn__tally){ .calls = p->evaluations,
                            .ns = p->inside_ns - kernels_ns(p) - p->planning.ns - p->transfers_inside_ns };
    case CN_PROFILE_OUTSIDE: return (cn__tally){ .ns = whole - p->inside_ns - (transfers.ns - p->transfers_inside_ns) };
    default: return sum_of(p, c);
    }
}

cn_profile_row cn_profile_total(const cn_profile *p, cn_profile_class c)
{
    if (!is_profile(p, __func__) || (unsigned)c >= CN_PROFILE_CLASSES)
        return (cn_profile_row){ .name = "", .device = "" };
    const int64_t whole = whole_ns(p);
    const cn__tally t = tally_of(p, c, whole);
    return row_from(class_names[c], "", c, &t, whole);
}

/* ---- the table ---- */

typedef struct text {
    char *out;
    size_t size, n;
} text;

__attribute__((format(printf, 2, 3))) static void print(text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    size_t room = t->n < t->size ? t->size - t->n : 0;
    int n = vsnprintf(room ? t->out + t->n : NULL, room, format, list);
    va_end(list);
    if (n > 0) t->n += (size_t)n;
}

static const char *time_text(double seconds, char *out, size_t size)
{
    if (seconds >= 1) snprintf(out, size, "%.3f s ", seconds);
    else if (seconds >= 1e-3) snprintf(out, size, "%.3f ms", seconds * 1e3);
    else snprintf(out, size, "%.3f us", seconds * 1e6);
    return out;
}

static const char *rate_text(double amount, double seconds, char *out, size_t size)
{
    if (amount > 0 && seconds > 0) snprintf(out, size, "%.1f", amount / seconds * 1e-9);
    else snprintf(out, size, "-");
    return out;
}

/* Widths count bytes: names of operators are ASCII. */
static void print_row(text *t, int width, const cn_profile_row *r)
{
    char total[24], mean[24], flops[24], bytes[24];
    print(t, "%-*s  %-6s %12s %8.2f %%", width, r->name, r->device, time_text(r->seconds, total, sizeof total),
          100 * r->share);
    if (!r->calls) {
        print(t, "\n");
        return;
    }
    print(t, " %10" PRId64 " %12s %9s %8s\n", r->calls, time_text(r->seconds / (double)r->calls, mean, sizeof mean),
          rate_text(r->flops, r->seconds, flops, sizeof flops), rate_text(r->bytes, r->seconds, bytes, sizeof bytes));
}

static void print_head(text *t, int width, const char *first)
{
    print(t, "%-*s  %-6s %12s %10s %10s %12s %9s %8s\n", width, first, "device", "time ", "share", "calls", "each ",
          "GFLOP/s", "GB/s");
}

static void print_classes(text *t, const cn_profile *p, int width, int64_t whole)
{
    print_head(t, width, "class");
    for (int c = 0; c < CN_PROFILE_CLASSES; c++) {
        const cn_profile_class kind = (cn_profile_class)c;
        if (c >= CN_PROFILE_PLANNING) {
            const cn__tally all = tally_of(p, kind, whole);
            const cn_profile_row r = row_from(class_names[c], "", kind, &all, whole);
            print_row(t, width, &r);
        }
        for (int d = 0; c < CN_PROFILE_PLANNING && d < p->n_devices; d++) {
            const cn_profile_row r = row_from(class_names[c], p->device[d].name, kind, &p->device[d].kind[c], whole);
            if (r.calls) print_row(t, width, &r);
        }
    }
    const cn__tally all = { .ns = whole };
    const cn_profile_row r = row_from("all", "", CN_PROFILE_OUTSIDE, &all, whole);
    print_row(t, width, &r);
    const double matmul =
        row_from("", "", CN_PROFILE_MATMUL, &(cn__tally){ .ns = sum_of(p, CN_PROFILE_MATMUL).ns }, whole).share;
    const double attention = (double)sum_of(p, CN_PROFILE_ATTENTION).ns / (double)(whole > 0 ? whole : 1);
    print(t, "outside matmul: %.2f %% of the time", 100 * (1 - matmul));
    if (attention > 0) print(t, "; outside matmul and attention: %.2f %%", 100 * (1 - matmul - attention));
    print(t, "\n\n");
}

static void print_gpu(text *t, const cn_profile *p)
{
    const cn_gpu_counters c = cn_profile_gpu(p);
    if (!c.dispatches && !c.submissions && !c.fallbacks) return;
    const double n = p->evaluations ? (double)p->evaluations : 1;
    print(t,
          "gpu, an evaluation: %.1f dispatches, %.1f submissions, %.1f readbacks, %.1f steps run by the CPU; "
          "up %.0f bytes and %.0f of parameters, down %.0f bytes\n",
          (double)c.dispatches / n, (double)c.submissions / n, (double)c.readbacks / n, (double)c.fallbacks / n,
          (double)c.uploaded_bytes / n, (double)c.parameter_bytes / n, (double)c.downloaded_bytes / n);
    print(t,
          "gpu, in all: %" PRId64 " pipelines and %" PRId64 " bind groups made; %" PRId64 " buffers of %" PRId64
          " bytes; %s\n\n",
          c.pipelines, c.bind_groups, c.buffers, c.buffer_bytes,
          p->observer.by_device ? "kernels timed by its clock"
                                : "it has no clock for kernels: theirs is the time of recording them");
}

/* The next row in the order of time, without an allocation: there are few rows. */
static int next_row(const cn_profile *p, int last)
{
    const cn__profile_row *rows = cn__profile_rows_of(p);
    int best = -1;
    for (int i = 0; i < (int)p->rows.n; i++) {
        if (!rows[i].tally.calls || i == last) continue;
        const bool later =
            last < 0 || rows[i].tally.ns < rows[last].tally.ns || (rows[i].tally.ns == rows[last].tally.ns && i > last);
        if (later && (best < 0 || rows[i].tally.ns > rows[best].tally.ns)) best = i;
    }
    return best;
}

size_t cn_profile_print(const cn_profile *p, char *out, size_t size)
{
    text t = { out, out ? size : 0, 0 };
    if (t.size) out[0] = 0;
    CN__CALL call = cn__call_object(p, &cn__profile_type);
    if (!call.ctx) return 0;
    const int64_t whole = whole_ns(p);
    int width = 13;
    for (size_t i = 0; i < p->rows.n; i++) {
        const int n = cn__profile_rows_of(p)[i].tally.calls ? (int)strlen(cn__profile_rows_of(p)[i].name) : 0;
        if (n > width) width = n;
    }
    char total[24];
    print(&t, "profile of %s: %" PRId64 " evaluations, %" PRId64 " kernels; plans built: %" PRId64 "\n\n",
          time_text((double)whole * 1e-9, total, sizeof total), p->evaluations, p->kernels, p->built);
    print_classes(&t, p, width, whole);
    print_gpu(&t, p);
    print_head(&t, width, "kernel");
    for (int i = next_row(p, -1); i >= 0; i = next_row(p, i)) {
        const cn__profile_row *r = &cn__profile_rows_of(p)[i];
        const cn_profile_row row = row_from(r->name, p->device[r->device].name, r->kind, &r->tally, whole);
        print_row(&t, width, &row);
    }
    if (p->dropped)
        print(&t, "\nthe trace has the first %zu events; %" PRId64 " were dropped\n", p->events.n, p->dropped);
    return t.n;
}

bool cn_profile_show(const cn_profile *p, FILE *out)
{
    CN__CALL call = cn__call_object(p, &cn__profile_type);
    cn_ctx *ctx = call.ctx;
    if (!ctx) return false;
    if (!out) return cn__fail(ctx, CN_BAD_ARGUMENT, "profile_show: the stream must not be NULL");
    const size_t size = cn_profile_print(p, NULL, 0) + 256; /* while a profile runs, its numbers may become longer */
    char *text = cn__alloc(ctx, size);
    if (!text) return false;
    cn_profile_print(p, text, size);
    const bool ok = fputs(text, out) >= 0;
    cn__free(ctx, text, size);
    return ok || cn__fail(ctx, CN_BAD_FILE, "profile: cannot write the table: %s", strerror(errno));
}

/* ---- the trace: "complete" events, in microseconds ---- */

static void write_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') fprintf(f, "\\%c", *s);
        else if ((unsigned char)*s < 0x20) fprintf(f, "\\u%04x", *s);
        else fputc(*s, f);
    }
    fputc('"', f);
}

static void write_micro(FILE *f, const char *name, int64_t ns)
{
    fprintf(f, ",\"%s\":%" PRId64 ".%03d", name, ns / 1000, (int)(ns % 1000));
}

static void write_args(FILE *f, const cn_profile *p, const cn__profile_event *e)
{
    const cn__profile_shape *s = &cn__profile_shapes_of(p)[e->shape];
    const cn__profile_row *r = &cn__profile_rows_of(p)[s->row];
    char shapes[512];
    cn__profile_shape_text(s, shapes, sizeof shapes);
    fprintf(f, ",\"args\":{\"device\":");
    write_string(f, p->device[r->device].name);
    if (shapes[0]) fprintf(f, ",\"shapes\":"), write_string(f, shapes);
    const int64_t bytes = r->kind == CN_PROFILE_TRANSFER ? e->bytes : (int64_t)s->bytes;
    if (bytes) fprintf(f, ",\"bytes\":%" PRId64, bytes);
    if (s->flops > 0) fprintf(f, ",\"flops\":%" PRId64, (int64_t)s->flops);
    if (s->flops > 0 && e->ns > 0) {
        const int64_t tenths = (int64_t)(10 * s->flops / (double)e->ns);
        fprintf(f, ",\"GFLOP/s\":%" PRId64 ".%d", tenths / 10, (int)(tenths % 10));
    }
    fputc('}', f);
}

static void write_event(FILE *f, const cn_profile *p, const cn__profile_event *e)
{
    const char *name = "evaluation", *kind = class_names[CN_PROFILE_ENGINE];
    if (e->shape >= 0) {
        const cn__profile_row *r = &cn__profile_rows_of(p)[cn__profile_shapes_of(p)[e->shape].row];
        name = r->name, kind = class_names[r->kind];
    } else if (e->shape != CN__EVENT_EVALUATION) {
        name = e->shape == CN__EVENT_BUILDING ? "build plan" : "find plan", kind = class_names[CN_PROFILE_PLANNING];
    }
    fprintf(f, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":");
    write_string(f, name);
    fprintf(f, ",\"cat\":");
    write_string(f, kind);
    write_micro(f, "ts", e->began - p->began);
    write_micro(f, "dur", e->ns);
    if (e->shape >= 0) write_args(f, p, e);
    fputc('}', f);
}

bool cn_profile_trace(const cn_profile *p, const char *path)
{
    CN__CALL call = cn__call_object(p, &cn__profile_type);
    if (!call.ctx) return false;
    if (!path) return cn__fail(call.ctx, CN_BAD_ARGUMENT, "profile_trace: path must not be NULL");
    FILE *f = fopen(path, "w");
    if (!f) return cn__fail(p->object.ctx, CN_BAD_FILE, "profile: cannot write '%s': %s", path, strerror(errno));
    fprintf(f, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"version\":\"cairn %s\",\"dropped events\":%" PRId64 "},\n",
            cn_version(), p->dropped);
    fprintf(
        f,
        "\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"cairn\"}}");
    if (p->dropped) {
        const cn__profile_event *last = (const cn__profile_event *)p->events.v + (p->events.n ? p->events.n - 1 : 0);
        fprintf(f,
                ",\n{\"ph\":\"i\",\"s\":\"g\",\"pid\":1,\"tid\":1,\"name\":\"%" PRId64 " later events were dropped\"",
                p->dropped);
        write_micro(f, "ts", p->events.n ? last->began - p->began : 0);
        fputc('}', f);
    }
    for (size_t i = 0; i < p->events.n; i++) write_event(f, p, (const cn__profile_event *)p->events.v + i);
    fprintf(f, "\n]}\n");
    bool ok = !ferror(f);
    ok &= fclose(f) == 0;
    return ok || cn__fail(p->object.ctx, CN_BAD_FILE, "profile: cannot write '%s': %s", path, strerror(errno));
}
