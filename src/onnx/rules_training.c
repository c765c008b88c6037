/* Rules of the steps of optimizers (ai.onnx.preview.training): a rate, a count of steps, then lists of tensors. And the
   few of ai.onnx.ml that are arithmetic. */
#include "onnx/rules.h"

/* Input list k of n tensors, after the rate and the count. */
static cn_tensor *member(onnx_call *c, int list, int n, int i) { return IN(2 + list * n + i); }

static int lists_of(onnx_call *c, int lists)
{
    if (c->n_in > 2 && (c->n_in - 2) % lists == 0) return (c->n_in - 2) / lists;
    FAIL(CN_BAD_ARGUMENT, "it needs a rate, a count and %d lists of tensors, got %d inputs", lists, c->n_in);
    return 0;
}

static cn_tensor *decayed(cn_tensor *x, cn_tensor *g, double factor) { return cn_add(cn_mul_s(x, factor), g); }

bool cn__onnx_adagrad(onnx_call *c)
{
    const int n = lists_of(c, 3);
    cn_tensor *rate = cn_div(IN(0), cn_add_s(cn_mul_s(cn_cast(IN(1), CN_F32), FLOAT("decay_factor", 0)), 1));
    for (int i = 0; i < n; i++) {
        cn_tensor *x = member(c, 0, n, i), *g = decayed(x, member(c, 1, n, i), FLOAT("norm_coefficient", 0));
        cn_tensor *h = cn_add(member(c, 2, n, i), cn_square(g));
        cn_tensor *step = cn_div(cn_mul(g, rate), cn_add_s(cn_sqrt(h), FLOAT("epsilon", 1e-6)));
        if (!GIVE_AT(i, cn_sub(x, step)) || !GIVE_AT(n + i, h)) return false;
    }
    return n > 0;
}

bool cn__onnx_adam(onnx_call *c)
{
    const int n = lists_of(c, 4);
    const double alpha = FLOAT("alpha", 0.9), beta = FLOAT("beta", 0.999);
    onnx_floats steps;
    if (!n || !cn__onnx_floats(c, 1, &steps)) return false;
    const double t = steps.n > 0 ? steps.v[0] : 0, fix = t > 0 ? sqrt(1 - pow(beta, t)) / (1 - pow(alpha, t)) : 1;
    for (int i = 0; i < n; i++) {
        cn_tensor *x = member(c, 0, n, i), *g = decayed(x, member(c, 1, n, i), FLOAT("norm_coefficient", 0));
        cn_tensor *v = cn_add(cn_mul_s(member(c, 2, n, i), alpha), cn_mul_s(g, 1 - alpha));
        cn_tensor *h = cn_add(cn_mul_s(member(c, 3, n, i), beta), cn_mul_s(cn_square(g), 1 - beta));
        cn_tensor *step = cn_mul(cn_mul_s(IN(0), fix), cn_div(v, cn_add_s(cn_sqrt(h), FLOAT("epsilon", 1e-6))));
        x = cn_mul_s(cn_sub(x, step), 1 - FLOAT("norm_coefficient_post", 0));
        if (!GIVE_AT(i, x) || !GIVE_AT(n + i, v) || !GIVE_AT(2 * n + i, h)) return false;
    }
    return true;
}

bool cn__onnx_momentum(onnx_call *c)
{
    const int n = lists_of(c, 3);
    const bool nesterov = !strcmp(TEXT("mode", "standard"), "nesterov");
    const double alpha = FLOAT("alpha", 0);
    onnx_floats steps;
    if (!n || !cn__onnx_floats(c, 1, &steps)) return false;
    const double beta = steps.n > 0 && steps.v[0] > 0 ? FLOAT("beta", 0) : 1;
    for (int i = 0; i < n; i++) {
        cn_tensor *x = member(c, 0, n, i), *g = decayed(x, member(c, 1, n, i), FLOAT("norm_coefficient", 0));
        cn_tensor *v = cn_add(cn_mul_s(member(c, 2, n, i), alpha), cn_mul_s(g, beta));
        cn_tensor *step = nesterov ? cn_add(g, cn_mul_s(v, alpha)) : v;
        if (!GIVE_AT(i, cn_sub(x, cn_mul(IN(0), step))) || !GIVE_AT(n + i, v)) return false;
    }
    return true;
}

bool cn__onnx_binarizer(onnx_call *c)
{
    cn_tensor *x = IN(0);
    return x && GIVE(cn_cast(cn_gt_s(x, FLOAT("threshold", 0)), cn_type(x)));
}

bool cn__onnx_array_feature_extractor(onnx_call *c)
{
    cn_tensor *x = IN(0), *index = IN(1);
    if (!x || !index) return false;
    cn_tensor *y = cn_index_select(x, cn_ndim(x) - 1, cn_reshape(cn_cast(index, CN_I64), CN_DIMS(-1)));
    return GIVE(cn_ndim(x) == 1 ? cn_unsqueeze(y, 0) : y);
}
