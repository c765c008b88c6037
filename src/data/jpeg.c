/* Decodes JPEG with libjpeg. Grey images stay grey; all others become RGB. */
#include "data/data.h"

#ifdef CAIRN_HAVE_JPEG
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>
#include <jerror.h>

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
static bool read_image(struct jpeg_decompress_struct *jpeg, cn__fetch *f, cn__picture *out)
{
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = jpeg->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(jpeg);
    int channels = jpeg->output_components;
    int64_t width = jpeg->output_width, height = jpeg->output_height;
    if (!cn__picture_alloc(f, channels, height, width, out)) return false;
    JSAMPROW row = cn__arena_alloc(&f->arena, (size_t)width * (size_t)channels);
    if (!row) return cn__fetch_no_memory(f);
    for (int64_t y = 0; y < height; y++) {
        jpeg_read_scanlines(jpeg, &row, 1);
        for (int64_t x = 0; x < width; x++)
            for (int c = 0; c < channels; c++) out->data[(c * height + y) * width + x] = row[x * channels + c];
    }
    jpeg_finish_decompress(jpeg);
    return true;
}

bool cn__jpeg_decode(const uint8_t *data, size_t bytes, cn__fetch *f, cn__picture *out)
{
    struct jpeg_decompress_struct jpeg;
    trouble t = { .f = f };
    jpeg.err = jpeg_std_error(&t.base);
    t.base.error_exit = on_error;
    t.base.emit_message = on_message;
    volatile bool ok = false;
    memset((char *)&jpeg + sizeof jpeg.err, 0, sizeof jpeg - sizeof jpeg.err);
    if (!setjmp(t.back)) {
        jpeg_create_decompress(&jpeg);
        jpeg_mem_src(&jpeg, data, (unsigned long)bytes);
        ok = read_image(&jpeg, f, out);
    }
    jpeg_destroy_decompress(&jpeg);
    return ok;
}
#else
bool cn__jpeg_decode(const uint8_t *data, size_t bytes, cn__fetch *f, cn__picture *out)
{
    (void)data, (void)bytes, (void)out;
    return cn__fetch_fail(f, CN_UNSUPPORTED, "JPEG: this build has no libjpeg: install libjpeg and build again");
}
#endif
