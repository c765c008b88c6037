/* The checksum of zip files (CRC-32), and decompression with zlib. */
#include "core/library.h"
#include "io/zip.h"

#ifdef CAIRN_HAVE_ZLIB
#include <zlib.h>
#endif

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
