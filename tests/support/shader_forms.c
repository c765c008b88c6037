/* Compares the forms that shader files declare with those that were compiled, and visits the rarer ones. */
#include "support/shader_forms.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/backend.h"
#include "gpu/shaders.h"
#include "support/property.h"

void record_forms(cn_ctx *gpu)
{
    if (cn__gpu_forms(gpu)) cn__gpu_forms(gpu)->files = cn__shaders;
}

/* ---- rarer forms ---- */

/* Computes a tensor */
static void compute(cn_ctx *cn, const char *what, cn_tensor *x)
{
    check(x && cn_eval(x), "%s: %s", what, cn_error(cn));
    cn_error_clear(cn);
}

static void visit_attention(cn_ctx *cn)
{
    for (int64_t width = 64; width <= 128; width += 32) {
        cn_tensor *q = cn_randn(cn, CN_F32, CN_DIMS(2, 8, 16)), *v = cn_randn(cn, CN_F32, CN_DIMS(2, 8, width));
        compute(cn, "attention", cn_scaled_dot_product_attention(q, q, v, NULL));
    }
}

/* Weights of many targets are summed by a launch of their own. */
static void visit_cross_entropy(cn_ctx *cn)
{
    cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(1 << 16, 2)), *target = cn_zeros(cn, CN_I64, CN_DIMS(1 << 16));
    cn_set_requires_grad(x, true);
    cn_backward(cn_cross_entropy(x, target, NULL));
    compute(cn, "cross_entropy", cn_grad_of(x));
}

/* Rows of the product that a convolution is: up to 16 by each invocation alone, more in tiles. */
static void visit_conv(cn_ctx *card)
{
    static const int64_t rows[] = { 12, 16, 32, 64 };
    for (int i = 0; i < 4; i++) {
        cn_tensor *x = cn_randn(card, CN_F32, CN_DIMS(1, 3, 8, 8)),
                  *w = cn_randn(card, CN_F32, CN_DIMS(rows[i], 3, 3, 3));
        compute(card, "conv2d", cn_conv2d(x, w, NULL, NULL));
    }
}

/* Rows that several lanes share, which software drivers do not have, and the sums of blocks of them. */
static void visit_rows(cn_ctx *card)
{
    static const int64_t n[] = { 3, 10, 40, 100 };
    for (int i = 0; i < 4; i++) compute(card, "softmax", cn_softmax(cn_randn(card, CN_F32, CN_DIMS(2, n[i])), 1));
    cn_tensor *x = cn_randn(card, CN_F32, CN_DIMS(600, 8)), *w = cn_ones(card, CN_F32, CN_DIMS(8));
    cn_set_requires_grad(w, true);
    cn_backward(cn_sum(cn_layer_norm(x, 1, w, NULL, 1e-5), CN_ALL, false));
    compute(card, "layer_norm", cn_grad_of(w));
}

static void visit_matmul(cn_ctx *cn)
{
    static const char *const forms[] = { "plain", "tiled", "direct", "block" };
    const char *had = getenv("CAIRN_GPU_MATMUL");
    for (int i = 0; i < 4 && !had; i++) {
        setenv("CAIRN_GPU_MATMUL", forms[i], 1);
        cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(20 + i, 20)), *y = cn_randn(cn, CN_F32, CN_DIMS(20, 20));
        compute(cn, "matmul", cn_matmul(x, y));
        unsetenv("CAIRN_GPU_MATMUL");
    }
    /* a long sum in parts */
    compute(cn, "matmul", cn_matmul(cn_ones(cn, CN_F32, CN_DIMS(4, 2048)), cn_ones(cn, CN_F32, CN_DIMS(2048, 4))));
    /* products that are written where cat puts them */
    cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(40, 40)), *y = cn_randn(cn, CN_F32, CN_DIMS(40, 40));
    compute(cn, "cat", cn_cat(CN_TENSORS(cn_matmul(x, y), cn_matmul(y, x)), 1));
}

/* A step that writes over its operand does nothing after a fault. The first assignment gives the handle memory of its own,
   which the next ones write over. */
static void visit_updates(cn_ctx *cn)
{
    cn_tensor *w = cn_zeros(cn, CN_F32, CN_DIMS(16));
    for (int i = 0; i < 3; i++) {
        cn_assign(w, cn_add_s(w, 1));
        check(cn_eval_all(cn), "update: %s", cn_error(cn));
    }
}

void visit_more_forms(cn_ctx *gpu, cn_ctx *card)
{
    const cn_scope scope = cn_scope_begin(gpu), other = cn_scope_begin(card);
    visit_attention(gpu);
    visit_cross_entropy(gpu);
    visit_matmul(gpu);
    visit_updates(gpu);
    visit_conv(card);
    visit_rows(card);
    cn_scope_end(gpu, scope);
    cn_scope_end(card, other);
}

/* ---- the check ---- */

typedef struct seen_by {
    cn_ctx *const *contexts;
    int n, forms;
} seen_by;

/* matmul's direct kernel is for a driver that runs 8 invocations in step. */
static bool is_possible(cn_ctx *gpu, const char *line)
{
    cn_gpu_info info;
    if (!strstr(line, "kernel direct")) return true;
    return cn_gpu_describe(gpu, 0, &info) && info.subgroups && strstr(info.name, "llvmpipe");
}

static void check_form(void *user, const char *line)
{
    seen_by *s = user;
    bool seen = !is_possible(s->contexts[0], line);
    for (int i = 0; i < s->n && !seen; i++)
        seen = cn__gpu_forms(s->contexts[i]) && cn__shader_form_seen(cn__gpu_forms(s->contexts[i]), line);
    s->forms++;
    check(seen, "a form of a shader was never compiled: %s", line);
}

void check_forms(cn_ctx *const *contexts, int n)
{
    seen_by s = { contexts, n, 0 };
    check_group("forms of shaders");
    for (const cn__shader_file *f = cn__shaders; f->path; f++) cn__shader_each_form(f->path, f->text, check_form, &s);
    check(s.forms > 0, "there are shader files");
}
