/* Decodes PNG with libpng. Images of any depth and colour type become grey or RGB with 8 bits; alpha is dropped. */
#include "core/library.h"
#include "data/data.h"

#ifdef CAIRN_HAVE_PNG
#include <png.h>
#include <setjmp.h>

#define TEXT(number)   TEXT_OF(number)
#define TEXT_OF(token) #token
#define LIBRARY        CN__LIBRARY("png" TEXT(PNG_LIBPNG_VER_MAJOR) TEXT(PNG_LIBPNG_VER_MINOR), TEXT(PNG_LIBPNG_VER_SONUM))

#define FUNCTIONS(ROW)                                                                                           \
    ROW(png_create_read_struct)                                                                                  \
    ROW(png_create_info_struct)                                                                                  \
    ROW(png_destroy_read_struct) ROW(png_set_read_fn) ROW(png_error) ROW(png_set_user_limits) ROW(png_read_info) \
        ROW(png_set_expand) ROW(png_set_strip_16) ROW(png_set_strip_alpha) ROW(png_set_interlace_handling)       \
            ROW(png_read_update_info) ROW(png_get_image_width) ROW(png_get_image_height) ROW(png_get_channels)   \
                ROW(png_get_rowbytes) ROW(png_read_image)
typedef struct libpng {
    FUNCTIONS(CN__FUNCTION)
} libpng;
static const char *const names[] = { FUNCTIONS(CN__FUNCTION_NAME) };

typedef struct source {
    const uint8_t *p, *end;
    cn__fetch *f;
    libpng lib;
    jmp_buf back;
} source;

/* A callback has nothing but png, and what belongs to it must be asked from the library. */
static source *source_of(png_structp png)
{
    static const char *const name = "png_get_error_ptr";
    __typeof__(png_get_error_ptr) *get;
    cn__library_find(LIBRARY, &name, 1, &get); /* it was found before, and stays */
    return get(png);
}

static void read_bytes(png_structp png, png_bytep to, png_size_t n)
{
    source *s = source_of(png);
    if ((size_t)(s->end - s->p) < n) s->lib.png_error(png, "the file is cut off");
    memcpy(to, s->p, n);
    s->p += n;
}

static void on_error(png_structp png, png_const_charp message)
{
    source *s = source_of(png);
    cn__fetch_fail(s->f, CN_BAD_FILE, "PNG: %s", message);
    longjmp(s->back, 1);
}

static void on_warning(png_structp png, png_const_charp message) { (void)png, (void)message; }

static void ask_for_8_bits(const libpng *lib, png_structp png, png_infop info)
{
    lib->png_set_user_limits(png, 1 << 16, 1 << 16);
    lib->png_read_info(png, info);
    lib->png_set_expand(png);
    lib->png_set_strip_16(png);
    lib->png_set_strip_alpha(png);
    lib->png_set_interlace_handling(png);
    lib->png_read_update_info(png, info);
}

/* Memory belongs to the arena or to png, so a longjmp leaks nothing. */
static bool read_image(const libpng *lib, png_structp png, png_infop info, cn__fetch *f, cn__picture *out)
{
    ask_for_8_bits(lib, png, info);
    int64_t width = lib->png_get_image_width(png, info), height = lib->png_get_image_height(png, info);
    int channels = lib->png_get_channels(png, info);
    size_t row_bytes = lib->png_get_rowbytes(png, info);
    if (!cn__picture_alloc(f, channels, height, width, out)) return false;
    uint8_t *pixels = cn__arena_alloc(&f->arena, row_bytes * (size_t)height);
    png_bytep *rows = cn__arena_alloc(&f->arena, (size_t)height * sizeof *rows);
    if (!pixels || !rows) return cn__fetch_no_memory(f);
    for (int64_t y = 0; y < height; y++) rows[y] = pixels + (size_t)y * row_bytes;
    lib->png_read_image(png, rows);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int c = 0; c < channels; c++) out->data[(c * height + y) * width + x] = rows[y][x * channels + c];
    return true;
}

bool cn__png_decode(const uint8_t *data, size_t bytes, cn__fetch *f, cn__picture *out)
{
    source s = { .p = data, .end = data + bytes, .f = f };
    if (!cn__library_find(LIBRARY, names, sizeof names / sizeof *names, &s.lib))
        return cn__fetch_fail(f, CN_UNSUPPORTED, "PNG: this system has no libpng: install libpng (" LIBRARY ")");
    png_structp png = s.lib.png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning);
    png_infop info = png ? s.lib.png_create_info_struct(png) : NULL;
    if (!info) {
        s.lib.png_destroy_read_struct(&png, NULL, NULL);
        return cn__fetch_no_memory(f);
    }
    volatile bool ok = false;
    if (!setjmp(s.back)) {
        s.lib.png_set_read_fn(png, &s, read_bytes);
        ok = read_image(&s.lib, png, info, f, out);
    }
    s.lib.png_destroy_read_struct(&png, &info, NULL);
    return ok;
}
#else
bool cn__png_decode(const uint8_t *data, size_t bytes, cn__fetch *f, cn__picture *out)
{
    (void)data, (void)bytes, (void)out;
    return cn__fetch_fail(f, CN_UNSUPPORTED, "PNG: this build has no libpng: install libpng and build again");
}
#endif
