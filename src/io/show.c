/* Prints a dict as a table of its tensors and texts. */
#include <stdarg.h>
#include <stdio.h>

#include "core/handle.h"
#include "core/layout.h"
#include "io/files.h"

#define LONGEST_TEXT 72 /* characters shown of a text */

typedef struct output {
    char *out;
    size_t size, n; /* n: length of the whole text, which may be larger than size */
} output;

__attribute__((format(printf, 2, 3))) static void print(output *p, const char *message, ...)
{
    va_list list;
    va_start(list, message);
    size_t room = p->n < p->size ? p->size - p->n : 0;
    int n = vsnprintf(room ? p->out + p->n : NULL, room, message, list);
    va_end(list);
    p->n += n > 0 ? (size_t)n : 0;
}

/* Files are not trusted: control characters are printed as question marks. Returns the number of characters. */
static int print_safely(output *p, const char *text, int most)
{
    int n = 0;
    for (const char *c = text; *c; c++) {
        bool begins = ((unsigned char)*c & 0xc0) != 0x80;
        if (begins && n == most) {
            print(p, "…");
            return n + 1;
        }
        n += begins;
        print(p, "%c", (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c);
    }
    return n;
}

static void pad(output *p, int from, int to) { print(p, "%*s", to > from ? to - from : 0, ""); }

static int characters(const char *text)
{
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* Prints 1234567 as 1,234,567. */
static const char *grouped(char out[32], uint64_t v)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)v), k = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) out[k++] = ',';
        out[k++] = digits[i];
    }
    out[k] = 0;
    return out;
}

static const char *shape_text(cn_tensor *t, char out[192])
{
    return cn__shape_text(&cn__result_of(t)->meta->layout, out, 192);
}

typedef struct widths {
    int name, dtype, shape, bytes;
} widths;

static void widen(int *width, const char *text)
{
    int n = characters(text);
    if (n > *width) *width = n;
}

static widths measure(const cn_dict *d)
{
    widths w = { characters("name"), characters("type"), characters("shape"), characters("bytes") };
    char text[192];
    for (int64_t i = 0; i < cn_dict_count(d); i++) {
        cn_tensor *t = cn_dict_at(d, i);
        widen(&w.name, cn_dict_name(d, i));
        widen(&w.dtype, cn_dtype_name(cn_type(t)));
        widen(&w.shape, shape_text(t, text));
        widen(&w.bytes, grouped(text, cn__tensor_bytes(t)));
    }
    return w;
}

static void print_row(output *p, widths w, const char *name, const char *dtype, const char *shape, const char *bytes)
{
    pad(p, print_safely(p, name, -1), w.name);
    print(p, "  %-*s  %-*s  %*s\n", w.dtype, dtype, w.shape, shape, w.bytes, bytes);
}

static void print_tensors(output *p, const cn_dict *d)
{
    widths w = measure(d);
    uint64_t bytes = 0, numbers = 0;
    char shape[192], size[32], sum[32];
    if (cn_dict_count(d)) print_row(p, w, "name", "type", "shape", "bytes");
    for (int64_t i = 0; i < cn_dict_count(d); i++) {
        cn_tensor *t = cn_dict_at(d, i);
        print_row(p, w, cn_dict_name(d, i), cn_dtype_name(cn_type(t)), shape_text(t, shape),
                  grouped(size, cn__tensor_bytes(t)));
        bytes += cn__tensor_bytes(t);
        numbers += (uint64_t)cn_numel(t);
    }
    print(p, "%lld tensor%s, %s numbers, %s bytes\n", (long long)cn_dict_count(d), cn_dict_count(d) == 1 ? "" : "s",
          grouped(size, numbers), grouped(sum, bytes));
}

static void print_texts(output *p, const cn_dict *d)
{
    int width = 0;
    for (int64_t i = 0; i < cn_dict_texts(d); i++) widen(&width, cn_dict_text_name(d, i));
    for (int64_t i = 0; i < cn_dict_texts(d); i++) {
        const char *name = cn_dict_text_name(d, i);
        pad(p, print_safely(p, name, -1), width);
        print(p, "  ");
        print_safely(p, cn_dict_text(d, name), LONGEST_TEXT);
        print(p, "\n");
    }
}

size_t cn_dict_print(const cn_dict *d, char *out, size_t size)
{
    if (size && out) out[0] = 0;
    CN__CALL call = cn__call_object(d, &cn__dict_type);
    if (!call.ctx) return 0;
    if (!out) size = 0;
    output p = { out, size, 0 };
    print_tensors(&p, d);
    if (cn_dict_texts(d)) print(&p, "\n");
    print_texts(&p, d);
    return p.n;
}
