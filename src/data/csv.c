/* Reads comma-separated values (RFC 4180) and makes datasets of them. Cells may be quoted; lines may end with CR LF;
   the file may begin with a byte-order mark. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/data.h"

enum { MAX_COLUMNS = 1 << 20, MAX_CELL = 4096 };

typedef struct cell {
    const char *text; /* without the quotes around it */
    size_t n;
    bool quoted;
    bool last; /* of its row */
} cell;

typedef struct column {
    cell name;
    int target; /* number of the target; -1: a feature */
} column;

typedef struct parser {
    cn_ctx *ctx;
    const char *name; /* of the file */
    const char *p, *end;
    char separator;
    bool header, classes;
    int64_t line;   /* on which the present row begins */
    int64_t breaks; /* line ends read so far */
    cn__vec columns;
    cn__csv *out;
} parser;

static column *column_at(const parser *c, int i) { return (column *)c->columns.v + i; }

static bool fail_at(parser *c, int col, const char *message)
{
    char title[48] = "";
    if (c->header && (size_t)col < c->columns.n) {
        const cell *n = &column_at(c, col)->name;
        snprintf(title, sizeof title, " (%.*s)", n->n < 40 ? (int)n->n : 40, n->text);
    }
    return cn__fail(c->ctx, CN_BAD_FILE, "dataset_csv: %s: line %lld, column %d%s: %s", c->name, (long long)c->line,
                    col + 1, title, message);
}

/* ---- cells */

static bool at_break(const parser *c) { return c->p < c->end && (*c->p == '\n' || *c->p == '\r'); }

static void pass_break(parser *c)
{
    if (c->p < c->end && *c->p == '\r') c->p++;
    if (c->p < c->end && *c->p == '\n') c->p++;
    c->breaks++;
}

static void trim(cell *x)
{
    while (x->n && (*x->text == ' ' || *x->text == '\t')) x->text++, x->n--;
    while (x->n && (x->text[x->n - 1] == ' ' || x->text[x->n - 1] == '\t')) x->n--;
}

/* At an opening quote; reads past the closing one. */
static bool quoted_cell(parser *c, cell *x)
{
    x->quoted = true;
    x->text = ++c->p;
    for (; c->p < c->end; c->p++) {
        if (*c->p == '\n') c->breaks++;
        if (*c->p != '"') continue;
        if (c->p + 1 < c->end && c->p[1] == '"') {
            c->p++;
            continue;
        }
        x->n = (size_t)(c->p++ - x->text);
        return true;
    }
    return false;
}

static bool next_cell(parser *c, int col, cell *x)
{
    *x = (cell){ 0 };
    while (c->p < c->end && (*c->p == ' ' || (*c->p == '\t' && c->separator != '\t'))) c->p++;
    if (c->p < c->end && *c->p == '"') {
        if (!quoted_cell(c, x)) return fail_at(c, col, "the quoted text does not end");
        while (c->p < c->end && *c->p == ' ') c->p++;
        if (c->p < c->end && *c->p != c->separator && !at_break(c))
            return fail_at(c, col, "text follows the closing quote; a separator or a line end is expected");
    } else {
        x->text = c->p;
        while (c->p < c->end && *c->p != c->separator && !at_break(c)) c->p++;
        x->n = (size_t)(c->p - x->text);
        trim(x);
    }
    x->last = c->p == c->end || at_break(c);
    if (!x->last) c->p++;
    else if (c->p < c->end) pass_break(c);
    return true;
}

/* Copies the text of a cell, with doubled quotes made single. False: it does not fit into size. */
static bool cell_text(const cell *x, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (n + 1 >= size) return false;
        out[n++] = x->text[i];
        if (x->quoted && x->text[i] == '"') i++;
    }
    out[n] = 0;
    return true;
}

static bool cell_number(parser *c, int col, const cell *x, float *out)
{
    char text[64], message[96], *end;
    if (x->n == 0) return fail_at(c, col, "missing value");
    if (!cell_text(x, text, sizeof text)) return fail_at(c, col, "not a number: it has more than 63 characters");
    errno = 0;
    double v = strtod(text, &end);
    if (*end || end == text || isnan(v)) {
        snprintf(message, sizeof message, "not a number: %.40s", text);
        return fail_at(c, col, message);
    }
    if (!isfinite(v) || fabs(v) > 3.4028234e38) return fail_at(c, col, "the number is too large for f32");
    *out = (float)v;
    return true;
}

/* ---- rows */

/* Skips blank lines. False: the file has ended. */
static bool begin_row(parser *c)
{
    while (at_break(c)) pass_break(c);
    c->line = c->breaks + 1;
    return c->p < c->end;
}

static bool add_column(parser *c, const cell *x)
{
    if (c->columns.n == MAX_COLUMNS) return fail_at(c, MAX_COLUMNS, "too many columns; at most 1048576 are allowed");
    column fresh = { .name = *x, .target = -1 };
    return cn__push(&c->ctx->memory, &c->columns, &fresh, sizeof fresh) || cn__no_memory(c->ctx, "dataset_csv");
}

static bool first_row(parser *c)
{
    const char *start = c->p;
    int64_t breaks = c->breaks;
    cell x;
    if (!begin_row(c)) return cn__fail(c->ctx, CN_BAD_FILE, "dataset_csv: %s: the file is empty", c->name);
    do
        if (!next_cell(c, (int)c->columns.n, &x) || !add_column(c, &x)) return false;
    while (!x.last);
    if (!c->header) {
        c->p = start;
        c->breaks = breaks;
    }
    return true;
}

static int find_column(const parser *c, const char *name)
{
    char text[MAX_CELL], *end;
    for (int i = 0; c->header && i < (int)c->columns.n; i++)
        if (cell_text(&column_at(c, i)->name, text, sizeof text) && !strcmp(text, name)) return i;
    long number = strtol(name, &end, 10);
    return *name && !*end && number >= 0 && number < (long)c->columns.n ? (int)number : -1;
}

static bool choose_targets(parser *c, const cn_csv_desc *desc)
{
    for (int t = 0; t < desc->targets; t++) {
        const char *name = desc->target[t] ? desc->target[t] : "";
        int i = find_column(c, name);
        if (i < 0 || column_at(c, i)->target >= 0)
            return cn__fail(c->ctx, CN_NOT_FOUND, "dataset_csv: %s: target column %s %s", c->name, name,
                            i < 0 ? "does not exist" : "is named twice");
        column_at(c, i)->target = t;
    }
    c->out->targets = desc->targets;
    c->out->features = (int)c->columns.n - desc->targets;
    if (c->out->features > 0) return true;
    return cn__fail(c->ctx, CN_BAD_FILE, "dataset_csv: %s: every column is a target; at least one must be a feature",
                    c->name);
}

/* The number of a label, in the order of appearance. */
static bool label_number(parser *c, int col, const cell *x, int64_t *out)
{
    char text[MAX_CELL];
    if (x->n == 0) return fail_at(c, col, "missing value");
    if (!cell_text(x, text, sizeof text))
        return fail_at(c, col, "the label is too long; at most 4095 bytes are allowed");
    if (cn_dict_whole(c->out->labels, text, out)) return true;
    *out = cn_dict_texts(c->out->labels);
    return cn_dict_set_whole(c->out->labels, text, *out);
}

/* n: how many cells the row has, counted up to one more than the first row has. */
static bool fail_width(parser *c, int n)
{
    int expected = (int)c->columns.n;
    return cn__fail(c->ctx, CN_BAD_FILE, "dataset_csv: %s: line %lld has %d fields%s, expected %d", c->name,
                    (long long)c->line, n, n > expected ? " or more" : "", expected);
}

static bool data_row(parser *c)
{
    cn__csv *o = c->out;
    size_t row = (size_t)o->rows, y_size = c->classes ? sizeof(int64_t) : sizeof(float);
    if (!cn__vec_reserve(&c->ctx->memory, &o->x, (row + 1) * (size_t)o->features, sizeof(float)) ||
        !cn__vec_reserve(&c->ctx->memory, &o->y, (row + 1) * (size_t)o->targets, y_size))
        return cn__no_memory(c->ctx, "dataset_csv");
    float *x = (float *)o->x.v + row * (size_t)o->features, *y = (float *)o->y.v;
    cell v = { 0 };
    for (int i = 0; i < (int)c->columns.n; i++) {
        if (v.last) return fail_width(c, i);
        if (!next_cell(c, i, &v)) return false;
        int target = column_at(c, i)->target;
        bool ok = target < 0   ? cell_number(c, i, &v, x++)
                  : c->classes ? label_number(c, i, &v, (int64_t *)o->y.v + row)
                               : cell_number(c, i, &v, &y[row * (size_t)o->targets + (size_t)target]);
        if (!ok) return false;
    }
    if (!v.last) return fail_width(c, (int)c->columns.n + 1);
    o->rows++;
    o->x.n = (row + 1) * (size_t)o->features;
    o->y.n = (row + 1) * (size_t)o->targets;
    return true;
}

static bool parse(parser *c, const cn_csv_desc *desc)
{
    if (c->end - c->p >= 3 && !memcmp(c->p, "\xEF\xBB\xBF", 3)) c->p += 3;
    if (c->end > c->p && memchr(c->p, 0, (size_t)(c->end - c->p)))
        return cn__fail(c->ctx, CN_BAD_FILE, "dataset_csv: %s: not a text file: it has bytes that are 0", c->name);
    if (c->classes && !(c->out->labels = cn_dict_new(c->ctx))) return false;
    if (!first_row(c) || !choose_targets(c, desc)) return false;
    while (begin_row(c))
        if (!data_row(c)) return false;
    return true;
}

bool cn__csv_parse(cn_ctx *ctx, const char *name, const char *text, size_t bytes, const cn_csv_desc *desc, cn__csv *out)
{
    static const cn_csv_desc defaults = { 0 };
    if (!desc) desc = &defaults;
    *out = (cn__csv){ 0 };
    if (desc->targets < 0 || (desc->targets && !desc->target) || (desc->classes && desc->targets != 1))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_csv: targets must be %s, got %d%s",
                        desc->classes ? "1 with classes" : "≥ 0", desc->targets, desc->target ? "" : " and no names");
    parser c = { .ctx = ctx,
                 .name = name,
                 .p = text,
                 .end = text + bytes,
                 .separator = desc->separator ? desc->separator : ',',
                 .header = !desc->no_header,
                 .classes = desc->classes,
                 .out = out };
    bool ok = parse(&c, desc);
    cn__vec_free(&ctx->memory, &c.columns, sizeof(column));
    if (!ok) cn__csv_close(ctx, out);
    return ok;
}

void cn__csv_close(cn_ctx *ctx, cn__csv *csv)
{
    cn__vec_free(&ctx->memory, &csv->x, sizeof(float));
    cn__vec_free(&ctx->memory, &csv->y, csv->labels ? sizeof(int64_t) : sizeof(float));
    cn_dict_free(csv->labels);
    *csv = (cn__csv){ 0 };
}

/* ---- as a dataset */

typedef struct csv_set {
    cn_dataset base;
    cn__csv csv;
} csv_set;

static bool csv_get(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields)
{
    const cn__csv *csv = &((const csv_set *)d)->csv;
    size_t n = (size_t)csv->features, targets = (size_t)csv->targets, row = (size_t)index;
    (void)f;
    memcpy(fields[0], (float *)csv->x.v + row * n, n * sizeof(float));
    if (csv->labels) *(int64_t *)fields[1] = ((int64_t *)csv->y.v)[row];
    else if (targets) memcpy(fields[1], (float *)csv->y.v + row * targets, targets * sizeof(float));
    return true;
}

static void csv_close(cn_dataset *d) { cn__csv_close(d->object.ctx, &((csv_set *)d)->csv); }

static bool is_number(const char *text)
{
    char *end;
    strtod(text, &end);
    return *text && !*end;
}

static int compare_numbers(const void *a, const void *b)
{
    double x = strtod(*(char *const *)a, NULL), y = strtod(*(char *const *)b, NULL);
    return x < y ? -1 : x > y ? 1 : strcmp(*(char *const *)a, *(char *const *)b);
}

/* By value if all classes are numbers (9 before 10), else as texts. */
static void sort_classes(cn__vec *classes)
{
    bool numbers = true;
    for (size_t i = 0; i < classes->n && numbers; i++) numbers = is_number(((char **)classes->v)[i]);
    if (!numbers) cn__sort_texts(classes);
    else if (classes->n) qsort(classes->v, classes->n, sizeof(char *), compare_numbers);
}

/* Renumbers labels: from the order of appearance to the order of the sorted classes. */
static bool sort_labels(cn_dataset *d, cn__csv *csv)
{
    cn_ctx *ctx = d->object.ctx;
    int64_t n = cn_dict_texts(csv->labels);
    for (int64_t i = 0; i < n; i++) {
        const char *name = cn_dict_text_name(csv->labels, i);
        if (!cn__add_class(d, name, strlen(name))) return false;
    }
    sort_classes(&d->classes);
    size_t bytes = (size_t)n * sizeof(int64_t);
    int64_t *rank = cn__alloc(ctx, bytes), was = 0;
    if (n && !rank) return false;
    for (int64_t i = 0; i < n; i++)
        if (cn_dict_whole(csv->labels, ((char **)d->classes.v)[i], &was)) rank[was] = i;
    int64_t *y = csv->y.v;
    for (int64_t i = 0; i < csv->rows; i++) y[i] = rank[y[i]];
    cn__free(ctx, rank, bytes);
    return true;
}

cn_dataset *cn_dataset_csv(cn_ctx *ctx, const char *path, const cn_csv_desc *desc)
{
    cn__file file;
    cn__csv csv;
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx || !cn__file_map(ctx, "dataset_csv", path, &file)) return NULL;
    bool ok = cn__csv_parse(ctx, path, file.data ? (const char *)file.data : "", file.bytes, desc, &csv);
    cn__file_close(ctx, &file);
    if (!ok) return NULL;
    cn_field field[2] = { { CN_F32, CN_DIMS(csv.features), 0 },
                          { csv.labels ? CN_I64 : CN_F32, csv.labels ? CN_SCALAR : CN_DIMS(csv.targets), 0 } };
    csv_set *s = (csv_set *)cn__dataset_new(ctx, sizeof *s, csv.rows, field, csv.targets ? 2 : 1);
    if (!s) {
        cn__csv_close(ctx, &csv);
        return NULL;
    }
    s->base.get = csv_get;
    s->base.close = csv_close;
    s->csv = csv;
    if (!csv.labels || sort_labels(&s->base, &s->csv)) return &s->base;
    cn__object_free(&s->base);
    return NULL;
}
