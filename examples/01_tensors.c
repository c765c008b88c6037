/* 01: tensors. How to make them, compute with them and read them, and what a view is.

   Run it:  build/example_01_tensors */
#include <stdio.h>

#include "cairn/cairn.h"

static void show(const char *what, cn_tensor *t)
{
    char text[1024];
    cn_print(t, text, sizeof text);
    printf("%s\n%s\n\n", what, text);
}

int main(void)
{
    /* Everything belongs to a context. The same seed gives the same random numbers on every machine. */
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 42 });

    /* From your data, which is copied, or from a function that makes a tensor. */
    float v[6] = { 1, 2, 3, 4, 5, 6 };
    cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(2, 3), v);
    cn_tensor *r = cn_rand(cn, CN_F32, CN_DIMS(3));
    show("x", x);
    show("three random numbers", r);

    /* Operators nest. Shapes broadcast: (2,3) + (3) adds r to every row. Printing a tensor computes it. */
    show("x * 10 + r", cn_add(cn_mul_s(x, 10), r));
    show("x times its transpose", cn_matmul(x, cn_transpose(x, 0, 1)));
    show("sums of the rows", cn_sum(x, CN_DIMS(1), false));

    /* Views copy no data: they read the same memory in another order. */
    cn_tensor *column = cn_select(x, 1, 2), *backwards = cn_flip(x, CN_DIMS(0, 1));
    show("the last column, a view", column);
    show("both axes reversed, a view", backwards);
    printf("is the transpose contiguous? %s\n\n", cn_is_contiguous(cn_transpose(x, 0, 1)) ? "yes" : "no");

    /* A value never changes. An in-place form gives the handle x a new value; the view keeps the old one. */
    cn_add_s_(x, 100);
    show("x after cn_add_s_(x, 100)", x);
    show("the column, a view of the old value", column);

    /* Types follow PyTorch: dividing whole numbers gives floats, comparing gives bools. */
    cn_tensor *i = cn_arange(cn, CN_I64, 0, 5, 1);
    show("whole numbers", i);
    show("divided by 2", cn_div_s(i, 2));
    show("greater than 2", cn_gt_s(i, 2));

    /* After a mistake the result is NULL and the context has an error. The first error stays until it is cleared. */
    if (!cn_matmul(x, x)) printf("a mistake: %s\n", cn_error(cn));
    cn_error_clear(cn);

    bool failed = cn_failed(cn);
    cn_close(cn);
    return failed;
}
