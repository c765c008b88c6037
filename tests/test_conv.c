/* Convolutions where cases of single operators do not reach: values that are not finite, sizes from the far end of int64_t,
   products so large that threads which run several of them at once could meet in their scratch; strides against the plain
   definition. All of it for every instruction set that the processor has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cpu/processor.h"
#include "support/check.h"

static cn_ctx *cn;

enum { SIZE = 23, TAPS = 9 };

/* Only the last two lines of y see the last line of the image: what is there must not reach the others. */
static void infinite_positions(cn_tensor *y, int64_t channels)
{
    static double got[2 * 32 * SIZE * SIZE];
    const int64_t numel = cn_numel(y);
    check(cn_read_f64(y, got, numel), "%s", cn_error(cn));
    for (int64_t i = 0; i < numel; i++) {
        const int64_t line = i / SIZE % SIZE, column = i % SIZE;
        const double seen = (double)(channels * (line ? 3 : 2) * (column % (SIZE - 1) ? 3 : 2));
        check(line < SIZE - 2 ? got[i] == seen : isinf(got[i]) && got[i] > 0, "position %d: %g", (int)i, got[i]);
    }
}

/* Taps of the kernel's first line never see the last line of the image: what is there must not reach their gradients, nor
   may what is at its end reach those that do not see it. */
static void infinite_pixels(int64_t images, int64_t channels, int64_t rows)
{
    double x[SIZE * SIZE], got[32 * 16 * TAPS];
    const int64_t numel = rows * channels * TAPS;
    for (int i = 0; i < SIZE * SIZE; i++) x[i] = i < SIZE * (SIZE - 1) ? 1 : (double)INFINITY;
    cn_tensor *plane = cn_cast(cn_from(cn, CN_F64, CN_DIMS(1, 1, SIZE, SIZE), x), CN_F32);
    cn_tensor *image = cn_expand(plane, CN_DIMS(images, channels, SIZE, SIZE));
    cn_tensor *weight = cn_param(cn_ones(cn, CN_F32, CN_DIMS(rows, channels, 3, 3)));
    cn_tensor *y = cn_conv2d(image, weight, NULL, &(cn_conv_desc){ .padding = { 1, 1 } });
    check(cn_backward(cn_sum(y, CN_ALL, false)) && cn_read_f64(cn_grad_of(weight), got, numel), "%s", cn_error(cn));
    infinite_positions(y, channels);
    for (int i = 0; i < numel; i++) {
        const int line = i % TAPS / 3, column = i % 3;
        const double finite = (double)images * (SIZE - 1) * (column == 1 ? SIZE : SIZE - 1);
        check(line == 0 ? got[i] == finite : isinf(got[i]) && got[i] > 0, "tap %d: %g", i, got[i]);
    }
}

/* Taps so far apart that offsets between them do not fit an int64_t: only the middle one sees the image. */
static void distant_taps(void)
{
    const int64_t far = (int64_t)1 << 40;
    double got[SIZE * SIZE];
    cn_tensor *image = cn_full(cn, CN_F32, CN_DIMS(1, 1, 1, SIZE, SIZE), 2);
    cn_tensor *weight = cn_full(cn, CN_F32, CN_DIMS(1, 1, 3, 3, 3), 3);
    cn_tensor *y =
        cn_conv3d(image, weight, NULL, &(cn_conv_desc){ .padding = { far, far, far }, .dilation = { far, far, far } });
    check(cn_numel(y) == SIZE * SIZE && cn_read_f64(y, got, SIZE * SIZE), "%s", cn_error(cn));
    for (int i = 0; i < SIZE * SIZE; i++) check(got[i] == 6, "position %d: %g", i, got[i]);
}

/* ---- strides, against the definition ---- */

typedef struct trial {
    int64_t n, groups, c, o; /* c and o: channels of a group */
    int64_t in[3], kernel[3], stride[3], padding[3], dilation[3];
} trial;

typedef struct numbers {
    int64_t numel;
    double *at;
} numbers;

/* Small whole numbers, so that every sum is exact in f32 in whatever order it is made. */
static numbers whole_numbers(int64_t numel, uint32_t seed)
{
    numbers a = { numel, calloc((size_t)numel, sizeof(double)) };
    for (int64_t i = 0; a.at && i < numel; i++) {
        seed = seed * 1664525u + 1013904223u;
        a.at[i] = (double)(seed >> 29) - 3;
    }
    return a;
}

static int64_t out_size(const trial *t, int d)
{
    return (t->in[d] + 2 * t->padding[d] - (t->kernel[d] - 1) * t->dilation[d] - 1) / t->stride[d] + 1;
}

/* Pixel that tap k sees from position p along all three axes, or -1. */
static int64_t pixel_of(const trial *t, int64_t p, int64_t k)
{
    int64_t pixel = 0, below_p = out_size(t, 1) * out_size(t, 2), below_k = t->kernel[1] * t->kernel[2];
    for (int d = 0; d < 3; d++) {
        const int64_t at = p / below_p * t->stride[d] + k / below_k * t->dilation[d] - t->padding[d];
        if (at < 0 || at >= t->in[d]) return -1;
        pixel = pixel * t->in[d] + at;
        p %= below_p, k %= below_k;
        if (d < 2) below_p /= out_size(t, d + 1), below_k /= t->kernel[d + 1];
    }
    return pixel;
}

static int64_t product(const int64_t *a) { return a[0] * a[1] * a[2]; }

/* y from x and w; dx and dw from g. */
static void by_definition(const trial *t, numbers x, numbers w, numbers g, numbers y, numbers dx, numbers dw)
{
    const int64_t pixels = product(t->in), taps = product(t->kernel);
    const int64_t positions = y.numel / (t->n * t->groups * t->o);
    for (int64_t i = 0; i < y.numel; i++) {
        const int64_t p = i % positions, row = i / positions % (t->groups * t->o), item = i / positions / t->o;
        for (int64_t j = 0; j < t->c * taps; j++) {
            const int64_t pixel = pixel_of(t, p, j % taps);
            if (pixel < 0) continue;
            const int64_t at = (item * t->c + j / taps) * pixels + pixel, weight = row * t->c * taps + j;
            y.at[i] += x.at[at] * w.at[weight];
            dx.at[at] += g.at[i] * w.at[weight];
            dw.at[weight] += g.at[i] * x.at[at];
        }
    }
}

static void expect(const trial *t, cn_dtype dtype, const char *what, cn_tensor *got, numbers want)
{
    double *read = calloc((size_t)want.numel, sizeof(double));
    int64_t wrong = -1;
    check(read && cn_numel(got) == want.numel && cn_read_f64(got, read, want.numel), "%s", cn_error(cn));
    for (int64_t i = want.numel - 1; i >= 0; i--)
        if (read[i] != want.at[i]) wrong = i;
    check(wrong < 0, "%s, %s, %dx%dx%d by %dx%dx%d, stride %d %d %d: element %d is %g, not %g", what,
          dtype == CN_F64 ? "f64" : "f32", (int)t->in[0], (int)t->in[1], (int)t->in[2], (int)t->kernel[0],
          (int)t->kernel[1], (int)t->kernel[2], (int)t->stride[0], (int)t->stride[1], (int)t->stride[2], (int)wrong,
          wrong < 0 ? 0 : read[wrong], wrong < 0 ? 0 : want.at[wrong]);
    free(read);
}

static void meets_definition(const trial *t, cn_dtype dtype)
{
    const int64_t out[3] = { out_size(t, 0), out_size(t, 1), out_size(t, 2) }, *in = t->in, *kernel = t->kernel;
    const int64_t channels = t->groups * t->c, rows = t->groups * t->o;
    numbers x = whole_numbers(t->n * channels * product(in), 1), w = whole_numbers(rows * t->c * product(kernel), 2);
    numbers g = whole_numbers(t->n * rows * product(out), 3), y = { g.numel, calloc((size_t)g.numel, sizeof(double)) };
    numbers dx = { x.numel, calloc((size_t)x.numel, sizeof(double)) };
    numbers dw = { w.numel, calloc((size_t)w.numel, sizeof(double)) };
    by_definition(t, x, w, g, y, dx, dw);
    const cn_dims x_dims = CN_DIMS(t->n, channels, in[0], in[1], in[2]);
    const cn_dims w_dims = CN_DIMS(rows, t->c, kernel[0], kernel[1], kernel[2]);
    cn_tensor *image = cn_param(cn_cast(cn_from(cn, CN_F64, x_dims, x.at), dtype));
    cn_tensor *weight = cn_param(cn_cast(cn_from(cn, CN_F64, w_dims, w.at), dtype));
    cn_tensor *from = cn_cast(cn_from(cn, CN_F64, CN_DIMS(t->n, rows, out[0], out[1], out[2]), g.at), dtype);
    cn_conv_desc desc = { .groups = t->groups };
    memcpy(desc.stride, t->stride, sizeof t->stride);
    memcpy(desc.padding, t->padding, sizeof t->padding);
    memcpy(desc.dilation, t->dilation, sizeof t->dilation);
    cn_tensor *got = cn_conv3d(image, weight, NULL, &desc);
    check(cn_backward_with(got, &(cn_backward_desc){ .gradient = from }), "%s", cn_error(cn));
    expect(t, dtype, "y", got, y);
    expect(t, dtype, "gradient of x", cn_grad_of(image), dx);
    expect(t, dtype, "gradient of the weight", cn_grad_of(weight), dw);
    for (int64_t i = 0; i < y.numel; i++) y.at[i] = fmax(y.at[i], 0);
    expect(t, dtype, "relu of y", cn_relu(cn_conv3d(cn_detach(image), cn_detach(weight), NULL, &desc)), y);
    free(x.at), free(w.at), free(g.at), free(y.at), free(dx.at), free(dw.at);
}

/* Lines of every length around a vector's, whole and begun in the middle of a chunk, above, beside and below the image. */
static void strides(void)
{
    static const trial trials[] = {
        { 2, 1, 3, 5, { 1, 17, 19 }, { 1, 3, 3 }, { 1, 2, 2 }, { 0, 1, 1 }, { 1, 1, 1 } },
        { 1, 1, 2, 3, { 1, 18, 23 }, { 1, 3, 3 }, { 1, 2, 2 }, { 0, 0, 0 }, { 1, 1, 1 } },
        { 1, 2, 3, 2, { 1, 23, 21 }, { 1, 3, 3 }, { 1, 3, 3 }, { 0, 1, 2 }, { 1, 1, 1 } },
        { 2, 1, 4, 6, { 1, 15, 15 }, { 1, 1, 1 }, { 1, 2, 2 }, { 0, 0, 0 }, { 1, 1, 1 } },
        { 2, 1, 4, 6, { 1, 15, 16 }, { 1, 1, 1 }, { 1, 3, 3 }, { 0, 1, 1 }, { 1, 1, 1 } },
        { 1, 1, 2, 4, { 1, 21, 25 }, { 1, 3, 3 }, { 1, 2, 2 }, { 0, 2, 2 }, { 1, 2, 2 } },
        { 1, 1, 2, 4, { 1, 22, 25 }, { 1, 3, 2 }, { 1, 2, 1 }, { 0, 3, 3 }, { 1, 3, 2 } },
        { 1, 2, 2, 3, { 1, 19, 26 }, { 1, 2, 5 }, { 1, 1, 2 }, { 0, 0, 4 }, { 1, 2, 1 } },
        { 2, 5, 1, 1, { 1, 13, 14 }, { 1, 3, 3 }, { 1, 2, 2 }, { 0, 1, 1 }, { 1, 1, 1 } }, /* depthwise */
        { 1, 3, 2, 1, { 1, 14, 13 }, { 1, 3, 3 }, { 1, 3, 3 }, { 0, 2, 1 }, { 1, 2, 1 } },
        { 2, 1, 3, 4, { 1, 1, 101 }, { 1, 1, 5 }, { 1, 1, 2 }, { 0, 0, 2 }, { 1, 1, 1 } }, /* one axis */
        { 2, 1, 3, 4, { 1, 1, 95 }, { 1, 1, 4 }, { 1, 1, 3 }, { 0, 0, 3 }, { 1, 1, 2 } },
        { 1, 1, 2, 3, { 7, 8, 9 }, { 3, 3, 3 }, { 2, 2, 2 }, { 1, 1, 1 }, { 1, 1, 1 } }, /* three axes */
        { 1, 2, 2, 2, { 9, 7, 11 }, { 2, 3, 2 }, { 3, 1, 2 }, { 2, 2, 1 }, { 1, 2, 3 } },
        { 1, 1, 3, 4, { 1, 3, 3 }, { 1, 3, 3 }, { 1, 2, 2 }, { 0, 5, 5 }, { 1, 1, 1 } }, /* lines beside the image */
        { 1,
          1,
          2,
          3,
          { 1, 6, 7 },
          { 1, 5, 5 },
          { 1, 2, 2 },
          { 0, 2, 2 },
          { 1, 1, 1 } }, /* more taps than are walked at once */
        { 2,
          1,
          40,
          5,
          { 1, 33, 47 },
          { 1, 5, 5 },
          { 1, 2, 2 },
          { 0, 2, 1 },
          { 1, 1, 1 } }, /* chunks that end within lines */
        { 3, 1, 40, 20, { 1, 11, 9 }, { 1, 3, 3 }, { 1, 2, 2 }, { 0, 1, 1 }, { 1, 1, 1 } }, /* blocks of channels */
        { 3,
          1,
          3,
          21,
          { 1, 35, 37 },
          { 1, 16, 16 },
          { 1, 16, 16 },
          { 0, 0, 0 },
          { 1, 1, 1 } }, /* patches, and a rest */
        { 2, 1, 19, 6, { 1, 7, 9 }, { 1, 2, 2 }, { 1, 2, 2 }, { 0, 0, 0 }, { 1, 1, 1 } },
        { 2, 1, 3, 5, { 4, 6, 25 }, { 2, 3, 8 }, { 2, 3, 8 }, { 0, 0, 0 }, { 1, 1, 1 } },
        { 90, 1, 3, 4, { 1, 64, 70 }, { 1, 32, 32 }, { 1, 32, 32 }, { 0, 0, 0 }, { 1, 1, 1 } }, /* not all at a time */
        { 2, 2, 3, 4, { 1, 16, 17 }, { 1, 8, 8 }, { 1, 8, 8 }, { 0, 0, 0 }, { 1, 1, 1 } },      /* groups: no patches */
        { 2, 1, 3, 4, { 1, 30, 33 }, { 1, 8, 8 }, { 1, 8, 8 }, { 0, 0, 0 }, { 1, 2, 2 } },      /* nor with dilation */
        { 2, 1, 3, 4, { 1, 16, 17 }, { 1, 8, 8 }, { 1, 8, 8 }, { 0, 0, 3 }, { 1, 1, 1 } },      /* nor with padding */
        { 2, 1, 3, 4, { 1, 16, 17 }, { 1, 8, 8 }, { 1, 8, 7 }, { 0, 0, 0 }, { 1, 1, 1 } }, /* pixels are seen twice */
        { 2, 1, 3, 4, { 1, 26, 35 }, { 1, 8, 8 }, { 1, 9, 9 }, { 0, 0, 0 }, { 1, 1, 1 } }, /* pixels between patches */
        /* by pixels */
        { 8, 1, 32, 64, { 1, 7, 9 }, { 1, 3, 3 }, { 1, 2, 2 }, { 0, 1, 1 }, { 1, 1, 1 } },
        { 8, 1, 32, 32, { 1, 5, 8 }, { 1, 3, 3 }, { 1, 1, 1 }, { 0, 1, 1 }, { 1, 1, 1 } },
        { 8, 1, 16, 48, { 1, 7, 6 }, { 1, 3, 3 }, { 1, 2, 2 }, { 0, 1, 1 }, { 1, 1, 1 } },    /* panels of one vector */
        { 9, 1, 1, 31, { 1, 9, 8 }, { 1, 3, 3 }, { 1, 2, 2 }, { 0, 1, 1 }, { 1, 1, 1 } },     /* one channel */
        { 160, 1, 1, 16, { 1, 10, 41 }, { 1, 1, 3 }, { 1, 1, 2 }, { 0, 0, 1 }, { 1, 1, 1 } }, /* not all at a time */
        { 2, 1, 30, 62, { 1, 68, 5 }, { 1, 4, 3 }, { 1, 2, 2 }, { 0, 1, 2 }, { 1, 1, 1 } },   /* bands */
        { 4, 2, 29, 31, { 1, 13, 10 }, { 1, 3, 5 }, { 1, 3, 2 }, { 0, 2, 1 }, { 1, 1, 1 } },  /* groups */
        { 8,
          1,
          32,
          32,
          { 1, 9, 11 },
          { 1, 3, 3 },
          { 1, 2, 2 },
          { 0, 2, 2 },
          { 1, 2, 2 } }, /* pixels that no tap sees */
        { 8, 1, 32, 32, { 1, 11, 13 }, { 1, 3, 5 }, { 1, 2, 3 }, { 0, 3, 4 }, { 1, 3, 2 } }, /* taps apart */
        { 8, 1, 32, 32, { 1, 1, 41 }, { 1, 1, 5 }, { 1, 1, 2 }, { 0, 0, 2 }, { 1, 1, 1 } },  /* one axis */
        { 8, 1, 32, 28, { 1, 61, 1 }, { 1, 4, 1 }, { 1, 3, 1 }, { 0, 3, 0 }, { 1, 2, 1 } },  /* lines of one pixel */
        { 4, 1, 32, 32, { 7, 5, 6 }, { 3, 3, 3 }, { 2, 2, 2 }, { 1, 1, 1 }, { 1, 1, 1 } },   /* three axes */
        { 3, 2, 32, 32, { 9, 5, 7 }, { 4, 3, 2 }, { 3, 1, 2 }, { 2, 2, 1 }, { 1, 2, 3 } },
        { 8, 1, 32, 32, { 1, 9, 5 }, { 1, 3, 2 }, { 1, 2, 2 }, { 0, 1, 5 }, { 1, 1, 1 } }, /* lines beside the image */
        /* Winograd's squares */
        { 4, 1, 33, 40, { 1, 13, 10 }, { 1, 3, 3 }, { 1, 1, 1 }, { 0, 1, 1 }, { 1, 1, 1 } },
        { 3, 1, 400, 32, { 1, 12, 11 }, { 1, 3, 3 }, { 1, 1, 1 }, { 0, 0, 2 }, { 1, 1, 1 } }, /* slices of channels */
        { 1, 1, 16, 24, { 3, 21, 6 }, { 1, 3, 3 }, { 1, 1, 1 }, { 0, 2, 0 }, { 1, 1, 1 } },   /* several planes */
        { 64, 1, 16, 16, { 1, 1, 3 }, { 1, 3, 3 }, { 1, 1, 1 }, { 0, 1, 0 }, { 1, 1, 1 } },   /* single positions */
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        meets_definition(&trials[i], CN_F32);
        meets_definition(&trials[i], CN_F64);
    }
}

/* ---- threads ---- */

typedef struct sizes {
    int64_t images, in, out, width, kernel, stride;
} sizes;

/* The result, then the gradients of image and weight, one after the other; NULL when something failed. */
static float *conv_and_gradients(const sizes *s, int threads, size_t *bytes)
{
    cn_ctx *own = cn_open(&(cn_desc){ .seed = 3, .threads = threads });
    cn_tensor *x = cn_param(cn_randn(own, CN_F32, CN_DIMS(s->images, s->in, s->width, s->width)));
    cn_tensor *w = cn_param(cn_randn(own, CN_F32, CN_DIMS(s->out, s->in, s->kernel, s->kernel)));
    const int64_t pad = s->stride == s->kernel ? 0 : s->kernel / 2;
    const cn_conv_desc desc = { .stride = { s->stride, s->stride }, .padding = { pad, pad } };
    cn_tensor *y = cn_conv2d(x, w, NULL, &desc);
    bool ok = cn_backward(cn_sum(cn_square(y), CN_ALL, false));
    cn_tensor *all[] = { y, cn_grad_of(x), cn_grad_of(w) };
    *bytes = sizeof(float) * (size_t)(cn_numel(all[0]) + cn_numel(all[1]) + cn_numel(all[2]));
    float *out = malloc(*bytes), *at = out;
    for (int i = 0; out && i < 3; at += cn_numel(all[i]), i++)
        ok = ok && cn_read(all[i], at, sizeof(float) * (size_t)cn_numel(all[i]));
    check(ok && out, "%s", cn_error(own));
    cn_close(own);
    return out;
}

/* Threads share out images, blocks of channels or a single product: the bits are the same. */
static void bits_across_threads(void)
{
    static const sizes trials[] = {
        { 4, 64, 256, 16, 3, 2 },                             /* operands that are packed beforehand */
        { 4, 32, 64, 64, 3, 2 },                              /* sums over many positions */
        { 1, 64, 128, 32, 3, 2 },                             /* one image: its product is shared */
        { 3, 128, 200, 9, 1, 1 },                             /* the image is its own columns */
        { 2, 3, 16, 96, 5, 3 },   { 4, 3, 192, 112, 16, 16 }, /* patches */
        { 9, 40, 33, 8, 2, 2 },   { 33, 32, 64, 7, 3, 2 },
        { 24, 32, 32, 57, 3, 1 }, /* Winograd's squares, several bands at a time */
        { 24, 32, 32, 57, 5, 1 }, /* pixels, in bands that are not copied all at a time */
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const sizes *s = &trials[i];
        size_t bytes;
        float *one = conv_and_gradients(s, 1, &bytes);
        for (int threads = 2; threads <= 4; threads++) {
            float *several = conv_and_gradients(s, threads, &bytes);
            check(one && several && memcmp(one, several, bytes) == 0,
                  "%d images, %d to %d channels, stride %d: other bits with %d threads", (int)s->images, (int)s->in,
                  (int)s->out, (int)s->stride, threads);
            free(several);
        }
        free(one);
    }
}

/* With the kernels of one instruction set. */
static void test_isa(cn__isa isa)
{
    setenv("CAIRN_ISA", cn__isa_name(isa), 1);
    cn = cn_open(&(cn_desc){ .threads = 2 });
    check(cn && !cn_failed(cn), "%s: the context does not open", cn__isa_name(isa));
    check_group("infinite pixels");
    infinite_pixels(1, 1, 9);
    infinite_pixels(2, 16, 32); /* by Winograd's squares, then by pixels */
    check_group("distant taps");
    distant_taps();
    check_group("strides");
    strides();
    cn_close(cn);
    check_group("bits across threads");
    bits_across_threads();
}

int main(void)
{
    const int best = (int)cn__isa_best();
    for (int isa = test_is_quick() ? best : CN__BASELINE; isa <= best; isa++) test_isa((cn__isa)isa);
    return finish();
}
