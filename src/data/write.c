/* Writes image files, and puts many images into one. */
#include <errno.h>
#include <math.h>
#include <strings.h>

#include "cairn/image.h"
#include "core/handle.h"
#include "core/host.h"
#include "core/png_write.h"
#include "data/data.h"

typedef enum format { UNKNOWN, PNG, JPEG, PGM, PPM } format;

static format format_of(const char *path)
{
    static const struct {
        const char *end;
        format format;
    } known[] = { { ".png", PNG }, { ".jpg", JPEG }, { ".jpeg", JPEG }, { ".pgm", PGM }, { ".ppm", PPM } };
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof known / sizeof *known; i++)
        if (!strcasecmp(dot, known[i].end)) return known[i].format;
    return UNKNOWN;
}

/* (channels, height, width) of u8 or f32 becomes (height, width, channels) of bytes. */
static void interleave(const void *from, cn_dtype dtype, cn__picture *to)
{
    const int64_t area = to->height * to->width;
    for (int64_t c = 0; c < to->channels; c++)
        for (int64_t i = 0; i < area; i++) {
            const int64_t at = c * area + i;
            uint8_t *byte = &to->data[i * to->channels + c];
            if (dtype == CN_U8) *byte = ((const uint8_t *)from)[at];
            else *byte = (uint8_t)lrintf(fminf(fmaxf(((const float *)from)[at] * 255, 0), 255));
        }
}

static bool write_pnm(FILE *file, const cn__picture *p)
{
    const size_t bytes = (size_t)(p->channels * p->height * p->width);
    return fprintf(file, "P%d\n%lld %lld\n255\n", p->channels == 3 ? 6 : 5, (long long)p->width, (long long)p->height) >
               0 &&
           fwrite(p->data, 1, bytes, file) == bytes;
}

/* A file that could not be written to its end is removed. */
static bool write_file(cn_ctx *ctx, const char *path, format format, const cn__picture *p, int quality)
{
    cn__fetch f = { 0 };
    FILE *file = fopen(path, "wb");
    if (!file) return cn__fail(ctx, CN_BAD_FILE, "image_write: cannot write '%s': %s", path, strerror(errno));
    bool ok;
    if (format == PNG) ok = cn__png_write(ctx, file, p->data, (int)p->channels, (int)p->width, (int)p->height);
    else if (format == JPEG) ok = cn__jpeg_write(file, p, quality, &f);
    else ok = write_pnm(file, p);
    const int problem = errno;
    ok &= fclose(file) == 0;
    if (ok) return true;
    remove(path);
    if (f.code) return cn__fail(ctx, f.code, "image_write: '%s': %s", path, f.error);
    return cn__fail(ctx, CN_BAD_FILE, "image_write: cannot write '%s': %s", path, strerror(problem));
}

static bool describe(cn_ctx *ctx, cn_tensor *image, const char *path, cn__picture *p, format *format)
{
    const cn_dims s = cn_shape(image);
    if (s.n == 2) *p = (cn__picture){ 1, s.v[0], s.v[1], NULL };
    else if (s.n == 3) *p = (cn__picture){ s.v[0], s.v[1], s.v[2], NULL };
    const bool sized = p->height >= 1 && p->width >= 1 && p->height < 1 << 16 && p->width < 1 << 16;
    if ((p->channels != 1 && p->channels != 3) || !sized || (cn_type(image) != CN_U8 && cn_type(image) != CN_F32))
        return cn__fail(ctx, CN_BAD_SHAPE,
                        "image_write: an image must be (1 or 3, height, width) or (height, width) with sides from 1 to "
                        "65535, of u8 or f32; got %d axes of %s and %lld channels, %lld by %lld",
                        s.n, cn_dtype_name(cn_type(image)), (long long)p->channels, (long long)p->height,
                        (long long)p->width);
    *format = format_of(path);
    const int channels = *format == PGM ? 1 : *format == PPM ? 3 : 0;
    if (*format == UNKNOWN || (channels && channels != p->channels))
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "image_write: the path must end in .png, .jpg, .jpeg, .ppm (3 channels) or .pgm (1 channel), "
                        "got '%s' for %lld channels",
                        path, (long long)p->channels);
    return true;
}

bool cn_image_write(cn_tensor *image, const char *path, const cn_image_write_desc *desc)
{
    CN__CALL call = cn__call_tensor(image);
    cn_ctx *ctx = call.ctx;
    const int quality = desc && desc->quality ? desc->quality : 75;
    if (!ctx || cn_failed(ctx)) return false;
    if (!path) return cn__fail(ctx, CN_BAD_ARGUMENT, "image_write: path is NULL");
    if (quality < 1 || quality > 100)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "image_write: quality must be 1 to 100, got %d", quality);
    cn__picture p = { 0 };
    format format = UNKNOWN;
    if (!describe(ctx, image, path, &p, &format)) return false;
    const size_t bytes = (size_t)(p.channels * p.height * p.width);
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *c = cn_contiguous(image);
    cn__host h = { 0 };
    p.data = cn__alloc(ctx, bytes);
    bool ok = p.data && c && cn__host_open(c, &h);
    if (ok) interleave(h.data, cn_type(image), &p);
    cn__host_close(&h);
    cn_scope_end(ctx, s);
    ok = ok && write_file(ctx, path, format, &p, quality);
    cn__free(ctx, p.data, bytes);
    return ok;
}

/* ---- many images as one */

/* Each image gets a border above and at its left; the whole gets one below and at its right. */
static cn_tensor *grid(cn_tensor *x, int64_t columns, int64_t padding, double value)
{
    const int64_t n = cn_size(x, 0), c = cn_size(x, 1), rows = (n + columns - 1) / columns;
    const int64_t h = cn_size(x, 2) + padding, w = cn_size(x, 3) + padding;
    x = cn_pad(x, CN_DIMS(padding, 0, padding, 0, 0, 0, 0, rows * columns - n), CN_PAD_CONSTANT, value);
    x = cn_permute(cn_reshape(x, CN_DIMS(rows, columns, c, h, w)), CN_DIMS(2, 0, 3, 1, 4));
    return cn_pad(cn_reshape(x, CN_DIMS(c, rows * h, columns * w)), CN_DIMS(0, padding, 0, padding), CN_PAD_CONSTANT,
                  value);
}

cn_tensor *cn_image_grid(cn_tensor *images, int64_t columns, int64_t padding, double value)
{
    CN__CALL call = cn__call_tensor(images);
    cn_ctx *ctx = call.ctx;
    if (!ctx) return NULL;
    if (columns == 0) columns = 8;
    if (cn_ndim(images) != 4 || cn_numel(images) == 0 || columns < 1 || padding < 0 || padding > 1 << 15) {
        cn__fail(ctx, CN_BAD_ARGUMENT,
                 "image_grid: images must be (n, channels, height, width), not empty, columns ≥ 0 and padding 0 to "
                 "32768; got %d axes, %lld and %lld",
                 cn_ndim(images), (long long)columns, (long long)padding);
        return NULL;
    }
    if (columns > cn_size(images, 0)) columns = cn_size(images, 0);
    cn_scope s = cn_scope_begin(ctx);
    return cn_scope_return(ctx, s, grid(images, columns, padding, value));
}
