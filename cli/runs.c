/* The log that all runs append to, runs.csv: one line for each training; and cairn runs, which compares them. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

enum {
    DATE,
    COMMAND,
    MODEL_NAME,
    SETTINGS,
    DEVICE,
    ADAPTER,
    PARAMETERS,
    STEPS,
    SECONDS,
    PER_100,
    PER_EPOCH,
    TRAIN_LOSS,
    HELD_OUT,
    METRICS,
    FOLDER,
    COLUMNS
};
static const char *const names[COLUMNS] = { "date",
                                            "command",
                                            "model",
                                            "settings",
                                            "device",
                                            "adapter",
                                            "parameters",
                                            "steps",
                                            "seconds",
                                            "seconds_per_100_steps",
                                            "seconds_per_epoch",
                                            "train_loss",
                                            "held_out_loss",
                                            "metrics",
                                            "folder" };

/* ---- text that grows ---- */

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int n = vsnprintf(NULL, 0, format, list);
    t->bytes = grow(t->bytes, t->n + (size_t)n + 1);
    vsnprintf(t->bytes + t->n, (size_t)n + 1, format, again);
    t->n += (size_t)n;
    va_end(again);
    va_end(list);
}

/* A field of CSV: quoted if it has a comma, a quote or a line end. */
static void add_field(text *line, const char *value, bool last)
{
    const bool plain = value[strcspn(value, ",\"\r\n")] == 0;
    if (!plain) add(line, "\"");
    for (const char *c = value; *c; c++) add(line, *c == '"' ? "\"\"" : "%c", *c);
    add(line, "%s%s", plain ? "" : "\"", last ? "\n" : ",");
}

/* ---- append ---- */

/* What is not the default: "lr=0.01 batch=32". */
static char *own_settings(const settings *s)
{
    text t = { 0 };
    add(&t, "%s", "");
    for (int i = 0; i < n_options; i++) {
        if (!(options[i].commands & s->command->bit) || options[i].here || s->of[i].by == BY_DEFAULT) continue;
        for (int k = 0; k < s->of[i].n; k++) add(&t, "%s%s=%s", t.n ? " " : "", options[i].name, s->of[i].item[k]);
    }
    return t.bytes;
}

static void add_number(text *line, double value, const char *format)
{
    char number[40] = "";
    if (isfinite(value)) snprintf(number, sizeof number, format, value);
    add_field(line, number, false);
}

static void add_line(text *line, const job *j)
{
    char date[32], metrics[200] = "";
    const time_t now = time(NULL);
    struct tm local;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &local));
    for (int i = 1, n = 0; i < j->n_last && n < (int)sizeof metrics; i++)
        n += snprintf(metrics + n, sizeof metrics - (size_t)n, "%s%s=%.4f", i > 1 ? " " : "", j->last[i].name,
                      j->last[i].value);
    cn_gpu_info gpu;
    const int number = cn_gpu_current(j->cn);
    const bool on_gpu = number >= 0 && cn_gpu_describe(j->cn, number, &gpu);
    const double a_step = j->meter->steps ? j->meter->seconds / (double)j->meter->steps : NAN;
    char *set = own_settings(j->s);
    const char *const first[] = { date, j->s->command->name, j->name,
                                  set,  device_of(j),        on_gpu ? gpu.name : cn_instruction_set() };
    for (int i = DATE; i <= ADAPTER; i++) add_field(line, first[i], false);
    add_number(line, (double)cn_module_count(j->model), "%.0f");
    add_number(line, (double)j->done, "%.0f");
    add_number(line, j->meter->seconds, "%.3f");
    add_number(line, 100 * a_step, "%.4f");
    add_number(line, j->epoch_steps ? (double)j->epoch_steps * a_step : NAN, "%.4f");
    add_number(line, j->last_loss, "%.6f");
    add_number(line, j->n_last ? j->last[0].value : NAN, "%.6f");
    add_field(line, metrics, false);
    add_field(line, j->out, true);
    free(set);
}

char *runs_file(const job *j)
{
    if (given(j->s, "runs")) return copy_text(text_of(j->s, "runs"));
    const char *out = j->out;
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/') n--; /* run/ is in the folder that run is in */
    char *name = copy_text(out);
    name[n] = 0;
    char *folder = folder_of(name), *path = join_path(folder, "runs.csv");
    free(folder), free(name);
    return path;
}

/* A log of runs begins with the name of its first column. An empty file is to become one. */
int check_runs(const job *j)
{
    char *path = runs_file(j), head[64];
    struct stat st;
    snprintf(head, sizeof head, "%s,", names[0]);
    const int code = may_write(j->s, path, begins_with(path, head) || (stat(path, &st) == 0 && st.st_size == 0));
    free(path);
    return code;
}

static bool write_whole(int fd, const text *t)
{
    for (size_t at = 0; at < t->n;) {
        const ssize_t n = write(fd, t->bytes + at, t->n - at);
        if (n < 0 && errno != EINTR) return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* The file is locked from the look at its size to the end of the line: runs that end together write whole lines, and
   one header. */
int append_run(const job *j)
{
    char *path = runs_file(j);
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    struct stat st;
    bool ok = fd >= 0 && flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0;
    text lines = { 0 };
    for (int i = 0; ok && st.st_size == 0 && i < COLUMNS; i++) add_field(&lines, names[i], i + 1 == COLUMNS);
    add_line(&lines, j);
    ok = ok && write_whole(fd, &lines);
    const int problem = errno;
    if (fd >= 0 && close(fd)) ok = false;
    if (!ok) fail("%s: %s", path, strerror(problem));
    free(lines.bytes), free(path);
    return ok ? DONE : FAILED;
}

/* ---- cairn runs ---- */

typedef struct run {
    const char *field[COLUMNS];
} run;

/* Reads a field in place, from *at on, and sets *at behind it. *end: it was the last of its line. */
static char *next_field(char **at, bool *end)
{
    char *from = *at, *to = from, *c = from;
    const bool quoted = *c == '"';
    for (c += quoted; *c; c++) {
        if (quoted && *c == '"' && c[1] != '"') {
            c++;
            break;
        }
        if (!quoted && (*c == ',' || *c == '\n')) break;
        *to++ = *c;
        c += quoted && *c == '"';
    }
    *end = *c != ',';
    *at = c + (*c != 0);
    *to = 0;
    return from;
}

/* Reads the fields of a line; those past the room are dropped. Returns how many there are. */
static int next_line(char **at, char **field, int room)
{
    int n = 0;
    for (bool end = false; !end; n++) {
        char *value = next_field(at, &end);
        if (n < room) field[n] = value;
    }
    return n < room ? n : room;
}

/* The file's own header says where its columns are: a file of another version may have others. */
static int read_runs(char *at, const char *path, run **runs, int *n)
{
    enum { MOST = 64 };
    char *field[MOST];
    int column[MOST];
    const int count = next_line(&at, field, MOST);
    bool known = false;
    for (int i = 0; i < count; i++) {
        column[i] = 0;
        while (column[i] < COLUMNS && strcmp(names[column[i]], field[i])) column[i]++;
        known |= column[i] == MODEL_NAME;
    }
    if (!known) return fail("%s: not a log of runs: its first line has no column 'model'", path);
    while (*at) {
        *runs = grow(*runs, (size_t)(*n + 1) * sizeof **runs);
        run *r = &(*runs)[(*n)++];
        for (int i = 0; i < COLUMNS; i++) r->field[i] = "";
        const int got = next_line(&at, field, MOST);
        for (int i = 0; i < got && i < count; i++)
            if (column[i] < COLUMNS) r->field[column[i]] = field[i];
    }
    return DONE;
}

static double number(const run *r, int column)
{
    char *end;
    const double v = strtod(r->field[column], &end);
    return end == r->field[column] ? INFINITY : v;
}

static int compare_numbers(const run *a, const run *b, int column)
{
    const double x = number(a, column), y = number(b, column);
    return (x > y) - (x < y);
}

static int by_loss(const void *a, const void *b)
{
    const int held_out = compare_numbers(a, b, HELD_OUT);
    return held_out ? held_out : compare_numbers(a, b, TRAIN_LOSS);
}
static int by_time(const void *a, const void *b) { return compare_numbers(a, b, PER_100); }
static int by_date(const void *a, const void *b)
{
    return strcmp(((const run *)a)->field[DATE], ((const run *)b)->field[DATE]);
}
static int by_device(const void *a, const void *b)
{
    const run *x = a, *y = b;
    int c = strcmp(x->field[DEVICE], y->field[DEVICE]);
    if (!c) c = strcmp(x->field[ADAPTER], y->field[ADAPTER]);
    return c ? c : by_loss(a, b);
}
static int by_model(const void *a, const void *b)
{
    const int c = strcmp(((const run *)a)->field[MODEL_NAME], ((const run *)b)->field[MODEL_NAME]);
    return c ? c : by_loss(a, b);
}

static const struct {
    const char *name;
    int (*compare)(const void *a, const void *b);
} orders[] = {
    { "device", by_device }, { "loss", by_loss }, { "time", by_time }, { "date", by_date }, { "model", by_model }
};

/* Columns are as wide as their widest value. */
static void print_table(const run *runs, int n)
{
    static const struct {
        const char *title;
        int column;
        bool right;
    } shown[] = { { "device", DEVICE, false },        { "adapter", ADAPTER, false }, { "model", MODEL_NAME, false },
                  { "parameters", PARAMETERS, true }, { "steps", STEPS, true },      { "s/100 steps", PER_100, true },
                  { "s/epoch", PER_EPOCH, true },     { "train", TRAIN_LOSS, true }, { "held out", HELD_OUT, true },
                  { "metrics", METRICS, false },      { "date", DATE, false },       { "settings", SETTINGS, false } };
    enum { SHOWN = sizeof shown / sizeof *shown };
    int width[SHOWN];
    for (int c = 0; c < SHOWN; c++) {
        width[c] = (int)strlen(shown[c].title);
        for (int i = 0; i < n; i++) {
            const int w = (int)strlen(runs[i].field[shown[c].column]);
            if (w > width[c]) width[c] = w;
        }
    }
    for (int i = -1; i < n; i++)
        for (int c = 0; c < SHOWN; c++) {
            char *clean =
                i < 0 ? NULL : clean_text(runs[i].field[shown[c].column], strlen(runs[i].field[shown[c].column]));
            const char *value = clean ? clean : shown[c].title;
            const int pad = c + 1 == SHOWN ? 0 : shown[c].right ? width[c] : -width[c];
            printf("%*s%s", pad, value, c + 1 == SHOWN ? "\n" : "  ");
            free(clean);
        }
}

static void print_best(const run *runs, int n)
{
    const run *least = NULL, *fastest = NULL;
    for (int i = 0; i < n; i++) {
        if (isfinite(number(&runs[i], HELD_OUT)) && (!least || by_loss(&runs[i], least) < 0)) least = &runs[i];
        if (isfinite(number(&runs[i], PER_100)) && (!fastest || by_time(&runs[i], fastest) < 0)) fastest = &runs[i];
    }
    if (least) printf("\nlowest held-out loss: %s in %s\n", least->field[HELD_OUT], least->field[FOLDER]);
    if (fastest) printf("fastest: %s s per 100 steps, in %s\n", fastest->field[PER_100], fastest->field[FOLDER]);
}

/* The file, or the one in the folder; without an argument, ./runs.csv or that of ./runs/. */
static char *find_log(const char *path)
{
    if (path) return is_folder(path) ? join_path(path, "runs.csv") : copy_text(path);
    return copy_text(is_file("runs.csv") ? "runs.csv" : "runs/runs.csv");
}

int list_runs(settings *s)
{
    char *path = find_log(s->argument);
    text t = { 0 };
    run *runs = NULL;
    int n = 0, code = read_file(path, &t);
    if (code == DONE && memchr(t.bytes, 0, t.n)) code = fail("%s: not a log of runs: it has bytes that are 0", path);
    if (code == DONE) code = read_runs(t.bytes, path, &runs, &n);
    for (size_t i = 0; i < sizeof orders / sizeof *orders && code == DONE && n; i++)
        if (!strcmp(orders[i].name, text_of(s, "sort"))) qsort(runs, (size_t)n, sizeof *runs, orders[i].compare);
    if (code == DONE) print_table(runs, n), print_best(runs, n);
    free(runs), free(t.bytes), free(path);
    return code;
}
