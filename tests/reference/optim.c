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

static double slope(const ref_call *c, int64_t i, int decay)
{
    return element(&c->in[1], c->out, i) + number(c, decay) * element(&c->in[0], c->out, i);
}

static void moment(const ref_call *c)
{
    double fresh = number(c, CN__MOMENT_FRESH1), beta2 = number(c, CN__MOMENT_BETA2);
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double g = slope(c, i, CN__MOMENT_DECAY);
        double m = (1 - fresh) * element(&c->in[2], c->out, i) + fresh * g;
        double v = beta2 * element(&c->in[3], c->out, i) + (1 - beta2) * g * g;
        c->out[1].v[i] = m;
        c->out[2].v[i] = v;
        c->out[0].v[i] = number(c, CN__MOMENT_SHRINK) * element(&c->in[0], c->out, i) -
                         (number(c, CN__MOMENT_AHEAD) * g + number(c, CN__MOMENT_RATE) * m) /
                             (number(c, CN__MOMENT_SCALE) * sqrt(v) + number(c, CN__MOMENT_FLOOR));
    }
}

static void adamax(const ref_call *c)
{
    double fresh = number(c, CN__ADAMAX_FRESH1);
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double g = slope(c, i, CN__ADAMAX_DECAY);
        double m = c->out[1].v[i] = (1 - fresh) * element(&c->in[2], c->out, i) + fresh * g;
        double top = c->out[2].v[i] =
            fmax(number(c, CN__ADAMAX_BETA2) * element(&c->in[3], c->out, i), fabs(g) + number(c, CN__ADAMAX_EPS));
        c->out[0].v[i] = element(&c->in[0], c->out, i) - number(c, CN__ADAMAX_RATE) * m / top;
    }
}

static void lion(const ref_call *c)
{
    double beta1 = number(c, CN__LION_BETA1), beta2 = number(c, CN__LION_BETA2);
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double p = element(&c->in[0], c->out, i), g = element(&c->in[1], c->out, i), m = element(&c->in[2], c->out, i);
        double mixed = beta1 * m + (1 - beta1) * g, way = mixed > 0 ? 1 : mixed < 0 ? -1 : 0;
        c->out[0].v[i] = p - number(c, CN__LION_LR) * (way + number(c, CN__LION_DECAY) * p);
        c->out[1].v[i] = beta2 * m + (1 - beta2) * g;
    }
}

/* States: v, then the mean if there is one, then the buffer if there is one. */
static void rmsprop(const ref_call *c, bool centered, bool heavy)
{
    double alpha = number(c, CN__RMS_ALPHA);
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double g = slope(c, i, CN__RMS_DECAY);
        double size = c->out[1].v[i] = alpha * element(&c->in[2], c->out, i) + (1 - alpha) * g * g;
        if (centered) {
            double mean = c->out[2].v[i] = alpha * element(&c->in[3], c->out, i) + (1 - alpha) * g;
            size -= mean * mean;
        }
        double way = g / (sqrt(size) + number(c, CN__RMS_EPS));
        if (heavy)
            way = c->out[2 + centered].v[i] =
                number(c, CN__RMS_MOMENTUM) * element(&c->in[3 + centered], c->out, i) + way;
        c->out[0].v[i] = element(&c->in[0], c->out, i) - number(c, CN__RMS_RATE) * way;
    }
}

static void rmsprop_plain(const ref_call *c) { rmsprop(c, false, false); }
static void rmsprop_momentum(const ref_call *c) { rmsprop(c, false, true); }
static void rmsprop_centered(const ref_call *c) { rmsprop(c, true, false); }
static void rmsprop_both(const ref_call *c) { rmsprop(c, true, true); }

static void adadelta(const ref_call *c)
{
    double rho = number(c, CN__RMS_ALPHA), eps = number(c, CN__RMS_EPS);
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double g = slope(c, i, CN__RMS_DECAY), d = element(&c->in[3], c->out, i);
        double v = c->out[1].v[i] = rho * element(&c->in[2], c->out, i) + (1 - rho) * g * g;
        double way = sqrt(d + eps) / sqrt(v + eps) * g;
        c->out[2].v[i] = rho * d + (1 - rho) * way * way;
        c->out[0].v[i] = element(&c->in[0], c->out, i) - number(c, CN__RMS_RATE) * way;
    }
}

/* The sum of the gradients of row r, column i; the gradients are in operand 1, the indices in operand 2. */
static double row_gradient(const ref_call *c, int64_t r, int64_t i)
{
    const int64_t width = c->out[0].shape[1];
    double sum = 0;
    for (int64_t a = 0; a < c->in[2].numel; a++)
        if ((int64_t)c->in[2].v[a] == r) sum += c->in[1].v[a * width + i];
    return sum;
}

static bool is_touched(const ref_call *c, int64_t r)
{
    bool any = false;
    for (int64_t i = 0; i < c->out[0].shape[1]; i++) any |= row_gradient(c, r, i) != 0;
    return any;
}

static double moved(double s, double to, double fresh) { return (1 - fresh) * s + fresh * to; }

static void sgd_rows(const ref_call *c)
{
    const int64_t width = c->out[0].shape[1];
    for (int64_t i = 0; i < c->out[0].numel; i++)
        c->out[0].v[i] = c->in[0].v[i] - number(c, CN__ROWS_RATE) * row_gradient(c, i / width, i % width);
}

static void moment_rows(const ref_call *c)
{
    const int64_t width = c->out[0].shape[1];
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double g = row_gradient(c, i / width, i % width), s = c->in[0].v[i];
        if (c->args[CN__ROWS_SQUARE].i) g *= g;
        c->out[0].v[i] = is_touched(c, i / width) ? moved(s, g, number(c, CN__ROWS_RATE)) : s;
    }
}

static void adam_rows(const ref_call *c)
{
    const int64_t width = c->out[0].shape[1];
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double g = row_gradient(c, i / width, i % width), p = c->in[0].v[i];
        double m = moved(c->in[3].v[i], g, number(c, CN__ROWS_FRESH1));
        double v = moved(c->in[4].v[i], g * g, number(c, CN__ROWS_FRESH2));
        double step = number(c, CN__ROWS_RATE) * m / (sqrt(v) + number(c, CN__ROWS_EPS));
        c->out[0].v[i] = is_touched(c, i / width) ? p - step : p;
    }
}

const ref_entry ref_optim[] = {
    { "sgd_step", sgd },
    { "momentum_step", sgd },
    { "adam_step", adam },
    { "amsgrad_step", adam },
    { "moment_step", moment },
    { "adamax_step", adamax },
    { "lion_step", lion },
    { "rmsprop_step", rmsprop_plain },
    { "rmsprop_momentum_step", rmsprop_momentum },
    { "rmsprop_centered_step", rmsprop_centered },
    { "rmsprop_centered_momentum_step", rmsprop_both },
    { "adadelta_step", adadelta },
    { "sgd_rows_step", sgd_rows },
    { "moment_rows_step", moment_rows },
    { "adam_rows_step", adam_rows },
    { NULL, NULL },
};
