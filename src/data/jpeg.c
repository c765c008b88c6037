/* Decodes and writes JPEG with libjpeg. Grey images stay grey; all others become RGB. */
#include "core/library.h"
#include "data/data.h"

#ifdef CAIRN_HAVE_JPEG
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>
#include <jerror.h>

#if JPEG_LIB_VERSION < 70
#define LIBRARY CN__LIBRARY("jpeg", "62")
#elif JPEG_LIB_VERSION < 80
#define LIBRARY CN__LIBRARY("jpeg", "7")
#elif JPEG_LIB_VERSION < 90
#define LIBRARY CN__LIBRARY("jpeg", "8")
#else
#define LIBRARY CN__LIBRARY("jpeg", "9")
#endif

#define FUNCTIONS(ROW)                                                                          \
    ROW(jpeg_std_error)                                                                         \
    ROW(jpeg_CreateDecompress)                                                                  \
    ROW(jpeg_mem_src) ROW(jpeg_read_header) ROW(jpeg_start_decompress) ROW(jpeg_read_scanlines) \
        ROW(jpeg_finish_decompress) ROW(jpeg_destroy_decompress)
typedef struct libjpeg {
    FUNCTIONS(CN__FUNCTION)
} libjpeg;
static const char *const names[] = { FUNCTIONS(CN__FUNCTION_NAME) };

#define WRITERS(ROW)                                                                           \
    ROW(jpeg_std_error)                                                                        \
    ROW(jpeg_CreateCompress)                                                                   \
    ROW(jpeg_stdio_dest) ROW(jpeg_set_defaults) ROW(jpeg_set_quality) ROW(jpeg_start_compress) \
        ROW(jpeg_write_scanlines) ROW(jpeg_finish_compress) ROW(jpeg_destroy_compress)
typedef struct jpeg_writer {
    WRITERS(CN__FUNCTION)
} jpeg_writer;
static const char *const writer_names[] = { WRITERS(CN__FUNCTION_NAME) };

typedef struct trouble {
    struct jpeg_error_mgr base;
    jmp_buf back;
    cn__fetch *f;
} trouble;

static void on_error(j_common_ptr jpeg)
{
    trouble *t = (trouble *)jpeg->err;
    char message[JMSG_LENGTH_MAX];
    t->base.format_message(jpeg, message);
    cn__fetch_fail(t->f, CN_BAD_FILE, "JPEG: %s", message);
    longjmp(t->back, 1);
}

/* Warnings about missing or wrong pixels are errors. Other warnings (extra bytes, unknown markers) are common. */
static void on_message(j_common_ptr jpeg, int level)
{
    int code = jpeg->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE)) on_error(jpeg);
}

/* Memory belongs to the arena or to jpeg, so a longjmp leaks nothing. */
static bool read_image(const libjpeg *lib, struct jpeg_decompress_struct *jpeg, cn__fetch *f, cn__picture *out)
{
    lib->jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = jpeg->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    lib->jpeg_start_decompress(jpeg);
    int channels = jpeg->output_components;
    int64_t width = jpeg->output_width, height = jpeg->output_height;
    if (!cn__picture_alloc(f, channels, height, width, out)) return false;
    JSAMPROW row = cn__arena_alloc(&f->arena, (size_t)width * (size_t)channels);
    if (!row) return cn__fetch_no_memory(f);
    for (int64_t y = 0; y < height; y++) {
        lib->jpeg_read_scanlines(jpeg, &row, 1);
        for (int64_t x = 0; x < width; x++)
            for (int c = 0; c < channels; c++) out->data[(c * height + y) * width + x] = row[x * channels + c];
    }
    lib->jpeg_finish_decompress(jpeg);
    return true;
}

bool cn__jpeg_decode(const uint8_t *data, size_t bytes, cn__fetch *f, cn__picture *out)
{
    struct jpeg_decompress_struct jpeg;
    trouble t = { .f = f };
    libjpeg lib;
    if (!cn__library_find(LIBRARY, names, sizeof names / sizeof *names, &lib))
        return cn__fetch_fail(f, CN_UNSUPPORTED, "JPEG: this system has no libjpeg: install libjpeg (" LIBRARY ")");
    jpeg.err = lib.jpeg_std_error(&t.base);
    t.base.error_exit = on_error;
    t.base.emit_message = on_message;
    volatile bool ok = false;
    memset((char *)&jpeg + sizeof jpeg.err, 0, sizeof jpeg - sizeof jpeg.err);
    if (!setjmp(t.back)) {
        lib.jpeg_CreateDecompress(&jpeg, JPEG_LIB_VERSION, sizeof jpeg);
        lib.jpeg_mem_src(&jpeg, data, (unsigned long)bytes);
        ok = read_image(&lib, &jpeg, f, out);
    }
    lib.jpeg_destroy_decompress(&jpeg);
    return ok;
}

static void write_image(const jpeg_writer *lib, struct jpeg_compress_struct *jpeg, const cn__picture *p, int quality)
{
    jpeg->image_width = (JDIMENSION)p->width;
    jpeg->image_height = (JDIMENSION)p->height;
    jpeg->input_components = (int)p->channels;
    jpeg->in_color_space = p->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    lib->jpeg_set_defaults(jpeg);
    lib->jpeg_set_quality(jpeg, quality, TRUE);
    lib->jpeg_start_compress(jpeg, TRUE);
    for (int64_t y = 0; y < p->height; y++) {
        JSAMPROW row = p->data + y * p->width * p->channels;
        lib->jpeg_write_scanlines(jpeg, &row, 1);
    }
    lib->jpeg_finish_compress(jpeg);
}

bool cn__jpeg_write(FILE *file, const cn__picture *p, int quality, cn__fetch *f)
{
    struct jpeg_compress_struct jpeg;
    trouble t = { .f = f };
    jpeg_writer lib;
    if (!cn__library_find(LIBRARY, writer_names, sizeof writer_names / sizeof *writer_names, &lib))
        return cn__fetch_fail(f, CN_UNSUPPORTED, "JPEG: this system has no libjpeg: install libjpeg (" LIBRARY ")");
    jpeg.err = lib.jpeg_std_error(&t.base);
    t.base.error_exit = on_error;
    volatile bool ok = false;
    memset((char *)&jpeg + sizeof jpeg.err, 0, sizeof jpeg - sizeof jpeg.err);
    if (!setjmp(t.back)) {
        lib.jpeg_CreateCompress(&jpeg, JPEG_LIB_VERSION, sizeof jpeg);
        lib.jpeg_stdio_dest(&jpeg, file);
        write_image(&lib, &jpeg, p, quality);
        ok = true;
    }
    lib.jpeg_destroy_compress(&jpeg);
    return ok;
}
#else
bool cn__jpeg_write(FILE *file, const cn__picture *p, int quality, cn__fetch *f)
{
    (void)file, (void)p, (void)quality;
    return cn__fetch_fail(f, CN_UNSUPPORTED, "JPEG: this build has no libjpeg: install libjpeg and build again");
}

bool cn__jpeg_decode(const uint8_t *data, size_t bytes, cn__fetch *f, cn__picture *out)
{
    (void)data, (void)bytes, (void)out;
    return cn__fetch_fail(f, CN_UNSUPPORTED, "JPEG: this build has no libjpeg: install libjpeg and build again");
}
#endif
