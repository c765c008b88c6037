/* How many digits kernels keep that sum many elements: what they give in f32 against the same in f64, from the same
   numbers, for every instruction set that the processor has. Errors are relative to the largest element of a result. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cairn/cairn.h"
#include "cpu/processor.h"
#include "support/check.h"

enum { MOST = 5003 * 70 };

static cn_ctx *cn;

/* ---- what is tested: a result from x and g, (rows, n) ---- */

static cn_tensor *sum_of_rows(cn_tensor *x, cn_tensor *g)
{
    (void)g;
    return cn_sum(x, CN_DIMS(0), false);
}
static cn_tensor *softmax(cn_tensor *x, cn_tensor *g)
{
    (void)g;
    return cn_softmax(x, 1);
}
static cn_tensor *log_softmax(cn_tensor *x, cn_tensor *g)
{
    (void)g;
    return cn_log_softmax(x, 1);
}
static cn_tensor *layer_norm(cn_tensor *x, cn_tensor *g)
{
    (void)g;
    return cn_layer_norm(x, 1, NULL, NULL, 1e-5);
}

/* Gradient number k of layer_norm: to x, weight, bias. */
static cn_tensor *norm_gradient(cn_tensor *x, cn_tensor *g, int k)
{
    const cn_dims tail = CN_DIMS(cn_size(x, 1));
    const cn_dtype dtype = cn_type(x);
    cn_tensor *in[3] = { x, cn_full(cn, dtype, tail, 0.75), cn_zeros(cn, dtype, tail) }, *found[3];
    for (int i = 0; i < 3; i++) cn_set_requires_grad(in[i], true);
    cn_tensor *y = cn_layer_norm(in[0], 1, in[1], in[2], 1e-5);
    return cn_grad(&y, 1, in, 3, found, &(cn_grad_desc){ .gradients = &g }) ? found[k] : NULL;
}
static cn_tensor *norm_to_x(cn_tensor *x, cn_tensor *g) { return norm_gradient(x, g, 0); }
static cn_tensor *norm_to_weight(cn_tensor *x, cn_tensor *g) { return norm_gradient(x, g, 1); }
static cn_tensor *norm_to_bias(cn_tensor *x, cn_tensor *g) { return norm_gradient(x, g, 2); }

/* x lies between low and high, g between 0 and 1 */
typedef struct row_test {
    const char *name;
    cn_tensor *(*result)(cn_tensor *x, cn_tensor *g);
    int64_t rows, n;
    double low, high;
    double bound; /* of the error, in halves of 2^-23 */
} row_test;

static const row_test tests[] = {
    { "sum over rows", sum_of_rows, 5003, 70, 0, 1, 1.01 },
    { "softmax", softmax, 1, MOST, -5, 5, 3 },
    { "log_softmax", log_softmax, 1, MOST, -5, 5, 3 },
    { "layer_norm", layer_norm, 3, 5003, -1, 1, 3 },
    { "layer_norm of huge numbers", layer_norm, 3, 5003, -1e30, 1e30, 3 },
    { "layer_norm to x", norm_to_x, 3, 5003, -1, 1, 6 },
    { "layer_norm to weight", norm_to_weight, 5003, 70, -1, 1, 2 },
    { "layer_norm to bias", norm_to_bias, MOST / 2, 2, -1, 1, 1.01 },
};

/* ---- how ---- */

static double drawn(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) * 0x1p-24;
}

typedef struct operands {
    float x[MOST], g[MOST];
    double wide_x[MOST], wide_g[MOST];
} operands;

static void draw(const row_test *t, operands *o)
{
    uint64_t state = 1;
    for (int64_t i = 0; i < t->rows * t->n; i++) {
        o->wide_x[i] = o->x[i] = (float)(t->low + (t->high - t->low) * drawn(&state));
        o->wide_g[i] = o->g[i] = (float)drawn(&state);
    }
}

/* How many elements; 0 after an error. */
static int64_t compute(const row_test *t, cn_dtype dtype, const void *x, const void *g, double *to)
{
    const cn_dims shape = CN_DIMS(t->rows, t->n);
    cn_tensor *y = t->result(cn_from(cn, dtype, shape, x), cn_from(cn, dtype, shape, g));
    const bool ok = y && cn_read(cn_cast(y, CN_F64), to, sizeof *to * (size_t)cn_numel(y));
    return check(ok, "%s: %s", t->name, cn_error(cn)) ? cn_numel(y) : 0;
}

static void try(const row_test *t)
{
    static operands o;
    static double got[MOST], expected[MOST];
    draw(t, &o);
    cn_scope scope = cn_scope_begin(cn);
    const int64_t n = compute(t, CN_F32, o.x, o.g, got);
    compute(t, CN_F64, o.wide_x, o.wide_g, expected);
    cn_scope_end(cn, scope);
    double error = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const double off = fabs(got[i] - expected[i]);
        if (!(off <= error)) error = off; /* a NaN stays */
        largest = fmax(largest, fabs(expected[i]));
    }
    error /= largest * 0x1p-24;
    check(error <= t->bound, "%s: off by %g halves of a unit", t->name, error);
    printf("%-28s %.2f\n", t->name, error);
}

/* softmax of 0 and x is e^x / (1 + e^x), also where that falls below the normal range, and down to 0. */
static void small_ones(void)
{
    for (int i = 0; i <= 440; i++) {
        const float x[2] = { 0, i < 440 ? -0.25f * (float)i : -INFINITY };
        float y[2] = { -1, -1 };
        cn_scope scope = cn_scope_begin(cn);
        cn_read(cn_softmax(cn_from(cn, CN_F32, CN_DIMS(2), x), 0), y, sizeof y);
        cn_scope_end(cn, scope);
        const double expected = exp(x[1]) / (1 + exp(x[1]));
        check(fabs(y[1] - expected) <= fmax(expected * 0x1p-22, 0x1p-149), "softmax of 0, %g: %a", (double)x[1],
              (double)y[1]);
    }
}

/* With the kernels of one instruction set. */
static void test_isa(cn__isa isa)
{
    setenv("CAIRN_ISA", cn__isa_name(isa), 1);
    cn = cn_open(NULL);
    if (!check(cn && !cn_failed(cn), "%s: the context does not open", cn__isa_name(isa))) return;
    printf("%s\n", cn__isa_name(isa));
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) try(&tests[i]);
    check_group("small numbers");
    small_ones();
    cn_close(cn);
}

int main(void)
{
    for (int isa = CN__BASELINE; isa <= (int)cn__isa_best(); isa++) test_isa((cn__isa)isa);
    return finish();
}
