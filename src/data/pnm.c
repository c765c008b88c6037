/* Decodes PBM, PGM and PPM (P1 to P6). Numbers and comments form the header; samples are numbers as text, or bytes. */
#include <stdio.h>

#include "data/data.h"

typedef struct reader {
    const uint8_t *p, *end;
} reader;

static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static void pass_spaces(reader *r)
{
    while (r->p < r->end && (is_space(*r->p) || *r->p == '#')) {
        if (*r->p++ != '#') continue;
        while (r->p < r->end && *r->p != '\n') r->p++;
    }
}

/* -1: no number here, or one above 2^30. */
static int64_t number(reader *r)
{
    pass_spaces(r);
    int64_t v = -1;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++) {
        v = (v < 0 ? 0 : v) * 10 + (*r->p - '0');
        if (v > 1 << 30) return -1;
    }
    return v;
}

static int64_t bit(reader *r)
{
    pass_spaces(r);
    return r->p < r->end && (*r->p == '0' || *r->p == '1') ? *r->p++ - '0' : -1;
}

/* Whether the file has all samples. A binary sample has 1 bit, 1 byte or 2 bytes; a text sample has 1 byte at least. */
static bool enough(const reader *r, int kind, int64_t samples, int64_t height, int64_t width, int64_t max)
{
    uint64_t left = (uint64_t)(r->end - r->p), n = (uint64_t)samples;
    if (kind == 4) return left >= (uint64_t)height * (((uint64_t)width + 7) / 8);
    return left >= (kind >= 5 && max > 255 ? 2 * n : n);
}

static int64_t sample(reader *r, int kind, int64_t max, int64_t column)
{
    switch (kind) {
    case 1: return bit(r);
    case 2:
    case 3: return number(r);
    case 4: return *r->p >> (7 - column % 8) & 1;
    }
    int64_t v = *r->p++;
    return max > 255 ? v << 8 | *r->p++ : v;
}

/* Reads (row, column, channel) into (channel, row, column) and scales 0 .. max to 0 .. 255. */
static bool samples(reader *r, int kind, int64_t max, cn__picture *out)
{
    int64_t area = out->height * out->width;
    for (int64_t row = 0, i = 0; row < out->height; row++) {
        for (int64_t col = 0; col < out->width; col++, i++) {
            for (int64_t c = 0; c < out->channels; c++) {
                int64_t v = sample(r, kind, max, col);
                if (v < 0 || v > max) return false;
                if (kind == 1 || kind == 4) v = 1 - v; /* 1 is black */
                out->data[c * area + i] = (uint8_t)(max == 255 ? v : (v * 255 + max / 2) / max);
            }
            if (kind == 4 && (col % 8 == 7 || col + 1 == out->width)) r->p++;
        }
    }
    return true;
}

bool cn__pnm_decode(const uint8_t *data, size_t bytes, cn__fetch *f, cn__picture *out)
{
    if (bytes < 3 || data[0] != 'P' || data[1] < '1' || data[1] > '6')
        return cn__fetch_fail(f, CN_BAD_FILE, "not a PBM, PGM or PPM image");
    reader r = { data + 2, data + bytes };
    int kind = data[1] - '0';
    int64_t width = number(&r), height = number(&r), max = kind == 1 || kind == 4 ? 1 : number(&r);
    if (width < 1 || height < 1 || max < 1 || max > 65535)
        return cn__fetch_fail(f, CN_BAD_FILE,
                              "width and height must be ≥ 1, the maximum 1 to 65535; got %lld, %lld and %lld",
                              (long long)width, (long long)height, (long long)max);
    if (kind >= 4 && r.p < r.end) r.p++; /* one white space ends the header */
    int64_t channels = kind == 3 || kind == 6 ? 3 : 1;
    if (width * height > INT32_MAX || !enough(&r, kind, channels * width * height, height, width, max))
        return cn__fetch_fail(f, CN_BAD_FILE, "the file is cut off: an image of %lld by %lld in %zu bytes",
                              (long long)width, (long long)height, bytes);
    if (!cn__picture_alloc(f, channels, height, width, out)) return false;
    return samples(&r, kind, max, out) ||
           cn__fetch_fail(f, CN_BAD_FILE, "a sample is missing or above the maximum of %lld", (long long)max);
}
