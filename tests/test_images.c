/* Images: readers of files, and transforms against plain references, torch's numbers and formulas in f64. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "data/data.h"
#include "support/check.h"
#include "support/samples.h"
#include "support/scratch.h"

static const char *reference(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/tests/reference/%s", CAIRN_SOURCE_DIR, name);
    return path;
}

static double at(cn_tensor *t, int64_t c, int64_t r, int64_t i) { return cn_get(t, CN_DIMS(c, r, i)); }

/* ---- readers */

static void pnm_files(cn_ctx *cn)
{
    const struct {
        const char *text;
        size_t bytes;
        int channels;
        int want[6]; /* of a (c, 1, 2) image */
    } good[] = {
        { "P2 2 1 255 7 200", 16, 1, { 7, 200 } },
        { "P2 # c\n2#x\n1 100\n0 50\n", 22, 1, { 0, 128 } },
        { "P5 2 1 255\n\x07\xc8", 13, 1, { 7, 200 } },
        { "P5 2 1 65535\n\x80\x00\xff\xff", 17, 1, { 128, 255 } },
        { "P1 2 1 10", 9, 1, { 0, 255 } },
        { "P4 2 1\n\x80", 8, 1, { 0, 255 } },
        { "P3 2 1 255 1 2 3 4 5 6", 22, 3, { 1, 4, 2, 5, 3, 6 } },
        { "P6 2 1 255\n\1\2\3\4\5\6", 17, 3, { 1, 4, 2, 5, 3, 6 } },
        { "P5 2 1 255\n\x07\xc8", 13, 3, { 7, 200, 7, 200, 7, 200 } },
        { "P3 2 1 255 255 0 0 0 255 0", 26, 1, { 76, 150 } },
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        write_file("good.pnm", good[i].text, good[i].bytes);
        cn_tensor *t = cn_image_read(cn, "good.pnm", good[i].channels);
        bool right = t && cn_size(t, 0) == good[i].channels && cn_size(t, 1) == 1 && cn_size(t, 2) == 2;
        for (int k = 0; right && k < 2 * good[i].channels; k++) right = at(t, k / 2, 0, k % 2) == good[i].want[k];
        check(right, "image %zu: %s", i, cn_error(cn));
    }
    const char *const bad[] = { "P7 2 1 255\n..",
                                "P5",
                                "P5 2 1 255\n.",
                                "P5 0 1 255\n..",
                                "P5 2 1 0\n..",
                                "P5 2 1 70000\n....",
                                "P5 -2 1 255",
                                "P5 99999999999 1 255\n..",
                                "P5 1073741824 1073741824 255\n..",
                                "P2 2 1 255 7",
                                "P2 2 1 255 7 256",
                                "P3 2 1 255 1 2 3",
                                "P1 2 1 12",
                                "P4 9 1\n.",
                                "P2 2 1 255 x y z",
                                "P6 30000 30000 255\n.",
                                "hello",
                                "" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text("bad.pnm", bad[i]);
        check(!cn_image_read(cn, "bad.pnm", 0) && cn_error_code(cn) == CN_BAD_FILE, "bad image %zu: %s: %s", i,
              cn_code_name(cn_error_code(cn)), cn_error(cn));
        cn_error_clear(cn);
    }
    check(!cn_image_read(cn, "good.pnm", 2) && cn_error_code(cn) == CN_BAD_ARGUMENT, "two channels");
    cn_error_clear(cn);
}

/* False: this build has not the library for it, and says so. */
static bool is_readable(cn_ctx *cn, const char *name, cn_tensor **t, int channels)
{
    *t = cn_image_read(cn, reference(name), channels);
    if (*t) return true;
    check(cn_error_code(cn) == CN_UNSUPPORTED && strstr(cn_error(cn), "install"), "%s: %s", name, cn_error(cn));
    cn_error_clear(cn);
    skip();
    return false;
}

static void png_files(cn_ctx *cn)
{
    cn_tensor *t;
    if (!is_readable(cn, "rgb.png", &t, 3)) return;
    check(cn_size(t, 1) == 2 && cn_size(t, 2) == 3 && at(t, 0, 0, 0) == 10 && at(t, 1, 0, 2) == 17 &&
              at(t, 2, 1, 1) == 105,
          "rgb.png");
    if (is_readable(cn, "grey16.png", &t, 1))
        check(at(t, 0, 0, 0) == 1 && at(t, 0, 1, 0) == 255 && at(t, 0, 1, 1) == 0, "grey16.png");
    if (is_readable(cn, "palette.png", &t, 3))
        check(at(t, 0, 0, 1) == 255 && at(t, 1, 0, 2) == 255 && at(t, 2, 0, 3) == 3, "palette.png");
    if (is_readable(cn, "alpha.png", &t, 3)) check(at(t, 0, 0, 0) == 9 && at(t, 2, 1, 0) == 4, "alpha.png");
}

static void jpeg_files(cn_ctx *cn)
{
    cn_tensor *t;
    if (!is_readable(cn, "grey.jpg", &t, 1)) return;
    check(cn_size(t, 1) == 8 && cn_size(t, 2) == 16 && at(t, 0, 3, 2) == 100 && at(t, 0, 7, 15) == 200, "grey.jpg");
    if (!is_readable(cn, "colour.jpg", &t, 3)) return;
    double y = 128, cb = -20, cr = 50;
    check(fabs(at(t, 0, 4, 4) - (y + 1.402 * cr)) <= 1 &&
              fabs(at(t, 1, 4, 4) - (y - 0.344136 * cb - 0.714136 * cr)) <= 1 &&
              fabs(at(t, 2, 4, 4) - (y + 1.772 * cb)) <= 1,
          "colour.jpg: %g %g %g", at(t, 0, 4, 4), at(t, 1, 4, 4), at(t, 2, 4, 4));
}

static void written_files(cn_ctx *cn)
{
    const int64_t sizes[][3] = { { 3, 5, 7 }, { 1, 1, 1 }, { 1, 40, 33 }, { 3, 64, 1 }, { 3, 30, 300 } };
    const char *const exact[] = { "out.png", "out.PPM", "out.pgm" };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int e = 0; e < 3; e++) {
            const int64_t c = sizes[i][0];
            if ((e == 1 && c == 1) || (e == 2 && c == 3)) continue;
            cn_tensor *x =
                cn_cast(cn_fmod_s(cn_mul_s(cn_arange(cn, CN_F32, 0, (double)(c * sizes[i][1] * sizes[i][2]), 1),
                                           i % 2 ? 1 : 37),
                                  i == 4 ? 3 : 256),
                        CN_U8); /* noise, or many repetitions */
            x = cn_reshape(x, CN_DIMS(c, sizes[i][1], sizes[i][2]));
            check(cn_image_write(x, exact[e], NULL), "%s: %s", exact[e], cn_error(cn));
            cn_tensor *y = cn_image_read(cn, exact[e], (int)c);
            if (!y && cn_error_code(cn) == CN_UNSUPPORTED) {
                cn_error_clear(cn);
                skip();
                continue;
            }
            check(y && cn_item(cn_sum(cn_ne(x, y), CN_ALL, false)) == 0, "%s of size %zu comes back: %s", exact[e], i,
                  cn_error(cn));
        }
    const float grey[6] = { 0, 0.5f, 1, 2, -1, 0.25f };
    check(cn_image_write(cn_from(cn, CN_F32, CN_DIMS(2, 3), grey), "float.pgm", NULL), "f32: %s", cn_error(cn));
    cn_tensor *y = cn_image_read(cn, "float.pgm", 1);
    check(at(y, 0, 0, 1) == 128 && at(y, 0, 1, 0) == 255 && at(y, 0, 1, 1) == 0 && at(y, 0, 1, 2) == 64, "rounded");

    cn_tensor *smooth = cn_div_s(cn_reshape(cn_arange(cn, CN_F32, 0, 256, 1), CN_DIMS(1, 16, 16)), 255), *back;
    double off[2], bytes[2];
    for (int i = 0; i < 2; i++) {
        if (!cn_image_write(smooth, "out.jpg", &(cn_image_write_desc){ .quality = i ? 95 : 10 })) {
            check(cn_error_code(cn) == CN_UNSUPPORTED && strstr(cn_error(cn), "install"), "%s", cn_error(cn));
            cn_error_clear(cn);
            skip();
            return;
        }
        FILE *f = fopen("out.jpg", "rb");
        bytes[i] = f && !fseek(f, 0, SEEK_END) ? (double)ftell(f) : 0;
        if (f) fclose(f);
        back = cn_div_s(cn_cast(cn_image_read(cn, "out.jpg", 1), CN_F32), 255);
        off[i] = cn_item(cn_mean(cn_abs(cn_sub(back, smooth)), CN_ALL, false));
    }
    check(off[1] < 0.01 && off[1] < off[0] && bytes[0] < bytes[1], "JPEG is off by %g and %g in %g and %g bytes",
          off[0], off[1], bytes[0], bytes[1]);
    cn_tensor *red = cn_stack(CN_TENSORS(cn_ones(cn, CN_F32, CN_DIMS(8, 8)), cn_zeros(cn, CN_F32, CN_DIMS(8, 8)),
                                         cn_zeros(cn, CN_F32, CN_DIMS(8, 8))),
                              0);
    check(cn_image_write(red, "red.jpeg", NULL), "%s", cn_error(cn));
    back = cn_image_read(cn, "red.jpeg", 3);
    check(at(back, 0, 4, 4) > 250 && at(back, 1, 4, 4) < 5 && at(back, 2, 4, 4) < 5, "red stays red");
}

static void files_that_cannot_be_written(cn_ctx *cn)
{
    cn_tensor *x = cn_zeros(cn, CN_U8, CN_DIMS(3, 2, 2));
    const struct {
        cn_tensor *image;
        const char *path;
        int quality;
        const char *words;
    } bad[] = { { x, "x.gif", 0, "must end in .png" },
                { x, "png", 0, "must end in .png" },
                { x, "x.pgm", 0, "for 3 channels" },
                { x, "x.jpg", 101, "quality must be 1 to 100, got 101" },
                { x, "nowhere/x.png", 0, "cannot write 'nowhere/x.png'" },
                { x, NULL, 0, "path is NULL" },
                { cn_zeros(cn, CN_U8, CN_DIMS(2, 2, 2)), "x.png", 0, "2 channels" },
                { cn_zeros(cn, CN_I64, CN_DIMS(2, 2)), "x.png", 0, "axes of i64" },
                { cn_zeros(cn, CN_U8, CN_DIMS(3, 0, 2)), "x.png", 0, "sides from 1" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check(!cn_image_write(bad[i].image, bad[i].path, &(cn_image_write_desc){ .quality = bad[i].quality }) &&
                  strstr(cn_error(cn), bad[i].words),
              "%s: %s", bad[i].words, cn_error(cn));
        cn_error_clear(cn);
    }
}

static void grids(cn_ctx *cn)
{
    cn_tensor *x = cn_reshape(cn_arange(cn, CN_F32, 1, 31, 1), CN_DIMS(5, 1, 2, 3));
    cn_tensor *g = cn_image_grid(x, 2, 1, -1); /* 3 rows of 2 */
    check(g && cn_size(g, 0) == 1 && cn_size(g, 1) == 10 && cn_size(g, 2) == 9, "size of a grid: %s", cn_error(cn));
    for (int64_t r = 0; r < 10; r++)
        for (int64_t c = 0; c < 9; c++) {
            const int64_t image = r / 3 * 2 + c / 4, row = r % 3 - 1, col = c % 4 - 1;
            const bool inside = row >= 0 && col >= 0 && r < 9 && c < 8 && image < 5;
            check(at(g, 0, r, c) == (inside ? (double)(image * 6 + row * 3 + col + 1) : -1), "grid at %d %d", (int)r,
                  (int)c);
        }
    g = cn_image_grid(x, 0, 0, 0);
    check(cn_size(g, 1) == 2 && cn_size(g, 2) == 15, "one row, no border");
    check(!cn_image_grid(cn_zeros(cn, CN_F32, CN_DIMS(2, 3)), 2, 1, 0) && strstr(cn_error(cn), "got 2 axes"), "%s",
          cn_error(cn));
    cn_error_clear(cn);
}

/* Every file cut off everywhere, and with every byte changed: an image or an error, never a crash. */
static void damaged_files(cn_ctx *cn)
{
    const char *const names[] = { "rgb.png", "grey16.png", "palette.png", "alpha.png", "grey.jpg", "colour.jpg" };
    int refused = 0;
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        unsigned char data[512];
        FILE *in = fopen(reference(names[f]), "rb");
        size_t n = in ? fread(data, 1, sizeof data, in) : 0;
        if (in) fclose(in);
        check(n > 40, "%s is there", names[f]);
        for (size_t i = 0; i < 2 * n; i++) {
            cn_scope s = cn_scope_begin(cn);
            unsigned char was = data[i / 2];
            if (i % 2) data[i / 2] ^= (unsigned char)(1 + i % 255);
            write_file("damaged", data, i % 2 ? n : i / 2);
            data[i / 2] = was;
            cn_tensor *t = cn_image_read(cn, "damaged", 0);
            check((t == NULL) == cn_failed(cn), "%s, damage %zu: %s", names[f], i, cn_error(cn));
            refused += !t;
            cn_error_clear(cn);
            cn_scope_end(cn, s);
        }
    }
    check(refused > 500, "most of it is refused: %d", refused);
}

/* ---- geometry */

static cn_tensor *test_image(cn_ctx *cn, int64_t c, int64_t h, int64_t w)
{
    static float x[4096];
    for (int64_t k = 0; k < c * h * w; k++) x[k] = (float)((37 * k + 11) % 101) / 100;
    return cn_from(cn, CN_F32, CN_DIMS(c, h, w), x);
}

static double distance(cn_tensor *t, const double *want)
{
    double worst = 0, got[4096];
    cn_read_f64(t, got, cn_numel(t));
    for (int64_t i = 0; i < cn_numel(t); i++) worst = fmax(worst, fabs(got[i] - want[i]));
    return worst;
}

static void as_torch_does(cn_ctx *cn)
{
    FILE *f = fopen(reference("images.txt"), "r");
    char what[16];
    int c, h, w, lines = 0;
    double a, b, want[4096];
    while (f && fscanf(f, "%15s %d %d %d %lf %lf", what, &c, &h, &w, &a, &b) == 6) {
        bool resize = !strcmp(what, "resize");
        int64_t n = resize ? c * (int64_t)a * (int64_t)b : (int64_t)c * h * w;
        for (int64_t i = 0; i < n; i++)
            if (fscanf(f, "%lf", &want[i]) != 1) n = -1;
        cn_transform *t = cn_transform_new(cn);
        if (resize) cn_transform_resize(t, (int64_t)a, (int64_t)b);
        else cn_transform_random_rotation(t, a, a);
        cn_tensor *y = cn_transform_apply(t, test_image(cn, c, h, w), 1);
        check(y && cn_numel(y) == n && distance(y, want) < 2e-6, "%s %d %d %d to %g %g: off by %g", what, c, h, w, a, b,
              y ? distance(y, want) : 0);
        lines++;
    }
    if (f) fclose(f);
    check(lines == 9, "nine cases: %d", lines);
}

static uint32_t crc32_of(const uint8_t *data, int64_t n)
{
    uint32_t crc = ~0u;
    for (int64_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void bytes_as_pillow_does(cn_ctx *cn)
{
    FILE *f = fopen(reference("resize.txt"), "r");
    int filter, h, w, to_h, to_w, lines = 0;
    unsigned want;
    uint8_t x[4096], got[4096];
    for (int k = 0; k < 4096; k++) x[k] = (uint8_t)(k * k + 29 * k);
    while (f && fscanf(f, "%d %d %d %d %d %u", &filter, &h, &w, &to_h, &to_w, &want) == 6) {
        cn_tensor *y = cn_image_resize(cn_from(cn, CN_U8, CN_DIMS(h, w), x), to_h, to_w, (cn_image_filter)filter);
        bool read = y && cn_read(y, got, (size_t)to_h * (size_t)to_w);
        check(read && crc32_of(got, (int64_t)to_h * to_w) == want, "filter %d, %d by %d to %d by %d", filter, h, w,
              to_h, to_w);
        lines++;
    }
    if (f) fclose(f);
    check(lines == 54, "54 cases: %d", lines);
    cn_tensor *many = cn_image_resize(cn_transpose(cn_from(cn, CN_U8, CN_DIMS(2, 3, 8, 9), x), 0, 1), 4, 5, 0);
    check(many && cn_ndim(many) == 4 && cn_size(many, 0) == 3 && cn_size(many, 3) == 5, "a batch of any layout");
    cn_tensor *one = cn_image_resize(cn_from(cn, CN_U8, CN_DIMS(8, 9), x + 4 * 72), 4, 5, 0); /* [1, 1] of the batch */
    cn_tensor *same = cn_select(cn_select(many, 0, 1), 0, 1);
    check(cn_read(one, got, 20) && cn_read(same, got + 20, 20) && !memcmp(got, got + 20, 20), "each by itself");
    check(cn_numel(cn_image_resize(cn_zeros(cn, CN_U8, CN_DIMS(0, 3, 4)), 2, 2, 0)) == 0, "no images");
    check(!cn_image_resize(cn_zeros(cn, CN_F32, CN_DIMS(3, 4)), 2, 2, 0) && cn_failed(cn), "no bytes");
    cn_error_clear(cn);
    check(!cn_image_resize(cn_zeros(cn, CN_U8, CN_DIMS(3)), 2, 2, 0) && cn_failed(cn), "no image");
    cn_error_clear(cn);
    check(!cn_image_resize(cn_zeros(cn, CN_U8, CN_DIMS(3, 4)), 0, 2, 0) && cn_failed(cn), "no height");
    cn_error_clear(cn);
    check(!cn_image_resize(cn_zeros(cn, CN_U8, CN_DIMS(3, 4)), 2, 2, (cn_image_filter)6) && cn_failed(cn), "no filter");
    cn_error_clear(cn);
}

static cn_tensor *numbered(cn_ctx *cn, int64_t c, int64_t h, int64_t w) /* u8: 1, 2, 3, ... */
{
    unsigned char x[256];
    for (int64_t i = 0; i < c * h * w; i++) x[i] = (unsigned char)(i + 1);
    return cn_from(cn, CN_U8, CN_DIMS(c, h, w), x);
}

static cn_transform *to_u8(cn_ctx *cn)
{
    cn_transform *t = cn_transform_new(cn);
    cn_transform_to_u8(t);
    return t;
}

static void exact_moves(cn_ctx *cn)
{
    cn_tensor *x = numbered(cn, 2, 4, 4), *y;
    cn_transform *t = to_u8(cn);
    y = cn_transform_apply(t, x, 1);
    check(cn_type(y) == CN_U8 && at(y, 1, 3, 3) == 32 && at(y, 0, 0, 0) == 1, "nothing to do, bytes stay");
    for (int quarter = 0; quarter <= 4; quarter++) { /* counter-clockwise: the right side comes to the top */
        t = to_u8(cn);
        cn_transform_random_rotation(t, 90 * quarter, 90 * quarter);
        y = cn_transform_apply(t, x, 1);
        bool right = true;
        for (int64_t c = 0; c < 2; c++)
            for (int64_t r = 0; r < 4; r++)
                for (int64_t i = 0; i < 4; i++) {
                    int64_t from_r = r, from_i = i;
                    for (int q = 0; q < quarter; q++) {
                        int64_t old = from_r;
                        from_r = from_i;
                        from_i = 3 - old;
                    }
                    right = right && at(y, c, r, i) == at(x, c, from_r, from_i);
                }
        check(right, "%d degrees", 90 * quarter);
    }
    t = to_u8(cn);
    cn_transform_random_hflip(t, 1);
    y = cn_transform_apply(t, numbered(cn, 2, 2, 3), 1);
    check(at(y, 0, 0, 0) == 3 && at(y, 0, 0, 1) == 2 && at(y, 1, 1, 2) == 10, "left to right");
    t = to_u8(cn);
    cn_transform_random_vflip(t, 1);
    y = cn_transform_apply(t, numbered(cn, 2, 3, 2), 1);
    check(at(y, 0, 0, 0) == 5 && at(y, 0, 1, 1) == 4 && at(y, 1, 2, 1) == 8, "upside down");
    t = to_u8(cn);
    cn_transform_random_hflip(t, 0);
    check(at(cn_transform_apply(t, x, 3), 0, 0, 0) == 1, "never");
    t = to_u8(cn);
    cn_transform_center_crop(t, 2, 6);
    y = cn_transform_apply(t, x, 1);
    check(cn_size(y, 1) == 2 && cn_size(y, 2) == 6 && at(y, 0, 0, 0) == 0 && at(y, 0, 0, 1) == 5 &&
              at(y, 0, 1, 4) == 12 && at(y, 1, 1, 5) == 0,
          "the middle, zeros around");
}

static void random_crops(cn_ctx *cn)
{
    cn_transform *t = to_u8(cn);
    cn_transform_random_crop(t, 3, 2, 1);
    cn_tensor *x = numbered(cn, 1, 4, 4);
    int seen[4][5] = { { 0 } };
    for (uint64_t seed = 0; seed < 400; seed++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *y = cn_transform_apply(t, x, seed);
        int fits = 0;
        for (int64_t top = -1; top <= 2; top++)
            for (int64_t left = -1; left <= 3; left++) {
                bool same = true;
                for (int64_t r = 0; r < 3; r++)
                    for (int64_t i = 0; i < 2; i++) {
                        bool inside = r + top >= 0 && r + top < 4 && i + left >= 0 && i + left < 4;
                        same = same && at(y, 0, r, i) == (inside ? at(x, 0, r + top, i + left) : 0);
                    }
                if (same) seen[top + 1][left + 1]++;
                fits += same;
            }
        check(fits == 1, "seed %d: a part of the padded image", (int)seed);
        cn_scope_end(cn, s);
    }
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < 5; i++)
            check(seen[r][i] > 5 && seen[r][i] < 45, "part %d %d came %d times of about 20", r, i, seen[r][i]);
    t = cn_transform_new(cn);
    cn_transform_random_crop(t, 7, 2, 1);
    check(!cn_transform_apply(t, x, 1) &&
              strstr(cn_error(cn), "random_crop: 7 by 2 is larger than the image of 4 by 4"),
          "too large: %s", cn_error(cn));
    cn_error_clear(cn);
    t = cn_transform_new(cn);
    cn_transform_random_resized_crop(t, 5, 6);
    for (uint64_t seed = 0; seed < 50; seed++) {
        cn_tensor *y = cn_transform_apply(t, cn_full(cn, CN_F32, CN_DIMS(3, 9, 17), 0.25), seed);
        double low = cn_item(cn_min(y, CN_ALL, false)), high = cn_item(cn_max(y, CN_ALL, false));
        check(cn_size(y, 1) == 5 && cn_size(y, 2) == 6 && fabs(low - 0.25) < 1e-6 && fabs(high - 0.25) < 1e-6,
              "a flat part is flat");
    }
}

static void erasing(cn_ctx *cn)
{
    cn_transform *erase = cn_transform_new(cn), *cut = cn_transform_new(cn);
    cn_transform_random_erasing(erase, 1, 0.5);
    cn_transform_cutout(cut, 4);
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(2, 20, 20));
    for (uint64_t seed = 0; seed < 100; seed++) {
        cn_scope s = cn_scope_begin(cn);
        double left = cn_item(cn_sum(cn_eq_s(cn_transform_apply(erase, x, seed), 0.5), CN_ALL, false)) / 2;
        check(left >= 4 && left <= 0.36 * 400, "seed %d: %g pixels erased", (int)seed, left);
        double zeros = cn_item(cn_sum(cn_eq_s(cn_transform_apply(cut, x, seed), 0), CN_ALL, false)) / 2;
        check(zeros >= 4 && zeros <= 16, "seed %d: %g pixels cut out", (int)seed, zeros);
        cn_scope_end(cn, s);
    }
}

/* ---- colours, as torchvision's tensors do, in f64 */

static double clamp(double v) { return fmin(fmax(v, 0), 1); }
static double luminance(const double *p) { return 0.2989 * p[0] + 0.587 * p[1] + 0.114 * p[2]; }

static void turn_hue(const double *p, double turn, double *out)
{
    double high = fmax(p[0], fmax(p[1], p[2])), low = fmin(p[0], fmin(p[1], p[2])), range = high - low;
    double divisor = range == 0 ? 1 : range, s = range / (high == low ? 1 : high);
    double rc = (high - p[0]) / divisor, gc = (high - p[1]) / divisor, bc = (high - p[2]) / divisor;
    double h = high == p[0] ? bc - gc : high == p[1] ? 2 + rc - bc : 4 + gc - rc;
    h = fmod(fmod(h / 6 + 1, 1) + turn + 1, 1);
    for (int c = 0; c < 3; c++) { /* v - v s max(0, min(k, 4 - k, 1)), k = (n + 6 h) mod 6, n = 5, 3, 1 */
        double k = fmod(5 - 2 * c + 6 * h, 6);
        out[c] = high - high * s * fmax(0, fmin(fmin(k, 4 - k), 1));
    }
}

/* mode: 0 brightness, 1 contrast, 2 saturation, 3 hue; x: (n, 3) */
static void adjust(int mode, double factor, double (*x)[3], int n)
{
    double mean = 0;
    for (int i = 0; i < n; i++) mean += luminance(x[i]) / n;
    for (int i = 0; i < n; i++) {
        double old[3] = { x[i][0], x[i][1], x[i][2] }, other = mode == 0 ? 0 : mode == 1 ? mean : luminance(old);
        if (mode == 3) turn_hue(old, factor, x[i]);
        else
            for (int c = 0; c < 3; c++) x[i][c] = clamp(factor * old[c] + (1 - factor) * other);
    }
}

static void colours(cn_ctx *cn)
{
    enum { N = 30 };
    for (int mode = 0; mode < 5; mode++) { /* each alone, then all */
        double strength[4] = { 0.6, 0.7, 0.8, 0.45 };
        for (int i = 0; i < 4; i++) strength[i] *= mode == 4 || mode == i;
        cn_transform *t = cn_transform_new(cn);
        cn_transform_color_jitter(t, strength[0], strength[1], strength[2], strength[3]);
        for (uint64_t seed = 0; seed < 40; seed++) {
            cn_draw d = cn__item_draw(seed, 0, 0);
            int64_t order[4] = { 0, 1, 2, 3 };
            double factor[4], x[N][3], want[3 * N];
            cn__shuffle(&d, order, 4);
            for (int i = 0; i < 4; i++)
                factor[i] = cn_draw_uniform(&d, i == 3 ? -strength[3] : 1 - strength[i],
                                            i == 3 ? strength[3] : 1 + strength[i]);
            cn_tensor *image = test_image(cn, 3, 5, 6);
            for (int k = 0; k < 3 * N; k++) x[k % N][k / N] = cn_get(image, CN_DIMS(k / N, k % N / 6, k % 6));
            for (int i = 0; i < 4; i++)
                if (strength[order[i]] > 0) adjust((int)order[i], factor[order[i]], x, N);
            for (int k = 0; k < 3 * N; k++) want[k] = x[k % N][k / N];
            check(distance(cn_transform_apply(t, image, seed), want) < 3e-6, "colours %d, seed %d: off by %g", mode,
                  (int)seed, distance(cn_transform_apply(t, image, seed), want));
        }
    }
    cn_transform *t = cn_transform_new(cn);
    cn_transform_color_jitter(t, 0, 0, 0.9, 0.5);
    cn_tensor *grey = test_image(cn, 1, 3, 3);
    check(cn_get(cn_transform_apply(t, grey, 1), CN_DIMS(0, 1, 1)) == cn_get(grey, CN_DIMS(0, 1, 1)),
          "grey has no colours to change");
}

static void normalizing(cn_ctx *cn)
{
    cn_transform *t = cn_transform_new(cn);
    const float mean[2] = { 0.25f, 0.5f }, std[2] = { 0.5f, 2 };
    cn_transform_normalize(t, mean, std, 2);
    cn_tensor *x = test_image(cn, 2, 2, 3), *y = cn_transform_apply(t, x, 1);
    bool right = true;
    for (int64_t c = 0; c < 2; c++)
        for (int64_t i = 0; i < 6; i++)
            right = right && (float)at(y, c, i / 3, i % 3) == ((float)at(x, c, i / 3, i % 3) - mean[c]) / std[c];
    check(right, "exactly");
    check((float)at(cn_transform_apply(t, numbered(cn, 2, 1, 1), 1), 0, 0, 0) == (1.0f / 255 - 0.25f) / 0.5f,
          "bytes are divided by 255");
    check(!cn_transform_apply(t, test_image(cn, 3, 2, 2), 1) &&
              strstr(cn_error(cn), "2 means for an image of 3 channels"),
          "words: %s", cn_error(cn));
    cn_error_clear(cn);
}

/* ---- augmentation, as torchvision's functions of tensors do: reference/make_augment.py */

static cn_tensor *bytes_image(cn_ctx *cn, int64_t c, int64_t h, int64_t w)
{
    static unsigned char x[4096];
    for (int64_t k = 0; k < c * h * w; k++) x[k] = (unsigned char)((37 * k + 11) % 256);
    return cn_from(cn, CN_U8, CN_DIMS(c, h, w), x);
}

/* The seed with which RandAugment draws this operation, with this sign if the operation has one. */
static uint64_t seed_for(int64_t op, double sign)
{
    for (uint64_t seed = 0;; seed++) {
        cn_draw d = cn__item_draw(seed, 0, 0);
        if (cn_draw_below(&d, 14) == op && (cn_draw_below(&d, 2) ? -1 : 1) == (int)sign) return seed;
    }
}

/* Maps of an affine transform with all its parts, and of a perspective, which random steps do not reach at will. */
static cn_tensor *warped(cn_ctx *cn, const char *name, cn_tensor *x, const double *p)
{
    float in[256], out[256];
    double map[8];
    cn_tensor *f = cn_div_s(cn_cast(x, CN_F32), 255);
    cn__image from = { cn_size(x, 0), cn_size(x, 1), cn_size(x, 2), in }, to = from;
    to.data = out;
    cn_read(f, in, (size_t)cn_numel(f) * sizeof *in);
    if (name[0] == 'a') {
        const cn__affine a = { p[0], p[1], p[2], p[3], p[4], p[5] };
        cn__affine_map(&a, (double)from.width / 2, (double)from.height / 2, map);
    } else {
        const double right = (double)from.width - 1, bottom = (double)from.height - 1;
        const double corners[8] = { 0, 0, right, 0, right, bottom, 0, bottom };
        check(cn__perspective_map(corners, p, map), "a map");
    }
    cn__image_warp(&from, map, strstr(name, "nearest"), 0, &to);
    return cn_from(cn, CN_F32, cn_shape(x), out);
}

static cn_tensor *augmented(cn_ctx *cn, const char *name, cn_tensor *x, const double *p)
{
    cn_transform *t = cn_transform_new(cn);
    uint64_t seed = 1;
    if (!strcmp(name, "blur")) cn_transform_gaussian_blur(t, (int64_t)p[0], (int64_t)p[1], p[2], p[2]);
    else if (!strcmp(name, "sharpness")) cn_transform_random_sharpness(t, p[0], 1);
    else if (!strcmp(name, "autocontrast")) cn_transform_random_autocontrast(t, 1);
    else if (!strcmp(name, "solarize")) cn_transform_random_solarize(t, p[0], 1);
    else if (!strcmp(name, "invert")) cn_transform_random_invert(t, 1);
    else if (!strcmp(name, "grey")) cn_transform_grayscale(t, 3);
    else if (!strcmp(name, "posterize")) cn_transform_random_posterize(t, (int)p[0], 1);
    else if (!strcmp(name, "equalize")) cn_transform_random_equalize(t, 1);
    else if (!strcmp(name, "augment")) {
        cn_transform_rand_augment(t, 1, 17);
        seed = seed_for((int64_t)p[0], p[1]);
    } else return warped(cn, name, x, p);
    return cn_transform_apply(t, x, seed);
}

static void as_torchvision_does(cn_ctx *cn)
{
    FILE *f = fopen(reference("augment.txt"), "r");
    char name[16];
    int c, h, w, lines = 0;
    double p[8], want[4096];
    while (f && fscanf(f, "%15s %d %d %d", name, &c, &h, &w) == 4) {
        int64_t n = 0;
        for (int i = 0; i < 8; i++) n += fscanf(f, "%lf", &p[i]);
        for (int64_t i = 0; i < (int64_t)c * h * w; i++) n += fscanf(f, "%lf", &want[i]);
        cn_tensor *y = augmented(cn, name, bytes_image(cn, c, h, w), p);
        check(y && n == 8 + (int64_t)c * h * w && distance(y, want) < 3e-6, "%s %g %g %g: off by %g: %s", name, p[0],
              p[1], p[2], y ? distance(y, want) : 0, cn_error(cn));
        lines++;
    }
    if (f) fclose(f);
    check(lines == 48, "48 cases: %d", lines);
}

static void random_affine(cn_ctx *cn)
{
    cn_tensor *x = numbered(cn, 1, 6, 6);
    cn_transform *t = to_u8(cn);
    cn_transform_random_affine(t, &(cn_affine_desc){ .translate = { 0.5, 0.34 }, .nearest = true, .fill = 1 });
    int seen[7][5] = { { 0 } };
    for (uint64_t seed = 0; seed < 400; seed++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *y = cn_transform_apply(t, x, seed);
        int fits = 0;
        for (int64_t dx = -3; dx <= 3; dx++)
            for (int64_t dy = -2; dy <= 2; dy++) {
                bool same = true;
                for (int64_t r = 0; r < 6; r++)
                    for (int64_t i = 0; i < 6; i++) {
                        const bool inside = r - dy >= 0 && r - dy < 6 && i - dx >= 0 && i - dx < 6;
                        same = same && at(y, 0, r, i) == (inside ? at(x, 0, r - dy, i - dx) : 255);
                    }
                seen[dx + 3][dy + 2] += same;
                fits += same;
            }
        check(fits == 1, "seed %d: moved", (int)seed);
        cn_scope_end(cn, s);
    }
    for (int i = 1; i < 6; i++)
        for (int k = 1; k < 4; k++) check(seen[i][k] > 3, "moved by %d, %d: %d times", i - 3, k - 2, seen[i][k]);
    t = cn_transform_new(cn);
    cn_transform_random_affine(t, &(cn_affine_desc){ .scale = { 2, 2 } });
    cn_tensor *y = cn_transform_apply(t, test_image(cn, 1, 8, 8), 1);
    check(fabs(at(y, 0, 4, 4) - (9 * at(test_image(cn, 1, 8, 8), 0, 4, 4) + 3 * at(test_image(cn, 1, 8, 8), 0, 3, 4) +
                                 3 * at(test_image(cn, 1, 8, 8), 0, 4, 3) + at(test_image(cn, 1, 8, 8), 0, 3, 3)) /
                                    16) < 1e-6,
          "twice as large");
    t = cn_transform_new(cn);
    cn_transform_random_affine(t, NULL);
    check(cn_item(cn_sum(cn_ne(cn_transform_apply(t, test_image(cn, 2, 5, 4), 3), test_image(cn, 2, 5, 4)), CN_ALL,
                         false)) == 0,
          "zeros change nothing");
}

static void chances(cn_ctx *cn)
{
    cn_tensor *x = bytes_image(cn, 3, 6, 7), *plain = cn_div_s(cn_cast(x, CN_F32), 255);
    for (int kind = 0; kind < 8; kind++)
        for (int p = 0; p < 2; p++) {
            cn_transform *t = cn_transform_new(cn);
            bool ok = kind == 0   ? cn_transform_random_grayscale(t, p)
                      : kind == 1 ? cn_transform_random_invert(t, p)
                      : kind == 2 ? cn_transform_random_solarize(t, 0.5, p)
                      : kind == 3 ? cn_transform_random_posterize(t, 2, p)
                      : kind == 4 ? cn_transform_random_autocontrast(t, p)
                      : kind == 5 ? cn_transform_random_sharpness(t, 0, p)
                      : kind == 6 ? cn_transform_random_perspective(t, 0.7, p, 0.5)
                                  : cn_transform_random_equalize(t, p);
            cn_tensor *y = cn_transform_apply(t, kind == 4 ? cn_mul_s(plain, 0.5) : plain, 5);
            const double changed = cn_item(cn_sum(cn_ne(y, kind == 4 ? cn_mul_s(plain, 0.5) : plain), CN_ALL, false));
            check(ok && (kind == 7 ? changed == 0 : (changed > 0) == p), "kind %d, p %d: %g pixels", kind, p, changed);
        }
    cn_transform *t = cn_transform_new(cn);
    cn_transform_grayscale(t, 1);
    cn_field f = cn_transform_field(t, (cn_field){ CN_U8, CN_DIMS(3, 6, 7), 0 });
    cn_tensor *grey = cn_transform_apply(t, x, 1);
    check(f.shape.v[0] == 1 && grey && cn_size(grey, 0) == 1, "one channel: %s", cn_error(cn));
    t = cn_transform_new(cn);
    cn_transform_grayscale(t, 3);
    check(cn_size(cn_transform_apply(t, grey, 1), 0) == 3, "three again");
}

/* An augmented dataset gives the same batches with and without workers. */
static void augmented_batches(cn_ctx *cn)
{
    cn_tensor *x = cn_cast(
        cn_fmod_s(cn_mul_s(cn_reshape(cn_arange(cn, CN_F32, 0, 2400, 1), CN_DIMS(8, 3, 10, 10)), 37), 256), CN_U8);
    cn_transform *t = cn_transform_new(cn);
    cn_transform_rand_augment(t, 3, 20);
    cn_transform_random_affine(t, &(cn_affine_desc){ .degrees = 20, .shear = { -5, 5, -5, 5 } });
    cn_transform_random_perspective(t, 0.5, 0.5, 0);
    cn_transform_gaussian_blur(t, 3, 3, 0.1, 2);
    tape a = { 0 }, b = { 0 };
    cn_dataset *d = cn_dataset_transform(cn_dataset_tensors(&x, 1), t);
    tape_epochs(&a, cn_loader_new(d, &(cn_loader_desc){ .batch = 3, .shuffle = true }), cn, 3);
    tape_epochs(&b, cn_loader_new(d, &(cn_loader_desc){ .batch = 3, .shuffle = true, .workers = 3 }), cn, 3);
    check(a.n > 0 && tapes_equal(&a, &b), "workers do not matter: %s", cn_error(cn));
    tape_free(&a);
    tape_free(&b);
}

/* ---- mixing */

static void mixing(cn_ctx *cn)
{
    double mean = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *base = cn_reshape(cn_arange(cn, CN_F32, 0, 4, 1), CN_DIMS(4, 1, 1, 1));
        cn_tensor *plain = cn_add(base, cn_zeros(cn, CN_F32, CN_DIMS(4, 2, 6, 5)));
        cn_tensor *classes = cn_from(cn, CN_I64, CN_DIMS(4), (int64_t[]){ 0, 1, 2, 0 });
        cn_tensor *x = plain, *y = classes;
        const cn_mix_desc desc = { .alpha = 0.4, .classes = 3, .seed = seed };
        check(cn_mixup(&x, &y, &desc), "mixup: %s", cn_error(cn));
        const double lambda = cn_get(y, CN_DIMS(1, 1));
        check(lambda >= 0 && lambda <= 1 && fabs(cn_get(y, CN_DIMS(1, 0)) - (1 - lambda)) < 1e-6 &&
                  fabs(cn_get(y, CN_DIMS(0, 0)) - 1) < 1e-6 &&
                  fabs(cn_get(x, CN_DIMS(2, 1, 3, 4)) - (2 * lambda + (1 - lambda))) < 1e-5 &&
                  fabs(cn_get(x, CN_DIMS(0, 0, 0, 0)) - 3 * (1 - lambda)) < 1e-5,
              "seed %d: lambda %g", (int)seed, lambda);
        mean += lambda / 300;
        x = plain;
        y = classes;
        check(cn_cutmix(&x, &y, &desc), "cutmix: %s", cn_error(cn));
        double cut = 0, left = cn_get(y, CN_DIMS(2, 2)), got[60];
        cn_read_f64(cn_select(x, 0, 2), got, 60);
        for (int i = 0; i < 60; i++) {
            check(got[i] == 1 || got[i] == 2, "one or the other");
            cut += got[i] == 1;
        }
        check(fabs(left - (1 - cut / 60)) < 1e-6 && fabs(cn_get(y, CN_DIMS(2, 1)) - cut / 60) < 1e-6,
              "seed %d: %g of 60 pixels are cut, %g is left", (int)seed, cut, left);
        cn_scope_end(cn, s);
    }
    check(fabs(mean - 0.5) < 0.08, "lambda is 0.5 on average: %g", mean);
    cn_tensor *x = cn_zeros(cn, CN_F32, CN_DIMS(2, 3)), *y = cn_zeros(cn, CN_I64, CN_DIMS(2)), *none = NULL;
    check(!cn_mixup(&x, &y, NULL) && strstr(cn_error(cn), "mixup: y must be classes"), "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_cutmix(&x, &y, &(cn_mix_desc){ .classes = 2 }) && strstr(cn_error(cn), "cutmix: x must be a batch"), "%s",
          cn_error(cn));
    cn_error_clear(cn);
    check(!cn_mixup(&x, &y, &(cn_mix_desc){ .classes = 2, .alpha = -1 }) && strstr(cn_error(cn), "alpha must be"), "%s",
          cn_error(cn));
    cn_error_clear(cn);
    check(!cn_mixup(&x, &none, NULL) && strstr(cn_error(cn), "y must not be NULL"), "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_mixup(NULL, NULL, NULL) && !cn_failed(cn), "NULL in");
}

static void augmentations_that_cannot_be(cn_ctx *cn)
{
    cn_transform *t = cn_transform_new(cn);
    const bool done[] = { cn_transform_grayscale(t, 2),
                          cn_transform_random_grayscale(t, 2),
                          cn_transform_random_invert(t, NAN),
                          cn_transform_random_solarize(t, NAN, 1),
                          cn_transform_random_posterize(t, 9, 1),
                          cn_transform_random_sharpness(t, -1, 1),
                          cn_transform_gaussian_blur(t, 2, 3, 1, 1),
                          cn_transform_gaussian_blur(t, 3, 3, 0, 1),
                          cn_transform_random_affine(t, &(cn_affine_desc){ .degrees = -1 }),
                          cn_transform_random_affine(t, &(cn_affine_desc){ .translate = { 2, 0 } }),
                          cn_transform_random_affine(t, &(cn_affine_desc){ .scale = { 2, 1 } }),
                          cn_transform_random_affine(t, &(cn_affine_desc){ .shear = { 2, 1 } }),
                          cn_transform_random_perspective(t, 1.5, 1, 0),
                          cn_transform_rand_augment(t, 2, 31) };
    for (size_t i = 0; i < sizeof done / sizeof *done; i++) check(!done[i], "refused: %zu", i);
    check(cn_failed(cn) && strstr(cn_error(cn), "transform_grayscale: channels must be 1 or 3, got 2"), "%s",
          cn_error(cn));
    cn_error_clear(cn);
    cn_transform_gaussian_blur(t, 9, 9, 1, 1);
    check(!cn_transform_apply(t, test_image(cn, 1, 4, 9), 1) && strstr(cn_error(cn), "a window of 9 by 9"), "%s",
          cn_error(cn));
    cn_error_clear(cn);
}

/* ---- pipelines */

static void pipelines(cn_ctx *cn)
{
    cn_dataset *d = cn_dataset_folder(cn, "pictures", NULL);
    cn_transform *t = cn_transform_new(cn);
    cn_transform_resize(t, 8, 8);
    cn_transform_normalize(t, (float[]){ 0.5f, 0.5f, 0.5f }, (float[]){ 0.5f, 0.5f, 0.5f }, 3);
    cn_field f = cn_transform_field(t, cn_dataset_field(d, 0));
    check(f.dtype == CN_F32 && f.shape.n == 3 && f.shape.v[0] == 3 && f.shape.v[1] == 8 && f.shape.v[2] == 8,
          "the field that comes of it");
    cn_dataset *by_name = cn_dataset_transform(d, t),
               *by_hand = cn_dataset_map(
                   d, &(cn_map_desc){
                          .fn = cn_transform_map, .user = t, .fields = 2, .field = { f, cn_dataset_field(d, 1) } });
    tape a = { 0 }, b = { 0 };
    tape_epochs(&a, cn_loader_new(by_name, &(cn_loader_desc){ .batch = 12 }), cn, 1);
    tape_epochs(&b, cn_loader_new(by_hand, &(cn_loader_desc){ .batch = 5, .workers = 2 }), cn, 1);
    tape_free(&b);
    tape_epochs(&b, cn_loader_new(by_hand, &(cn_loader_desc){ .batch = 12, .workers = 2 }), cn, 1);
    check(a.n > 0 && tapes_equal(&a, &b), "by cn_dataset_transform or cn_dataset_map");
    tape_free(&a);
    tape_free(&b);
    check(!cn_transform_resize(t, 4, 4) && strstr(cn_error(cn), "in use"), "it does not change while in use: %s",
          cn_error(cn));
    cn_error_clear(cn);

    cn_dataset *wrong = cn_dataset_map(d, &(cn_map_desc){ .fn = cn_transform_map, .user = t });
    cn_batch batch;
    check(cn_loader_next(cn_loader_new(wrong, NULL), &batch) && cn_type(batch.x) == CN_U8 && cn_size(batch.x, 3) == 8,
          "as bytes, if that is what is declared: %s", cn_error(cn));
    wrong = cn_dataset_map(d, &(cn_map_desc){ .fn = cn_transform_map,
                                              .user = t,
                                              .fields = 2,
                                              .field = { { CN_F32, CN_DIMS(3, 8, 9), 0 }, cn_dataset_field(d, 1) } });
    check(!cn_loader_next(cn_loader_new(wrong, NULL), &batch) &&
              strstr(cn_error(cn), "does not fit the declared field"),
          "not as another shape: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_tensor *flat = cn_zeros(cn, CN_F32, CN_DIMS(3, 4));
    check(!cn_dataset_transform(cn_dataset_tensors(&flat, 1), t) && cn_error_code(cn) == CN_BAD_SHAPE, "no image: %s",
          cn_error(cn));
    cn_error_clear(cn);
}

static void arguments_that_cannot_be(cn_ctx *cn)
{
    cn_transform *t = cn_transform_new(cn);
    const float zero[1] = { 0 };
    bool (*const tries[])(cn_transform *, double) = { cn_transform_random_hflip, cn_transform_random_vflip };
    for (int i = 0; i < 2; i++) {
        check(!tries[i](t, 1.5) && cn_error_code(cn) == CN_BAD_ARGUMENT, "a chance of 1.5");
        cn_error_clear(cn);
        check(!tries[i](t, NAN) && cn_failed(cn), "no chance at all");
        cn_error_clear(cn);
    }
    check(!cn_transform_resize(t, 0, 3) && cn_failed(cn), "no height");
    cn_error_clear(cn);
    check(!cn_transform_resize(t, 3, (int64_t)1 << 40) && cn_failed(cn), "an absurd width");
    cn_error_clear(cn);
    check(!cn_transform_color_jitter(t, 0, 0, 0, 0.6) && cn_failed(cn), "more than half a circle");
    cn_error_clear(cn);
    check(!cn_transform_normalize(t, zero, zero, 1) && cn_failed(cn), "a deviation of 0");
    cn_error_clear(cn);
    check(!cn_transform_random_rotation(t, 2, 1) && cn_failed(cn), "no angle between");
    cn_error_clear(cn);
    check(!cn_transform_resize(NULL, 1, 1) && !cn_failed(cn), "NULL in");
    check(!cn_transform_apply(t, NULL, 1) && strstr(cn_error(cn), "the image must not be NULL"), "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_dataset_transform(NULL, t) && strstr(cn_error(cn), "the dataset must not be NULL"), "%s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_transform_apply(t, cn_zeros(cn, CN_I64, CN_DIMS(1, 2, 2)), 1) && cn_failed(cn), "no image: %s",
          cn_error(cn));
    cn_error_clear(cn);
}

int main(void)
{
    if (!enter_scratch()) return finish();
    write_samples();
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 2, .threads = 1 });
    pnm_files(cn);
    png_files(cn);
    jpeg_files(cn);
    written_files(cn);
    files_that_cannot_be_written(cn);
    grids(cn);
    damaged_files(cn);
    as_torch_does(cn);
    bytes_as_pillow_does(cn);
    exact_moves(cn);
    random_crops(cn);
    erasing(cn);
    colours(cn);
    normalizing(cn);
    as_torchvision_does(cn);
    random_affine(cn);
    chances(cn);
    augmented_batches(cn);
    mixing(cn);
    augmentations_that_cannot_be(cn);
    pipelines(cn);
    arguments_that_cannot_be(cn);
    check(!cn_failed(cn), "no error is left: %s", cn_error(cn));
    cn_close(cn);
    return finish();
}
