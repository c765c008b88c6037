/* Convolutions where cases of single operators do not reach: values that are not finite, sizes from the far end of int64_t. */
#include <math.h>

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

int main(void)
{
    cn = cn_open(&(cn_desc){ .threads = 2 });
    check_group("infinite pixels");
    infinite_pixels();
    check_group("distant taps");
    distant_taps();
    cn_close(cn);
    return finish();
}
