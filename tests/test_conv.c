/* Convolutions where cases of single operators do not reach: values that are not finite, sizes from the far end of int64_t,
   products so large that threads which run several of them at once could meet in their scratch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

static cn_ctx *cn;

enum { SIZE = 23, ROWS = 9, TAPS = 9 };

/* Taps of the kernel's first line never see the last line of the image: what is there must not reach their gradients, nor
   may what is at its end reach those that do not see it. */
static void infinite_pixels(void)
{
    double x[SIZE * SIZE], got[ROWS * TAPS];
    for (int i = 0; i < SIZE * SIZE; i++) x[i] = i < SIZE * (SIZE - 1) ? 1 : (double)INFINITY;
    cn_tensor *image = cn_cast(cn_from(cn, CN_F64, CN_DIMS(1, 1, SIZE, SIZE), x), CN_F32);
    cn_tensor *weight = cn_param(cn_ones(cn, CN_F32, CN_DIMS(ROWS, 1, 3, 3)));
    cn_tensor *y = cn_conv2d(image, weight, NULL, &(cn_conv_desc){ .padding = { 1, 1 } });
    check(cn_backward(cn_sum(y, CN_ALL, false)) && cn_read_f64(cn_grad_of(weight), got, ROWS * TAPS), "%s",
          cn_error(cn));
    for (int i = 0; i < ROWS * TAPS; i++) {
        const int line = i % TAPS / 3, column = i % 3;
        const double finite = (SIZE - 1) * (column == 1 ? SIZE : SIZE - 1);
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

typedef struct sizes {
    int64_t images, in, out, width, kernel, stride;
} sizes;

/* The result, then the gradients of image and weight, one after the other; NULL when something failed. */
static float *conv_and_gradients(const sizes *s, int threads, size_t *bytes)
{
    cn_ctx *own = cn_open(&(cn_desc){ .seed = 3, .threads = threads });
    cn_tensor *x = cn_param(cn_randn(own, CN_F32, CN_DIMS(s->images, s->in, s->width, s->width)));
    cn_tensor *w = cn_param(cn_randn(own, CN_F32, CN_DIMS(s->out, s->in, s->kernel, s->kernel)));
    const cn_conv_desc desc = { .stride = { s->stride, s->stride }, .padding = { s->kernel / 2, s->kernel / 2 } };
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
        { 4, 64, 256, 16, 3, 2 }, /* operands that are packed beforehand */
        { 4, 32, 64, 64, 3, 2 },  /* sums over many positions */
        { 1, 64, 128, 32, 3, 2 }, /* one image: its product is shared */
        { 3, 128, 200, 9, 1, 1 }, /* the image is its own columns */
        { 2, 3, 16, 96, 5, 3 },
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

int main(void)
{
    cn = cn_open(&(cn_desc){ .threads = 2 });
    check_group("infinite pixels");
    infinite_pixels();
    check_group("distant taps");
    distant_taps();
    cn_close(cn);
    check_group("bits across threads");
    bits_across_threads();
    return finish();
}
