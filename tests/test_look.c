/* Progress bars and logbooks, by what they write: on terminals and elsewhere, of any width; files that a stopped run left; event
   files read back byte by byte. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cairn/cairn.h"
#include "cairn/look.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/scratch.h"

static double clock_now(void *user) { return *(double *)user; }

/* ---- what was drawn ---- */

typedef struct screen {
    cn_ctx *cn;
    double t;
    char *text;
    size_t size;
    FILE *out;
} screen;

static void screen_open(screen *s, cn_ctx *cn)
{
    *s = (screen){ .cn = cn, .t = 100 };
    s->out = open_memstream(&s->text, &s->size);
}

static void screen_close(screen *s)
{
    fclose(s->out);
    free(s->text);
}

static const char *screen_text(screen *s)
{
    fflush(s->out);
    return s->text;
}

static cn_progress *bar_on(screen *s, cn_progress_desc d)
{
    d.out = s->out;
    d.clock = (cn_clock){ clock_now, &s->t };
    return cn_progress_new(s->cn, &d);
}

/* What stands on the line in the end: after the last \r, without escape sequences. */
static const char *last_line(screen *s)
{
    static char line[4096];
    const char *text = screen_text(s), *from = strrchr(text, '\r');
    size_t n = 0;
    for (const char *c = from ? from + 1 : text; *c && *c != '\n' && n + 1 < sizeof line; c++) {
        if (*c == '\033') {
            while (*c && !strchr("mK", *c)) c++;
            continue;
        }
        line[n++] = *c;
    }
    line[n] = 0;
    return line;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *c = text; (c = strstr(c, what)); c += strlen(what)) n++;
    return n;
}

/* Every character of these tests but one is one column wide. */
static int columns(const char *line)
{
    int n = 0;
    for (const char *c = line; *c; c++) n += (*c & 0xc0) != 0x80;
    return n + count(line, "損");
}

static void bar_on_a_terminal(cn_ctx *cn)
{
    check_group("bar");
    screen s;
    screen_open(&s, cn);
    cn_progress *p = bar_on(
        &s, (cn_progress_desc){ .total = 1000, .label = "train", .tty = 1, .utf8 = 1, .color = -1, .width = 90 });
    for (int i = 1; i <= 630; i++) {
        s.t += 0.125;
        cn_progress_step(p, 1, "loss %.3f", 0.123);
    }
    const char *want = "train   63% ████████████████████▏             630/1000  8.0 it/s  1:19<0:46  loss 0.123";
    check(!strcmp(last_line(&s), want), "63 %% is\n'%s', not\n'%s'", last_line(&s), want);
    check(fabs(cn_progress_rate(p) - 8) < 1e-6, "%g a second", cn_progress_rate(p));
    check(!strchr(screen_text(&s), '\n'), "all on one line");
    cn_progress_note(p, "saved %s", "model");
    check(strstr(screen_text(&s), "\r\033[Ksaved model\n\rtrain") != NULL, "a note stands above the bar");
    s.t += 30;
    cn_progress_step(p, 370, NULL);
    cn_progress_finish(p);
    const char *text = screen_text(&s);
    check(text[strlen(text) - 1] == '\n' && strstr(text, "1000/1000") && strstr(text, "in 1:49") &&
              strstr(text, "100%"),
          "in the end: '%s'", last_line(&s));
    check(strstr(last_line(&s), "loss 0.123") != NULL, "no new words: those before stay");
    check(!cn_progress_step(p, 1, NULL) && cn_error_code(cn) == CN_BAD_ARGUMENT, "a step after the end: %s",
          cn_error(cn));
    check(!cn_progress_finish(p), "it ends once");
    cn_error_clear(cn);
    cn_progress_free(p);
    screen_close(&s);
}

static void all_means_all(cn_ctx *cn)
{
    check_group("percent");
    static const struct {
        int64_t done;
        const char *shown;
    } rows[] = { { 0, "  0%" }, { 9, "  0%" }, { 10, "  1%" }, { 999, " 99%" }, { 1000, "100%" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        screen s;
        screen_open(&s, cn);
        cn_progress *p =
            bar_on(&s, (cn_progress_desc){ .total = 1000, .tty = 1, .utf8 = -1, .color = -1, .width = 90 });
        cn_progress_step(p, rows[i].done, NULL);
        check(strstr(last_line(&s), rows[i].shown) != NULL, "%d of 1000 is '%s'", (int)rows[i].done, last_line(&s));
        cn_progress_free(p);
        screen_close(&s);
    }
}

static void bar_in_ascii(cn_ctx *cn)
{
    check_group("ASCII");
    screen s;
    screen_open(&s, cn);
    cn_progress *p =
        bar_on(&s, (cn_progress_desc){ .total = 4, .label = "größe", .tty = 1, .utf8 = -1, .color = -1, .width = 70 });
    s.t += 8;
    cn_progress_step(p, 1, "übrig %d", 3);
    check(!strcmp(last_line(&s), "gr??e   25% [####.............]  1/4  8.00 s/it  0:08<0:24  ?brig 3"),
          "in ASCII: '%s'", last_line(&s));
    cn_progress_free(p);
    const char *text = screen_text(&s);
    check(text[strlen(text) - 1] == '\n', "an unfinished bar leaves its line");
    screen_close(&s);
}

static void rate_of_slow_and_fast(cn_ctx *cn)
{
    check_group("rates");
    static const struct {
        double each;
        int64_t steps;
        const char *text;
    } cases[] = { { 1e-7, 10000000, "10.00M it/s" },
                  { 2e-5, 100000, "50.0k it/s" },
                  { 1e-3, 2000, "1000 it/s" },
                  { 0.5, 4, "2.0 it/s" },
                  { 90, 3, "90.00 s/it" } };
    for (int i = 0; i < 5; i++) {
        screen s;
        screen_open(&s, cn);
        cn_progress *p = bar_on(&s, (cn_progress_desc){ .total = 100000000, .tty = 1, .utf8 = -1, .width = 200 });
        s.t += cases[i].each * (double)cases[i].steps;
        cn_progress_step(p, cases[i].steps, NULL);
        check(strstr(last_line(&s), cases[i].text) != NULL, "%s in '%s'", cases[i].text, last_line(&s));
        cn_progress_free(p);
        screen_close(&s);
    }
}

static void drawn_ten_times_a_second(cn_ctx *cn)
{
    check_group("drawing");
    screen s;
    screen_open(&s, cn);
    cn_progress *p = bar_on(&s, (cn_progress_desc){ .total = 100000, .tty = 1 });
    for (int i = 0; i < 10000; i++) {
        s.t += 0.0005;
        cn_progress_step(p, 1, "%d", i);
    }
    const int draws = count(screen_text(&s), "\r");
    check(draws >= 45 && draws <= 51, "%d draws in 5 seconds", draws);
    cn_progress_finish(p);
    check(strstr(last_line(&s), "9999") != NULL, "the last words are shown: '%s'", last_line(&s));
    cn_progress_free(p);
    screen_close(&s);
}

static void lines_never_wrap(cn_ctx *cn)
{
    check_group("width");
    for (int width = 1; width <= 140; width++)
        for (int utf8 = -1; utf8 <= 1; utf8 += 2)
            for (int done = 0; done <= 100; done += 25) {
                screen s;
                screen_open(&s, cn);
                cn_progress *p = bar_on(&s, (cn_progress_desc){ .total = 100,
                                                                .label = "損 epoch 3\nof 7",
                                                                .tty = 1,
                                                                .utf8 = utf8,
                                                                .color = width % 2 ? 1 : -1,
                                                                .width = width });
                s.t += 1;
                cn_progress_step(p, done, "損失 %.4f\taccuracy %.1f %%, and quite a number of other things", 0.25,
                                 97.5);
                check(columns(last_line(&s)) < width, "width %d: %d columns: '%s'", width, columns(last_line(&s)),
                      last_line(&s));
                check(!strchr(screen_text(&s), '\n') && !strchr(screen_text(&s), '\t'),
                      "width %d: no control characters", width);
                if (width >= 12)
                    check(strstr(last_line(&s), "%") != NULL || width < 24, "width %d: a percentage: '%s'", width,
                          last_line(&s));
                if (width == 140 && done == 50)
                    check(strstr(last_line(&s), "50/100") && strstr(last_line(&s), "0:01<0:01"), "wide: '%s'",
                          last_line(&s));
                cn_progress_free(p);
                screen_close(&s);
            }
}

static void time_left_is_robust(cn_ctx *cn)
{
    check_group("time left");
    for (int kind = 0; kind < 3; kind++) {
        screen s;
        screen_open(&s, cn);
        cn_progress *p = bar_on(&s, (cn_progress_desc){ .total = 10000, .tty = 1, .width = 100 });
        for (int i = 0; i < 500; i++) {
            s.t += kind == 2 && i < 50 ? 0.4 : 0.1;
            if (kind == 0 && i == 0) s.t += 60;    /* a slow beginning */
            if (kind == 1 && i == 400) s.t += 300; /* a pause */
            cn_progress_step(p, 1, NULL);
        }
        const double each = 1 / cn_progress_rate(p);
        check(each > 0.095 && each < 0.115, "case %d: %.4f seconds a step", kind, each);
        cn_progress_free(p);
        screen_close(&s);
    }
}

static void silent_elsewhere(cn_ctx *cn)
{
    check_group("no terminal");
    screen s;
    screen_open(&s, cn);
    cn_progress *p = bar_on(&s, (cn_progress_desc){ .total = 10 });
    for (int i = 0; i < 10; i++) s.t += 1, cn_progress_step(p, 1, "x");
    cn_progress_finish(p);
    cn_progress_free(p);
    check(screen_text(&s)[0] == 0, "silent where there is no terminal: '%s'", screen_text(&s));
    p = bar_on(&s, (cn_progress_desc){ .total = 200, .label = "train", .lines = 25, .utf8 = -1 });
    for (int i = 0; i < 200; i++) s.t += 0.5, cn_progress_step(p, 1, "loss %d", i);
    cn_progress_finish(p);
    check(!strcmp(screen_text(&s), "train   25%  50/200  2.0 it/s  0:25<1:15  loss 49\n"
                                   "train   50%  100/200  2.0 it/s  0:50<0:50  loss 99\n"
                                   "train   75%  150/200  2.0 it/s  1:15<0:25  loss 149\n"
                                   "train  100%  200/200  2.0 it/s  in 1:40  loss 199\n"),
          "lines: '%s'", screen_text(&s));
    cn_progress_free(p);
    screen_close(&s);
    screen_open(&s, cn);
    p = bar_on(&s, (cn_progress_desc){ .lines_seconds = 60, .unit = "img", .utf8 = -1 });
    for (int i = 0; i < 250; i++) s.t += 1, cn_progress_step(p, 32, NULL);
    check(count(screen_text(&s), "\n") == 4 && strstr(screen_text(&s), "7680 img  32.0 img/s  4:00\n"),
          "of unknown length: '%s'", screen_text(&s));
    check(count(screen_text(&s), "\033") == 0, "no escape sequences");
    cn_progress_free(p);
    screen_close(&s);
}

static void colors_can_be_refused(cn_ctx *cn)
{
    check_group("color");
    for (int refuse = 0; refuse < 2; refuse++) {
        screen s;
        if (refuse) setenv("NO_COLOR", "1", 1);
        else unsetenv("NO_COLOR");
        screen_open(&s, cn);
        cn_progress *p = bar_on(&s, (cn_progress_desc){ .total = 10, .tty = 1, .width = 80 });
        s.t += 1;
        cn_progress_step(p, 5, NULL);
        check((strstr(screen_text(&s), "\033[32m") != NULL) == !refuse, "NO_COLOR %d", refuse);
        cn_progress_free(p);
        screen_close(&s);
    }
    unsetenv("NO_COLOR");
}

/* A real terminal: it is found out, with its width. */
static void found_out(cn_ctx *cn)
{
    check_group("terminal");
    const int ours = posix_openpt(O_RDWR | O_NOCTTY);
    if (ours < 0 || grantpt(ours) || unlockpt(ours)) {
        skip();
        return;
    }
    const int theirs = open(ptsname(ours), O_RDWR | O_NOCTTY);
    struct winsize size = { .ws_row = 24, .ws_col = 47 };
    ioctl(theirs, TIOCSWINSZ, &size);
    FILE *f = fdopen(theirs, "w");
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "en_US.utf8", 1);
    double t = 0;
    cn_progress *p =
        cn_progress_new(cn, &(cn_progress_desc){ .total = 10, .label = "train", .out = f, .clock = { clock_now, &t } });
    t = 1;
    cn_progress_step(p, 5, "loss 0.123456789");
    cn_progress_free(p);
    char seen[1024] = "", rest[64];
    size_t n = 0;
    fcntl(ours, F_SETFL, O_NONBLOCK);
    for (ssize_t got; n < sizeof seen - 1 && (got = read(ours, seen + n, sizeof seen - 1 - n)) > 0;) n += (size_t)got;
    check(strstr(seen, "train") && strstr(seen, "50%"), "drawn: '%s'", seen);
    if (strstr(seen, "\r\n")) *strstr(seen, "\r\n") = 0;
    setenv("TERM", "dumb", 1);
    p = cn_progress_new(cn, &(cn_progress_desc){ .total = 10, .out = f });
    cn_progress_step(p, 5, NULL);
    cn_progress_finish(p);
    cn_progress_free(p);
    check(read(ours, rest, sizeof rest) <= 0, "a dumb terminal is none");
    screen s = { .text = seen };
    s.out = fmemopen(NULL, 8, "w");
    check(columns(last_line(&s)) <= 46 && columns(last_line(&s)) > 30, "%d columns: '%s'", columns(last_line(&s)),
          last_line(&s));
    fclose(s.out);
    fclose(f);
    close(ours);
    unsetenv("LC_ALL");
}

static void bad_bars(cn_ctx *cn)
{
    check_group("bad bars");
    check(!cn_progress_new(cn, &(cn_progress_desc){ .total = -1 }) && cn_error_code(cn) == CN_BAD_ARGUMENT, "%s",
          cn_error(cn));
    cn_error_clear(cn);
    check(!cn_progress_step(NULL, 1, "x") && !cn_progress_finish(NULL) && !cn_progress_note(NULL, "x") &&
              cn_progress_rate(NULL) == 0,
          "NULL is taken");
    cn_progress_free(NULL);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        cn_progress *p = cn_progress_new(cn, &(cn_progress_desc){ .total = 1, .out = full, .tty = 1 });
        check(!cn_progress_step(p, 1, NULL) && cn_error_code(cn) == CN_BAD_FILE,
              "what cannot be written is an error: %s", cn_error(cn));
        cn_error_clear(cn);
        cn_progress_free(p);
        fclose(full);
    }
}

/* ---- logbooks ---- */

static char *read_whole(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    *n = f ? fread(text, 1, (1 << 20) - 1, f) : 0;
    if (f) fclose(f);
    return text;
}

static void file_is(const char *path, const char *want, const char *when)
{
    size_t n;
    char *text = read_whole(path, &n);
    check(!strcmp(text, want), "%s: '%s', not '%s'", when, text, want);
    free(text);
}

static void write_file(const char *path, const char *text, const char *mode)
{
    FILE *f = fopen(path, mode);
    fputs(text, f);
    fclose(f);
}

#define HEAD "step,time,name,value\n"

static void csv_is_long(cn_ctx *cn)
{
    check_group("CSV");
    double t = 1700000000.25;
    const cn_logbook_desc d = { .clock = { clock_now, &t } };
    remove("a.csv");
    cn_logbook *b = cn_logbook_new(cn, "a.csv", &d);
    cn_logbook_scalar(b, 0, "loss", 0.1);
    t += 1.5;
    cn_logbook_scalar(b, 1, "loss", 1.0 / 3);
    cn_logbook_scalar(b, 1, "odd, \"name\"", NAN);
    cn_logbook_scalar(b, -7, "größe", -INFINITY);
    cn_logbook_free(b);
    file_is("a.csv",
            HEAD "0,1700000000.250,loss,0.1\n1,1700000001.750,loss,0.3333333333333333\n"
                 "1,1700000001.750,\"odd, \"\"name\"\"\",nan\n-7,1700000001.750,größe,-inf\n",
            "four numbers");
    write_file("a.csv", "2,17000", "a"); /* a run that was stopped */
    b = cn_logbook_new(cn, "a.csv", &d);
    check(cn_logbook_scalar(b, 3, "loss", 1e300) && cn_logbook_scalar(b, 4, "lr", 5e-324), "goes on: %s", cn_error(cn));
    cn_logbook_free(b);
    size_t n;
    char *text = read_whole("a.csv", &n);
    check(strstr(text, "-inf\n3,1700000001.750,loss,1e+300\n4,1700000001.750,lr,4.94066e-324\n") &&
              count(text, HEAD) == 1,
          "repaired: '%s'", text);
    free(text);
    cn_logbook_desc again = d;
    again.resume_step = 1;
    cn_logbook_free(cn_logbook_new(cn, "a.csv", &again));
    file_is("a.csv", HEAD "0,1700000000.250,loss,0.1\n-7,1700000001.750,größe,-inf\n", "done again from step 1");
    again = d;
    again.fresh = true;
    cn_logbook_free(cn_logbook_new(cn, "a.csv", &again));
    file_is("a.csv", HEAD, "begun anew");
    write_file("b.csv", "step,ti", "w");
    cn_logbook_free(cn_logbook_new(cn, "b.csv", &d));
    file_is("b.csv", HEAD, "a head cut short");
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
}

static void bad_logbooks(cn_ctx *cn)
{
    check_group("bad logbooks");
    write_file("mine.csv", "name,age\nAnn,7\nBo", "w");
    check(!cn_logbook_new(cn, "mine.csv", NULL) && cn_error_code(cn) == CN_BAD_FILE, "another file: %s", cn_error(cn));
    file_is("mine.csv", "name,age\nAnn,7\nBo", "it is left alone");
    cn_error_clear(cn);
    static const char *const paths[] = { "mine.csv/x", "no/such/a.csv", "", NULL };
    for (int i = 0; i < 4; i++) {
        check(!cn_logbook_new(cn, paths[i], NULL) && cn_failed(cn), "path %d: %s", i, cn_error(cn));
        cn_error_clear(cn);
    }
    check(!cn_logbook_new(cn, "c.csv", &(cn_logbook_desc){ .no_csv = true }) && cn_error_code(cn) == CN_BAD_ARGUMENT,
          "%s", cn_error(cn));
    cn_error_clear(cn);
    cn_logbook *b = cn_logbook_new(cn, "c.csv", NULL);
    static const char *const names[] = { "", "a\nb", NULL };
    for (int i = 0; i < 3; i++) {
        check(!cn_logbook_scalar(b, 0, names[i], 1) && cn_error_code(cn) == CN_BAD_ARGUMENT, "name %d: %s", i,
              cn_error(cn));
        cn_error_clear(cn);
    }
    check(!cn_logbook_scalar(NULL, 0, "x", 1) && !cn_logbook_flush(NULL), "NULL is taken");
    cn_logbook_free(NULL);
    cn_logbook_free(b);
    remove("full.csv");
    if (access("/dev/full", W_OK) == 0 && symlink("/dev/full", "full.csv") == 0) {
        b = cn_logbook_new(cn, "full.csv", &(cn_logbook_desc){ .fresh = true });
        check(!b && cn_error_code(cn) == CN_BAD_FILE, "a full disk: %s", cn_error(cn));
        cn_error_clear(cn);
        remove("full.csv");
    }
}

static void numbers_arrive_in_time(cn_ctx *cn)
{
    check_group("flushing");
    double t = 50;
    remove("d.csv");
    cn_logbook *b = cn_logbook_new(cn, "d.csv", &(cn_logbook_desc){ .clock = { clock_now, &t }, .flush_seconds = 5 });
    cn_logbook_scalar(b, 0, "x", 1);
    file_is("d.csv", HEAD, "before the time");
    t += 5;
    cn_logbook_scalar(b, 1, "x", 2);
    file_is("d.csv", HEAD "0,50.000,x,1\n1,55.000,x,2\n", "after 5 seconds");
    cn_logbook_scalar(b, 2, "x", 3);
    cn_logbook_flush(b);
    file_is("d.csv", HEAD "0,50.000,x,1\n1,55.000,x,2\n2,55.000,x,3\n", "when asked");
    cn_logbook_free(b);
}

/* ---- event files, read again ---- */

static uint32_t crc32c(const unsigned char *p, size_t n)
{
    static uint32_t table[256];
    for (uint32_t i = 0; i < 256 && !table[255]; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
        table[i] = c;
    }
    uint32_t c = ~0u;
    for (size_t i = 0; i < n; i++) c = table[(c ^ p[i]) & 0xff] ^ c >> 8;
    return ~c;
}

static bool masked_crc_is(const unsigned char *p, size_t n, const unsigned char *stored)
{
    uint32_t want, c = crc32c(p, n);
    memcpy(&want, stored, 4);
    return want == ((c >> 15 | c << 17) + 0xa282ead8u);
}

typedef struct event {
    double time;
    int64_t step;
    char version[32], tag[64];
    float value;
    int session;
} event;

static uint64_t read_varint(const unsigned char **p)
{
    uint64_t x = 0;
    for (int shift = 0;; shift += 7) {
        x |= (uint64_t)(**p & 0x7f) << shift;
        if (!(*(*p)++ & 0x80)) return x;
    }
}

/* Messages within messages: their fields are told apart by the path of field numbers. */
static void read_message(const unsigned char *p, const unsigned char *end, int path, event *e)
{
    while (p < end) {
        const uint64_t key = read_varint(&p);
        const int field = path * 10 + (int)(key >> 3);
        uint64_t n = 0;
        switch (key & 7) {
        case 0:
            n = read_varint(&p);
            if (field == 2) e->step = (int64_t)n;
            if (field == 71) e->session = (int)n;
            break;
        case 1:
            if (field == 1) memcpy(&e->time, p, 8);
            p += 8;
            break;
        case 5:
            if (field == 512) memcpy(&e->value, p, 4);
            p += 4;
            break;
        default:
            n = read_varint(&p);
            if (field == 3) snprintf(e->version, sizeof e->version, "%.*s", (int)n, (const char *)p);
            else if (field == 511) snprintf(e->tag, sizeof e->tag, "%.*s", (int)n, (const char *)p);
            else read_message(p, p + n, field, e);
            p += n;
        }
    }
}

static int read_events(const char *path, event *e, int most)
{
    size_t n;
    unsigned char *text = (unsigned char *)read_whole(path, &n), *p = text;
    int count = 0;
    while ((size_t)(p - text) + 16 <= n && count < most) {
        uint64_t length;
        memcpy(&length, p, 8);
        const bool good = masked_crc_is(p, 8, p + 8) && length <= n - (size_t)(p - text) - 16 &&
                          masked_crc_is(p + 12, length, p + 12 + length);
        if (!check(good, "record %d: lengths and checksums", count)) break;
        e[count] = (event){ 0 };
        read_message(p + 12, p + 12 + length, 0, &e[count++]);
        p += 16 + length;
    }
    check((size_t)(p - text) == n, "%s: %zu bytes after the last record", path, n - (size_t)(p - text));
    free(text);
    return count;
}

static int find_events(const char *folder, char path[][512], int most)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *f; d && (f = readdir(d)) && n < most;)
        if (strstr(f->d_name, "tfevents")) snprintf(path[n++], 512, "%s/%s", folder, f->d_name);
    if (d) closedir(d);
    return n;
}

static void remove_events(const char *folder)
{
    char path[64][512];
    for (int n = find_events(folder, path, 64); n-- > 0;) remove(path[n]);
}

static void events_are_tensorboards(cn_ctx *cn)
{
    check_group("events");
    check(crc32c((const unsigned char *)"123456789", 9) == 0xe3069283u, "the checksum's known value");
    double t = 1700000000.5;
    event e[300];
    char path[4][512];
    remove_events("runs/first");
    remove("runs/first/log.csv");
    cn_logbook *b = cn_logbook_new(cn, "runs/first", &(cn_logbook_desc){ .clock = { clock_now, &t } });
    for (int i = 0; i < 100; i++) {
        t += 0.25;
        cn_logbook_scalar(b, i * 1000, "loss/train", 1.0 / (i + 1));
        cn_logbook_scalar(b, i * 1000, "lr", 1e-3);
    }
    cn_logbook_scalar(b, -1, "after", NAN);
    cn_logbook_free(b);
    check(find_events("runs/first", path, 4) == 1, "one file");
    check(strstr(path[0], "/events.out.tfevents.1700000000.") != NULL, "its name: %s", path[0]);
    const int n = read_events(path[0], e, 300);
    check(n == 202 && !strcmp(e[0].version, "brain.Event:2") && e[0].time == 1700000000.5,
          "%d records; the first says '%s'", n, e[0].version);
    for (int i = 0; i < 100 && n == 202; i++) {
        const event *x = &e[1 + 2 * i];
        check(x->step == i * 1000 && x->time == 1700000000.5 + 0.25 * (i + 1) && !strcmp(x->tag, "loss/train") &&
                  x->value == (float)(1.0 / (i + 1)),
              "record %d: step %lld, %s is %g", i, (long long)x->step, x->tag, (double)x->value);
        check(!strcmp(x[1].tag, "lr") && x[1].value == 1e-3f, "record %d: lr", i);
    }
    check(e[201].step == -1 && isnan(e[201].value), "NaN at step -1");
    size_t bytes;
    char *csv = read_whole("runs/first/log.csv", &bytes);
    check(count(csv, "\n") == 202, "and the same in log.csv: %d lines", count(csv, "\n"));
    free(csv);
    for (int i = 0; i < 2; i++)
        cn_logbook_free(cn_logbook_new(
            cn, "runs/first/", &(cn_logbook_desc){ .clock = { clock_now, &t }, .no_csv = true, .resume_step = 42 }));
    check(find_events("runs/first", path, 4) == 3, "each opening begins a file, within one second too");
    int restarts = 0;
    for (int i = 0; i < 3; i++)
        if (read_events(path[i], e, 300) == 2) restarts += e[1].session == 1 && e[1].step == 42;
    check(restarts == 2, "a resumed run says from where: %d", restarts);
    check(!cn_failed(cn), "no error: %s", cn_error(cn));
}

/* ---- memory that runs out ---- */

static void memory_may_run_out(void)
{
    check_group("memory");
    int64_t failed = 0;
    for (bool reached = true; reached;) {
        faulty f = { 0 };
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        f.calls = 0;
        f.fail_at = failed + 1;
        cn_progress *p = cn_progress_new(cn, &(cn_progress_desc){ .label = "train", .tty = -1 });
        cn_logbook *b = cn_logbook_new(cn, "runs/memory", NULL);
        cn_progress_step(p, 1, "x");
        cn_logbook_scalar(b, 1, "x", 1);
        reached = f.calls >= f.fail_at;
        check((p && b) == !reached, "allocation %lld: NULL and an error go together", (long long)failed);
        if (reached) check(cn_error_code(cn) == CN_NO_MEMORY, "allocation %lld: %s", (long long)failed, cn_error(cn));
        failed += reached;
        cn_close(cn);
        check(f.blocks == 0, "allocation %lld: %lld blocks leak", (long long)failed, (long long)f.blocks);
        remove_events("runs/memory");
    }
    check(failed >= 6, "%lld allocations made to fail", (long long)failed);
}

int main(void)
{
    if (!enter_scratch()) return finish();
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    bar_on_a_terminal(cn);
    all_means_all(cn);
    bar_in_ascii(cn);
    rate_of_slow_and_fast(cn);
    drawn_ten_times_a_second(cn);
    lines_never_wrap(cn);
    time_left_is_robust(cn);
    silent_elsewhere(cn);
    colors_can_be_refused(cn);
    found_out(cn);
    bad_bars(cn);
    csv_is_long(cn);
    bad_logbooks(cn);
    numbers_arrive_in_time(cn);
    events_are_tensorboards(cn);
    check(!cn_failed(cn), "no error is left: %s", cn_error(cn));
    cn_close(cn);
    memory_may_run_out();
    return finish();
}
