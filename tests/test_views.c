/* Views and joins where cases of single operators do not reach: many operands, windows that move, views of views, and
   arguments from the far ends of int64_t. */
#include <math.h>
#include <stdint.h>

#include "cairn/cairn.h"
#include "support/check.h"

#define V(...) ((double[]){ __VA_ARGS__ })

static cn_ctx *cn;

/* Shape and values are these. */
static void is(const char *what, cn_tensor *y, cn_dims shape, const double *expected)
{
    double got[256];
    int64_t n = cn_numel(y), i = 0;
    bool same = y && cn_ndim(y) == shape.n && n <= 256;
    for (int d = 0; d < shape.n && same; d++) same = cn_size(y, d) == shape.v[d];
    if (same && cn_read_f64(y, got, n))
        while (i < n && got[i] == expected[i]) i++;
    check(same && i == n && !cn_failed(cn), "%s: %s element %lld; %s", what, same ? "wrong" : "another shape,",
          (long long)i, cn_error(cn));
    cn_error_clear(cn);
}

static void refused(const char *what, bool none, cn_code code)
{
    check(none && cn_error_code(cn) == code, "%s: wanted %s, got %s: %s", what, cn_code_name(code),
          cn_code_name(cn_error_code(cn)), cn_error(cn));
    cn_error_clear(cn);
}

static cn_tensor *count_to(int64_t n) { return cn_arange(cn, CN_F32, 0, (double)n, 1); }

enum { MANY = 20 };

/* 0 of 0, 1 of 1, 2 of 2, ...: of two dtypes, promoted to the wider. */
static void cat_of_many(void)
{
    cn_tensor *x[MANY];
    double expected[MANY * MANY];
    int n = 0;
    for (int k = 0; k < MANY; k++) {
        x[k] = cn_full(cn, k % 2 ? CN_F32 : CN_I32, CN_DIMS(k), k);
        for (int j = 0; j < k; j++) expected[n++] = k;
    }
    cn_tensor *y = cn_cat(x, MANY, 0);
    check(cn_type(y) == CN_F32, "cat of i32 and f32");
    is("cat of 20", y, CN_DIMS(n), expected);
}

/* d/dx of the sum of w x²: 2 w x, with w counting through the joined tensor. */
static void gradients_of_many(bool stack)
{
    cn_tensor *x[MANY];
    for (int k = 0; k < MANY; k++) x[k] = cn_param(cn_full(cn, CN_F32, CN_DIMS(2, 3), k));
    cn_tensor *y = stack ? cn_stack(x, MANY, 1) : cn_cat(x, MANY, -1);
    cn_tensor *w = cn_reshape(count_to(6 * MANY), cn_shape(y));
    check(cn_backward(cn_sum(cn_mul(w, cn_mul(y, y)), CN_ALL, false)), "backward: %s", cn_error(cn));
    for (int k = 0; k < MANY; k++) {
        double g[6];
        for (int i = 0; i < 6; i++) g[i] = 2 * k * (i / 3 * 3 * MANY + k * 3 + i % 3);
        is(stack ? "gradient of stack" : "gradient of cat", cn_grad_of(x[k]), CN_DIMS(2, 3), g);
        cn_release(x[k]);
    }
    double values[6 * MANY];
    for (int i = 0; i < 6 * MANY; i++) values[i] = i / 3 % MANY;
    is(stack ? "stack of 20" : "cat of 20", y, stack ? CN_DIMS(2, MANY, 3) : CN_DIMS(2, 3 * MANY), values);
}

static void many_operands(void)
{
    cat_of_many();
    gradients_of_many(false);
    gradients_of_many(true);
    cn_tensor *x = count_to(3);
    refused("cat of unlike shapes", !cn_cat(CN_TENSORS(x, cn_reshape(x, CN_DIMS(3, 1))), 0), CN_BAD_SHAPE);
    refused("stack of unlike shapes", !cn_stack(CN_TENSORS(x, count_to(4)), 0), CN_BAD_SHAPE);
    check(!cn_cat(NULL, 0, 0) && !cn_cat(NULL, 2, 0) && !cn_failed(cn),
          "without a tensor there is no context to have an error");
    refused("stack with NULL", !cn_stack(CN_TENSORS(x, NULL), 0), CN_BAD_ARGUMENT);
    refused("cat with NULL", !cn_cat(CN_TENSORS(NULL, x), 0), CN_BAD_ARGUMENT);
}

enum { ROWS = 40, COLUMNS = 3, WINDOW = 5 };

/* loss = sum(data[2t : 2t + 5] · 2 w[t : t + 5]) + sum(w[3 + t]²); its gradient to w. */
static void move_window(cn_tensor *data, cn_tensor *w, int t)
{
    cn_tensor *part = cn_slice(data, 0, 2 * t, 2 * t + WINDOW, 1), *weights = cn_narrow(cn_mul_s(w, 2), 0, t, WINDOW);
    cn_tensor *row = cn_select(cn_mul(w, w), 0, 3 + t);
    cn_tensor *loss = cn_add(cn_sum(cn_mul(part, weights), CN_ALL, false), cn_sum(row, CN_ALL, false));
    cn_zero_grad(w);
    check(cn_backward(loss), "window %d: %s", t, cn_error(cn));
    double g[ROWS * COLUMNS], expected_loss = 0;
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) {
            double value = r + 0.5 * c, there = (r - t + 2 * t) * COLUMNS + c;
            bool inside = r >= t && r < t + WINDOW;
            g[r * COLUMNS + c] = (inside ? 2 * there : 0) + (r == 3 + t ? 2 * value : 0);
            expected_loss += (inside ? 2 * there * value : 0) + (r == 3 + t ? value * value : 0);
        }
    }
    check(cn_item(loss) == expected_loss, "window %d: loss %g, not %g", t, cn_item(loss), expected_loss);
    is("gradient of a window", cn_grad_of(w), CN_DIMS(ROWS, COLUMNS), g);
}

static void moving_window(void)
{
    double v[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) v[i] = i / COLUMNS + 0.5 * (i % COLUMNS);
    cn_tensor *data = cn_reshape(cn_arange(cn, CN_F64, 0, ROWS * COLUMNS, 1), CN_DIMS(ROWS, COLUMNS));
    cn_tensor *w = cn_param(cn_from(cn, CN_F64, CN_DIMS(ROWS, COLUMNS), v));
    cn_eval(data);
    int64_t misses = 0;
    for (int t = 0; t < 15; t++) {
        cn_scope s = cn_scope_begin(cn);
        move_window(data, w, t);
        cn_scope_end(cn, s);
        if (t == 1) misses = cn_count(cn).plan_misses;
    }
    check(cn_count(cn).plan_misses == misses, "a window that moves meets the same plan");
    cn_release(w);
}

/* x (2, 3, 4), x[a, b, c] = 12 a + 4 b + c. */
static void views_of_views(void)
{
    cn_tensor *x = cn_reshape(count_to(24), CN_DIMS(2, 3, 4));
    cn_tensor *y = cn_slice(cn_permute(x, CN_DIMS(2, 0, 1)), 0, 1, 4, 2); /* (2, 2, 3): c = 1, 3 */
    is("slice of permute", y, CN_DIMS(2, 2, 3), V(1, 5, 9, 13, 17, 21, 3, 7, 11, 15, 19, 23));
    y = cn_flip(y, CN_DIMS(0, 2));
    is("flip of that", y, CN_DIMS(2, 2, 3), V(11, 7, 3, 23, 19, 15, 9, 5, 1, 21, 17, 13));
    cn_tensor *row = cn_select(y, 1, -1); /* (2, 3) */
    is("select of that", row, CN_DIMS(2, 3), V(23, 19, 15, 21, 17, 13));
    y = cn_expand(cn_unsqueeze(cn_narrow(row, 1, -2, 2), 1), CN_DIMS(2, 3, 2));
    is("expand of that", y, CN_DIMS(2, 3, 2), V(19, 15, 19, 15, 19, 15, 17, 13, 17, 13, 17, 13));
    y = cn_flip(cn_expand(cn_slice(cn_permute(x, CN_DIMS(1, 0, 2)), 2, 3, 4, 1), CN_DIMS(3, 2, 2)), CN_DIMS(0, 1));
    is("flip of expand of slice of permute", y, CN_DIMS(3, 2, 2), V(23, 23, 11, 11, 19, 19, 7, 7, 15, 15, 3, 3));
    is("unfold of flip", cn_unfold(cn_flip(count_to(5), CN_ALL), 0, 3, 2), CN_DIMS(2, 3), V(4, 3, 2, 2, 1, 0));
    is("diagonal of flip", cn_diagonal(cn_flip(cn_select(x, 0, 0), CN_DIMS(1)), 1, 0, 1), CN_DIMS(3), V(2, 5, 8));
}

static void python_clamps(void)
{
    cn_tensor *x = count_to(6);
    is("x[-3:]", cn_slice(x, 0, -3, INT64_MAX, 1), CN_DIMS(3), V(3, 4, 5));
    is("x[:-4]", cn_slice(x, -1, INT64_MIN, -4, 1), CN_DIMS(2), V(0, 1));
    is("x[::5]", cn_slice(x, 0, INT64_MIN, INT64_MAX, 5), CN_DIMS(2), V(0, 5));
    is("x[3::huge]", cn_slice(x, 0, 3, INT64_MAX, INT64_MAX), CN_DIMS(1), V(3));
    is("x[4:2]", cn_slice(x, 0, 4, 2, 1), CN_DIMS(0), NULL);
    is("x[max:min]", cn_slice(x, 0, INT64_MAX, INT64_MIN, 1), CN_DIMS(0), NULL);
    is("narrow from the end", cn_narrow(x, 0, -2, 2), CN_DIMS(2), V(4, 5));
    is("select from the end", cn_select(x, -1, -6), CN_SCALAR, V(0));
    cn_tensor *m = cn_reshape(x, CN_DIMS(2, 3));
    is("a diagonal far above", cn_diagonal(m, INT64_MAX, 0, 1), CN_DIMS(0), NULL);
    is("a diagonal far below", cn_diagonal(m, INT64_MIN, 0, 1), CN_DIMS(0), NULL);
    is("roll", cn_roll(count_to(3), CN_DIMS(INT64_MIN), CN_DIMS(0)), CN_DIMS(3), V(2, 0, 1));
}

static void extreme_axes(cn_tensor *x, int64_t axis)
{
    cn_tensor *out[4];
    refused("slice", !cn_slice(x, axis, 0, 1, 1), CN_BAD_ARGUMENT);
    refused("select", !cn_select(x, axis, 0), CN_BAD_ARGUMENT);
    refused("narrow", !cn_narrow(x, axis, 0, 1), CN_BAD_ARGUMENT);
    refused("unsqueeze", !cn_unsqueeze(x, axis), CN_BAD_ARGUMENT);
    refused("squeeze", !cn_squeeze(x, CN_DIMS(axis)), CN_BAD_ARGUMENT);
    refused("flip", !cn_flip(x, CN_DIMS(axis)), CN_BAD_ARGUMENT);
    refused("transpose", !cn_transpose(x, 0, axis), CN_BAD_ARGUMENT);
    refused("unfold", !cn_unfold(x, axis, 1, 1), CN_BAD_ARGUMENT);
    refused("diagonal", !cn_diagonal(x, 0, 0, axis), CN_BAD_ARGUMENT);
    refused("split", !cn_split(x, 1, axis, out, 4), CN_BAD_ARGUMENT);
    refused("chunk", !cn_chunk(x, 1, axis, out, 4), CN_BAD_ARGUMENT);
    refused("cat", !cn_cat(&x, 1, axis), CN_BAD_ARGUMENT);
    refused("stack", !cn_stack(&x, 1, axis), CN_BAD_ARGUMENT);
}

static void extreme_numbers(cn_tensor *x, int64_t v)
{
    cn_tensor *out[4];
    refused("select", !cn_select(x, 0, v), CN_BAD_ARGUMENT);
    refused("narrow, start", !cn_narrow(x, 0, v, 1), CN_BAD_ARGUMENT);
    refused("narrow, length", !cn_narrow(x, 0, 1, v), CN_BAD_ARGUMENT);
    refused("unfold, size", !cn_unfold(x, 0, v, 1), CN_BAD_ARGUMENT);
    if (v < 0) refused("slice, step", !cn_slice(x, 0, 0, 2, v), CN_BAD_ARGUMENT);
    if (v < 0) refused("unfold, step", !cn_unfold(x, 0, 1, v), CN_BAD_ARGUMENT);
    if (v < 0) refused("split, size", !cn_split(x, v, 0, out, 4), CN_BAD_ARGUMENT);
    if (v > 0) is("unfold, step", cn_unfold(x, 1, 2, v), CN_DIMS(2, 1, 2), V(0, 1, 3, 4));
    refused("expand", !cn_expand(x, CN_DIMS(v, 2, 3)), CN_BAD_SHAPE);
    refused("repeat", !cn_repeat(x, CN_DIMS(v, v)), v < 0 ? CN_BAD_ARGUMENT : CN_BAD_SHAPE);
    refused("pad", !cn_pad(x, CN_DIMS(v, v), CN_PAD_CONSTANT, 0), CN_BAD_SHAPE);
}

static void extremes(void)
{
    cn_tensor *x = cn_reshape(count_to(6), CN_DIMS(2, 3));
    static const int64_t axes[] = { 3, -4, INT64_MIN, INT64_MAX };
    for (size_t k = 0; k < sizeof axes / sizeof *axes; k++) extreme_axes(x, axes[k]);
    extreme_numbers(x, INT64_MIN);
    extreme_numbers(x, INT64_MAX);
    refused("slice, step 0", !cn_slice(x, 0, 0, 1, 0), CN_BAD_ARGUMENT);
    is("x after all that", x, CN_DIMS(2, 3), V(0, 1, 2, 3, 4, 5));
}

static void parts(void)
{
    cn_tensor *out[8], *x = count_to(7), *none = cn_zeros(cn, CN_F32, CN_DIMS(0, 3));
    check(cn_split(x, 3, 0, out, 8) == 3, "7 by 3 are 3 parts");
    is("the second", out[1], CN_DIMS(3), V(3, 4, 5));
    is("the last", out[2], CN_DIMS(1), V(6));
    check(cn_split(x, INT64_MAX, -1, out, 1) == 1 && cn_numel(out[0]) == 7, "a part larger than all is all");
    check(cn_split(none, 0, 0, out, 8) == 1 && cn_split(none, 5, 0, out, 8) == 1, "nothing is one part");
    check(cn_chunk(x, 3, 0, out, 8) == 3 && cn_numel(out[0]) == 3 && cn_numel(out[2]) == 1, "7 in 3: 3, 3, 1");
    check(cn_chunk(x, 5, 0, out, 8) == 4 && cn_numel(out[3]) == 1, "7 in 5 are four: 2, 2, 2, 1");
    check(cn_chunk(x, INT64_MAX, 0, out, 8) == 7, "no more chunks than elements");
    check(cn_chunk(none, 3, 0, out, 8) == 3 && cn_numel(out[2]) == 0, "nothing in 3 chunks");
    refused("parts of size 0", !cn_split(x, 0, 0, out, 8), CN_BAD_ARGUMENT);
    refused("no room", !cn_split(x, 1, 0, out, 6), CN_BAD_ARGUMENT);
    refused("no room for chunks of nothing", !cn_chunk(none, INT64_MAX, 0, out, 8), CN_BAD_ARGUMENT);
}

static void numbers(void)
{
    cn_tensor *z = cn_scalar(cn, CN_F32, 3), *out[1];
    is("flip", cn_flip(z, CN_DIMS(0)), CN_SCALAR, V(3));
    is("squeeze", cn_squeeze(z, CN_DIMS(-1)), CN_SCALAR, V(3));
    is("unsqueeze", cn_unsqueeze(z, -1), CN_DIMS(1), V(3));
    is("expand", cn_expand(z, CN_DIMS(2)), CN_DIMS(2), V(3, 3));
    is("unfold", cn_unfold(z, 0, 1, 1), CN_DIMS(1), V(3));
    is("stack", cn_stack(CN_TENSORS(z, z), -1), CN_DIMS(2), V(3, 3));
    refused("select", !cn_select(z, 0, 0), CN_BAD_ARGUMENT);
    refused("split", !cn_split(z, 1, 0, out, 1), CN_BAD_ARGUMENT);
}

/* Gradients of parts of a view are put together as the memory lies that it looks at: nothing is left to rearrange. */
static void gradient_layout(void)
{
    cn_tensor *x = cn_param(cn_randn(cn, CN_F64, CN_DIMS(2, 5, 3, 4))), *part[3];
    cn_tensor *h = cn_permute(x, CN_DIMS(2, 0, 3, 1)); /* (3,2,4,5) */
    for (int k = 0; k < 3; k++) part[k] = cn_mul_s(cn_square(cn_select(h, 0, k)), k + 1);
    cn_backward(
        cn_sum(cn_add(cn_add(part[0], part[1]), cn_add(part[2], cn_square(cn_select(h, 0, 1)))), CN_ALL, false));
    cn_tensor *g = cn_grad_of(x);
    check(g && cn_is_contiguous(g), "the gradient of parts of a permuted tensor lies as the tensor does");
    double value[120] = { 0 }, got[120] = { 0 };
    cn_read(cn_detach(x), value, sizeof value);
    cn_read(g, got, sizeof got);
    bool same = true;
    for (int i = 0; i < 120; i++) {
        const int k = i / 4 % 3; /* 2 (k + 1) x, and once more for part 1 */
        same &= fabs(got[i] - 2 * (k + 1 + (k == 1)) * value[i]) < 1e-12;
    }
    check(same, "gradients of parts of a permuted tensor");
    cn_zero_grad(x);
    cn_release(x);
}

static void arguments_that_cannot_be(void)
{
    cn_tensor *x = cn_reshape(count_to(6), CN_DIMS(2, 3));
    refused("-1 for a new axis", !cn_expand(x, CN_DIMS(-1, 2, 3)), CN_BAD_SHAPE);
    is("-1 for an axis that is there", cn_expand(x, CN_DIMS(1, -1, 3)), CN_DIMS(1, 2, 3), V(0, 1, 2, 3, 4, 5));
    refused("reflection by the whole axis", !cn_pad(x, CN_DIMS(3, 0), CN_PAD_REFLECT, 0), CN_BAD_SHAPE);
    refused("reflection at the end", !cn_pad(x, CN_DIMS(0, 3), CN_PAD_REFLECT, 0), CN_BAD_SHAPE);
    refused("going round more than once", !cn_pad(x, CN_DIMS(0, 4), CN_PAD_CIRCULAR, 0), CN_BAD_SHAPE);
    is("reflection", cn_pad(x, CN_DIMS(2, 2), CN_PAD_REFLECT, 0), CN_DIMS(2, 7),
       V(2, 1, 0, 1, 2, 1, 0, 5, 4, 3, 4, 5, 4, 3));
    is("going round", cn_pad(x, CN_DIMS(0, 3), CN_PAD_CIRCULAR, 0), CN_DIMS(2, 6),
       V(0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5));
}

static bool strides_are(cn_tensor *y, cn_dims expected)
{
    const cn_dims got = cn_strides(y);
    bool same = got.n == expected.n;
    for (int d = 0; d < expected.n && same; d++) same = got.v[d] == expected.v[d];
    return same;
}

/* PyTorch's strides, also of axes of size 1: other libraries see them, and merge axes by them. */
static void strides(void)
{
    cn_tensor *x = cn_reshape(count_to(24), CN_DIMS(2, 3, 4)), *t = cn_transpose(x, 0, 2);
    static const int64_t of_x[4] = { 24, 12, 4, 1 }, of_t[4] = { 4, 12, 24, 1 };
    for (int d = 0; d < 4; d++) {
        cn_dims want = { .n = 4 }, want_t = { .n = 4 };
        for (int k = 0; k < 4; k++) {
            want.v[k] = k == d ? of_x[d] : (int64_t[]){ 12, 4, 1 }[k - (k > d)];
            want_t.v[k] = k == d ? of_t[d] : (int64_t[]){ 1, 4, 12 }[k - (k > d)];
        }
        cn_tensor *u = cn_unsqueeze(x, d), *v = cn_unsqueeze(t, d);
        check(strides_are(u, want), "unsqueeze at %d", d);
        check(strides_are(v, want_t), "unsqueeze of a permuted tensor at %d", d);
        check(strides_are(cn_squeeze(v, CN_DIMS(d)), CN_DIMS(1, 4, 12)), "and squeezed again");
        check(strides_are(cn_transpose(u, 0, 3), CN_DIMS(want.v[3], want.v[1], want.v[2], want.v[0])), "permuted");
    }
    cn_tensor *one = cn_slice(x, 1, 2, 3, 1);
    check(strides_are(one, CN_DIMS(12, 4, 1)), "a slice of one element keeps its stride");
    check(strides_are(cn_reshape(x, CN_DIMS(6, 1, 4)), CN_DIMS(4, 4, 1)) &&
              strides_are(cn_reshape(x, CN_DIMS(1, 24, 1)), CN_DIMS(24, 1, 1)),
          "reshape to axes of size 1");
    check(strides_are(cn_expand(cn_unsqueeze(one, 0), CN_DIMS(5, 2, 1, 4)), CN_DIMS(0, 12, 4, 1)), "expand");
}

int main(void)
{
    static void (*const all[])(
        void) = { many_operands, moving_window,   views_of_views,           python_clamps, extremes, parts,
                  numbers,       gradient_layout, arguments_that_cannot_be, strides };
    for (int eager = 0; eager < 2; eager++) {
        cn = cn_open(&(cn_desc){ .threads = 2, .eager = eager });
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            cn_scope s = cn_scope_begin(cn);
            all[i]();
            cn_scope_end(cn, s);
            check(cn_count(cn).handles == 0, "group %zu leaves nothing behind", i);
        }
        cn_close(cn);
    }
    return finish();
}
