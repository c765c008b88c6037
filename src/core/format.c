/* Formats tensors as text, as PyTorch prints them. */
#include "core/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/dtype.h"

enum { LINE = 80, EDGE = 3, FULL = 1000, INDENT = 7 /* of "tensor(" */, TEXT = 32 /* the longest element takes 20 */ };

/* The tensor, the style of its elements, and the text so far. */
typedef struct {
    cn_dtype dtype;
    int ndim;
    const int64_t *shape;
    const char *data;
    bool summary;
    double least, most; /* magnitudes of the finite elements shown, without zeros; least is inf if there are none */
    bool whole;         /* those elements are all whole numbers */
    bool scientific;
    int width;
    char *out;
    size_t size, length, column;
} printer;

typedef void (*visitor)(printer *p, int64_t element);

static void append(printer *p, char c)
{
    if (p->length + 1 < p->size) p->out[p->length] = c;
    p->length++;
    p->column = c == '\n' ? 0 : p->column + 1;
}

static void append_text(printer *p, const char *text)
{
    while (*text) append(p, *text++);
}

static void append_many(printer *p, int count, char c)
{
    while (count-- > 0) append(p, c);
}

static int64_t count_elements(int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++)
        if (shape[d] == 0) return 0;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    return n;
}

/* A dimension is shown as slots: one for each index; or, if it is cut, three indices, a gap and three indices. */
static bool is_cut(const printer *p, int dim) { return p->summary && p->shape[dim] > 2 * EDGE; }

static int64_t slot_count(const printer *p, int dim) { return is_cut(p, dim) ? 2 * EDGE + 1 : p->shape[dim]; }

/* -1 for the gap */
static int64_t slot_index(const printer *p, int dim, int64_t slot)
{
    if (!is_cut(p, dim) || slot < EDGE) return slot;
    return slot == EDGE ? -1 : p->shape[dim] - (2 * EDGE + 1) + slot;
}

/* Calls visit for each shown element among the `count` from `first` on, which span the dimensions from dim on. */
static void each_shown(printer *p, int dim, int64_t first, int64_t count, visitor visit)
{
    if (dim == p->ndim) {
        visit(p, first);
        return;
    }
    int64_t inner = count / p->shape[dim], slots = slot_count(p, dim);
    for (int64_t slot = 0; slot < slots; slot++) {
        int64_t i = slot_index(p, dim, slot);
        if (i >= 0) each_shown(p, dim + 1, first + i * inner, inner, visit);
    }
}

static const void *element_at(const printer *p, int64_t element)
{
    return p->data + (size_t)element * cn_dtype_size(p->dtype);
}

/* Replaces the locale's decimal point, which may have several bytes. */
static void set_point(char *text)
{
    char *point = text + strspn(text, "-0123456789");
    if (*point == '\0' || *point == 'e') return;
    char *rest = point + strcspn(point, "0123456789");
    *point = '.';
    memmove(point + 1, rest, strlen(rest) + 1);
}

static void write_float(const printer *p, double v, char text[TEXT])
{
    if (!isfinite(v)) {
        snprintf(text, TEXT, "%s", isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    if (p->scientific) snprintf(text, TEXT, "%.4e", v);
    else if (p->whole) snprintf(text, TEXT, "%#.0f", v);
    else snprintf(text, TEXT, "%.4f", v);
    set_point(text);
}

static void write_element(const printer *p, int64_t element, char text[TEXT])
{
    const void *at = element_at(p, element);
    if (cn_dtype_is_float(p->dtype)) write_float(p, cn__load_f64(p->dtype, at), text);
    else if (p->dtype == CN_BOOL) snprintf(text, TEXT, "%s", cn__load_i64(CN_BOOL, at) ? "True" : "False");
    else snprintf(text, TEXT, "%" PRId64, cn__load_i64(p->dtype, at));
}

/* Zeros, infinities and NaN do not influence the style and width of floats. */
static bool counts(const printer *p, int64_t element)
{
    if (!cn_dtype_is_float(p->dtype)) return true;
    double v = cn__load_f64(p->dtype, element_at(p, element));
    return isfinite(v) && v != 0;
}

static void note_magnitude(printer *p, int64_t element)
{
    if (!counts(p, element)) return;
    double v = fabs(cn__load_f64(p->dtype, element_at(p, element)));
    if (v < p->least) p->least = v;
    if (v > p->most) p->most = v;
    if (v != ceil(v)) p->whole = false;
}

static void note_width(printer *p, int64_t element)
{
    char text[TEXT];
    if (!counts(p, element)) return;
    write_element(p, element, text);
    int width = (int)strlen(text);
    if (width > p->width) p->width = width;
}

static void choose_style(printer *p, int64_t count)
{
    p->whole = true;
    p->width = 1;
    p->least = INFINITY;
    if (cn_dtype_is_float(p->dtype)) {
        each_shown(p, 0, 0, count, note_magnitude);
        p->scientific = p->most > 0 && (p->most / p->least > 1000 || p->most > 1e8 || p->least < 1e-4);
    }
    each_shown(p, 0, 0, count, note_width);
}

static void append_element(printer *p, int64_t element)
{
    char text[TEXT];
    write_element(p, element, text);
    append_many(p, p->width - (int)strlen(text), ' ');
    append_text(p, text);
}

static void append_row(printer *p, int64_t first, int indent)
{
    int dim = p->ndim - 1, fitting = (LINE - indent) / (p->width + 2);
    int64_t slots = slot_count(p, dim), per_line = fitting > 1 ? fitting : 1;
    append(p, '[');
    for (int64_t slot = 0; slot < slots; slot++) {
        bool wrap = slot % per_line == 0;
        if (slot > 0) append_text(p, wrap ? ",\n" : ", ");
        if (slot > 0 && wrap) append_many(p, indent + 1, ' ');
        int64_t i = slot_index(p, dim, slot);
        if (i < 0) append_text(p, " ...");
        else append_element(p, first + i);
    }
    append(p, ']');
}

static void append_slices(printer *p, int dim, int64_t first, int64_t count, int indent)
{
    if (dim == p->ndim - 1) {
        append_row(p, first, indent);
        return;
    }
    int64_t inner = count / p->shape[dim], slots = slot_count(p, dim);
    append(p, '[');
    for (int64_t slot = 0; slot < slots; slot++) {
        if (slot > 0) {
            append(p, ',');
            append_many(p, p->ndim - dim - 1, '\n');
            append_many(p, indent + 1, ' ');
        }
        int64_t i = slot_index(p, dim, slot);
        if (i < 0) append_text(p, "...");
        else append_slices(p, dim + 1, first + i * inner, inner, indent + 1);
    }
    append(p, ']');
}

/* `used` counts the columns of the line as PyTorch does: two too many until a suffix has wrapped. */
static size_t append_suffix(printer *p, const char *text, size_t used)
{
    size_t length = strlen(text);
    bool wrap = used + length + 2 > LINE;
    append_text(p, wrap ? ",\n" : ", ");
    if (wrap) append_many(p, INDENT, ' ');
    append_text(p, text);
    return wrap ? INDENT + length : used + length + 2;
}

static void write_size(const printer *p, char *text, size_t size)
{
    size_t length = 0;
    for (int d = 0; d < p->ndim && length < size; d++)
        length += (size_t)snprintf(text + length, size - length, "%s%" PRId64 "%s", d == 0 ? "size=(" : ", ",
                                   p->shape[d], d == p->ndim - 1 ? ")" : "");
}

static void append_suffixes(printer *p, bool empty)
{
    char text[CN_MAX_DIMS * 22 + 16];
    size_t used = p->column + 2;
    bool plain = p->dtype == CN_F32 || (!empty && (p->dtype == CN_I64 || p->dtype == CN_BOOL));
    if (empty && p->ndim != 1) {
        write_size(p, text, sizeof text);
        used = append_suffix(p, text, used);
    }
    if (!plain) {
        snprintf(text, sizeof text, "dtype=%s", cn_dtype_name(p->dtype));
        append_suffix(p, text, used);
    }
}

size_t cn__format(cn_dtype dtype, int ndim, const int64_t *shape, const void *data, char *out, size_t size)
{
    printer p = { .dtype = dtype, .ndim = ndim, .shape = shape, .data = data, .out = out, .size = size };
    int64_t count = count_elements(ndim, shape);
    p.summary = count > FULL;
    if (count > 0) choose_style(&p, count);

    append_text(&p, "tensor(");
    if (count == 0) append_text(&p, "[]");
    else if (ndim == 0) append_element(&p, 0);
    else append_slices(&p, 0, 0, count, INDENT);
    append_suffixes(&p, count == 0);
    append(&p, ')');
    if (size > 0) out[p.length < size ? p.length : size - 1] = '\0';
    return p.length;
}
