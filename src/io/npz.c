/* Reads and writes npz files: a zip file with an npy file for each array. 64-bit records are optional when it reads,
   and always there when it writes. */
#include <stdio.h>

#include "core/host.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/zip.h"

/* ---- loading ---- */

/* The name of the array: the name of the entry without ".npy". */
static char *array_name(const cn__source *s, const cn__zip_entry *e)
{
    size_t n = e->name_bytes;
    if (memchr(e->name, 0, n) || cn__utf8_valid(e->name, n) != n) {
        cn__source_fail(s, CN_BAD_FILE, "zip: a name is not UTF-8");
        return NULL;
    }
    if (n < 4 || memcmp(e->name + n - 4, ".npy", 4)) {
        cn__source_fail(s, CN_UNSUPPORTED, "entry \"%.*s\" is not an .npy file", n < 100 ? (int)n : 100, e->name);
        return NULL;
    }
    char *copy = cn__alloc(s->ctx, n - 4 + 1);
    return copy ? memcpy(copy, e->name, n - 4) : NULL;
}

static bool load_named(cn__zip *z, const cn__zip_entry *e, const char *name, cn_dict *d)
{
    if (cn_dict_get(d, name) || cn_dict_text(d, name))
        return cn__source_fail(z->s, CN_BAD_FILE, "entry \"%.100s\" occurs twice", name);
    cn__source array;
    bool ok = cn__zip_unpack(z, e, name, &array) && cn__npy_load(&array, d, name);
    cn__content_release(array.content);
    return ok;
}

bool cn__npz_load(const cn__source *s, cn_dict *d)
{
    cn__zip z;
    if (!cn__zip_open(&z, s)) return false;
    for (uint64_t i = 0; i < z.entries; i++) {
        cn__zip_entry e;
        if (!cn__zip_next(&z, &e)) return false;
        char *name = array_name(s, &e);
        bool ok = name && load_named(&z, &e, name, d);
        cn__free_text(s->ctx, name);
        if (!ok) return false;
    }
    return cn__zip_end(&z);
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
    size_t n = cn__npy_header(head, descr, shape, at + CN__ZIP_LOCAL_BYTES + name_bytes + 4 + 20);
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
    append(&r, 8, CN__ZIP_END64_BYTES - 12);
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
