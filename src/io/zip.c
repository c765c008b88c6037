/* Reads zip files: the directory, the checksum (CRC-32), and decompression with zlib. 64-bit records are optional. */
#include "core/library.h"
#include "io/zip.h"

#ifdef CAIRN_HAVE_ZLIB
#include <zlib.h>
#endif

/* ---- checksum ---- */

void cn__crc_open(cn__crc *c)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i;
        for (int bit = 0; bit < 8; bit++) v = v & 1 ? 0xedb88320u ^ v >> 1 : v >> 1;
        c->table[0][i] = v;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++) c->table[k][i] = c->table[0][c->table[k - 1][i] & 255] ^ c->table[k - 1][i] >> 8;
}

/* Eight bytes at a time. Each byte has a table for its distance from the end. */
uint32_t cn__crc_add(const cn__crc *c, uint32_t crc, const void *data, size_t bytes)
{
    const unsigned char *p = data, *end = p + bytes;
    crc = ~crc;
    for (; end - p >= 8; p += 8) {
        uint32_t first = crc ^ (uint32_t)cn__little(p, 4);
        crc = 0;
        for (int i = 0; i < 4; i++) {
            crc ^= c->table[7 - i][first >> (8 * i) & 255];
            crc ^= c->table[3 - i][p[4 + i]];
        }
    }
    for (; p < end; p++) crc = c->table[0][(crc ^ *p) & 255] ^ crc >> 8;
    return ~crc;
}

/* ---- decompression ---- */

#ifdef CAIRN_HAVE_ZLIB

#define FUNCTIONS(ROW) ROW(inflateInit2_) ROW(inflate) ROW(inflateEnd)
typedef struct zlib {
    FUNCTIONS(CN__FUNCTION)
} zlib;
static const char *const names[] = { FUNCTIONS(CN__FUNCTION_NAME) };

/* zlib frees memory without its size, so each block begins with the size. */
typedef union block {
    size_t bytes;
    max_align_t aligned;
} block;

static void *zip_alloc(void *ctx, unsigned count, unsigned each)
{
    size_t bytes = (size_t)count * each + sizeof(block);
    block *b = cn__alloc(ctx, bytes);
    if (!b) return NULL;
    b->bytes = bytes;
    return b + 1;
}

static void zip_free(void *ctx, void *p)
{
    block *b = p;
    if (b) cn__free(ctx, b - 1, b[-1].bytes);
}

/* zlib counts in 32 bits. */
static unsigned part(size_t bytes) { return bytes < 1u << 30 ? (unsigned)bytes : 1u << 30; }

static int inflate_all(const zlib *lib, z_stream *z, const unsigned char *in, size_t in_bytes, unsigned char *out,
                       size_t out_bytes)
{
    size_t in_at = 0, out_at = 0;
    for (;;) {
        z->next_in = (unsigned char *)in + in_at;
        z->avail_in = part(in_bytes - in_at);
        z->next_out = out + out_at;
        z->avail_out = part(out_bytes - out_at);
        unsigned in_before = z->avail_in, out_before = z->avail_out;
        int code = lib->inflate(z, Z_NO_FLUSH);
        in_at += in_before - z->avail_in;
        out_at += out_before - z->avail_out;
        if (code == Z_STREAM_END) return in_at == in_bytes && out_at == out_bytes ? Z_OK : Z_DATA_ERROR;
        if (code != Z_OK) return code;
    }
}

bool cn__inflate(const cn__source *s, const char *name, const unsigned char *in, size_t in_bytes, unsigned char *out,
                 size_t out_bytes)
{
    zlib lib;
    if (!cn__library_find(CN__LIBRARY("z", "1"), names, sizeof names / sizeof *names, &lib))
        return cn__source_fail(
            s, CN_UNSUPPORTED,
            "entry \"%.100s\" is compressed, and this system has no zlib: install zlib (" CN__LIBRARY(
                "z", "1") "), or "
                          "write the file with numpy.savez",
            name);
    z_stream z = { .zalloc = zip_alloc, .zfree = zip_free, .opaque = s->ctx };
    if (lib.inflateInit2_(&z, -MAX_WBITS, ZLIB_VERSION, (int)sizeof z) != Z_OK)
        return cn__source_fail(s, CN_NO_MEMORY, "out of memory");
    int code = inflate_all(&lib, &z, in, in_bytes, out, out_bytes);
    lib.inflateEnd(&z);
    if (code == Z_OK) return true;
    if (code == Z_MEM_ERROR) return cn__source_fail(s, CN_NO_MEMORY, "out of memory");
    return cn__source_fail(s, CN_BAD_FILE, "entry \"%.100s\": the compressed data are damaged", name);
}

#else

bool cn__inflate(const cn__source *s, const char *name, const unsigned char *in, size_t in_bytes, unsigned char *out,
                 size_t out_bytes)
{
    (void)in, (void)in_bytes, (void)out, (void)out_bytes;
    return cn__source_fail(
        s, CN_UNSUPPORTED,
        "entry \"%.100s\" is compressed, and Cairn was built without zlib: install zlib (zlib1g-dev, "
        "zlib-devel) and configure again, or write the file with numpy.savez",
        name);
}

#endif

/* ---- entries ---- */

enum { END_BYTES = 22, LOCATOR64_BYTES = 20 };

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

bool cn__zip_open(cn__zip *z, const cn__source *s)
{
    uint64_t end = 0;
    if (!find_end(s, &end)) return false;
    const unsigned char *p = s->data + end;
    uint64_t entries = cn__little(p + 10, 2), bytes = cn__little(p + 12, 4), at = cn__little(p + 16, 4);
    const unsigned char *l =
        end >= LOCATOR64_BYTES ? record(s, end - LOCATOR64_BYTES, LOCATOR64_BYTES, CN__ZIP_LOCATOR64) : NULL;
    if (l) {
        p = record(s, cn__little(l + 8, 8), CN__ZIP_END64_BYTES, CN__ZIP_END64);
        if (!p) return fail(s, "the 64-bit end record is missing");
        entries = cn__little(p + 32, 8), bytes = cn__little(p + 40, 8), at = cn__little(p + 48, 8);
        end = cn__little(l + 8, 8);
    }
    if (at > end || bytes > end - at) return fail(s, "the directory lies outside of the file");
    *z = (cn__zip){ .s = s, .entries = entries, .directory = at, .at = at, .end = at + bytes };
    cn__crc_open(&z->crc);
    return true;
}

/* Sizes and offsets above 32 bits are in an extra field, in this order. */
static bool read_extra64(const cn__source *s, cn__zip_entry *e, const unsigned char *p, size_t bytes)
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

bool cn__zip_next(cn__zip *z, cn__zip_entry *e)
{
    const cn__source *s = z->s;
    const unsigned char *p =
        z->end - z->at >= CN__ZIP_CENTRAL_BYTES ? record(s, z->at, CN__ZIP_CENTRAL_BYTES, CN__ZIP_CENTRAL) : NULL;
    if (!p) return fail(s, "the directory is damaged");
    *e = (cn__zip_entry){
        .name = (const char *)p + CN__ZIP_CENTRAL_BYTES,
        .name_bytes = (size_t)cn__little(p + 28, 2),
        .flags = (int)cn__little(p + 8, 2),
        .method = (int)cn__little(p + 10, 2),
        .crc = (uint32_t)cn__little(p + 16, 4),
        .packed = cn__little(p + 20, 4),
        .unpacked = cn__little(p + 24, 4),
        .at = cn__little(p + 42, 4),
    };
    size_t extra = (size_t)cn__little(p + 30, 2), comment = (size_t)cn__little(p + 32, 2);
    uint64_t bytes = CN__ZIP_CENTRAL_BYTES + e->name_bytes + extra + comment;
    if (bytes > z->end - z->at) return fail(s, "the directory is damaged");
    z->at += bytes;
    return read_extra64(s, e, p + CN__ZIP_CENTRAL_BYTES + e->name_bytes, extra);
}

bool cn__zip_end(cn__zip *z) { return z->at == z->end || fail(z->s, "the directory is longer than its entries"); }

bool cn__zip_start(const cn__zip *z, const cn__zip_entry *e, uint64_t *start)
{
    const unsigned char *p = record(z->s, e->at, CN__ZIP_LOCAL_BYTES, CN__ZIP_LOCAL);
    *start = p ? e->at + CN__ZIP_LOCAL_BYTES + cn__little(p + 26, 2) + cn__little(p + 28, 2) : 0;
    bool same_name = p && *start <= z->directory && cn__little(p + 26, 2) == e->name_bytes &&
                     !memcmp(p + CN__ZIP_LOCAL_BYTES, e->name, e->name_bytes);
    if (!same_name || e->packed > z->directory - *start) return fail(z->s, "an entry lies outside of the file");
    return true;
}

static bool unpack_deflated(const cn__zip *z, const cn__zip_entry *e, const char *name, cn__source *out)
{
    const cn__source *s = z->s;
    if (e->unpacked / 1100 > e->packed) /* deflate cannot compress more than that */
        return cn__source_fail(s, CN_BAD_FILE, "entry \"%.100s\": %llu bytes cannot be compressed to %llu", name,
                               (unsigned long long)e->unpacked, (unsigned long long)e->packed);
    cn__content *c = cn__content_new(s->ctx, (size_t)e->unpacked);
    if (!c) return false;
    const unsigned char *packed = out->data;
    *out = (cn__source){ s->ctx, s->name, c->data, c->bytes, c, false };
    return cn__inflate(s, name, packed, (size_t)e->packed, c->data, c->bytes);
}

bool cn__zip_unpack(cn__zip *z, const cn__zip_entry *e, const char *name, cn__source *out)
{
    const cn__source *s = z->s;
    uint64_t start;
    *out = (cn__source){ .ctx = s->ctx, .name = s->name };
    if (e->flags & CN__ZIP_ENCRYPTED) return cn__source_fail(s, CN_UNSUPPORTED, "entry \"%.100s\" is encrypted", name);
    if (!cn__zip_start(z, e, &start)) return false;
    z->packed += e->packed;
    if (z->packed > s->bytes) return fail(s, "entries overlap");
    out->data = s->data + start;
    if (e->method == CN__ZIP_DEFLATED) {
        if (!unpack_deflated(z, e, name, out)) return false;
    } else {
        if (e->method != CN__ZIP_STORED)
            return cn__source_fail(
                s, CN_UNSUPPORTED,
                "entry \"%.100s\" is compressed by method %d; 0 (stored) and 8 (deflate) are supported", name,
                e->method);
        if (e->packed != e->unpacked) return fail(s, "an entry that is not compressed has two different sizes");
        out->bytes = (size_t)e->packed;
        out->content = s->content;
        if (out->content) out->content->refs++;
    }
    if (z->unchecked && e->crc == 0) return true;
    if (cn__crc_add(&z->crc, 0, out->data, out->bytes) == e->crc) return true;
    return cn__source_fail(s, CN_BAD_FILE, "entry \"%.100s\": the checksum is wrong: the file is damaged", name);
}
