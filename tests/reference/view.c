/* References of the view operators: each element's place said straight from the definition. */
#include "ops/view/view.h"
#include "support/reference.h"

/* The index of flat element e, and the flat element of an index. */
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

static void zero(ref_tensor *t)
{
    for (int64_t e = 0; e < t->numel; e++) t->v[e] = 0;
}

static int from_front(int64_t axis, int ndim) { return (int)(axis < 0 ? axis + ndim : axis); }

static void same(const ref_call *c)
{
    for (int64_t e = 0; e < c->out->numel; e++) c->out->v[e] = c->in->v[e];
}

static void permute(const ref_call *c)
{
    const cn__list_attrs *a = c->attrs;
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t o[CN_MAX_DIMS], x[CN_MAX_DIMS];
        index_of(c->out, e, o);
        for (int d = 0; d < c->out->ndim; d++) x[a->v[d]] = o[d];
        c->out->v[e] = c->in->v[flat_of(c->in, x)];
    }
}

static void transpose(const ref_call *c)
{
    const cn__axis_pair_attrs *t = c->attrs;
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t at[CN_MAX_DIMS] = { 0 };
        index_of(c->out, e, at);
        if (c->in->ndim) {
            int a = from_front(t->a, c->in->ndim), b = from_front(t->b, c->in->ndim);
            int64_t keep = at[a];
            at[a] = at[b];
            at[b] = keep;
        }
        c->out->v[e] = c->in->v[flat_of(c->in, at)];
    }
}

static void expand(const ref_call *c)
{
    int lead = c->out->ndim - c->in->ndim;
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t o[CN_MAX_DIMS], x[CN_MAX_DIMS];
        index_of(c->out, e, o);
        for (int d = 0; d < c->in->ndim; d++) x[d] = c->in->shape[d] == 1 ? 0 : o[lead + d];
        c->out->v[e] = c->in->v[flat_of(c->in, x)];
    }
}

static void flip(const ref_call *c)
{
    const cn__mask_attrs *a = c->attrs;
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t at[CN_MAX_DIMS];
        index_of(c->out, e, at);
        for (int d = 0; d < c->in->ndim; d++)
            if (a->axes >> d & 1) at[d] = c->in->shape[d] - 1 - at[d];
        c->out->v[e] = c->in->v[flat_of(c->in, at)];
    }
}

static void slice(const ref_call *c)
{
    const cn__slice_attrs *a = c->attrs;
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t at[CN_MAX_DIMS];
        index_of(c->out, e, at);
        at[a->axis] = c->args[0].i + at[a->axis] * a->step;
        c->out->v[e] = c->in->v[flat_of(c->in, at)];
    }
}

static void slice_backward(const ref_call *c)
{
    const cn__slice_attrs *a = c->attrs;
    zero(c->out);
    for (int64_t e = 0; e < c->in->numel; e++) {
        int64_t at[CN_MAX_DIMS];
        index_of(c->in, e, at);
        at[a->axis] = c->args[0].i + at[a->axis] * a->step;
        c->out->v[flat_of(c->out, at)] = c->in->v[e];
    }
}

static void slice_add(const ref_call *c)
{
    const cn__slice_attrs *a = c->attrs;
    for (int64_t e = 0; e < c->out->numel; e++) c->out->v[e] = c->in[0].v[e];
    for (int64_t e = 0; e < c->in[1].numel; e++) {
        int64_t at[CN_MAX_DIMS];
        index_of(&c->in[1], e, at);
        at[a->axis] = c->args[0].i + at[a->axis] * a->step;
        c->out->v[flat_of(c->out, at)] += c->in[1].v[e];
    }
}

static void narrow(const ref_call *c)
{
    const cn__narrow_attrs *a = c->attrs;
    int axis = from_front(a->axis, c->in->ndim);
    int64_t start = c->args[0].i < 0 ? c->args[0].i + c->in->shape[axis] : c->args[0].i;
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t at[CN_MAX_DIMS];
        index_of(c->out, e, at);
        at[axis] += start;
        c->out->v[e] = c->in->v[flat_of(c->in, at)];
    }
}

static void select_(const ref_call *c)
{
    const cn__axis_attrs *a = c->attrs;
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t o[CN_MAX_DIMS], x[CN_MAX_DIMS];
        index_of(c->out, e, o);
        for (int d = 0; d < c->in->ndim; d++) x[d] = d < a->axis ? o[d] : d == a->axis ? c->args[0].i : o[d - 1];
        c->out->v[e] = c->in->v[flat_of(c->in, x)];
    }
}

/* The index in the whole that place `at` of the diagonal (its last axis) stands for. */
static void on_diagonal(const cn__diagonal_attrs *a, const int64_t *at, int ndim, int64_t *whole)
{
    int64_t i = at[ndim - 2];
    for (int d = 0, from = 0; d < ndim; d++) {
        if (d == a->axis1) whole[d] = a->offset < 0 ? i - a->offset : i;
        else if (d == a->axis2) whole[d] = a->offset > 0 ? i + a->offset : i;
        else whole[d] = at[from++];
    }
}

static void diagonal(const ref_call *c)
{
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t at[CN_MAX_DIMS], whole[CN_MAX_DIMS];
        index_of(c->out, e, at);
        on_diagonal(c->attrs, at, c->in->ndim, whole);
        c->out->v[e] = c->in->v[flat_of(c->in, whole)];
    }
}

static void diagonal_backward(const ref_call *c)
{
    const cn__diagonal_backward_attrs *a = c->attrs;
    zero(c->out);
    for (int64_t e = 0; e < c->in->numel; e++) {
        int64_t at[CN_MAX_DIMS], whole[CN_MAX_DIMS];
        index_of(c->in, e, at);
        on_diagonal(&a->of, at, c->out->ndim, whole);
        c->out->v[flat_of(c->out, whole)] = c->in->v[e];
    }
}

static void unfold(const ref_call *c)
{
    const cn__unfold_attrs *a = c->attrs;
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t at[CN_MAX_DIMS];
        index_of(c->out, e, at);
        if (c->in->ndim) at[a->axis] = at[a->axis] * a->step + at[c->out->ndim - 1];
        c->out->v[e] = c->in->v[flat_of(c->in, at)];
    }
}

static void unfold_backward(const ref_call *c)
{
    const cn__unfold_backward_attrs *a = c->attrs;
    zero(c->out);
    for (int64_t e = 0; e < c->in->numel; e++) {
        int64_t at[CN_MAX_DIMS];
        index_of(c->in, e, at);
        at[a->of.axis] = at[a->of.axis] * a->of.step + at[c->in->ndim - 1];
        c->out->v[flat_of(c->out, at)] += c->in->v[e];
    }
}

/* Element (c, h, w) of finer planes and its place in coarse ones, where each channel has r² parts. */
static int64_t coarse(int64_t fine, const ref_tensor *t, int64_t r)
{
    const int64_t width = t->shape[t->ndim - 1], height = t->shape[t->ndim - 2];
    const int64_t w = fine % width, h = fine / width % height, c = fine / width / height;
    return ((c * r * r + h % r * r + w % r) * (height / r) + h / r) * (width / r) + w / r;
}

static void pixel_shuffle(const ref_call *c)
{
    const int64_t r = ((const cn__shuffle_attrs *)c->attrs)->n;
    for (int64_t e = 0; e < c->out->numel; e++) c->out->v[e] = c->in->v[coarse(e, c->out, r)];
}

static void pixel_unshuffle(const ref_call *c)
{
    const int64_t r = ((const cn__shuffle_attrs *)c->attrs)->n;
    for (int64_t e = 0; e < c->in->numel; e++) c->out->v[coarse(e, c->in, r)] = c->in->v[e];
}

/* Channel i of the result is channel i / groups of group i % groups. */
static void channel_shuffle(const ref_call *c)
{
    const int64_t groups = ((const cn__shuffle_attrs *)c->attrs)->n, each = c->in->shape[1] / groups;
    for (int64_t e = 0; e < c->out->numel; e++) {
        int64_t at[CN_MAX_DIMS];
        index_of(c->out, e, at);
        at[1] = at[1] % groups * each + at[1] / groups;
        c->out->v[e] = c->in->v[flat_of(c->in, at)];
    }
}

const ref_entry ref_view[] = {
    { "view", same },
    { "reshape", same },
    { "flatten", same },
    { "permute", permute },
    { "transpose", transpose },
    { "squeeze", same },
    { "unsqueeze", same },
    { "expand", expand },
    { "flip", flip },
    { "slice", slice },
    { "slice_backward", slice_backward },
    { "slice_add", slice_add },
    { "select", select_ },
    { "narrow", narrow },
    { "diagonal", diagonal },
    { "diagonal_backward", diagonal_backward },
    { "unfold", unfold },
    { "unfold_backward", unfold_backward },
    { "pixel_shuffle", pixel_shuffle },
    { "pixel_unshuffle", pixel_unshuffle },
    { "channel_shuffle", channel_shuffle },
    { NULL, NULL },
};
