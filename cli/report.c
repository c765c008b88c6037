/* Draws the loss of a run from its log, which has the steps before a resumption as well. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

typedef struct points {
    double *x, *y;
    int64_t n, room;
} points;

static void add_point(points *p, double x, double y)
{
    if (p->n == p->room) {
        p->room = p->room * 2 + 256;
        p->x = grow(p->x, (size_t)p->room * sizeof *p->x);
        p->y = grow(p->y, (size_t)p->room * sizeof *p->y);
    }
    p->x[p->n] = x;
    p->y[p->n++] = y;
}

/* step,time,name,value */
static void read_line(const char *line, points *train, points *held_out)
{
    char name[64];
    double step, value;
    if (sscanf(line, "%lf,%*f,%63[^,],%lf", &step, name, &value) != 3) return;
    if (!strcmp(name, "loss/train")) add_point(train, step, value);
    if (!strcmp(name, "loss/held_out")) add_point(held_out, step, value);
}

static int read_log(const job *j, points *train, points *held_out)
{
    char *path = join_path(j->out, "log.csv");
    text t = { 0 };
    const int code = read_file(path, &t);
    for (char *at = t.bytes; code == DONE && *at;) {
        const size_t n = strcspn(at, "\n");
        const bool more = at[n] == '\n';
        at[n] = 0;
        read_line(at, train, held_out);
        at += n + more;
    }
    free(t.bytes);
    free(path);
    return code;
}

static void show_text(const job *j, const cn_series *series, int n, cn_curve_desc d)
{
    static char text[32768];
    d.width = d.height = 0;
    d.color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    const char *locale = getenv("LC_ALL");
    if (!locale || !*locale) locale = getenv("LC_CTYPE");
    if (!locale || !*locale) locale = getenv("LANG");
    d.ascii = !locale || (!strstr(locale, "UTF") && !strstr(locale, "utf"));
    if (cn_curve_text(j->cn, series, n, &d, text, sizeof text)) printf("\n%s", text);
}

int draw_losses(const job *j, bool show)
{
    points train = { 0 }, held_out = { 0 };
    if (read_log(j, &train, &held_out) != DONE) return FAILED;
    const cn_series series[] = {
        { .name = "train", .x = train.x, .y = train.y, .n = train.n },
        { .name = "held out", .x = held_out.x, .y = held_out.y, .n = held_out.n, .exact = true },
    };
    const int n = held_out.n ? 2 : 1;
    const cn_curve_line line = { .y = j->baseline, .label = j->baseline_label };
    const cn_curve_desc d = { .title = j->name,
                              .x_label = "step",
                              .y_label = "loss",
                              .smooth = 0.9,
                              .lines = &line,
                              .n_lines = j->baseline > 0 };
    char *svg = join_path(j->out, "loss.svg"), *png = join_path(j->out, "loss.png");
    bool ok = true;
    if (train.n) {
        ok = cn_curve_svg(j->cn, svg, series, n, &d) && cn_curve_png(j->cn, png, series, n, &d);
        if (ok && show) show_text(j, series, n, d);
    }
    free(svg), free(png), free(train.x), free(train.y), free(held_out.x), free(held_out.y);
    return ok ? DONE : fail_in(j->cn);
}
