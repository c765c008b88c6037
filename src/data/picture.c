/* Decodes image files of any kind, found by their first bytes, and converts between grey and colour. */
#include <stdio.h>

#include "cairn/image.h"
#include "data/data.h"

#define MAX_PIXELS ((int64_t)1 << 28)

bool cn__picture_alloc(cn__fetch *f, int64_t channels, int64_t height, int64_t width, cn__picture *out)
{
    if ((channels != 1 && channels != 3) || height < 1 || width < 1 || height > MAX_PIXELS / width)
        return cn__fetch_fail(f, CN_BAD_FILE,
                              "an image of %lld channels, %lld by %lld; 1 or 3 channels and 2^28 pixels are allowed",
                              (long long)channels, (long long)height, (long long)width);
    *out = (cn__picture){ channels, height, width, cn__arena_alloc(&f->arena, (size_t)(channels * height * width)) };
    return out->data || cn__fetch_no_memory(f);
}

static bool with_channels(cn__fetch *f, int channels, cn__picture *p)
{
    int64_t area = p->height * p->width;
    cn__picture from = *p;
    if (from.channels == channels) return true;
    if (!cn__picture_alloc(f, channels, from.height, from.width, p)) return false;
    if (channels == 3) {
        for (int c = 0; c < 3; c++) memcpy(p->data + c * area, from.data, (size_t)area);
        return true;
    }
    /* ITU-R 601: 0.299 r + 0.587 g + 0.114 b, in 1/65536 */
    const uint8_t *r = from.data, *g = r + area, *b = g + area;
    for (int64_t i = 0; i < area; i++)
        p->data[i] = (uint8_t)((r[i] * 19595u + g[i] * 38470u + b[i] * 7471u + 0x8000u) >> 16);
    return true;
}

bool cn__picture_decode(const uint8_t *data, size_t bytes, int channels, cn__fetch *f, cn__picture *out)
{
    bool ok;
    if (bytes > 8 && !memcmp(data, "\x89PNG\r\n\x1a\n", 8)) ok = cn__png_decode(data, bytes, f, out);
    else if (bytes > 3 && !memcmp(data, "\xff\xd8\xff", 3)) ok = cn__jpeg_decode(data, bytes, f, out);
    else if (bytes > 2 && data[0] == 'P') ok = cn__pnm_decode(data, bytes, f, out);
    else ok = cn__fetch_fail(f, CN_BAD_FILE, "unknown format; PNG, JPEG, PBM, PGM and PPM can be read");
    return ok && with_channels(f, channels, out);
}

cn_tensor *cn_image_read(cn_ctx *ctx, const char *path, int channels)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!path) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "image_read: path is NULL");
        return NULL;
    }
    if (channels != 0 && channels != 1 && channels != 3) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "image_read: channels must be 0, 1 or 3, got %d", channels);
        return NULL;
    }
    cn__fetch f = { 0 };
    const uint8_t *data;
    size_t bytes;
    cn__picture p;
    cn_tensor *t = NULL;
    if (!cn__file_read(&f, path, &data, &bytes)) cn__fail(ctx, f.code, "image_read: %s", f.error);
    else if (!cn__picture_decode(data, bytes, channels ? channels : 3, &f, &p))
        cn__fail(ctx, f.code, "image_read: %s: %s", path, f.error);
    else t = cn_from(ctx, CN_U8, CN_DIMS(p.channels, p.height, p.width), p.data);
    cn__arena_free(&f.arena);
    return t;
}
