/* Writes PNG, compressed with the fixed codes of deflate. A pixel of a chart mostly equals the pixel before it or above
   it, so repetitions are searched there only. */
#include "core/png_write.h"

#include "core/errors.h"
#include "core/object.h"

enum { LEAST_MATCH = 3, MOST_MATCH = 258, FARTHEST = 32768 };

typedef struct bytes {
    cn_ctx *ctx;
    cn__vec v; /* unsigned char */
    uint64_t bits;
    int n_bits;
    bool failed;
} bytes;

static void append_byte(bytes *b, unsigned x)
{
    const unsigned char byte = (unsigned char)x;
    if (b->failed || !cn__push(&b->ctx->memory, &b->v, &byte, 1)) b->failed = true;
}

static void append_big(bytes *b, uint32_t x)
{
    for (int i = 24; i >= 0; i -= 8) append_byte(b, x >> i & 0xff);
}

/* ---- deflate ---- */

static void append_bits(bytes *b, unsigned x, int n)
{
    b->bits |= (uint64_t)x << b->n_bits;
    b->n_bits += n;
    for (; b->n_bits >= 8; b->n_bits -= 8, b->bits >>= 8) append_byte(b, b->bits & 0xff);
}

/* Writes a code from its highest bit. */
static void append_code(bytes *b, unsigned code, int n)
{
    unsigned turned = 0;
    for (int i = 0; i < n; i++) turned |= (code >> i & 1) << (n - 1 - i);
    append_bits(b, turned, n);
}

static void append_symbol(bytes *b, unsigned s)
{
    if (s < 144) append_code(b, 0x30 + s, 8);
    else if (s < 256) append_code(b, 0x190 + s - 144, 9);
    else if (s < 280) append_code(b, s - 256, 7);
    else append_code(b, 0xc0 + s - 280, 8);
}

/* Groups of four lengths, and of two distances, have the same number of extra bits; the first groups have none. */
static void append_match(bytes *b, unsigned length, unsigned distance)
{
    const unsigned l = length - LEAST_MATCH, d = distance - 1;
    int extra = 0;
    if (length == MOST_MATCH) append_symbol(b, 285);
    else {
        while (l >> extra >= 8) extra++;
        const unsigned group = extra ? 4 * (unsigned)extra + (l >> extra) : l;
        append_symbol(b, 257 + group);
        append_bits(b, l & ((1u << extra) - 1), extra);
    }
    for (extra = 0; d >> extra >= 4;) extra++;
    append_code(b, extra ? 2 * (unsigned)extra + (d >> extra) : d, 5);
    append_bits(b, d & ((1u << extra) - 1), extra);
}

static size_t match_at(const unsigned char *p, size_t at, size_t n, size_t distance)
{
    if (distance > at || distance > FARTHEST) return 0;
    size_t most = n - at < MOST_MATCH ? n - at : MOST_MATCH, k = 0;
    while (k < most && p[at + k] == p[at + k - distance]) k++;
    return k;
}

static void deflate(bytes *b, const unsigned char *p, size_t n, size_t pixel, size_t row)
{
    append_bits(b, 1, 1); /* this is the last block */
    append_bits(b, 1, 2); /* fixed codes */
    for (size_t at = 0; at < n;) {
        const size_t left = match_at(p, at, n, pixel), above = match_at(p, at, n, row),
                     best = left > above ? left : above;
        if (best < LEAST_MATCH) {
            append_symbol(b, p[at++]);
            continue;
        }
        append_match(b, (unsigned)best, (unsigned)(left > above ? pixel : row));
        at += best;
    }
    append_symbol(b, 256);
    append_bits(b, 0, 7); /* fills the last byte */
}

static uint32_t adler(const unsigned char *p, size_t n)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n; i++) {
        a = (a + p[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* ---- chunks ---- */

static uint32_t crc32(const unsigned char *p, size_t n)
{
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (0xedb88320u & (0u - (c & 1)));
    }
    return ~c;
}

static size_t begin_chunk(bytes *b, const char *kind)
{
    const size_t at = b->v.n;
    append_big(b, 0);
    for (int i = 0; i < 4; i++) append_byte(b, (unsigned char)kind[i]);
    return at;
}

static void end_chunk(bytes *b, size_t at)
{
    if (b->failed) return;
    unsigned char *p = (unsigned char *)b->v.v + at;
    const uint32_t n = (uint32_t)(b->v.n - at - 8);
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(n >> (24 - 8 * i));
    append_big(b, crc32(p + 4, (size_t)n + 4));
}

/* Each row begins with the number of its filter; 0: none. */
static unsigned char *rows_of(cn_ctx *ctx, const unsigned char *pixels, size_t row, int height, size_t *n)
{
    *n = (row + 1) * (size_t)height;
    unsigned char *p = cn__alloc(ctx, *n);
    for (size_t y = 0; p && y < (size_t)height; y++) memcpy(p + y * (row + 1) + 1, pixels + y * row, row);
    return p;
}

bool cn__png_write(cn_ctx *ctx, FILE *f, const unsigned char *pixels, int channels, int width, int height)
{
    static const unsigned char start[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
    const unsigned char kind = channels == 3 ? 2 : 0;   /* RGB or grey */
    const unsigned char form[5] = { 8, kind, 0, 0, 0 }; /* 8 bits, deflate, standard filters, not interlaced */
    const size_t row = (size_t)width * (size_t)channels;
    bytes b = { .ctx = ctx };
    size_t n;
    unsigned char *rows = rows_of(ctx, pixels, row, height, &n);
    if (!rows) return false;
    for (int i = 0; i < 8; i++) append_byte(&b, start[i]);
    size_t at = begin_chunk(&b, "IHDR");
    append_big(&b, (uint32_t)width);
    append_big(&b, (uint32_t)height);
    for (int i = 0; i < 5; i++) append_byte(&b, form[i]);
    end_chunk(&b, at);
    at = begin_chunk(&b, "IDAT");
    append_byte(&b, 0x78);
    append_byte(&b, 0x01);
    deflate(&b, rows, n, (size_t)channels, row + 1);
    append_big(&b, adler(rows, n));
    end_chunk(&b, at);
    end_chunk(&b, begin_chunk(&b, "IEND"));
    const bool ok = !b.failed && fwrite(b.v.v, 1, b.v.n, f) == b.v.n;
    if (b.failed) cn__no_memory(ctx, NULL);
    cn__vec_free(&ctx->memory, &b.v, 1);
    cn__free(ctx, rows, n);
    return ok;
}
