/* A progress bar: one line that is redrawn in place on a terminal, or plain lines elsewhere. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cairn/look.h"
#include "core/errors.h"
#include "core/object.h"
#include "look/text.h"

enum { SLICES = 64, TEXT = 256, LINE = 2048, MOST_COLUMNS = 400, LEAST_BAR = 6, MOST_BAR = 40 };
#define DRAW_EVERY 0.1 /* seconds; also the length of the first slices */

/* A period of the run. When there are too many slices, neighbours are joined. */
typedef struct slice {
    double seconds;
    int64_t steps;
} slice;

struct cn_progress {
    cn__object object;
    FILE *out;
    cn_clock clock;
    char *label, *unit;
    int64_t total, first, done;
    bool tty, utf8, color, finished;
    bool line_open; /* the cursor is at the end of a drawn bar */
    int width;      /* 0: that of the terminal, each time */
    double lines, lines_seconds;
    double began, drawn; /* drawn: time of the last drawing; -1: never */
    double line_percent; /* of the last plain line */
    slice slices[SLICES];
    int n_slices;
    double slice_length, slice_began;
    int64_t slice_first;
    char text[TEXT];
};

static void destroy(void *self);
static const cn__object_type progress_type = { "progress bar", destroy };

/* ---- terminal and locale ---- */

static double monotonic(void *user)
{
    (void)user;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The clock may be the program's. */
static double now(const cn_progress *p)
{
    cn__outside out = cn__go_out(p->object.ctx);
    const double t = p->clock.now(p->clock.user);
    cn__come_back(p->object.ctx, out);
    return t;
}

static const char *environment(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

/* The first variable that is set decides, as in the C library. The program may never have called setlocale. */
static bool locale_is_utf8(void)
{
    const char *v = environment("LC_ALL");
    if (!v) v = environment("LC_CTYPE");
    if (!v) v = environment("LANG");
    for (; v && *v; v++)
        if (tolower((unsigned char)v[0]) == 'u' && tolower((unsigned char)v[1]) == 't' &&
            tolower((unsigned char)v[2]) == 'f' && v[v[3] == '-' ? 4 : 3] == '8')
            return true;
    return false;
}

static bool is_terminal(FILE *f)
{
    const char *term = environment("TERM");
    const int fd = fileno(f);
    return fd >= 0 && isatty(fd) && term && strcmp(term, "dumb") != 0;
}

static int columns_of(const cn_progress *p)
{
    if (p->width > 0) return p->width;
    struct winsize w;
    const int fd = fileno(p->out);
    if (fd >= 0 && ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0) return w.ws_col;
    const char *columns = environment("COLUMNS");
    const int n = columns ? atoi(columns) : 0;
    return n > 0 ? n : 80;
}

/* ---- rate ---- */

static void close_slice(cn_progress *p, double t)
{
    if (p->done == p->slice_first || t - p->slice_began < p->slice_length) return;
    if (p->n_slices == SLICES) {
        for (int i = 0; i < SLICES / 2; i++)
            p->slices[i] = (slice){ p->slices[2 * i].seconds + p->slices[2 * i + 1].seconds,
                                    p->slices[2 * i].steps + p->slices[2 * i + 1].steps };
        p->n_slices = SLICES / 2;
        p->slice_length *= 2;
    }
    p->slices[p->n_slices++] = (slice){ t - p->slice_began, p->done - p->slice_first };
    p->slice_began = t;
    p->slice_first = p->done;
}

static int by_speed(const void *a, const void *b)
{
    const slice *x = a, *y = b;
    const double d = x->seconds * (double)y->steps - y->seconds * (double)x->steps;
    return (d > 0) - (d < 0);
}

/* Seconds per step: the mean of the latest half of all slices, without the fastest and slowest eighth of them. */
static double pace(const cn_progress *p, double t)
{
    slice s[SLICES / 2];
    const int n = p->n_slices < SLICES / 4 ? p->n_slices : p->n_slices / 2, cut = n / 8;
    if (n < 2) return p->done > p->first ? (t - p->began) / (double)(p->done - p->first) : 0;
    memcpy(s, p->slices + p->n_slices - n, sizeof *s * (size_t)n);
    qsort(s, (size_t)n, sizeof *s, by_speed);
    double seconds = 0;
    int64_t steps = 0;
    for (int i = cut; i < n - cut; i++) seconds += s[i].seconds, steps += s[i].steps;
    return seconds / (double)steps;
}

double cn_progress_rate(const cn_progress *p)
{
    CN__CALL call = cn__enter_object(p, &progress_type, __func__, true);
    const double each = call.ctx ? pace(p, now(p)) : 0;
    return each > 0 ? 1 / each : 0;
}

/* ---- the parts of a line ---- */

static void print_time(char *out, size_t size, double seconds)
{
    if (!(seconds < 360000000)) snprintf(out, size, "?");
    else if (seconds < 0) snprintf(out, size, "0:00");
    else {
        const int64_t s = (int64_t)(seconds + 0.5);
        if (s < 3600) snprintf(out, size, "%d:%02d", (int)(s / 60), (int)(s % 60));
        else if (s < 86400) snprintf(out, size, "%d:%02d:%02d", (int)(s / 3600), (int)(s / 60 % 60), (int)(s % 60));
        else snprintf(out, size, "%" PRId64 "d%02d:%02d", s / 86400, (int)(s / 3600 % 24), (int)(s / 60 % 60));
    }
}

static void print_rate(const cn_progress *p, char *out, size_t size, double each)
{
    const double rate = each > 0 ? 1 / each : 0;
    if (!(each > 0)) snprintf(out, size, "? %s/s", p->unit);
    else if (rate >= 1e6) snprintf(out, size, "%.2fM %s/s", rate * 1e-6, p->unit);
    else if (rate >= 1e4) snprintf(out, size, "%.1fk %s/s", rate * 1e-3, p->unit);
    else if (rate >= 100) snprintf(out, size, "%.0f %s/s", rate, p->unit);
    else if (rate >= 1) snprintf(out, size, "%.1f %s/s", rate, p->unit);
    else snprintf(out, size, "%.2f s/%s", each, p->unit);
}

static double fraction(const cn_progress *p)
{
    const double f = p->total > 0 ? (double)p->done / (double)p->total : 0;
    return f < 0 ? 0 : f > 1 ? 1 : f;
}

typedef struct parts {
    char label[TEXT], percent[8], count[64], rate[48], time[80];
} parts;

static void make_parts(const cn_progress *p, double t, parts *a)
{
    char spent[32], left[32];
    const double each = pace(p, t);
    cn__text_fit(a->label, sizeof a->label, p->label ? p->label : "", 32, p->utf8);
    a->percent[0] = 0;
    /* rounded down: 100 % means that all is done */
    if (p->total > 0) snprintf(a->percent, sizeof a->percent, "%3d%%", (int)(100 * fraction(p)));
    if (p->total > 0) snprintf(a->count, sizeof a->count, "%" PRId64 "/%" PRId64, p->done, p->total);
    else snprintf(a->count, sizeof a->count, "%" PRId64 " %s", p->done, p->unit);
    print_rate(p, a->rate, sizeof a->rate, each);
    print_time(spent, sizeof spent, t - p->began);
    print_time(left, sizeof left, each > 0 ? each * (double)(p->total - p->done) : INFINITY);
    if (p->finished) snprintf(a->time, sizeof a->time, "in %s", spent);
    else if (p->total > 0) snprintf(a->time, sizeof a->time, "%s<%s", spent, left);
    else snprintf(a->time, sizeof a->time, "%s", spent);
}

static void print_bar(const cn_progress *p, char *out, size_t size, int columns)
{
    static const char *const eighths[8] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    const int steps = p->utf8 ? 8 : 1, full = (int)(fraction(p) * columns * steps + 1e-9);
    size_t at = 0;
    const char *on = p->color ? "\033[32m" : "", *off = p->color ? "\033[0m" : "";
    at += (size_t)snprintf(out, size, "%s%s", p->utf8 ? "" : "[", on);
    for (int i = 0; i < full / steps; i++) at += (size_t)snprintf(out + at, size - at, "%s", p->utf8 ? "█" : "#");
    int blank = columns - full / steps;
    if (full % steps) at += (size_t)snprintf(out + at, size - at, "%s", eighths[full % steps]), blank--;
    at += (size_t)snprintf(out + at, size - at, "%s", off);
    for (int i = 0; i < blank; i++) at += (size_t)snprintf(out + at, size - at, "%s", p->utf8 ? " " : ".");
    snprintf(out + at, size - at, "%s", p->utf8 ? "" : "]");
}

typedef struct line {
    char out[LINE];
    size_t n;
    int room; /* columns */
} line;

/* Appends the part and the space before it, if they fit. columns: the visible width of the part. */
static bool append_part(line *l, const char *part, int columns, int space)
{
    if (!l->n) space = 0;
    if (!*part || columns + space > l->room) return false;
    l->n += (size_t)snprintf(l->out + l->n, sizeof l->out - l->n, "%*s%s", space, "", part);
    l->room -= columns + space;
    return true;
}

static int width_of(const char *s) { return *s ? cn__text_columns(s) + 2 : 0; }

/* The width of the bar: what the other parts and the text leave. */
static int bar_columns(const cn_progress *p, const parts *a, int room)
{
    const int rest =
        width_of(a->label) + width_of(a->percent) + width_of(a->count) + width_of(a->rate) + width_of(a->time);
    const int text = p->text[0] ? cn__text_columns(p->text) + 2 : 0, brackets = p->utf8 ? 1 : 3;
    int n = room - rest - brackets - text;
    if (n < LEAST_BAR && text) n = room - rest - brackets - 10 < LEAST_BAR ? room - rest - brackets : LEAST_BAR;
    return n > MOST_BAR ? MOST_BAR : n < LEAST_BAR ? 0 : n;
}

/* Parts that do not fit are left out; the most important parts come first. */
static void make_line(const cn_progress *p, double t, int columns, bool plain, line *l)
{
    parts a;
    char bar[LINE / 2], text[TEXT];
    make_parts(p, t, &a);
    *l = (line){ .room = columns };
    const int n = p->total > 0 && !plain ? bar_columns(p, &a, columns) : 0;
    append_part(l, a.label, cn__text_columns(a.label), 0);
    append_part(l, a.percent, (int)strlen(a.percent), 2);
    if (n) {
        print_bar(p, bar, sizeof bar, n);
        append_part(l, bar, n + (p->utf8 ? 0 : 2), 1);
    }
    append_part(l, a.count, cn__text_columns(a.count), 2);
    append_part(l, a.rate, cn__text_columns(a.rate), 2);
    append_part(l, a.time, (int)strlen(a.time), 2);
    if (l->room < 5) return;
    const int used = cn__text_fit(text, sizeof text, p->text, l->room - 2, p->utf8);
    append_part(l, text, used, 2);
}

/* ---- drawing ---- */

static bool written(cn_progress *p, bool ok)
{
    return ok || cn__fail(p->object.ctx, CN_BAD_FILE, "progress: cannot write to the stream `out`");
}

/* The last column stays free: some terminals wrap the line when it is filled. */
static bool draw(cn_progress *p, double t)
{
    line l;
    int columns = columns_of(p) - 1;
    if (columns > MOST_COLUMNS) columns = MOST_COLUMNS;
    make_line(p, t, columns, false, &l);
    p->drawn = t;
    p->line_open = !p->finished;
    return written(p, fprintf(p->out, "\r%s\033[K%s", l.out, p->finished ? "\n" : "") >= 0 && fflush(p->out) == 0);
}

static bool print_line(cn_progress *p, double t)
{
    line l;
    make_line(p, t, MOST_COLUMNS, true, &l);
    p->drawn = t;
    p->line_percent = 100 * fraction(p);
    return written(p, fprintf(p->out, "%s\n", l.out) >= 0 && fflush(p->out) == 0);
}

static bool wants_lines(const cn_progress *p) { return p->lines > 0 || p->lines_seconds > 0; }

/* cn_progress_finish prints the last line. */
static bool line_is_due(const cn_progress *p, double t)
{
    if (p->total > 0 && p->done >= p->total) return false;
    if (p->lines > 0 && p->total > 0 && floor(100 * fraction(p) / p->lines) > floor(p->line_percent / p->lines))
        return true;
    return p->lines_seconds > 0 && t - (p->drawn < 0 ? p->began : p->drawn) >= p->lines_seconds;
}

static bool show(cn_progress *p, double t)
{
    if (p->tty) return p->drawn >= 0 && t - p->drawn < DRAW_EVERY ? true : draw(p, t);
    return wants_lines(p) && line_is_due(p, t) ? print_line(p, t) : true;
}

/* ---- public functions ---- */

static void destroy(void *self)
{
    cn_progress *p = self;
    if (p->line_open) {
        fputc('\n', p->out);
        fflush(p->out);
    }
    cn__free_text(p->object.ctx, p->label);
    cn__free_text(p->object.ctx, p->unit);
}

static bool decide(int wish, bool found) { return wish ? wish > 0 : found; }

cn_progress *cn_progress_new(cn_ctx *ctx, const cn_progress_desc *desc)
{
    static const cn_progress_desc defaults = { 0 };
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!desc) desc = &defaults;
    if (desc->total < 0 || desc->done < 0 || desc->width < 0 || !(desc->lines >= 0) || !(desc->lines_seconds >= 0)) {
        cn__fail(ctx, CN_BAD_ARGUMENT,
                 "progress: total, done, width, lines and lines_seconds must be ≥ 0, got %lld, %lld, %d, %g and %g",
                 (long long)desc->total, (long long)desc->done, desc->width, desc->lines, desc->lines_seconds);
        return NULL;
    }
    cn_progress *p = cn__object_new(ctx, sizeof *p, &progress_type);
    if (!p) return NULL;
    p->label = cn__copy_text(ctx, desc->label);
    p->unit = cn__copy_text(ctx, desc->unit ? desc->unit : "it");
    if (!p->unit || (desc->label && !p->label)) {
        cn__object_free(p);
        return NULL;
    }
    p->out = desc->out ? desc->out : stderr;
    p->clock = desc->clock.now ? desc->clock : (cn_clock){ monotonic, NULL };
    p->total = desc->total;
    p->first = p->done = p->slice_first = desc->done;
    p->tty = decide(desc->tty, is_terminal(p->out));
    p->utf8 = decide(desc->utf8, locale_is_utf8());
    p->color = decide(desc->color, p->tty) && !environment("NO_COLOR");
    p->width = desc->width;
    p->lines = desc->lines;
    p->lines_seconds = desc->lines_seconds;
    p->began = p->slice_began = now(p);
    p->slice_length = DRAW_EVERY;
    p->drawn = -1;
    p->line_percent = 100 * fraction(p);
    return p;
}

bool cn_progress_step(cn_progress *p, int64_t n, const char *format, ...)
{
    CN__CALL call = cn__call_object(p, &progress_type);
    CN__USE used = cn__object_use(call.ctx ? p : NULL); /* the clock may free it */
    if (!call.ctx) return false;
    if (n < 0 || n > INT64_MAX - p->done || p->finished)
        return cn__fail(p->object.ctx, CN_BAD_ARGUMENT,
                        "progress: n must be ≥ 0, and finish not called yet; got %lld%s", (long long)n,
                        p->finished ? " after finish" : "");
    p->done += n;
    if (format) {
        va_list list;
        va_start(list, format);
        vsnprintf(p->text, sizeof p->text, format, list);
        va_end(list);
    }
    const double t = now(p);
    close_slice(p, t);
    return show(p, t);
}

bool cn_progress_note(cn_progress *p, const char *format, ...)
{
    CN__CALL call = cn__call_object(p, &progress_type);
    CN__USE used = cn__object_use(call.ctx ? p : NULL); /* the clock may free it */
    if (!call.ctx) return false;
    if (!format) return cn__fail(call.ctx, CN_BAD_ARGUMENT, "progress: the format must not be NULL");
    va_list list;
    va_start(list, format);
    if (p->line_open) fputs("\r\033[K", p->out);
    bool ok = vfprintf(p->out, format, list) >= 0 && fputc('\n', p->out) != EOF && fflush(p->out) == 0;
    va_end(list);
    if (ok && p->line_open) ok = draw(p, now(p));
    return written(p, ok);
}

bool cn_progress_finish(cn_progress *p)
{
    CN__CALL call = cn__call_object(p, &progress_type);
    CN__USE used = cn__object_use(call.ctx ? p : NULL); /* the clock may free it */
    if (!call.ctx || p->finished) return false;
    const double t = now(p);
    p->finished = true;
    if (p->tty) return draw(p, t);
    return wants_lines(p) ? print_line(p, t) : true;
}

void cn_progress_free(cn_progress *p) { cn__free_by_program(p, &progress_type, __func__); }
