/* References of the operators that read and write by index. */
#include <stdlib.h>

#include "support/reference.h"

#include "ops/index/index.h"

/* Coordinates of a flat position, and back. */
static void coordinates(const ref_tensor *t, int64_t at, int64_t *c)
{
    for (int d = t->ndim - 1; d >= 0; d--) {
        c[d] = at % t->shape[d];
        at /= t->shape[d];
    }
}

static int64_t position(const ref_tensor *t, const int64_t *c)
{
    int64_t at = 0;
    for (int d = 0; d < t->ndim; d++) at = at * t->shape[d] + c[d];
    return at;
}

/* The element that t, broadcast, has at coordinates of a tensor with ndim axes. */
static double broadcast_at(const ref_tensor *t, int ndim, const int64_t *c)
{
    int64_t own[CN_MAX_DIMS] = { 0 };
    for (int d = 0; d < t->ndim; d++) own[d] = t->shape[d] == 1 ? 0 : c[ndim - t->ndim + d];
    return t->v[position(t, own)];
}

static int64_t axis_of(const ref_call *r) { return ((const cn__index_attrs *)r->attrs)->axis; }

static void copy(const ref_tensor *from, ref_tensor *to)
{
    for (int64_t p = 0; p < from->numel; p++) to->v[p] = from->v[p];
}

static void gather(const ref_call *r)
{
    const ref_tensor *x = &r->in[0], *index = &r->in[1];
    for (int64_t p = 0; p < index->numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 };
        coordinates(index, p, c);
        c[axis_of(r)] = (int64_t)index->v[p];
        r->out->v[p] = x->v[position(x, c)];
    }
}

static void scatter_with(const ref_call *r, bool add)
{
    const ref_tensor *index = &r->in[1], *source = &r->in[2];
    copy(&r->in[0], r->out);
    for (int64_t p = 0; p < index->numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 };
        coordinates(index, p, c);
        double v = source->v[position(source, c)];
        c[axis_of(r)] = (int64_t)index->v[p];
        double *to = &r->out->v[position(r->out, c)];
        *to = add ? *to + v : v;
    }
}

static void scatter(const ref_call *r) { scatter_with(r, false); }
static void scatter_add(const ref_call *r) { scatter_with(r, true); }

static void index_select(const ref_call *r)
{
    for (int64_t p = 0; p < r->out->numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 };
        coordinates(r->out, p, c);
        c[axis_of(r)] = (int64_t)r->in[1].v[c[axis_of(r)]];
        r->out->v[p] = r->in[0].v[position(&r->in[0], c)];
    }
}

static void rows_with(const ref_call *r, bool add)
{
    const ref_tensor *source = &r->in[2];
    copy(&r->in[0], r->out);
    for (int64_t p = 0; p < source->numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 };
        coordinates(source, p, c);
        c[axis_of(r)] = (int64_t)r->in[1].v[c[axis_of(r)]];
        double *to = &r->out->v[position(r->out, c)];
        *to = add ? *to + source->v[p] : source->v[p];
    }
}

static void index_copy(const ref_call *r) { rows_with(r, false); }
static void index_add(const ref_call *r) { rows_with(r, true); }

static void embedding(const ref_call *r)
{
    int64_t width = r->in[0].shape[1];
    for (int64_t i = 0; i < r->in[1].numel; i++)
        for (int64_t j = 0; j < width; j++)
            r->out->v[i * width + j] = r->in[0].v[(int64_t)r->in[1].v[i] * width + j];
}

static void embedding_backward(const ref_call *r)
{
    int64_t width = r->out->shape[1];
    for (int64_t p = 0; p < r->out->numel; p++) r->out->v[p] = 0;
    for (int64_t i = 0; i < r->in[1].numel; i++)
        for (int64_t j = 0; j < width; j++) r->out->v[(int64_t)r->in[1].v[i] * width + j] += r->in[0].v[i * width + j];
}

static int64_t wrapped(double index, int64_t size) { return index < 0 ? (int64_t)index + size : (int64_t)index; }

static void wrap_index(const ref_call *r)
{
    int64_t size = ((const cn__wrap_attrs *)r->attrs)->size;
    for (int64_t p = 0; p < r->out->numel; p++) r->out->v[p] = (double)wrapped(r->in[0].v[p], size);
}

static void same(const ref_call *r) { copy(&r->in[0], r->out); }

static void take(const ref_call *r)
{
    for (int64_t p = 0; p < r->out->numel; p++) r->out->v[p] = r->in[0].v[wrapped(r->in[1].v[p], r->in[0].numel)];
}

static void slice_assign(const ref_call *r)
{
    const cn__slice_attrs *a = r->attrs;
    copy(&r->in[0], r->out);
    for (int64_t p = 0; p < r->in[1].numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 };
        coordinates(&r->in[1], p, c);
        c[a->axis] = r->args[0].i + c[a->axis] * a->step;
        r->out->v[position(r->out, c)] = r->in[1].v[p];
    }
}

/* The indices that a mask stands for, one for each of its axes. Returns their number. */
static int places(const ref_tensor *mask, ref_tensor *index)
{
    for (int d = 0; d < mask->ndim; d++) {
        index[d] = (ref_tensor){ .ndim = 1, .v = malloc(sizeof(double) * (size_t)(mask->numel + 1)) };
        for (int64_t p = 0; p < mask->numel && index[d].v; p++) {
            int64_t c[CN_MAX_DIMS] = { 0 };
            coordinates(mask, p, c);
            if (mask->v[p] != 0) index[d].v[index[d].numel++] = (double)c[d];
        }
        index[d].shape[0] = index[d].numel;
    }
    return mask->ndim;
}

/* in: x, value, indices or masks. The value has the shape of the indices, broadcast together, and then of the rest of
   x. */
static void index_put(const ref_call *r)
{
    const cn__put_attrs *a = r->attrs;
    const ref_tensor *x = &r->in[0];
    ref_tensor index[CN_MAX_DIMS];
    bool made[CN_MAX_DIMS] = { false };
    int n = 0;
    for (int k = 0; k < (int)a->n; k++) {
        const ref_tensor *given = &r->in[2 + k];
        const int first = n;
        if (given->dtype == CN_BOOL) n += places(given, &index[n]);
        else index[n++] = *given;
        for (int d = first; d < n; d++) made[d] = given->dtype == CN_BOOL;
    }
    int rest = x->ndim - n;
    ref_tensor named = { .ndim = 0, .numel = 1 };
    for (int k = 0; k < n; k++)
        if (index[k].ndim > named.ndim) named.ndim = index[k].ndim;
    for (int d = 0; d < named.ndim + rest; d++) {
        named.shape[d] = d < named.ndim ? 1 : x->shape[n + d - named.ndim];
        for (int k = 0; k < n && d < named.ndim; k++) {
            int own = d - (named.ndim - index[k].ndim);
            if (own >= 0 && index[k].shape[own] != 1) named.shape[d] = index[k].shape[own];
        }
        named.numel *= named.shape[d];
    }
    int leading = named.ndim;
    named.ndim += rest;
    copy(x, r->out);
    for (int64_t p = 0; p < named.numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 }, to[CN_MAX_DIMS] = { 0 };
        coordinates(&named, p, c);
        for (int k = 0; k < n; k++) to[k] = wrapped(broadcast_at(&index[k], leading, c), x->shape[k]);
        for (int d = 0; d < rest; d++) to[n + d] = c[leading + d];
        double v = broadcast_at(&r->in[1], named.ndim, c), *place = &r->out->v[position(x, to)];
        *place = a->accumulate ? *place + v : v;
    }
    for (int k = 0; k < n; k++)
        if (made[k]) free(index[k].v);
}

static void masked_fill(const ref_call *r)
{
    for (int64_t p = 0; p < r->out->numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 };
        coordinates(r->out, p, c);
        double fill = r->out->dtype == CN_BOOL ? r->args[0].f != 0 : r->args[0].f;
        r->out->v[p] = broadcast_at(&r->in[1], r->out->ndim, c) != 0 ? fill : broadcast_at(&r->in[0], r->out->ndim, c);
    }
}

static void masked_select(const ref_call *r)
{
    const ref_tensor *x = &r->in[0], *mask = &r->in[1];
    ref_tensor both = { .ndim = x->ndim > mask->ndim ? x->ndim : mask->ndim, .numel = 1 };
    for (int d = both.ndim - 1; d >= 0; d--) {
        int i = d - (both.ndim - x->ndim), j = d - (both.ndim - mask->ndim);
        both.shape[d] = i >= 0 && x->shape[i] != 1 ? x->shape[i] : j >= 0 ? mask->shape[j] : 1;
        both.numel *= both.shape[d];
    }
    int64_t n = 0;
    for (int64_t p = 0; p < both.numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 };
        coordinates(&both, p, c);
        if (broadcast_at(mask, both.ndim, c) != 0 && n < r->out->numel) r->out->v[n++] = broadcast_at(x, both.ndim, c);
    }
}

static void nonzero(const ref_call *r)
{
    const ref_tensor *x = &r->in[0];
    int64_t row = 0;
    for (int64_t p = 0; p < x->numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 };
        coordinates(x, p, c);
        if (x->v[p] == 0 || row >= r->out->shape[0]) continue;
        for (int d = 0; d < x->ndim; d++) r->out->v[row * x->ndim + d] = (double)c[d];
        row++;
    }
}

static void one_hot(const ref_call *r)
{
    int64_t classes = r->out->shape[r->out->ndim - 1];
    for (int64_t p = 0; p < r->out->numel; p++) r->out->v[p] = (int64_t)r->in[0].v[p / classes] == p % classes;
}

const ref_entry ref_index[] = {
    { "gather", gather },
    { "scatter", scatter },
    { "scatter_add", scatter_add },
    { "index_select", index_select },
    { "index_copy", index_copy },
    { "index_add", index_add },
    { "embedding", embedding },
    { "embedding_backward", embedding_backward },
    { "wrap_index", wrap_index },
    { "divisor", same },
    { "probability", same },
    { "take", take },
    { "slice_assign", slice_assign },
    { "index_put", index_put },
    { "masked_fill", masked_fill },
    { "masked_select", masked_select },
    { "nonzero", nonzero },
    { "one_hot", one_hot },
    { NULL, NULL },
};
