/* Reads and writes npy files: "\x93NUMPY", a version, the length of the header, the header, then the elements.
   The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. */
#include "io/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cairn/ops.h"
#include "io/json.h"

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6

typedef struct header {
    char descr[64];
    bool fortran;
    cn_dims shape;
    bool has_descr, has_order, has_shape;
} header;

typedef struct parser {
    const cn__source *s;
    const char *at, *end;
} parser;

/* ---- the literal ---- */

static bool fail(const parser *p, const char *message)
{
    return cn__source_fail(p->s, CN_BAD_FILE, "npy header: %s", message);
}

static void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r')) p->at++;
}

static bool next_is(parser *p, char c)
{
    skip_space(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static bool keyword(parser *p, const char *w)
{
    size_t n = strlen(w);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, w, n)) return false;
    p->at += n;
    return true;
}

static bool quoted(parser *p, char *out, size_t room)
{
    char quote = next_is(p, '\'') ? '\'' : next_is(p, '"') ? '"' : 0;
    if (!quote) return fail(p, "a text in quotes is missing");
    size_t n = 0;
    for (; p->at < p->end && *p->at != quote && n + 1 < room; p->at++) out[n++] = *p->at;
    out[n] = 0;
    return next_is(p, quote) || fail(p, "a text does not end, or is too long");
}

static bool size(parser *p, int64_t *out)
{
    skip_space(p);
    const char *start = p->at;
    int64_t v = 0;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p->at - '0', &v))
            return fail(p, "a size is too large for i64");
    *out = v;
    return p->at > start || fail(p, "a size is missing");
}

static bool shape(parser *p, cn_dims *out)
{
    if (!next_is(p, '(')) return fail(p, "shape must be a tuple");
    bool comma = true; /* before the next size */
    while (!next_is(p, ')')) {
        if (!comma) return fail(p, "shape: a comma is missing");
        if (out->n == CN_MAX_DIMS)
            return cn__source_fail(p->s, CN_UNSUPPORTED, "the array has more than %d axes", CN_MAX_DIMS);
        if (!size(p, &out->v[out->n++])) return false;
        comma = next_is(p, ',');
    }
    return comma || out->n != 1 || fail(p, "shape must be a tuple");
}

static bool descr(parser *p, header *h)
{
    skip_space(p);
    if (p->at < p->end && *p->at == '[')
        return cn__source_fail(p->s, CN_UNSUPPORTED, "arrays of records are not supported");
    return quoted(p, h->descr, sizeof h->descr);
}

static bool order(parser *p, header *h)
{
    skip_space(p);
    h->fortran = keyword(p, "True");
    return h->fortran || keyword(p, "False") || fail(p, "fortran_order must be True or False");
}

/* Reads one key and its value. Each key may occur once; there are no others. */
static bool item(parser *p, header *h)
{
    char key[32];
    if (!quoted(p, key, sizeof key)) return false;
    if (!next_is(p, ':')) return fail(p, "a colon is missing");
    bool *has = !strcmp(key, "descr")           ? &h->has_descr
                : !strcmp(key, "fortran_order") ? &h->has_order
                : !strcmp(key, "shape")         ? &h->has_shape
                                                : NULL;
    if (!has || *has) return fail(p, "a key is unknown, or occurs twice");
    *has = true;
    return has == &h->has_descr ? descr(p, h) : has == &h->has_order ? order(p, h) : shape(p, &h->shape);
}

static bool literal(parser *p, header *h)
{
    if (!next_is(p, '{')) return fail(p, "it must be a dictionary");
    bool comma = true;
    while (!next_is(p, '}')) {
        if (!comma) return fail(p, "a comma is missing");
        if (!item(p, h)) return false;
        comma = next_is(p, ',');
    }
    skip_space(p);
    if (p->at < p->end) return fail(p, "unexpected text after the dictionary");
    return (h->has_descr && h->has_order && h->has_shape) || fail(p, "descr, fortran_order or shape is missing");
}

/* ---- loading ---- */

static bool read_header(const cn__source *s, header *h, size_t *data)
{
    if (s->bytes < MAGIC_BYTES + 4 || memcmp(s->data, MAGIC, MAGIC_BYTES))
        return cn__source_fail(s, CN_BAD_FILE, "not an npy file");
    int version = s->data[MAGIC_BYTES];
    if (version < 1 || version > 3)
        return cn__source_fail(s, CN_UNSUPPORTED, "npy version must be 1 to 3, got %d", version);
    size_t length_bytes = version == 1 ? 2 : 4, start = MAGIC_BYTES + 2 + length_bytes;
    if (s->bytes < start) return cn__source_fail(s, CN_BAD_FILE, "npy header: the file is cut off");
    uint64_t length = cn__little(s->data + MAGIC_BYTES + 2, (int)length_bytes);
    if (length > s->bytes - start) return cn__source_fail(s, CN_BAD_FILE, "npy header: the file is cut off");
    *data = start + (size_t)length;
    const char *text = (const char *)s->data;
    parser p = { s, text + start, text + *data };
    return literal(&p, h);
}

/* Parses "<f4", ">i2", "|b1". kind is 0 if this is not a type of numbers ("U5"). */
static cn__element element_of(const char *descr)
{
    cn__element e = { 0 };
    const char *d = descr;
    if (*d == '<' || *d == '>' || *d == '|' || *d == '=') e.big = *d++ == '>';
    bool known = *d && strchr("biuf", *d) && d[1] >= '1' && d[1] <= '8' && d[2] == 0;
    if (!known) return e;
    e.kind = *d;
    e.size = (uint8_t)(d[1] - '0');
    bool power = (e.size & (e.size - 1)) == 0;
    if (!power || (e.kind == 'b' && e.size > 1) || (e.kind == 'f' && e.size == 1)) e.kind = 0;
    return e;
}

/* Fortran order: row-major order of the reversed shape; reversing the axes gives the array. */
static cn_tensor *from_fortran(const cn__source *s, cn__element e, cn_dims shape, const unsigned char *data,
                               const char *name)
{
    cn_dims reversed = shape, axes = shape;
    for (int i = 0; i < shape.n; i++) {
        reversed.v[i] = shape.v[shape.n - 1 - i];
        axes.v[i] = shape.n - 1 - i;
    }
    cn_tensor *t = cn_contiguous(cn_permute(cn__element_tensor(s, e, reversed, data, name), axes));
    return t && cn_eval(t) ? t : NULL;
}

static bool load_numbers(const cn__source *s, cn_dict *d, const char *name, const header *h, const unsigned char *data,
                         size_t room)
{
    cn__element e = element_of(h->descr);
    if (!e.kind)
        return cn__source_fail(s, CN_UNSUPPORTED,
                               "array \"%.100s\" has type '%.40s'%s; booleans, integers and floats of up to 64 bits "
                               "are supported",
                               name, h->descr, strchr(h->descr, 'O') ? " (pickled Python objects)" : "");
    size_t bytes;
    if (!cn__element_bytes(e, h->shape, &bytes))
        return cn__source_fail(s, CN_BAD_FILE, "npy header: the shape is impossible: its size overflows");
    if (bytes != room)
        return cn__source_fail(s, CN_BAD_FILE, "array \"%.100s\": its shape needs %zu bytes, the file has %zu", name,
                               bytes, room);
    cn_scope scope = cn_scope_begin(s->ctx);
    bool move = h->fortran && h->shape.n > 1;
    cn_tensor *t = move ? from_fortran(s, e, h->shape, data, name) : cn__element_tensor(s, e, h->shape, data, name);
    bool ok = t && cn_dict_set(d, name, t);
    cn_scope_end(s->ctx, scope);
    return ok;
}

/* ---- texts: arrays of one string, with bytes or 32-bit characters ---- */

static bool append_character(cn__out *o, uint64_t code)
{
    char bytes[4];
    return cn__out_append(o, bytes, (size_t)cn__utf8_encode((uint32_t)code, bytes));
}

/* NumPy pads the string with zeros at its end. */
static bool load_text(const cn__source *s, cn_dict *d, const char *name, const header *h, const unsigned char *data,
                      size_t bytes)
{
    bool wide = strchr(h->descr, 'U') != NULL, big = h->descr[0] == '>';
    int step = wide ? 4 : 1;
    uint64_t n = strtoull(strpbrk(h->descr, "US") + 1, NULL, 10);
    if (bytes % (size_t)step || n != bytes / (size_t)step)
        return cn__source_fail(s, CN_BAD_FILE, "text \"%.100s\" has type '%.40s' with %zu bytes", name, h->descr,
                               bytes);
    while (n && cn__little(data + (n - 1) * (size_t)step, step) == 0) n--;
    cn__out o = { .ctx = s->ctx };
    bool ok = true;
    for (uint64_t i = 0; i < n && ok; i++) {
        const unsigned char *p = data + i * (size_t)step;
        uint64_t c = big && wide ? (uint64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3] : cn__little(p, step);
        ok = c && c < 0x110000 ? (wide ? append_character(&o, c) : cn__out_append(&o, (const char *)p, 1)) : false;
    }
    ok = ok && cn__utf8_valid(o.text.v, o.text.n) == o.text.n;
    if (!ok) cn__source_fail(s, CN_BAD_FILE, "text \"%.100s\" is not Unicode", name); /* an earlier error stays */
    ok = ok && cn__out_append(&o, "", 1) && cn_dict_set_text(d, name, o.text.v);
    cn__out_free(&o);
    return ok;
}

bool cn__npy_load(const cn__source *s, cn_dict *d, const char *name)
{
    header h = { 0 };
    size_t at = 0;
    if (!read_header(s, &h, &at)) return false;
    const char *type = h.descr + strspn(h.descr, "<>|=");
    bool text = (*type == 'U' || *type == 'S') && h.shape.n == 0 && type[1 + strspn(type + 1, "0123456789")] == 0;
    if (text) return load_text(s, d, name, &h, s->data + at, s->bytes - at);
    return load_numbers(s, d, name, &h, s->data + at, s->bytes - at);
}

/* ---- saving ---- */

const char *cn__npy_descr(cn_dtype t)
{
    static const char *const names[CN_DTYPES] = {
        [CN_BOOL] = "|b1", [CN_U8] = "|u1",  [CN_I8] = "|i1",  [CN_I16] = "<i2", [CN_I32] = "<i4",
        [CN_I64] = "<i8",  [CN_F16] = "<f2", [CN_F32] = "<f4", [CN_F64] = "<f8",
    };
    return names[t];
}

size_t cn__npy_header(char out[CN__NPY_HEADER], const char *descr, cn_dims shape, uint64_t offset)
{
    const size_t start = MAGIC_BYTES + 4;
    size_t n = start;
    n += (size_t)snprintf(out + n, CN__NPY_HEADER - n, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < shape.n; i++)
        n += (size_t)snprintf(out + n, CN__NPY_HEADER - n, i ? " %" PRId64 "," : "%" PRId64 ",", shape.v[i]);
    if (shape.n > 1) n--; /* only a tuple of one size ends with a comma */
    n += (size_t)snprintf(out + n, CN__NPY_HEADER - n, "), }");
    while ((offset + n + 1) % 64) out[n++] = ' ';
    out[n++] = '\n';
    size_t length = n - start;
    memcpy(out, MAGIC "\x01\x00", MAGIC_BYTES + 2);
    out[start - 2] = (char)(length & 255);
    out[start - 1] = (char)(length >> 8);
    return n;
}

bool cn__npy_save(const cn_dict *d, cn__sink *to)
{
    cn_tensor *t = cn_dict_at(d, 0);
    char head[CN__NPY_HEADER];
    size_t n = cn__npy_header(head, cn__npy_descr(cn_type(t)), cn_shape(t), 0);
    return cn__sink_write(to, head, n) && cn__sink_write_tensor(to, t);
}
