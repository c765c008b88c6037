/* cn_map: a user's function on every element; dtypes, strides, plans, gradients, errors. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

static cn_ctx *cn;

static double half_more(double x) { return x + 0.5; }
static double cube(double x) { return x * x * x; }
static double cube_slope(double x) { return 3 * x * x; }
static double scaled(void *user, double x) { return *(double *)user * x * x; }
static double scaled_slope(void *user, double x) { return 2 * *(double *)user * x; }

static void refused(const char *what, bool none, cn_code code, const char *part)
{
    check(none && cn_error_code(cn) == code && strstr(cn_error(cn), part), "%s: %s: %s", what,
          cn_code_name(cn_error_code(cn)), cn_error(cn));
    cn_error_clear(cn);
}

/* 1, 2, 3, .. of every dtype: floats keep theirs, whole numbers and bool become f32. */
static void dtypes(void)
{
    for (int t = 0; t < CN_DTYPES; t++) {
        const cn_dtype type = (cn_dtype)t, wanted = cn_dtype_is_float(type) ? type : CN_F32;
        cn_tensor *y = cn_map(cn_cast(cn_arange(cn, CN_F32, 1, 6, 1), type), half_more);
        double got[5] = { 0 };
        check(cn_type(y) == wanted, "%s became %s", cn_dtype_name(type), cn_dtype_name(cn_type(y)));
        cn_read_f64(y, got, 5);
        for (int i = 0; i < 5; i++) {
            const double x = type == CN_BOOL ? 1 : i + 1;
            check(got[i] == x + 0.5, "%s: element %d is %g", cn_dtype_name(type), i, got[i]);
        }
    }
    cn_tensor *large = cn_from(cn, CN_I64, CN_DIMS(1), (int64_t[]){ 16777217 }); /* has no f32: fn sees it exactly */
    check(cn_item(cn_map(large, half_more)) == (double)(float)16777217.5, "%g", cn_item(cn_map(large, half_more)));
}

/* Any strides: transposed, every other column backwards, repeated. */
static void strides(void)
{
    cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(33, 70));
    cn_tensor *views[] = { cn_transpose(x, 0, 1), cn_slice(x, 1, 3, 60, 2), cn_flip(x, CN_DIMS(0)),
                           cn_expand(cn_slice(x, 0, 0, 1, 1), CN_DIMS(50, 70)) };
    for (int i = 0; i < 4; i++) {
        cn_tensor *want =
            cn_mul(cn_mul(cn_cast(views[i], CN_F64), cn_cast(views[i], CN_F64)), cn_cast(views[i], CN_F64));
        cn_tensor *off = cn_sub(cn_cast(cn_map(views[i], cube), CN_F64), want);
        const double worst = cn_item(cn_max(cn_abs(off), CN_ALL, false));
        check(worst < 1e-5, "view %d: off by %g", i, worst);
    }
    check(cn_numel(cn_map(cn_zeros(cn, CN_F32, CN_DIMS(0, 3)), cube)) == 0, "nothing in, nothing out");
}

/* In a chain it is part of one kernel, and another function is another plan. */
static void plans(void)
{
    double sum[2];
    double (*const fn[])(double) = { cube, half_more };
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 2; i++) {
            cn_tensor *x = cn_full(cn, CN_F32, CN_DIMS(1000), 2);
            sum[i] = cn_item(cn_sum(cn_relu(cn_map(cn_mul_s(x, 1.5), fn[i])), CN_ALL, false));
            check(sum[i] == (i ? 3500 : 27000), "round %d: function %d gives %g", round, i, sum[i]);
        }
    char plan[2048];
    cn_plan_print(cn_sum(cn_relu(cn_map(cn_randn(cn, CN_F32, CN_DIMS(1000)), cube)), CN_ALL, false), plan, sizeof plan);
    check(strstr(plan, "map") && strstr(plan, " 1 steps"), "not one step: %s", plan);
}

static cn_tensor *checked(void *user, cn_tensor *const *in, int n)
{
    (void)n;
    return user ? cn_map_user(in[0], scaled, scaled_slope, user) : cn_map_grad(in[0], cube, cube_slope);
}

static void gradients(void)
{
    double factor = 1.7;
    cn_tensor *x = cn_randn(cn, CN_F64, CN_DIMS(4, 5));
    check(cn_gradcheck(checked, NULL, &x, 1, NULL), "with a derivative: %s", cn_error(cn));
    check(cn_gradcheck(checked, &factor, &x, 1, NULL), "with user data: %s", cn_error(cn));
    cn_tensor *p = cn_param(cn_ones(cn, CN_F32, CN_DIMS(3)));
    refused("no derivative", !cn_backward(cn_sum(cn_map(p, cube), CN_ALL, false)), CN_NO_GRADIENT, "cn_map_grad");
    refused("no derivative, with user data", !cn_backward(cn_sum(cn_map_user(p, scaled, NULL, &factor), CN_ALL, false)),
            CN_NO_GRADIENT, "cn_map_grad");
    refused("fn", !cn_map(p, NULL), CN_BAD_ARGUMENT, "fn is NULL");
    refused("derivative", !cn_map_grad(p, cube, NULL), CN_BAD_ARGUMENT, "derivative is NULL");
    check(!cn_map(NULL, cube) && !cn_failed(cn), "NULL in, NULL out");
}

int main(void)
{
    cn = cn_open(&(cn_desc){ .seed = 5, .threads = 3 });
    dtypes();
    strides();
    plans();
    gradients();
    check(!cn_failed(cn), "an error is left: %s", cn_error(cn));
    cn_close(cn);
    return finish();
}
