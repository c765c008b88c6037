/* References of the optimizer steps: the textbook's formulas, one element at a time. */
#include <math.h>

#include "ops/optim/optim.h"
#include "support/reference.h"

/* The element of t that position `flat` of a result of this shape is computed from. */
static double element(const ref_tensor *t, const ref_tensor *out, int64_t flat)
{
    int64_t index = 0, step = 1;
    for (int d = 1; d <= t->ndim; d++) {
        int64_t size = t->shape[t->ndim - d], at = flat % out->shape[out->ndim - d];
        flat /= out->shape[out->ndim - d];
        if (size != 1) index += at * step;
        step *= size;
    }
    return t->v[index];
}

static double number(const ref_call *c, int which) { return c->args[which].f; }

static void sgd(const ref_call *c)
{
    bool heavy = c->n_out > 1;
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double p = element(&c->in[0], c->out, i), g = element(&c->in[1], c->out, i);
        g = number(c, CN__SGD_SIGN) * g + number(c, CN__SGD_DECAY) * p;
        if (heavy) {
            double b = number(c, CN__SGD_MOMENTUM) * element(&c->in[2], c->out, i) + number(c, CN__SGD_FRESH) * g;
            g = number(c, CN__SGD_NESTEROV) != 0 ? g + number(c, CN__SGD_MOMENTUM) * b : b;
            c->out[1].v[i] = b;
        }
        c->out[0].v[i] = p - number(c, CN__SGD_LR) * g;
    }
}

static void adam(const ref_call *c)
{
    double beta1 = number(c, CN__ADAM_BETA1), beta2 = number(c, CN__ADAM_BETA2);
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double p = element(&c->in[0], c->out, i), g = element(&c->in[1], c->out, i);
        g = number(c, CN__ADAM_SIGN) * g + number(c, CN__ADAM_DECAY) * p;
        double m = beta1 * element(&c->in[2], c->out, i) + (1 - beta1) * g;
        double v = beta2 * element(&c->in[3], c->out, i) + (1 - beta2) * g * g, size = v;
        c->out[1].v[i] = m;
        c->out[2].v[i] = v;
        if (c->n_out > 3) c->out[3].v[i] = size = fmax(v, element(&c->in[4], c->out, i));
        c->out[0].v[i] = number(c, CN__ADAM_SHRINK) * p -
                         number(c, CN__ADAM_RATE) * m / (sqrt(size) / number(c, CN__ADAM_ROOT) + number(c, CN__ADAM_EPS));
    }
}

const ref_entry ref_optim[] = {
    { "sgd_step", sgd }, { "momentum_step", sgd }, { "adam_step", adam }, { "amsgrad_step", adam }, { NULL, NULL },
};
