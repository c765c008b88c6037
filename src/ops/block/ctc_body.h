/* Template: ctc_loss and its backward operator for one element type T. ctc_cpu.c includes it through cpu/each_type.h,
   which defines T, NAME, EXP and EXP_DOWN.
   A row has an element for each state of a sample and two more of probability 0, before the states (alpha) or after
   them (beta): a step reads a state and its two neighbours. Log-probabilities become very negative over many steps.
   Therefore the largest element of each row is subtracted from the row, and these levels are summed in f64. */
#include "ops/block/rows_body.h"

/* log(e^a + e^b + e^c); -infinity if all three are */
CN__INLINE T NAME(log_sum)(T a, T b, T c)
{
    T top = a > b ? a : b;
    top = top > c ? top : c;
    top = top == (T)-INFINITY ? 0 : top;
    return LOG(EXP_DOWN(a - top) + EXP_DOWN(b - top) + EXP_DOWN(c - top)) + top;
}

/* skip[i]: 0 if state i can be reached from state i - 2, else -infinity; 0 after the states. */
static void NAME(skips)(const cn__ctc_sample *s, T *skip)
{
    for (int64_t i = 0; i < s->states + 2; i++)
        skip[i] = i >= s->states || (i > 1 && s->label[i] != s->label[i - 2]) ? 0 : (T)-INFINITY;
}

static void NAME(fill)(T *x, int64_t n, T value)
{
    for (int64_t i = 0; i < n; i++) x[i] = value;
}

/* Subtracts the largest element from all, and returns it. */
static double NAME(lower)(T *row, int64_t n)
{
    const T top = NAME(row_max)(row, n);
    if (!isfinite(top)) return 0;
    for (int64_t i = 0; i < n; i++) row[i] -= top;
    return top;
}

/* alpha: the log-probability of all paths that are in a state after the first step, minus the returned level. */
static double NAME(alpha_begin)(const cn__ctc_sample *s, const T *x, T *alpha)
{
    NAME(fill)(alpha - 2, s->states + 2, (T)-INFINITY);
    for (int64_t i = 0; i < 2 && i < s->states; i++) alpha[i] = x[s->label[i]];
    return NAME(lower)(alpha, s->states);
}

static double NAME(alpha_step)(const cn__ctc_sample *s, const T *x, const T *restrict skip, const T *restrict before,
                               T *restrict alpha)
{
    const int64_t states = s->states;
    alpha[-1] = alpha[-2] = (T)-INFINITY;
    for (int64_t i = 0; i < states; i++) alpha[i] = NAME(log_sum)(before[i], before[i - 1], before[i - 2] + skip[i]);
    for (int64_t i = 0; i < states; i++) alpha[i] += x[s->label[i]];
    return NAME(lower)(alpha, states);
}

/* A path ends in the last label or the blank after it. */
static T NAME(alpha_end)(const cn__ctc_sample *s, const T *alpha)
{
    return -NAME(log_sum)(alpha[s->states - 1], alpha[s->states - 2], (T)-INFINITY);
}

static void NAME(forward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__ctc *c = user;
    T *out = k->out[0].data;
    for (int64_t n = begin; n < end; n++) {
        const cn__ctc_sample *s = &c->samples[n];
        const T *x = (const T *)k->in[0].data + n * c->classes;
        T *skip = (T *)c->rows + 3 * s->place, *alpha = skip + s->width + 2, *before = alpha + s->width;
        double loss = s->states > 1 ? INFINITY : 0; /* without frames only the empty target is possible */
        if (s->frames > 0) {
            NAME(skips)(s, skip);
            double level = NAME(alpha_begin)(s, x, alpha);
            for (int64_t t = 1; t < s->frames; t++) {
                T *old = before;
                before = alpha;
                alpha = old;
                level += NAME(alpha_step)(s, x + t * c->stride, skip, before, alpha);
            }
            loss = NAME(alpha_end)(s, alpha) - level;
        }
        out[n] = (T)(c->zero_infinity && loss == INFINITY ? 0 : loss);
    }
}

/* beta: the log-probability of all ways to go on from a state after step t, minus the returned level.
   next: beta of step t + 1 plus the log-probability of the labels in that step. */
static double NAME(beta_step)(const cn__ctc_sample *s, const T *x, const T *restrict skip, T *restrict next,
                              T *restrict beta)
{
    const int64_t states = s->states;
    for (int64_t i = 0; i < states; i++) next[i] = beta[i] + x[s->label[i]];
    next[states] = next[states + 1] = (T)-INFINITY;
    for (int64_t i = 0; i < states; i++) beta[i] = NAME(log_sum)(next[i], next[i + 1], next[i + 2] + skip[i + 2]);
    return NAME(lower)(beta, states);
}

/* dx -= g · the probability of being in a label's states at each step, given the target. dx must be 0. */
static void NAME(occupancy)(const cn__ctc *c, const cn__ctc_sample *s, const T *x, T g, T *skip, double *level, T *dx)
{
    T *alphas = skip + s->width + 2, *beta = skip + s->width * (s->frames + 1), *next = beta + s->width;
    NAME(skips)(s, skip);
    level[0] = NAME(alpha_begin)(s, x, alphas);
    for (int64_t t = 1; t < s->frames; t++) {
        T *alpha = alphas + t * s->width;
        level[t] = level[t - 1] + NAME(alpha_step)(s, x + t * c->stride, skip, alpha - s->width, alpha);
    }
    double rest = NAME(alpha_end)(s, alphas + (s->frames - 1) * s->width) - level[s->frames - 1]; /* the loss */
    if (rest == INFINITY) {
        for (int64_t t = 0; t < s->frames; t++)
            NAME(fill)(dx + t * c->stride, c->classes, c->zero_infinity ? 0 : (T)NAN);
        return;
    }
    for (int64_t i = 0; i < s->states; i++) beta[i] = i + 2 < s->states ? (T)-INFINITY : 0;
    for (int64_t t = s->frames - 1; t >= 0; t--) {
        const T *alpha = alphas + t * s->width;
        if (t + 1 < s->frames) rest += NAME(beta_step)(s, x + (t + 1) * c->stride, skip, next, beta);
        const T shift = (T)(level[t] + rest);
        for (int64_t i = 0; i < s->states; i++) next[i] = EXP(alpha[i] + beta[i] + shift);
        for (int64_t i = 0; i < s->states; i++) dx[t * c->stride + s->label[i]] -= g * next[i];
    }
}

static void NAME(backward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__ctc *c = user;
    const T *g = k->in[0].data;
    for (int64_t n = begin; n < end; n++) {
        const cn__ctc_sample *s = &c->samples[n];
        const T *x = (const T *)k->in[1].data + n * c->classes;
        T *dx = (T *)k->out[0].data + n * c->classes;
        for (int64_t t = 0; t < c->steps; t++) NAME(fill)(dx + t * c->stride, c->classes, 0);
        T *rows = (T *)c->rows + (c->steps + 3) * s->place;
        if (s->frames > 0) NAME(occupancy)(c, s, x, g[n], rows, c->levels + n * c->steps, dx);
    }
}
