/* Muon: momentum, made orthogonal by Newton-Schulz steps (Jordan 2024):

       b = b + (1 - momentum)(g - b)               x = NS(g + momentum (b - g)), or NS(b) without Nesterov
       p = (1 - lr weight_decay) p - adjusted lr x

   NS: x / |x|, then k times  x = a x + (b A + c A²) x  with A = x xᵀ; a tall matrix is transposed first. */
#include <math.h>

#include "optim/optim.h"

static unsigned uses(const cn__hyper *h)
{
    (void)h;
    return 1;
}

/* Rounds to bf16's digits and keeps the dtype: products of bf16 matrices would be summed in f32 too. */
static cn_tensor *rounded(cn_tensor *x, bool full)
{
    return full || !x ? x : cn_cast(cn_cast(x, CN_BF16), cn__dtype(x));
}

static cn_tensor *orthogonal(cn_tensor *x, const cn__hyper *h)
{
    const double *c = h->coefficients;
    const bool full = h->full_precision, tall = cn_size(x, 0) > cn_size(x, 1);
    if (!full) x = rounded(cn_cast(x, CN_F32), false);
    if (tall) x = cn_transpose(x, 0, 1);
    cn_tensor *norm = rounded(cn_norm(x, 2, CN_ALL, false), full);
    x = rounded(cn_div(x, cn_clamp(norm, h->eps, INFINITY)), full);
    for (int k = 0; k < h->ns_steps; k++) {
        cn_tensor *gram = rounded(cn_matmul(x, cn_transpose(x, 0, 1)), full);
        cn_tensor *part = cn_add(cn_mul_s(gram, c[1]), cn_mul_s(cn_matmul(gram, gram), c[2]));
        x = rounded(cn_add(cn_mul_s(x, c[0]), cn_matmul(rounded(part, full), x)), full);
    }
    return tall ? cn_transpose(x, 0, 1) : x;
}

static double adjusted(const cn__hyper *h, double rows, double columns)
{
    switch (h->adjust) {
    case CN_MUON_MATCH_RMS_ADAMW: return h->lr * (0.2 * sqrt(fmax(rows, columns)));
    case CN_MUON_SPECTRAL_UNCLAMPED: return h->lr * sqrt(rows / columns);
    default: return h->lr * sqrt(fmax(1, rows / columns));
    }
}

static void update(cn__update *u)
{
    const cn__hyper *h = u->h;
    cn_tensor *b = u->new_state[0] = cn__toward(u->state[0], u->g, 1 - h->momentum);
    cn_tensor *x = h->no_nesterov ? b : cn__toward(u->g, b, h->momentum);
    if (!x) return;
    double rows = (double)cn_size(x, 0), columns = (double)cn_size(x, 1);
    if (rows * columns > 0) x = orthogonal(x, h);
    if (x && cn__dtype(x) != cn__dtype(u->p)) x = cn_cast(x, cn__dtype(u->p));
    u->new_p = cn_add(cn_mul_s(u->p, 1 - h->lr * h->weight_decay), cn_mul_s(x, -adjusted(h, rows, columns)));
}

static bool accepts(cn_tensor *p)
{
    if (cn_ndim(p) == 2) return true;
    char shape[96];
    return cn__fail(p->ctx, CN_BAD_SHAPE,
                    "muon: a parameter must be a matrix, got shape %s; give it to another optimizer",
                    cn__shape_text(cn__layout(p), shape, sizeof shape));
}

const cn__rule cn__rule_muon = { .name = "muon",
                                 .state = { "momentum_buffer" },
                                 .uses = uses,
                                 .update = update,
                                 .accepts = accepts,
                                 .has_momentum = true };

static bool check(cn_ctx *ctx, const cn_muon_desc *d)
{
    const double *c = d->ns_coefficients;
    if (d->ns_steps < 0 || d->ns_steps >= 100)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "muon: ns_steps must be from 0 to 99, got %d", d->ns_steps);
    if ((unsigned)d->adjust_lr > CN_MUON_SPECTRAL_UNCLAMPED)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "muon: adjust_lr must be from 0 to %d, got %d",
                        CN_MUON_SPECTRAL_UNCLAMPED, (int)d->adjust_lr);
    return (isfinite(c[0]) && isfinite(c[1]) && isfinite(c[2])) ||
           cn__fail(ctx, CN_BAD_ARGUMENT, "muon: ns_coefficients must be finite, got %g, %g and %g", c[0], c[1], c[2]);
}

cn_optim *cn_muon(cn_ctx *ctx, cn_params params, const cn_muon_desc *desc)
{
    static const double usual[3] = { 3.4445, -4.7750, 2.0315 };
    cn_muon_desc d = desc ? *desc : (cn_muon_desc){ 0 };
    CN__CALL call = cn__enter(ctx, cn__rule_muon.name);
    if (!call.ctx || !check(ctx, &d)) return NULL;
    cn__hyper h = {
        .lr = cn__given(d.lr, 1e-3),
        .weight_decay = cn__given(d.weight_decay, 0.1),
        .momentum = cn__given(d.momentum, 0.95),
        .eps = cn__given(d.eps, 1e-7),
        .no_nesterov = d.no_nesterov,
        .ns_steps = d.ns_steps ? d.ns_steps : 5,
        .adjust = d.adjust_lr,
        .full_precision = d.full_precision,
    };
    const double *c = d.ns_coefficients;
    memcpy(h.coefficients, c[0] == 0 && c[1] == 0 && c[2] == 0 ? usual : c, sizeof h.coefficients);
    return cn__optim_new(ctx, &cn__rule_muon, &h, params, d.keep_gradients);
}
