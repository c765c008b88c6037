/* Decodes PNG with libpng. Images of any depth and colour type become grey or RGB with 8 bits; alpha is dropped. */
#include "data/data.h"

#ifdef CAIRN_HAVE_PNG
#include <png.h>
#include <setjmp.h>

typedef struct source {
    const uint8_t *p, *end;
    cn__fetch *f;
} source;

static void read_bytes(png_structp png, png_bytep to, png_size_t n)
{
    source *s = png_get_io_ptr(png);
    if ((size_t)(s->end - s->p) < n) png_error(png, "the file is cut off");
    memcpy(to, s->p, n);
    s->p += n;
}

static void on_error(png_structp png, png_const_charp message)
{
    source *s = png_get_error_ptr(png);
    cn__fetch_fail(s->f, CN_BAD_FILE, "PNG: %s", message);
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp message) { (void)png, (void)message; }

static void ask_for_8_bits(png_structp png, png_infop info)
{
    png_set_user_limits(png, 1 << 16, 1 << 16);
    png_read_info(png, info);
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
}

/* Memory belongs to the arena or to png, so a longjmp leaks nothing. */
static bool read_image(png_structp png, png_infop info, cn__fetch *f, cn__picture *out)
{
    ask_for_8_bits(png, info);
    int64_t width = png_get_image_width(png, info), height = png_get_image_height(png, info);
    int channels = png_get_channels(png, info);
    size_t row_bytes = png_get_rowbytes(png, info);
    if (!cn__picture_alloc(f, channels, height, width, out)) return false;
    uint8_t *pixels = cn__arena_alloc(&f->arena, row_bytes * (size_t)height);
    png_bytep *rows = cn__arena_alloc(&f->arena, (size_t)height * sizeof *rows);
    if (!pixels || !rows) return cn__fetch_no_memory(f);
    for (int64_t y = 0; y < height; y++) rows[y] = pixels + (size_t)y * row_bytes;
    png_read_image(png, rows);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int c = 0; c < channels; c++) out->data[(c * height + y) * width + x] = rows[y][x * channels + c];
    return true;
}

bool cn__png_decode(const uint8_t *data, size_t bytes, cn__fetch *f, cn__picture *out)
{
    source s = { data, data + bytes, f };
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_read_struct(&png, NULL, NULL);
        return cn__fetch_no_memory(f);
    }
    volatile bool ok = false;
    if (!setjmp(png_jmpbuf(png))) {
        png_set_read_fn(png, &s, read_bytes);
        ok = read_image(png, info, f, out);
    }
    png_destroy_read_struct(&png, &info, NULL);
    return ok;
}
#else
bool cn__png_decode(const uint8_t *data, size_t bytes, cn__fetch *f, cn__picture *out)
{
    (void)data, (void)bytes, (void)out;
    return cn__fetch_fail(f, CN_UNSUPPORTED, "PNG: this build has no libpng: install libpng and build again");
}
#endif
