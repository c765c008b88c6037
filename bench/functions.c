/* Times elementwise functions: nanoseconds per element, one thread, 65,536 normal numbers of deviation 2, best of 25.

       bench_functions */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "cairn/cairn.h"
#include "ops/map/slope.h"

static cn_tensor *add(cn_tensor *x) { return cn_add(x, x); }
static cn_tensor *silu_backward(cn_tensor *x) { return cn__slope(&cn__op_silu_backward, x, x); }
static cn_tensor *gelu_tanh_backward(cn_tensor *x) { return cn__slope(&cn__op_gelu_tanh_backward, x, x); }
static cn_tensor *gelu_backward(cn_tensor *x) { return cn__slope(&cn__op_gelu_backward, x, x); }

static const struct function {
    const char *name;
    cn_tensor *(*apply)(cn_tensor *x);
} functions[] = { { "add", add },
                  { "relu", cn_relu },
                  { "sqrt", cn_sqrt },
                  { "exp", cn_exp },
                  { "expm1", cn_expm1 },
                  { "log", cn_log },
                  { "log2", cn_log2 },
                  { "log1p", cn_log1p },
                  { "sin", cn_sin },
                  { "cos", cn_cos },
                  { "tanh", cn_tanh },
                  { "sigmoid", cn_sigmoid },
                  { "silu", cn_silu },
                  { "gelu_tanh", cn_gelu_tanh },
                  { "erf", cn_erf },
                  { "gelu", cn_gelu },
                  { "mish", cn_mish },
                  { "silu_backward", silu_backward },
                  { "gelu_tanh_backward", gelu_tanh_backward },
                  { "gelu_backward", gelu_backward } };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double best_time(cn_ctx *cn, const struct function *f, cn_tensor *x)
{
    double best = INFINITY;
    for (int i = 0; i < 25; i++) {
        cn_scope s = cn_scope_begin(cn);
        double t = now();
        cn_eval(f->apply(x));
        t = now() - t;
        cn_scope_end(cn, s);
        best = t < best ? t : best;
    }
    return best;
}

int main(void)
{
    enum { N = 65536 };
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    cn_tensor *x[2];
    for (int i = 0; i < 2; i++) x[i] = cn_keep(cn_mul_s(cn_randn(cn, i ? CN_F64 : CN_F32, CN_DIMS(N)), 2));
    cn_eval_all(cn);
    printf("%-18s %8s %8s   ns per element\n", "", "f32", "f64");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const struct function *f = &functions[i];
        printf("%-18s %8.2f %8.2f\n", f->name, best_time(cn, f, x[0]) / N * 1e9, best_time(cn, f, x[1]) / N * 1e9);
    }
    if (cn_failed(cn)) printf("%s\n", cn_error(cn));
    cn_close(cn);
    return 0;
}
