/* Adafactor (Shazeer and Stern 2018), as PyTorch has it. With 1 - β2 = t^decay, the squares of a matrix of gradients are
   estimated from averages over its rows and columns:

       r ← r + (1 - β2)(mean of g² over columns - r)        c ← c + (1 - β2)(mean of g² over rows - c)
       v = r c / mean of r                                   of a vector: v ← v + (1 - β2)(g² - v)
       u = g / √max(v, ε1²)                                  α = max(ε2, rms(p)) min(lr, 1/√t)
       p ← (1 - lr weight_decay) p - α u / max(1, rms(u)/d)

   α and the last quotient stay tensors: a step reads nothing back. */
#include <float.h>
#include <math.h>

#include "optim/optim.h"

enum { ROW, COLUMN, VECTOR };

static bool is_matrix(cn_tensor *p) { return cn_ndim(p) > 1; }
static unsigned uses_for(cn_tensor *p) { return is_matrix(p) ? 1u << ROW | 1u << COLUMN : 1u << VECTOR; }

static cn_dims shape(cn_tensor *p, int k)
{
    cn_dims s = cn_shape(p);
    if (k != VECTOR && s.n > 1) s.v[k == ROW ? s.n - 1 : s.n - 2] = 1;
    return s;
}

/* The mean of the squares over an axis, which stays with size 1. */
static cn_tensor *mean_square(cn_tensor *g, int64_t axis) { return cn_mean(cn_square(g), CN_DIMS(axis), true); }
static cn_tensor *rms(cn_tensor *x)
{
    return x && cn_numel(x) ? cn_sqrt(cn_mean(cn_square(x), CN_ALL, false)) : cn_sum(x, CN_ALL, false);
}

static void update(cn__update *u)
{
    const cn__hyper *h = u->h;
    const double t = (double)u->step, share = pow(t, h->beta2_decay);
    const double eps1 = h->eps1 != 0 ? h->eps1 : cn__dtype(u->p) == CN_F64 ? DBL_EPSILON : FLT_EPSILON;
    cn_tensor *g = h->maximize ? cn_neg(u->g) : u->g, *v;
    cn_tensor *alpha = cn_mul_s(cn_clamp(rms(u->p), h->eps, INFINITY), fmin(h->lr, 1 / sqrt(t)));
    cn_tensor *p = h->weight_decay != 0 ? cn_mul_s(u->p, 1 - h->lr * h->weight_decay) : u->p;
    if (is_matrix(u->p)) {
        cn_tensor *row = u->new_state[ROW] = cn__toward(u->state[ROW], mean_square(g, -1), share);
        cn_tensor *column = u->new_state[COLUMN] = cn__toward(u->state[COLUMN], mean_square(g, -2), share);
        v = cn_div(cn_mul(row, column), cn_clamp(cn_mean(row, CN_DIMS(-2), true), eps1, INFINITY));
    } else {
        v = u->new_state[VECTOR] = cn__toward(u->state[VECTOR], cn_square(g), share);
    }
    cn_tensor *step = cn_mul(cn_rsqrt(cn_clamp(v, eps1 * eps1, INFINITY)), g);
    cn_tensor *limit = cn_clamp(cn_mul_s(rms(step), 1 / h->d), 1, INFINITY);
    u->new_p = cn_sub(p, cn_mul(step, cn_div(alpha, limit)));
}

const cn__rule cn__rule_adafactor = { .name = "adafactor",
                                      .state = { "row_var", "col_var", "variance" },
                                      .uses_for = uses_for,
                                      .shape = shape,
                                      .update = update };

cn_optim *cn_adafactor(cn_ctx *ctx, cn_params params, const cn_adafactor_desc *desc)
{
    cn_adafactor_desc d = desc ? *desc : (cn_adafactor_desc){ 0 };
    cn__hyper h = {
        .lr = cn__given(d.lr, 0.01),
        .beta2_decay = cn__given(d.beta2_decay, -0.8),
        .eps1 = cn__given(d.eps1, 0),
        .eps = cn__given(d.eps2, 1e-3),
        .d = cn__given(d.d, 1),
        .weight_decay = cn__given(d.weight_decay, 0),
        .maximize = d.maximize,
    };
    CN__CALL call = cn__enter(ctx, "adafactor");
    if (!call.ctx) return NULL;
    if (!(h.beta2_decay <= 0 && isfinite(h.beta2_decay)) || !(h.eps1 >= 0) || !(h.d >= 1)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "adafactor: beta2_decay must be ≤ 0, eps1 ≥ 0 and d ≥ 1, got %g, %g and %g",
                 h.beta2_decay, h.eps1, h.d);
        return NULL;
    }
    return cn__optim_new(ctx, &cn__rule_adafactor, &h, params, d.keep_gradients);
}
