/* A logbook: writes numbers with step and name to a CSV file and to a TensorBoard event file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cairn/look.h"
#include "core/errors.h"
#include "core/object.h"
#include "look/events.h"
#include "look/text.h"

static const char head[] = "step,time,name,value\n";
enum { PATH = 4096, HEAD = sizeof head - 1, LONGEST_NAME = 1000 };

struct cn_logbook {
    cn__object object;
    cn_clock clock;
    FILE *csv, *events;
    char *csv_path, *events_path;
    double flush_seconds, flushed;
};

static double time_of_day(void *user)
{
    (void)user;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The clock may be the program's. */
static double now(const cn_logbook *b)
{
    cn__outside out = cn__go_out(b->object.ctx);
    const double t = b->clock.now(b->clock.user);
    cn__come_back(b->object.ctx, out);
    return t;
}

static bool fail_file(cn_ctx *ctx, const char *what, const char *path)
{
    return cn__fail(ctx, CN_BAD_FILE, "logbook: cannot %s '%s': %s", what, path, strerror(errno));
}

/* ---- the file of an earlier run ---- */

/* Finds the end of the last whole line. Bytes after it are an incomplete line. */
static bool measure(cn_ctx *ctx, const char *path, FILE *f, long *whole)
{
    char start[HEAD];
    const size_t n = fread(start, 1, HEAD, f);
    *whole = 0;
    if (memcmp(start, head, n) != 0)
        return cn__fail(ctx, CN_BAD_FILE, "logbook: '%s' exists and is not a log: it must begin with %.*s", path,
                        HEAD - 1, head);
    if (n < HEAD) return true;
    *whole = HEAD;
    char block[4096];
    long at = HEAD;
    for (size_t got; (got = fread(block, 1, sizeof block, f)) > 0; at += (long)got)
        for (size_t i = got; i-- > 0;)
            if (block[i] == '\n') {
                *whole = at + (long)i + 1;
                break;
            }
    return !ferror(f) || fail_file(ctx, "read", path);
}

/* Removes an incomplete last line. A missing file counts as an empty one. */
static bool repair(cn_ctx *ctx, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return errno == ENOENT || fail_file(ctx, "read", path);
    long whole;
    const bool ok = measure(ctx, path, f, &whole);
    fclose(f);
    return ok && (truncate(path, whole) == 0 || fail_file(ctx, "repair", path));
}

/* Copies the lines before the step. */
static bool copy_until(FILE *from, FILE *to, int64_t step)
{
    char line[2 * LONGEST_NAME + 128];
    for (bool first = true; fgets(line, sizeof line, from); first = false)
        if ((first || strtoll(line, NULL, 10) < step) && fputs(line, to) < 0) return false;
    return !ferror(from);
}

/* Removes the lines of this step and later: writes the others to a new file and renames it. */
static bool remove_from(cn_ctx *ctx, const char *path, int64_t step)
{
    char temporary[PATH + 8];
    FILE *from = fopen(path, "r");
    if (!from) return errno == ENOENT || fail_file(ctx, "read", path);
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *to = fopen(temporary, "w");
    bool ok = to && copy_until(from, to, step);
    if (to && fclose(to) != 0) ok = false;
    fclose(from);
    if (ok && rename(temporary, path) == 0) return true;
    fail_file(ctx, "rewrite", path);
    remove(temporary);
    return false;
}

/* ---- opening ---- */

static bool open_csv(cn_logbook *b, const cn_logbook_desc *o)
{
    cn_ctx *ctx = b->object.ctx;
    if (!o->fresh && !repair(ctx, b->csv_path)) return false;
    if (!o->fresh && o->resume_step > 0 && !remove_from(ctx, b->csv_path, o->resume_step)) return false;
    b->csv = fopen(b->csv_path, o->fresh ? "w" : "a");
    if (!b->csv) return fail_file(ctx, "open", b->csv_path);
    fseek(b->csv, 0, SEEK_END);
    if (ftell(b->csv) == 0 && fputs(head, b->csv) < 0) return fail_file(ctx, "write", b->csv_path);
    return true;
}

/* Opens a new file each time. Names sort by time; a number separates the files of one second. */
static bool open_events(cn_logbook *b, const char *folder, const cn_logbook_desc *o)
{
    cn_ctx *ctx = b->object.ctx;
    char host[64] = "", path[PATH];
    gethostname(host, sizeof host - 1);
    const double t = now(b);
    for (int i = 0; i < 1000 && !b->events; i++) {
        const int n = snprintf(path, sizeof path, "%s/events.out.tfevents.%010" PRId64 ".%s.%ld.%d", folder, (int64_t)t,
                               host[0] ? host : "here", (long)getpid(), i);
        if (n >= (int)sizeof path)
            return cn__fail(ctx, CN_BAD_ARGUMENT, "logbook: the path must have at most %d bytes, got %d: '%.80s...'",
                            PATH - 1, n, folder);
        b->events = fopen(path, "wbx");
        if (!b->events && errno != EEXIST) break;
    }
    if (!b->events) return fail_file(ctx, "open", path);
    b->events_path = cn__copy_text(ctx, path);
    if (!b->events_path) return false;
    if (!cn__events_begin(b->events, t) || (o->resume_step > 0 && !cn__events_restart(b->events, t, o->resume_step)))
        return fail_file(ctx, "write", path);
    return true;
}

static bool ends_in(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Creates the folder, and all folders above it. */
static bool make_folder(cn_ctx *ctx, const char *path)
{
    char part[PATH];
    const size_t n = strlen(path);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] && path[i] != '/') continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) return fail_file(ctx, "create the folder", part);
    }
    struct stat s;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) return true;
    errno = ENOTDIR;
    return fail_file(ctx, "use", path);
}

static bool open_files(cn_logbook *b, const char *path, const cn_logbook_desc *o)
{
    cn_ctx *ctx = b->object.ctx;
    char csv[PATH];
    const bool alone = ends_in(path, ".csv");
    if (strlen(path) + 16 > sizeof csv)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "logbook: the path must have at most %d bytes, got %zu: '%.80s...'",
                        PATH - 16, strlen(path), path);
    if (o->no_csv && (alone || o->no_events))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "logbook: no_csv and no_events leave nothing to write to '%s'", path);
    if (!alone && !make_folder(ctx, path)) return false;
    snprintf(csv, sizeof csv, alone ? "%s" : "%s/log.csv", path);
    b->csv_path = cn__copy_text(ctx, csv);
    if (!b->csv_path) return false;
    if (!o->no_csv && !open_csv(b, o)) return false;
    return alone || o->no_events || open_events(b, path, o);
}

static bool write_out(cn_logbook *b)
{
    if (b->csv && (fflush(b->csv) != 0 || ferror(b->csv))) return fail_file(b->object.ctx, "write", b->csv_path);
    if (b->events && (fflush(b->events) != 0 || ferror(b->events)))
        return fail_file(b->object.ctx, "write", b->events_path);
    return true;
}

static void destroy(void *self)
{
    cn_logbook *b = self;
    write_out(b);
    if (b->csv) fclose(b->csv);
    if (b->events) fclose(b->events);
    cn__free_text(b->object.ctx, b->csv_path);
    cn__free_text(b->object.ctx, b->events_path);
}

static const cn__object_type logbook_type = { "logbook", destroy };

cn_logbook *cn_logbook_new(cn_ctx *ctx, const char *path, const cn_logbook_desc *desc)
{
    static const cn_logbook_desc defaults = { 0 };
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!desc) desc = &defaults;
    if (!path || !*path) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "logbook: path must not be empty");
        return NULL;
    }
    cn_logbook *b = cn__object_new(ctx, sizeof *b, &logbook_type);
    if (!b) return NULL;
    b->clock = desc->clock.now ? desc->clock : (cn_clock){ time_of_day, NULL };
    b->flush_seconds = desc->flush_seconds == 0 ? 1 : desc->flush_seconds;
    b->flushed = now(b);
    if (open_files(b, path, desc) && cn_logbook_flush(b)) return b;
    cn__object_free(b);
    return NULL;
}

/* ---- writing ---- */

bool cn_logbook_flush(cn_logbook *b)
{
    CN__CALL call = cn__call_object(b, &logbook_type);
    CN__USE used = cn__object_use(call.ctx ? b : NULL); /* the clock may free it */
    if (!call.ctx) return false;
    b->flushed = now(b);
    return write_out(b);
}

static bool check_name(cn_ctx *ctx, const char *name)
{
    if (!name || !*name) return cn__fail(ctx, CN_BAD_ARGUMENT, "logbook: name must not be empty");
    if (strlen(name) > LONGEST_NAME)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "logbook: the name must have at most %d bytes, got %zu: '%.40s...'",
                        LONGEST_NAME, strlen(name), name);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < 0x20)
            return cn__fail(ctx, CN_BAD_ARGUMENT, "logbook: the name must not have control characters, got '%s'", name);
    return true;
}

/* Quotes the name if it has a comma or a quote, and doubles quotes inside (RFC 4180). */
static bool write_name(FILE *f, const char *name)
{
    if (!strpbrk(name, ",\"")) return fputs(name, f) >= 0;
    fputc('"', f);
    for (; *name; name++) {
        if (*name == '"') fputc('"', f);
        fputc(*name, f);
    }
    return fputc('"', f) != EOF;
}

static bool write_line(cn_logbook *b, double t, int64_t step, const char *name, double value)
{
    char when[32], number[32];
    fprintf(b->csv, "%" PRId64 ",%s,", step, cn__decimal_text(t, 3, when));
    write_name(b->csv, name);
    return fprintf(b->csv, ",%s\n", cn__number_text(value, number)) > 0 ||
           fail_file(b->object.ctx, "write", b->csv_path);
}

bool cn_logbook_scalar(cn_logbook *b, int64_t step, const char *name, double value)
{
    CN__CALL call = cn__call_object(b, &logbook_type);
    CN__USE used = cn__object_use(call.ctx ? b : NULL); /* the clock may free it */
    if (!call.ctx || !check_name(b->object.ctx, name)) return false;
    const double t = now(b);
    bool ok = !b->csv || write_line(b, t, step, name, value);
    if (b->events && !cn__events_scalar(b->events, t, step, name, value))
        ok = fail_file(b->object.ctx, "write", b->events_path);
    if (b->flush_seconds > 0 && t - b->flushed >= b->flush_seconds) ok &= cn_logbook_flush(b);
    return ok;
}

void cn_logbook_free(cn_logbook *b) { cn__free_by_program(b, &logbook_type, __func__); }
