/* Reads and writes safetensors files: 8 bytes with the length of a JSON header, the header, then the elements.
   {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [from, to]}, ..., "__metadata__": {"name": "text", ...}}
   Spaces may end the header. Every byte after it belongs to exactly one tensor. */
#include <stdlib.h>

#include "io/files.h"
#include "io/json.h"

#define LENGTH_BYTES 8
#define LONGEST      ((uint64_t)100000000) /* header; other implementations have the same limit */
#define METADATA     "__metadata__"
#define SUPPORTED    "BOOL U8 I8 I16 U16 I32 U32 I64 U64 F16 BF16 F32 F64"

static const struct {
    const char *name;
    cn__element element;
} types[] = {
    { "BOOL", { 'b', 1, 0 } }, { "U8", { 'u', 1, 0 } },  { "I8", { 'i', 1, 0 } },   { "I16", { 'i', 2, 0 } },
    { "U16", { 'u', 2, 0 } },  { "I32", { 'i', 4, 0 } }, { "U32", { 'u', 4, 0 } },  { "I64", { 'i', 8, 0 } },
    { "U64", { 'u', 8, 0 } },  { "F16", { 'f', 2, 0 } }, { "BF16", { 'B', 2, 0 } }, { "F32", { 'f', 4, 0 } },
    { "F64", { 'f', 8, 0 } },
};

/* ---- loading ---- */

typedef struct range {
    uint64_t from, to;
    const char *name;
} range;

typedef struct loading {
    const cn__source *s;
    cn_dict *dict;
    const unsigned char *data; /* after the header */
    uint64_t bytes;
    range *ranges;
    size_t n;
} loading;

static bool read_type(const loading *l, const cn__json *info, const char *name, cn__element *out)
{
    const char *dtype = cn__json_text(cn__json_get(info, "dtype"));
    if (!dtype) return cn__source_fail(l->s, CN_BAD_FILE, "tensor \"%.100s\" has no dtype", name);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, dtype)) continue;
        *out = types[i].element;
        return true;
    }
    return cn__source_fail(l->s, CN_UNSUPPORTED, "tensor \"%.100s\" has dtype %.40s; supported are " SUPPORTED, name,
                           dtype);
}

static bool read_shape(const loading *l, const cn__json *info, const char *name, cn_dims *out)
{
    const cn__json *shape = cn__json_get(info, "shape");
    if (!shape || shape->type != CN__JSON_ARRAY)
        return cn__source_fail(l->s, CN_BAD_FILE, "tensor \"%.100s\" has no shape, or it is not an array", name);
    if (shape->n > CN_MAX_DIMS)
        return cn__source_fail(l->s, CN_UNSUPPORTED, "tensor \"%.100s\" has %u axes; at most %d are allowed", name,
                               shape->n, CN_MAX_DIMS);
    *out = (cn_dims){ .n = (int)shape->n };
    for (int i = 0; i < out->n; i++) {
        if (!shape->v[i].is_whole)
            return cn__source_fail(l->s, CN_BAD_FILE, "tensor \"%.100s\" has a size that is not a whole number", name);
        out->v[i] = shape->v[i].whole;
    }
    return true;
}

static bool read_offsets(const loading *l, const cn__json *info, const char *name, range *out)
{
    const cn__json *o = cn__json_get(info, "data_offsets");
    bool two = o && o->type == CN__JSON_ARRAY && o->n == 2 && o->v[0].is_whole && o->v[1].is_whole;
    if (!two || o->v[0].whole < 0 || o->v[1].whole < o->v[0].whole)
        return cn__source_fail(l->s, CN_BAD_FILE,
                               "tensor \"%.100s\": data_offsets must be [from, to] with 0 <= from <= to", name);
    *out = (range){ (uint64_t)o->v[0].whole, (uint64_t)o->v[1].whole, name };
    if (out->to <= l->bytes) return true;
    return cn__source_fail(l->s, CN_BAD_FILE, "tensor \"%.100s\" ends at byte %llu of %llu: the file is cut off", name,
                           (unsigned long long)out->to, (unsigned long long)l->bytes);
}

static bool load_tensor(loading *l, const cn__json *info)
{
    const char *name = info->key;
    cn__element e;
    cn_dims shape;
    range at;
    if (!read_type(l, info, name, &e) || !read_shape(l, info, name, &shape) || !read_offsets(l, info, name, &at))
        return false;
    size_t bytes;
    if (!cn__element_bytes(e, shape, &bytes))
        return cn__source_fail(l->s, CN_BAD_FILE,
                               "tensor \"%.100s\": the shape is impossible: a size is negative, or it overflows", name);
    if (bytes != at.to - at.from)
        return cn__source_fail(l->s, CN_BAD_FILE,
                               "tensor \"%.100s\": the shape needs %zu bytes, the data_offsets have %llu", name, bytes,
                               (unsigned long long)(at.to - at.from));
    l->ranges[l->n++] = at;
    cn_scope scope = cn_scope_begin(l->s->ctx);
    cn_tensor *t = cn__element_tensor(l->s, e, shape, l->data + at.from, name);
    bool ok = t && cn_dict_set(l->dict, name, t);
    cn_scope_end(l->s->ctx, scope);
    return ok;
}

static bool load_texts(loading *l, const cn__json *texts)
{
    if (texts->type != CN__JSON_OBJECT) return cn__source_fail(l->s, CN_BAD_FILE, METADATA " is not an object");
    for (uint32_t i = 0; i < texts->n; i++) {
        const cn__json *t = &texts->v[i];
        const char *text = cn__json_text(t);
        if (!text || strlen(t->key) != t->key_bytes)
            return cn__source_fail(l->s, CN_BAD_FILE, METADATA " \"%.100s\" is not a text", t->key);
        if (!cn_dict_set_text(l->dict, t->key, text)) return false;
    }
    return true;
}

static int by_place(const void *a, const void *b)
{
    const range *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Each tensor must begin where the tensor before it ends: there are no hidden bytes and no shared ones. */
static bool check_ranges(loading *l)
{
    if (l->n) qsort(l->ranges, l->n, sizeof *l->ranges, by_place);
    uint64_t at = 0;
    for (size_t i = 0; i < l->n; at = l->ranges[i++].to) {
        if (l->ranges[i].from == at) continue;
        return cn__source_fail(l->s, CN_BAD_FILE, "tensor \"%.100s\" begins at byte %llu, expected %llu: %s",
                               l->ranges[i].name, (unsigned long long)l->ranges[i].from, (unsigned long long)at,
                               l->ranges[i].from < at ? "tensors overlap" : "there is a gap");
    }
    if (at == l->bytes) return true;
    return cn__source_fail(l->s, CN_BAD_FILE, "%llu bytes follow the last tensor, expected 0",
                           (unsigned long long)(l->bytes - at));
}

static bool load_entries(loading *l, const cn__json *root)
{
    for (uint32_t i = 0; i < root->n; i++) {
        const cn__json *entry = &root->v[i];
        if (strlen(entry->key) != entry->key_bytes) return cn__source_fail(l->s, CN_BAD_FILE, "a name has a 0 inside");
        if (strcmp(entry->key, METADATA) == 0 ? !load_texts(l, entry) : !load_tensor(l, entry)) return false;
    }
    return check_ranges(l);
}

bool cn__safetensors_load(const cn__source *s, cn_dict *d)
{
    if (s->bytes < LENGTH_BYTES) return cn__source_fail(s, CN_BAD_FILE, "a file of %zu bytes has no header", s->bytes);
    uint64_t header = cn__little(s->data, LENGTH_BYTES);
    if (header > LONGEST || header > s->bytes - LENGTH_BYTES)
        return cn__source_fail(s, CN_BAD_FILE,
                               "a header of %llu bytes does not fit a file of %zu bytes, or is longer than 10^8",
                               (unsigned long long)header, s->bytes);
    cn__bump memory = { 0 };
    const cn__json *root =
        cn__json_read(s->ctx, &memory, (const char *)s->data + LENGTH_BYTES, (size_t)header, s->name);
    bool ok = root && (root->type == CN__JSON_OBJECT || cn__source_fail(s, CN_BAD_FILE, "the header is not an object"));
    loading l = {
        .s = s, .dict = d, .data = s->data + LENGTH_BYTES + header, .bytes = s->bytes - LENGTH_BYTES - header
    };
    if (ok) {
        l.ranges = cn__bump_new(&s->ctx->memory, &memory, (root->n + 1) * sizeof *l.ranges);
        ok = l.ranges ? load_entries(&l, root) : cn__source_fail(s, CN_NO_MEMORY, "out of memory");
    }
    cn__bump_free(&s->ctx->memory, &memory);
    return ok;
}

/* ---- saving ---- */

static const char *type_name(cn_dtype t)
{
    static const char *const names[CN_DTYPES] = {
        [CN_BOOL] = "BOOL", [CN_U8] = "U8",   [CN_I8] = "I8",     [CN_I16] = "I16", [CN_I32] = "I32",
        [CN_I64] = "I64",   [CN_F16] = "F16", [CN_BF16] = "BF16", [CN_F32] = "F32", [CN_F64] = "F64",
    };
    return names[t];
}

static void append_texts(cn__out *o, const cn_dict *d)
{
    cn__out_plain(o, "\"" METADATA "\":{");
    for (int64_t i = 0; i < cn_dict_texts(d); i++) {
        const char *name = cn_dict_text_name(d, i), *text = cn_dict_text(d, name);
        if (i) cn__out_plain(o, ",");
        cn__out_text(o, name, strlen(name));
        cn__out_plain(o, ":");
        cn__out_text(o, text, strlen(text));
    }
    cn__out_plain(o, "}");
}

static void append_tensor(cn__out *o, const char *name, cn_tensor *t, uint64_t from)
{
    cn__out_text(o, name, strlen(name));
    cn__out_plain(o, ":{\"dtype\":\"");
    cn__out_plain(o, type_name(cn_type(t)));
    cn__out_plain(o, "\",\"shape\":[");
    for (int i = 0; i < cn_ndim(t); i++) {
        if (i) cn__out_plain(o, ",");
        cn__out_whole(o, cn_size(t, i));
    }
    cn__out_plain(o, "],\"data_offsets\":[");
    cn__out_whole(o, (int64_t)from);
    cn__out_plain(o, ",");
    cn__out_whole(o, (int64_t)(from + cn__tensor_bytes(t)));
    cn__out_plain(o, "]}");
}

/* Larger elements come first in the file, so that all are aligned. The header has the order of the dict. */
static void first_places(const cn_dict *d, uint64_t next[9])
{
    uint64_t bytes[9] = { 0 };
    for (int64_t i = 0; i < cn_dict_count(d); i++) {
        cn_tensor *t = cn_dict_at(d, i);
        bytes[cn_dtype_size(cn_type(t))] += cn__tensor_bytes(t);
    }
    uint64_t at = 0;
    for (int size = 8; size > 0; at += bytes[size--]) next[size] = at;
}

static bool append_header(cn__out *o, const cn_dict *d)
{
    uint64_t next[9];
    first_places(d, next);
    cn__out_plain(o, "{");
    bool any = cn_dict_texts(d) > 0;
    if (any) append_texts(o, d);
    for (int64_t i = 0; i < cn_dict_count(d); i++, any = true) {
        const char *name = cn_dict_name(d, i);
        cn_tensor *t = cn_dict_at(d, i);
        if (strcmp(name, METADATA) == 0)
            return cn__fail(o->ctx, CN_BAD_ARGUMENT,
                            "save: a safetensors file cannot have a tensor with the name " METADATA);
        if (any) cn__out_plain(o, ",");
        uint64_t *at = &next[cn_dtype_size(cn_type(t))];
        append_tensor(o, name, t, *at);
        *at += cn__tensor_bytes(t);
    }
    cn__out_plain(o, "}");
    while (o->text.n % LENGTH_BYTES && !o->failed) cn__out_plain(o, " ");
    if (o->text.n > LONGEST)
        return cn__fail(o->ctx, CN_UNSUPPORTED, "save: a safetensors header must have at most %llu bytes, got %zu",
                        (unsigned long long)LONGEST, o->text.n);
    return !o->failed;
}

static bool write_numbers(const cn_dict *d, cn__sink *to)
{
    bool ok = true;
    for (size_t size = 8; size > 0; size--) {
        for (int64_t i = 0; i < cn_dict_count(d) && ok; i++) {
            cn_tensor *t = cn_dict_at(d, i);
            if (cn_dtype_size(cn_type(t)) == size) ok = cn__sink_write_tensor(to, t);
        }
    }
    return ok;
}

bool cn__safetensors_save(const cn_dict *d, cn__sink *to)
{
    cn__out header = { .ctx = to->ctx };
    bool ok = append_header(&header, d);
    uint64_t length = header.text.n; /* in memory as in the file: files.h requires little-endian */
    ok = ok && cn__sink_write(to, &length, sizeof length) && cn__sink_write(to, header.text.v, header.text.n);
    cn__out_free(&header);
    return ok && write_numbers(d, to);
}
