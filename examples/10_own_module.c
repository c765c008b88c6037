/* 10: a module of your own. A small network cannot learn a curve that goes up and down ten times; with sines and
   cosines of its input it can. This program defines such a layer, "Waves": a parameter, a buffer, a child, an
   initialiser, and a check of its gradients.

   Run it:  build/example_10_own_module */
#include <math.h>
#include <stdio.h>

#include "cairn/cairn.h"

enum { POINTS = 256, WAVES = 24, WIDTH = 32, STEPS = 400 };

/* The module's data. The frequencies are a buffer: they are drawn once and not trained, but they are saved. */
typedef struct waves {
    cn_tensor *frequency, *amplitude; /* (in, n), (n) */
    cn_module *mix;                   /* 2n -> out */
} waves;

/* The formula, in the form that cn_gradcheck accepts: x (N, in) -> (N, 2n), amplitude · [cos(x f), sin(x f)] */
static cn_tensor *wave(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    cn_tensor *angle = cn_matmul(in[0], in[1]); /* (N, n) */
    return cn_cat(CN_TENSORS(cn_mul(cn_cos(angle), in[2]), cn_mul(cn_sin(angle), in[2])), 1);
}

static cn_tensor *waves_forward(cn_module *m, cn_tensor *x)
{
    waves *w = cn_module_data(m);
    return cn_forward(w->mix, wave(NULL, CN_TENSORS(x, w->frequency, w->amplitude)));
}

static const cn_module_type waves_type = { .name = "Waves", .forward = waves_forward, .data_bytes = sizeof(waves) };

/* An initialiser assigns a new value: e^u with u uniform, so that [1, 2] is as likely as [10, 20]. */
static bool init_log_uniform(cn_tensor *t, double low, double high)
{
    return cn_assign(t, cn_exp(cn_add_s(cn_mul_s(cn_rand_like(t), log(high / low)), log(low))));
}

/* The maker. It makes a module of the type, and adds tensors and children by name. After an error it returns NULL. */
static cn_module *waves_new(cn_ctx *cn, int64_t in, int64_t n, int64_t out)
{
    cn_module *m = cn_module_new(cn, &waves_type);
    if (!m) return NULL;
    waves *w = cn_module_data(m);
    w->frequency = cn_module_buffer(m, "frequency", cn_zeros(cn, cn_default_dtype(cn), CN_DIMS(in, n)));
    w->amplitude = cn_module_param(m, "amplitude", cn_ones(cn, cn_default_dtype(cn), CN_DIMS(n)));
    w->mix = cn_module_child(m, "mix", cn_nn_linear(cn, 2 * n, out, NULL));
    init_log_uniform(w->frequency, 1, 40);
    return cn_module_made(m);
}

/* Compares the gradients of all three operands with finite differences, in f64. */
static bool check_gradients(cn_ctx *cn)
{
    char text[256] = "they agree";
    cn_tensor *in[] = { cn_randn(cn, CN_F64, CN_DIMS(3, 2)), cn_randn(cn, CN_F64, CN_DIMS(2, 4)),
                        cn_randn(cn, CN_F64, CN_DIMS(4)) };
    bool ok = cn_gradcheck(wave, NULL, in, 3, &(cn_gradcheck_desc){ .words = text, .words_size = sizeof text });
    printf("gradients against finite differences: %s\n\n", text);
    return ok;
}

static cn_module *model(cn_ctx *cn, cn_module *first)
{
    return cn_nn_sequential(cn, first, cn_nn_relu(cn), cn_nn_linear(cn, WIDTH, 1, NULL));
}

static double train(cn_ctx *cn, cn_module *net, cn_tensor *x, cn_tensor *y)
{
    cn_optim *opt = cn_adam(cn, cn_parameters(net), &(cn_adam_desc){ .lr = 1e-2 });
    double value = NAN;
    cn_scope s = cn_scope_begin(cn);
    for (int i = 0; i < STEPS; i++, cn_scope_end(cn, s)) {
        cn_tensor *loss = cn_mse_loss(cn_forward(net, x), y, NULL);
        cn_backward(loss);
        cn_step(opt);
        value = cn_item(loss);
    }
    return value;
}

int main(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3 });
    bool right = check_gradients(cn);
    cn_tensor *x = cn_keep(cn_reshape(cn_linspace(cn, CN_F32, -1, 1, POINTS), CN_DIMS(POINTS, 1)));
    cn_tensor *y = cn_keep(cn_mul(cn_sin(cn_mul_s(x, 31)), cn_cos(cn_mul_s(x, 2))));
    cn_module *net = model(cn, waves_new(cn, 1, WAVES, WIDTH)), *again = model(cn, waves_new(cn, 1, WAVES, WIDTH)),
              *plain = model(cn, cn_nn_linear(cn, 1, WIDTH, NULL));
    static char text[8192];
    cn_summary(net, x, text, sizeof text);
    printf("%s\n", text);
    double loss = train(cn, net, x, y), plain_loss = train(cn, plain, x, y);
    printf("after %d steps the loss is %.5f; with a linear layer in place of the waves it is %.5f\n\n", STEPS, loss,
           plain_loss);

    /* Save the model, and load it into another that started with other random numbers. */
    const char *path = "waves.safetensors";
    cn_dict *file = cn_dict_new(cn);
    if (cn_module_save(net, file, "")) cn_save(file, path);
    cn_module_load(again, cn_load(cn, path), NULL);
    remove(path);
    cn_dict_print(file, text, sizeof text);
    printf("%s\n", text);

    static double got[POINTS];
    cn_tensor *first = cn_forward(net, x), *second = cn_forward(again, x);
    bool same = cn_item(cn_sum(cn_ne(first, second), CN_ALL, false)) == 0;
    cn_read_f64(second, got, POINTS);
    cn_curve_desc curve = { .title = "the curve of the loaded model", .width = 72, .height = 10 };
    cn_curve_text(cn, &(cn_series){ .y = got, .n = POINTS }, 1, &curve, text, sizeof text);
    printf("%s\nthe loaded model computes %s numbers\n", text, same ? "the same" : "other");

    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    bool ok = !cn_failed(cn) && right && same && loss < 0.01 && loss < plain_loss / 5;
    cn_close(cn);
    return !ok;
}
