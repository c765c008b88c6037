/* References of the operators that join, pad and repeat. */
#include "ops/join/join.h"
#include "support/reference.h"

static void index_of(const ref_tensor *t, int64_t e, int64_t *at)
{
    for (int d = t->ndim - 1; d >= 0; d--) {
        at[d] = e % t->shape[d];
        e /= t->shape[d];
    }
}

static int64_t flat_of(const ref_tensor *t, const int64_t *at)
{
    int64_t e = 0;
    for (int d = 0; d < t->ndim; d++) e = e * t->shape[d] + at[d];
    return e;
}

static void cat(const ref_call *c)
{
    const cn__axis_attrs *a = c->attrs;
    int64_t start = 0;
    for (int k = 0; k < c->n_in; k++) {
        const ref_tensor *x = &c->in[k];
        if (x->ndim == 1 && x->shape[0] == 0) continue;
        for (int64_t e = 0; e < x->numel; e++) {
            int64_t at[CN_MAX_DIMS];
            index_of(x, e, at);
            at[a->axis] += start;
            c->out->v[flat_of(c->out, at)] = x->v[e];
        }
        start += x->shape[a->axis];
    }
}

static void stack(const ref_call *c)
{
    const cn__axis_attrs *a = c->attrs;
    int axis = (int)(a->axis < 0 ? a->axis + c->out->ndim : a->axis);
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t o[CN_MAX_DIMS], x[CN_MAX_DIMS];
        index_of(c->out, e, o);
        for (int d = 0; d < c->out->ndim; d++)
            if (d != axis) x[d < axis ? d : d - 1] = o[d];
        c->out->v[e] = c->in[o[axis]].v[flat_of(c->in, x)];
    }
}

/* Each place is brought back into x, axis by axis; a constant stands where that is not possible. */
static void pad(const ref_call *c)
{
    const cn__pad_attrs *a = c->attrs;
    double value = c->args[0].f;
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t at[CN_MAX_DIMS];
        bool outside = false;
        index_of(c->out, e, at);
        for (int d = 0; d < c->out->ndim; d++) {
            int64_t size = c->in->shape[d], low = a->before[d] < 0 ? -a->before[d] : 0;
            int64_t high = a->after[d] < 0 ? size + a->after[d] : size; /* x has [low, high) of it */
            at[d] -= a->before[d];
            if (a->mode == CN_PAD_CIRCULAR) {
                while (at[d] < low) at[d] += high - low;
                while (at[d] >= high) at[d] -= high - low;
            }
            if (a->mode == CN_PAD_REPLICATE && at[d] < 0) at[d] = 0;
            if (a->mode == CN_PAD_REPLICATE && at[d] >= size) at[d] = size - 1;
            if (a->mode == CN_PAD_REFLECT && at[d] < 0) at[d] = -at[d];
            if (a->mode == CN_PAD_REFLECT && at[d] >= size) at[d] = size - 1 - (at[d] - (size - 1));
            outside |= at[d] < 0 || at[d] >= size;
        }
        c->out->v[e] = outside ? value : c->in->v[flat_of(c->in, at)];
    }
}

/* repeat, tile: round and round along every axis. */
static void repeat(const ref_call *c)
{
    int lead = c->out->ndim - c->in->ndim;
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t o[CN_MAX_DIMS], x[CN_MAX_DIMS];
        index_of(c->out, e, o);
        for (int d = 0; d < c->in->ndim; d++) x[d] = o[lead + d] % c->in->shape[d];
        c->out->v[e] = c->in->v[flat_of(c->in, x)];
    }
}

static void repeat_interleave(const ref_call *c)
{
    const cn__interleave_attrs *a = c->attrs;
    int axis = (int)(a->axis < 0 ? a->axis + c->in->ndim : a->axis);
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t at[CN_MAX_DIMS];
        index_of(c->out, e, at);
        at[axis] /= a->times;
        c->out->v[e] = c->in->v[flat_of(c->in, at)];
    }
}

static void roll(const ref_call *c)
{
    const cn__roll_attrs *a = c->attrs;
    for (int64_t e = 0; e < c->in->numel; e++) {
        int64_t at[CN_MAX_DIMS], to = e + a->shifts.v[0];
        index_of(c->in, e, at);
        for (int k = 0; k < a->axes.n; k++) {
            int d = (int)(a->axes.v[k] < 0 ? a->axes.v[k] + c->in->ndim : a->axes.v[k]);
            int64_t size = c->in->shape[d];
            at[d] = ((at[d] + a->shifts.v[k]) % size + size) % size;
        }
        if (a->axes.n) to = flat_of(c->in, at);
        to = (to % c->in->numel + c->in->numel) % c->in->numel;
        c->out->v[to] = c->in->v[e];
    }
}

const ref_entry ref_join[] = {
    { "cat", cat },       { "stack", stack }, { "pad", pad },
    { "repeat", repeat }, { "tile", repeat }, { "repeat_interleave", repeat_interleave },
    { "roll", roll },     { NULL, NULL },
};
