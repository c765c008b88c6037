/* Reads and writes npz files: a zip file with an npy file for each array. 64-bit records are optional when it reads,
   and always there when it writes. */
#include <stdio.h>

#include "core/host.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/zip.h"

enum { LOCAL_BYTES = 30, CENTRAL_BYTES = 46, END_BYTES = 22, END64_BYTES = 56, LOCATOR64_BYTES = 20 };

/* ---- loading ---- */

typedef struct directory {
    uint64_t at, bytes, entries;
} directory;

typedef struct entry {
    const unsigned char *name; /* points into the file */
    size_t name_bytes;
    int flags, method;
    uint32_t crc;
    uint64_t packed, unpacked, at; /* packed, unpacked: bytes; at: place of the local header */
} entry;

typedef struct loading {
    const cn__source *s;
    cn_dict *dict;
    cn__crc crc;
    uint64_t end;    /* all entries end before it */
    uint64_t packed; /* bytes of the entries so far; more than the file has means that entries overlap */
} loading;

static bool fail(const cn__source *s, const char *message)
{
    return cn__source_fail(s, CN_BAD_FILE, "zip: %s", message);
}

/* The record at a place. NULL: it is of another kind, or cut off. */
static const unsigned char *record(const cn__source *s, uint64_t at, uint64_t bytes, uint32_t kind)
{
    if (at > s->bytes || bytes > s->bytes - at) return NULL;
    return cn__little(s->data + at, 4) == kind ? s->data + at : NULL;
}

/* The end record is the last record; a comment of up to 64 KiB may follow it. */
static bool find_end(const cn__source *s, uint64_t *at)
{
    for (uint64_t back = END_BYTES; back <= s->bytes && back <= END_BYTES + 65535; back++) {
        const unsigned char *p = record(s, s->bytes - back, END_BYTES, CN__ZIP_END);
        if (!p || cn__little(p + 20, 2) != back - END_BYTES) continue;
        *at = s->bytes - back;
        return true;
    }
    return fail(s, "the end record is missing: the file is cut off");
}

static bool find_directory(const cn__source *s, directory *d)
{
    uint64_t end = 0;
    if (!find_end(s, &end)) return false;
    const unsigned char *p = s->data + end;
    *d = (directory){ .entries = cn__little(p + 10, 2), .bytes = cn__little(p + 12, 4), .at = cn__little(p + 16, 4) };
    const unsigned char *l =
        end >= LOCATOR64_BYTES ? record(s, end - LOCATOR64_BYTES, LOCATOR64_BYTES, CN__ZIP_LOCATOR64) : NULL;
    if (l) {
        p = record(s, cn__little(l + 8, 8), END64_BYTES, CN__ZIP_END64);
        if (!p) return fail(s, "the 64-bit end record is missing");
        *d = (directory){ .entries = cn__little(p + 32, 8),
                          .bytes = cn__little(p + 40, 8),
                          .at = cn__little(p + 48, 8) };
        end = cn__little(l + 8, 8);
    }
    if (d->at > end || d->bytes > end - d->at) return fail(s, "the directory lies outside of the file");
    return true;
}

/* Sizes and offsets above 32 bits are in an extra field, in this order. */
static bool read_extra64(const cn__source *s, entry *e, const unsigned char *p, size_t bytes)
{
    uint64_t *const wide[] = { &e->unpacked, &e->packed, &e->at };
    while (bytes >= 4) {
        uint64_t id = cn__little(p, 2), size = cn__little(p + 2, 2);
        if (size > bytes - 4) return fail(s, "a damaged extra field");
        uint64_t used = 0;
        for (int i = 0; i < 3 && id == CN__ZIP_EXTRA64; i++) {
            if (*wide[i] != UINT32_MAX) continue;
            if (used + 8 > size) return fail(s, "a damaged extra field");
            *wide[i] = cn__little(p + 4 + used, 8);
            used += 8;
        }
        if (id == CN__ZIP_EXTRA64) return true;
        p += 4 + size;
        bytes -= 4 + (size_t)size;
    }
    return true;
}

/* Reads a record of the directory and moves `at` past it. */
static bool read_entry(const cn__source *s, uint64_t *at, uint64_t end, entry *e)
{
    const unsigned char *p =
        *at <= end && end - *at >= CENTRAL_BYTES ? record(s, *at, CENTRAL_BYTES, CN__ZIP_CENTRAL) : NULL;
    if (!p) return fail(s, "the directory is damaged");
    *e = (entry){
        .name = p + CENTRAL_BYTES,
        .name_bytes = (size_t)cn__little(p + 28, 2),
        .flags = (int)cn__little(p + 8, 2),
        .method = (int)cn__little(p + 10, 2),
        .crc = (uint32_t)cn__little(p + 16, 4),
        .packed = cn__little(p + 20, 4),
        .unpacked = cn__little(p + 24, 4),
        .at = cn__little(p + 42, 4),
    };
    size_t extra = (size_t)cn__little(p + 30, 2), comment = (size_t)cn__little(p + 32, 2);
    uint64_t bytes = CENTRAL_BYTES + e->name_bytes + extra + comment;
    if (bytes > end - *at) return fail(s, "the directory is damaged");
    *at += bytes;
    return read_extra64(s, e, e->name + e->name_bytes, extra);
}

/* The name of the array: the name of the entry without ".npy". */
static char *array_name(const loading *l, const entry *e)
{
    const cn__source *s = l->s;
    const char *name = (const char *)e->name;
    size_t n = e->name_bytes;
    if (memchr(name, 0, n) || cn__utf8_valid(name, n) != n) {
        fail(s, "a name is not UTF-8");
        return NULL;
    }
    if (n >= 8 && !memcmp(name + n - 8, "data.pkl", 8)) {
        cn__source_fail(s, CN_UNSUPPORTED,
                        "this is a file of torch.save, which can run any program when it is loaded; save the model "
                        "with safetensors.torch.save_file");
        return NULL;
    }
    if (n < 4 || memcmp(name + n - 4, ".npy", 4)) {
        cn__source_fail(s, CN_UNSUPPORTED, "entry \"%.*s\" is not an .npy file", n < 100 ? (int)n : 100, name);
        return NULL;
    }
    char *copy = cn__alloc(s->ctx, n - 4 + 1);
    return copy ? memcpy(copy, name, n - 4) : NULL;
}

/* The bytes of an entry, after its local header. */
static const unsigned char *packed_bytes(loading *l, const entry *e)
{
    const cn__source *s = l->s;
    const unsigned char *p = record(s, e->at, LOCAL_BYTES, CN__ZIP_LOCAL);
    uint64_t start = p ? e->at + LOCAL_BYTES + cn__little(p + 26, 2) + cn__little(p + 28, 2) : 0;
    bool same_name = p && start <= l->end && cn__little(p + 26, 2) == e->name_bytes &&
                     !memcmp(p + LOCAL_BYTES, e->name, e->name_bytes);
    if (!same_name || e->packed > l->end - start) {
        fail(s, "an entry lies outside of the file");
        return NULL;
    }
    l->packed += e->packed;
    if (l->packed <= s->bytes) return s->data + start;
    fail(s, "entries overlap");
    return NULL;
}

static bool load_array(loading *l, const entry *e, const cn__source *array, const char *name)
{
    if (cn__crc_add(&l->crc, 0, array->data, array->bytes) != e->crc)
        return cn__source_fail(l->s, CN_BAD_FILE, "entry \"%.100s\": the checksum is wrong: the file is damaged", name);
    return cn__npy_load(array, l->dict, name);
}

static bool load_deflated(loading *l, const entry *e, const unsigned char *data, const char *name)
{
    const cn__source *s = l->s;
    if (e->unpacked / 1100 > e->packed) /* deflate cannot compress more than that */
        return cn__source_fail(s, CN_BAD_FILE, "entry \"%.100s\": %llu bytes cannot be compressed to %llu", name,
                               (unsigned long long)e->unpacked, (unsigned long long)e->packed);
    cn__content *c = cn__content_new(s->ctx, (size_t)e->unpacked);
    cn__source array = { s->ctx, s->name, c ? c->data : NULL, (size_t)e->unpacked, c };
    bool ok = c && cn__inflate(s, name, data, (size_t)e->packed, c->data, c->bytes) && load_array(l, e, &array, name);
    cn__content_release(c);
    return ok;
}

static bool load_named(loading *l, const entry *e, const char *name)
{
    const cn__source *s = l->s;
    if (cn_dict_get(l->dict, name) || cn_dict_text(l->dict, name))
        return cn__source_fail(s, CN_BAD_FILE, "entry \"%.100s\" occurs twice", name);
    if (e->flags & CN__ZIP_ENCRYPTED) return cn__source_fail(s, CN_UNSUPPORTED, "entry \"%.100s\" is encrypted", name);
    const unsigned char *data = packed_bytes(l, e);
    if (!data) return false;
    if (e->method == CN__ZIP_DEFLATED) return load_deflated(l, e, data, name);
    if (e->method != CN__ZIP_STORED)
        return cn__source_fail(s, CN_UNSUPPORTED,
                               "entry \"%.100s\" is compressed by method %d; 0 (stored) and 8 (deflate) are supported",
                               name, e->method);
    if (e->packed != e->unpacked) return fail(s, "an entry that is not compressed has two different sizes");
    cn__source array = { s->ctx, s->name, data, (size_t)e->packed, s->content };
    return load_array(l, e, &array, name);
}

bool cn__npz_load(const cn__source *s, cn_dict *d)
{
    directory dir;
    if (!find_directory(s, &dir)) return false;
    loading l = { .s = s, .dict = d, .end = dir.at };
    cn__crc_open(&l.crc);
    uint64_t at = dir.at, end = dir.at + dir.bytes;
    for (uint64_t i = 0; i < dir.entries; i++) {
        entry e;
        if (!read_entry(s, &at, end, &e)) return false;
        char *name = array_name(&l, &e);
        bool ok = name && load_named(&l, &e, name);
        cn__free_text(s->ctx, name);
        if (!ok) return false;
    }
    return at == end || fail(s, "the directory is longer than its entries");
}

/* ---- saving ---- */

typedef struct saving {
    cn__sink *to;
    cn__out central; /* records of the entries so far */
    int64_t entries;
    cn__crc crc;
} saving;

typedef struct record_out {
    unsigned char bytes[96];
    size_t n;
} record_out;

static void append(record_out *r, int bytes, uint64_t v)
{
    for (int i = 0; i < bytes; i++, v >>= 8) r->bytes[r->n++] = (unsigned char)v;
}

/* The fields that both records of an entry share: from the version to the sizes of name and extra field. */
static void append_common(record_out *r, uint32_t crc, size_t name_bytes, int extra_bytes)
{
    append(r, 2, 45); /* version 4.5: 64-bit records */
    append(r, 2, CN__ZIP_UTF8);
    append(r, 2, CN__ZIP_STORED);
    append(r, 2, 0);
    append(r, 2, 0x21); /* always 1 January 1980: equal dicts make equal files */
    append(r, 4, crc);
    append(r, 4, UINT32_MAX);
    append(r, 4, UINT32_MAX);
    append(r, 2, name_bytes + 4);
    append(r, 2, (uint64_t)extra_bytes);
}

static void append_extra64(record_out *r, uint64_t size, const uint64_t *at)
{
    append(r, 2, CN__ZIP_EXTRA64);
    append(r, 2, at ? 24 : 16);
    append(r, 8, size);
    append(r, 8, size);
    if (at) append(r, 8, *at);
}

static bool append_central(saving *s, const char *name, uint32_t crc, uint64_t size, uint64_t at)
{
    record_out r = { .n = 0 }, extra = { .n = 0 };
    append(&r, 4, CN__ZIP_CENTRAL);
    append(&r, 2, 45 | 3 << 8); /* version 4.5; file attributes of Unix */
    append_common(&r, crc, strlen(name), 28);
    append(&r, 2, 0); /* comment */
    append(&r, 2, 0); /* disk */
    append(&r, 2, 0);
    append(&r, 4, 0100644u << 16);
    append(&r, 4, UINT32_MAX);
    append_extra64(&extra, size, &at);
    s->entries++;
    return cn__out_append(&s->central, (char *)r.bytes, r.n) && cn__out_plain(&s->central, name) &&
           cn__out_plain(&s->central, ".npy") && cn__out_append(&s->central, (char *)extra.bytes, extra.n);
}

static bool write_array(saving *s, const char *name, const char *descr, cn_dims shape, const void *data, size_t bytes)
{
    size_t name_bytes = strlen(name);
    if (name_bytes + 4 > UINT16_MAX || cn__utf8_valid(name, name_bytes) != name_bytes)
        return cn__fail(s->to->ctx, CN_BAD_ARGUMENT,
                        "save %.200s: name \"%.100s\" must be UTF-8 of at most 65531 bytes", s->to->path, name);
    uint64_t at = s->to->at;
    char head[CN__NPY_HEADER];
    size_t n = cn__npy_header(head, descr, shape, at + LOCAL_BYTES + name_bytes + 4 + 20);
    uint32_t crc = cn__crc_add(&s->crc, cn__crc_add(&s->crc, 0, head, n), data, bytes);
    record_out r = { .n = 0 }, extra = { .n = 0 };
    append(&r, 4, CN__ZIP_LOCAL);
    append_common(&r, crc, name_bytes, 20);
    append_extra64(&extra, n + bytes, NULL);
    return cn__sink_write(s->to, r.bytes, r.n) && cn__sink_write(s->to, name, name_bytes) &&
           cn__sink_write(s->to, ".npy", 4) && cn__sink_write(s->to, extra.bytes, extra.n) &&
           cn__sink_write(s->to, head, n) && cn__sink_write(s->to, data, bytes) &&
           append_central(s, name, crc, n + bytes, at);
}

static bool write_tensor(saving *s, const char *name, cn_tensor *t)
{
    cn_scope scope = cn_scope_begin(s->to->ctx);
    cn__host h;
    bool ok = cn__host_open(t, &h) &&
              write_array(s, name, cn__npy_descr(cn_type(t)), cn_shape(t), h.data ? h.data : "", cn__tensor_bytes(t));
    cn__host_close(&h);
    cn_scope_end(s->to->ctx, scope);
    return ok;
}

/* 32-bit characters; at least one, since NumPy has no empty strings. */
static bool write_text(saving *s, const char *name, const char *text)
{
    size_t bytes = strlen(text), n = 0;
    cn_ctx *ctx = s->to->ctx;
    if (cn__utf8_valid(text, bytes) != bytes)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "save %.200s: text \"%.100s\" is not UTF-8", s->to->path, name);
    uint32_t *wide = cn__alloc(ctx, (bytes + 1) * sizeof *wide);
    if (!wide) return false;
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int more = *p < 0x80 ? 0 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3;
        uint32_t c = more ? *p & (0x3fu >> more) : *p;
        for (p++; more--; p++) c = c << 6 | (*p & 0x3f);
        wide[n++] = c;
    }
    char descr[32];
    size_t units = n ? n : 1;
    snprintf(descr, sizeof descr, "<U%zu", units);
    bool ok = write_array(s, name, descr, CN_SCALAR, wide, units * sizeof *wide);
    cn__free(ctx, wide, (bytes + 1) * sizeof *wide);
    return ok;
}

static bool write_end(saving *s)
{
    uint64_t at = s->to->at, bytes = s->central.text.n, end64 = at + bytes, n = (uint64_t)s->entries;
    record_out r = { .n = 0 };
    append(&r, 4, CN__ZIP_END64);
    append(&r, 8, END64_BYTES - 12);
    append(&r, 2, 45 | 3 << 8);
    append(&r, 2, 45);
    append(&r, 8, 0); /* disks */
    append(&r, 8, n);
    append(&r, 8, n);
    append(&r, 8, bytes);
    append(&r, 8, at);
    bool ok = cn__sink_write(s->to, s->central.text.v, bytes) && cn__sink_write(s->to, r.bytes, r.n);
    r.n = 0;
    append(&r, 4, CN__ZIP_LOCATOR64);
    append(&r, 4, 0);
    append(&r, 8, end64);
    append(&r, 4, 1);
    append(&r, 4, CN__ZIP_END);
    append(&r, 4, 0);
    append(&r, 2, n < UINT16_MAX ? n : UINT16_MAX);
    append(&r, 2, n < UINT16_MAX ? n : UINT16_MAX);
    append(&r, 4, bytes < UINT32_MAX ? bytes : UINT32_MAX);
    append(&r, 4, at < UINT32_MAX ? at : UINT32_MAX);
    append(&r, 2, 0);
    return ok && cn__sink_write(s->to, r.bytes, r.n);
}

bool cn__npz_save(const cn_dict *d, cn__sink *to)
{
    saving s = { .to = to, .central = { .ctx = to->ctx } };
    cn__crc_open(&s.crc);
    bool ok = true;
    for (int64_t i = 0; i < cn_dict_count(d) && ok; i++) ok = write_tensor(&s, cn_dict_name(d, i), cn_dict_at(d, i));
    for (int64_t i = 0; i < cn_dict_texts(d) && ok; i++) {
        const char *name = cn_dict_text_name(d, i);
        if (cn_dict_get(d, name))
            ok = cn__fail(
                to->ctx, CN_BAD_ARGUMENT,
                "save %.200s: \"%.100s\" is the name of a tensor and a text; an npz file needs different names",
                to->path, name);
        else ok = write_text(&s, name, cn_dict_text(d, name));
    }
    ok = ok && write_end(&s);
    cn__out_free(&s.central);
    return ok;
}
