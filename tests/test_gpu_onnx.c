/* Models from ONNX files on the GPU: their training follows the CPU's. Skipped where there is no GPU. */
#include <math.h>
#include <stdio.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/onnx_write.h"

#define SIZES(...) \
    (const int[]) { __VA_ARGS__, -2 }

enum { STEPS = 20, BATCH = 16, CLASSES = 4 };

/* A weight of numbers that differ, about 1/√inputs large. */
static void weight(onnx_bytes *g, const char *name, const int *sizes, int n, float size)
{
    float v[2048];
    for (int i = 0; i < n && i < 2048; i++) v[i] = size * sinf((float)(i * 37 % 101) + 0.5f * (float)n);
    onnx_floats_tensor(g, 5, name, sizes, v);
}

static void ints_attribute(onnx_bytes *node, const char *name, const int *v)
{
    onnx_bytes a = { 0 };
    onnx_text_field(&a, 1, name);
    for (; *v != -2; v++) onnx_number(&a, 8, *v);
    onnx_number(&a, 20, 7);
    onnx_message(node, 5, &a);
}

static void gemm(onnx_bytes *g, const char *words)
{
    onnx_bytes attributes = { 0 };
    onnx_int_attribute(&attributes, "transB", 1);
    onnx_node_text(g, 1, words, &attributes);
}

static onnx_bytes mlp_model(void)
{
    onnx_bytes g = { 0 };
    onnx_node_text(&g, 1, "Flatten x -> f", NULL);
    gemm(&g, "Gemm f w1 b1 -> h");
    onnx_node_text(&g, 1, "Gelu h -> a", NULL);
    gemm(&g, "Gemm a w2 b2 -> y");
    weight(&g, "w1", SIZES(24, 64), 24 * 64, 0.12f);
    weight(&g, "b1", SIZES(24), 24, 0.1f);
    weight(&g, "w2", SIZES(CLASSES, 24), CLASSES * 24, 0.2f);
    weight(&g, "b2", SIZES(CLASSES), CLASSES, 0.1f);
    onnx_value_info(&g, 11, "x", 1, SIZES(-1, 1, 8, 8));
    onnx_value_info(&g, 12, "y", 1, SIZES(-1, CLASSES));
    return onnx_model_of(&g, 20);
}

static onnx_bytes cnn_model(void)
{
    onnx_bytes g = { 0 }, conv = { 0 }, pool = { 0 };
    ints_attribute(&conv, "pads", SIZES(1, 1, 1, 1));
    ints_attribute(&pool, "kernel_shape", SIZES(2, 2));
    ints_attribute(&pool, "strides", SIZES(2, 2));
    onnx_node_text(&g, 1, "Conv x k c -> h", &conv);
    onnx_node_text(&g, 1, "BatchNormalization h scale shift mean var -> n", NULL);
    onnx_node_text(&g, 1, "Relu n -> r", NULL);
    onnx_node_text(&g, 1, "MaxPool r -> p", &pool);
    onnx_node_text(&g, 1, "Flatten p -> f", NULL);
    gemm(&g, "Gemm f w b -> y");
    weight(&g, "k", SIZES(6, 1, 3, 3), 54, 0.3f);
    weight(&g, "c", SIZES(6), 6, 0.1f);
    onnx_floats_tensor(&g, 5, "scale", SIZES(6), (const float[]){ 1, 1, 1, 1, 1, 1 });
    onnx_floats_tensor(&g, 5, "shift", SIZES(6), (const float[]){ 0, 0, 0, 0, 0, 0 });
    onnx_floats_tensor(&g, 5, "mean", SIZES(6), (const float[]){ 0, 0, 0, 0, 0, 0 });
    onnx_floats_tensor(&g, 5, "var", SIZES(6), (const float[]){ 1, 1, 1, 1, 1, 1 });
    weight(&g, "w", SIZES(CLASSES, 96), CLASSES * 96, 0.1f);
    weight(&g, "b", SIZES(CLASSES), CLASSES, 0.1f);
    onnx_value_info(&g, 11, "x", 1, SIZES(-1, 1, 8, 8));
    onnx_value_info(&g, 12, "y", 1, SIZES(-1, CLASSES));
    return onnx_model_of(&g, 18);
}

/* Trains on images whose class is where they are bright. Returns whether all went well. */
static bool train(cn_ctx *cn, onnx_bytes *bytes, double *losses)
{
    float images[BATCH * 64];
    int64_t classes[BATCH];
    for (int i = 0; i < BATCH * 64; i++) {
        classes[i / 64] = i / 64 % CLASSES;
        images[i] = cosf((float)(i * 7 % 23)) + (i / 16 % 4 == classes[i / 64] ? 1 : 0);
    }
    cn_module *m = cn_onnx_load_memory(cn, bytes->v, bytes->n);
    if (!m) return false;
    cn_module_train(m, true);
    cn_tensor *x = cn_keep(cn_from(cn, CN_F32, CN_DIMS(BATCH, 1, 8, 8), images));
    cn_tensor *target = cn_keep(cn_from(cn, CN_I64, CN_DIMS(BATCH), classes));
    cn_optim *opt = cn_adamw(cn, cn_parameters(m), &(cn_adam_desc){ .lr = 0.01 });
    for (int i = 0; i < STEPS; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_optim_zero_grad(opt);
        cn_tensor *loss = cn_cross_entropy(cn_forward(m, x), target, NULL);
        cn_backward(loss);
        cn_step(opt);
        losses[i] = cn_item(loss);
        cn_scope_end(cn, s);
    }
    cn_release(x);
    cn_release(target);
    cn_module_free(m);
    return !cn_failed(cn);
}

static void compare(cn_ctx *cpu, cn_ctx *gpu, const char *name, onnx_bytes bytes)
{
    double here[STEPS] = { 0 }, there[STEPS] = { 0 };
    check_group(name);
    check(train(cpu, &bytes, here), "on the CPU: %s", cn_error(cpu));
    check(train(gpu, &bytes, there), "on the GPU: %s", cn_error(gpu));
    for (int i = 0; i < STEPS; i++)
        check(fabs(here[i] - there[i]) <= 1e-4 * fabs(here[i]), "step %d: the loss is %g, on the GPU %g", i, here[i],
              there[i]);
    check(here[STEPS - 1] < 0.7 * here[0], "the loss falls from %g to %g", here[0], here[STEPS - 1]);
    printf("%s: the loss falls from %.4f to %.4f, on the GPU to %.4f\n", name, here[0], here[STEPS - 1],
           there[STEPS - 1]);
    onnx_free(&bytes);
}

int main(void)
{
    cn_ctx *cpu = cn_open(&(cn_desc){ .device = "cpu", .seed = 3 }),
           *gpu = cn_open(&(cn_desc){ .device = "gpu", .seed = 3 });
    if (!cpu || !gpu) return 1;
    if (cn_gpu_available(gpu)) {
        compare(cpu, gpu, "an MLP", mlp_model());
        compare(cpu, gpu, "a CNN", cnn_model());
        check(cn_gpu_counted(gpu).fallbacks == 0, "steps ran on the CPU");
    } else {
        printf("no GPU: %s\n", cn_gpu_why_not(gpu));
        skip();
    }
    cn_close(gpu);
    cn_close(cpu);
    return finish();
}
