/* References of the operators that read and write by index. */
#include <math.h>
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

/* Without offsets, or with one bag. */
static void embedding_bag(const ref_call *r)
{
    const cn__bag_attrs *a = r->attrs;
    const int64_t width = r->in[0].shape[1], bags = r->out->shape[0], n = bags ? r->in[1].numel / bags : 0;
    for (int64_t p = 0; p < r->out->numel; p++) {
        double count = 0, sum = 0, most = 0;
        for (int64_t i = p / width * n; i < (p / width + 1) * n; i++) {
            if (r->in[1].v[i] == (double)a->padding) continue;
            const double v = r->in[0].v[(int64_t)r->in[1].v[i] * width + p % width];
            sum += r->in[3].present ? v * r->in[3].v[i] : v;
            most = count++ == 0 || v > most ? v : most;
        }
        r->out->v[p] = a->mode == CN_BAG_MAX ? most : a->mode == CN_BAG_SUM || count == 0 ? sum : sum / count;
    }
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

/* Element p of x[indices], at coordinates c, is x's element at `place`. */
typedef void (*named_fn)(const ref_call *r, const int64_t *c, int ndim, int64_t p, int64_t place);

/* What x[indices] means. The result's axes are those of the indices, broadcast together, and the other axes of x. The
   former stand in the place of the indexed axes if those are neighbours, otherwise in front. */
static void each_named(const ref_call *r, const ref_tensor *given, int n, named_fn fn)
{
    const ref_tensor *x = &r->in[0];
    ref_tensor index[CN_MAX_DIMS], named = { .ndim = 0, .numel = 1 };
    bool has[CN_MAX_DIMS] = { false }, made[CN_MAX_DIMS] = { false };
    int at = 0, count = 0, first = -1, last = 0, wide = 0;
    for (int k = 0; k < n; k++) {
        const int from = at;
        if (!given[k].present) at++;
        else if (given[k].dtype == CN_BOOL) at += places(&given[k], &index[at]);
        else index[at++] = given[k];
        for (int d = from; d < at; d++) has[d] = given[k].present, made[d] = has[d] && given[k].dtype == CN_BOOL;
    }
    for (int d = 0; d < x->ndim; d++) {
        if (!has[d]) continue;
        if (first < 0) first = d;
        last = d;
        count++;
        if (index[d].ndim > wide) wide = index[d].ndim;
    }
    const int front = last - first + 1 == count ? first : 0; /* axes of x before those of the indices */
    int source[CN_MAX_DIMS];                                 /* the axis of x; -1: one of the indices */
    for (int d = 0, own = 0; d < wide + x->ndim - count; d++) {
        source[d] = -1;
        if (d >= front && d < front + wide) continue;
        while (has[own]) own++;
        source[d] = own++;
    }
    for (int d = 0; d < wide + x->ndim - count; d++, named.ndim++) {
        named.shape[d] = source[d] >= 0 ? x->shape[source[d]] : 1;
        for (int k = 0; k < x->ndim && source[d] < 0; k++) {
            const int own = has[k] ? d - front - (wide - index[k].ndim) : -1;
            if (own >= 0 && index[k].shape[own] != 1) named.shape[d] = index[k].shape[own];
        }
        named.numel *= named.shape[d];
    }
    for (int64_t p = 0; p < named.numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 }, to[CN_MAX_DIMS] = { 0 };
        coordinates(&named, p, c);
        for (int d = 0; d < named.ndim; d++)
            if (source[d] >= 0) to[source[d]] = c[d];
        for (int k = 0; k < x->ndim; k++)
            if (has[k]) to[k] = wrapped(broadcast_at(&index[k], wide, c + front), x->shape[k]);
        fn(r, c, named.ndim, p, position(x, to));
    }
    for (int k = 0; k < at; k++)
        if (made[k]) free(index[k].v);
}

static void read_named(const ref_call *r, const int64_t *c, int ndim, int64_t p, int64_t place)
{
    (void)c, (void)ndim;
    r->out->v[p] = r->in[0].v[place];
}

static void write_named(const ref_call *r, const int64_t *c, int ndim, int64_t p, int64_t place)
{
    (void)p;
    const double v = broadcast_at(&r->in[1], ndim, c);
    r->out->v[place] = ((const cn__put_attrs *)r->attrs)->accumulate ? r->out->v[place] + v : v;
    if (r->out->dtype == CN_BOOL) r->out->v[place] = r->out->v[place] != 0;
}

static void index_named(const ref_call *r) { each_named(r, &r->in[1], r->n_in - 1, read_named); }

static void index_put(const ref_call *r)
{
    copy(&r->in[0], r->out);
    each_named(r, &r->in[2], r->n_in - 2, write_named);
}

static void put(const ref_call *r)
{
    copy(&r->in[0], r->out);
    for (int64_t p = 0; p < r->in[1].numel; p++) {
        double *to = &r->out->v[wrapped(r->in[1].v[p], r->in[0].numel)];
        *to = ((const cn__accumulate_attrs *)r->attrs)->accumulate ? *to + r->in[2].v[p] : r->in[2].v[p];
        if (r->out->dtype == CN_BOOL) *to = *to != 0;
    }
}

static void index_fill(const ref_call *r)
{
    const int64_t axis = axis_of(r);
    copy(&r->in[0], r->out);
    for (int64_t p = 0; p < r->out->numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 };
        coordinates(r->out, p, c);
        for (int64_t k = 0; k < r->in[1].numel; k++)
            if (wrapped(r->in[1].v[k], r->out->ndim ? r->out->shape[axis] : 1) == c[axis]) r->out->v[p] = r->args[0].f;
    }
}

static void take_along_dim(const ref_call *r)
{
    const int64_t axis = axis_of(r);
    for (int64_t p = 0; p < r->out->numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 };
        coordinates(r->out, p, c);
        const int64_t size = axis < 0 ? r->in[0].numel : r->in[0].shape[axis];
        const int64_t t = wrapped(axis < 0 ? r->in[1].v[p] : broadcast_at(&r->in[1], r->out->ndim, c), size);
        if (axis >= 0) c[axis] = t;
        r->out->v[p] = axis < 0 ? r->in[0].v[t] : broadcast_at(&r->in[0], r->out->ndim, c);
    }
}

/* Folds v into an element that n elements were folded into already. */
static double fold(cn_fold how, double old, double v, double n)
{
    switch (how) {
    case CN_FOLD_SUM: return old + v;
    case CN_FOLD_PROD: return old * v;
    case CN_FOLD_MEAN: return (old * n + v) / (n + 1);
    case CN_FOLD_AMAX: return isnan(old) || old > v ? old : v;
    default: return isnan(old) || old < v ? old : v;
    }
}

/* at: for position p of the index, its index along the axis. Means of whole numbers are rounded down. */
static void fold_at(const ref_call *r, const ref_tensor *index, cn_fold how, bool self, bool list)
{
    const ref_tensor *source = &r->in[2];
    const int64_t axis = axis_of(r);
    copy(&r->in[0], r->out);
    double *n = calloc((size_t)r->out->numel + 1, sizeof *n);
    if (!n) abort();
    for (int64_t p = 0; p < index->numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 };
        coordinates(index, p, c);
        const double v = source->v[position(source, c)];
        c[axis] = (int64_t)(list ? r->in[1].v[c[axis]] : index->v[p]);
        const int64_t to = position(r->out, c);
        if (n[to] == 0 && !self) r->out->v[to] = v;
        else r->out->v[to] = fold(how, r->out->v[to], v, n[to] + self);
        n[to]++;
    }
    for (int64_t p = 0; p < r->out->numel && r->out->dtype == CN_BOOL; p++)
        r->out->v[p] = how == CN_FOLD_MEAN ? floor(r->out->v[p] + 1e-9) : r->out->v[p] != 0;
    for (int64_t p = 0; p < r->out->numel && how == CN_FOLD_MEAN; p++)
        if (!cn_dtype_is_float(r->out->dtype)) r->out->v[p] = floor(r->out->v[p] + 1e-9);
    free(n);
}

static void scatter_fold(const ref_call *r)
{
    static const cn_fold folds[] = { [CN__MUL] = CN_FOLD_PROD, [CN__MAX] = CN_FOLD_AMAX, [CN__MIN] = CN_FOLD_AMIN };
    fold_at(r, &r->in[1], folds[((const cn__fold_attrs *)r->attrs)->fold], true, false);
}

static void scatter_reduce(const ref_call *r)
{
    const cn__reduce_at_attrs *a = r->attrs;
    fold_at(r, &r->in[1], (cn_fold)a->reduce, a->include_self, false);
}

static void index_reduce(const ref_call *r)
{
    const cn__reduce_at_attrs *a = r->attrs;
    fold_at(r, &r->in[2], (cn_fold)a->reduce, a->include_self, true);
}

static void masked_scatter(const ref_call *r)
{
    for (int64_t p = 0, n = 0; p < r->out->numel; p++) {
        int64_t c[CN_MAX_DIMS] = { 0 };
        coordinates(r->out, p, c);
        const bool chosen = broadcast_at(&r->in[1], r->out->ndim, c) != 0;
        r->out->v[p] = chosen ? r->in[2].v[n++] : broadcast_at(&r->in[0], r->out->ndim, c);
    }
}

static void bincount(const ref_call *r)
{
    for (int64_t p = 0; p < r->out->numel; p++) r->out->v[p] = 0;
    for (int64_t p = 0; p < r->in[0].numel; p++) r->out->v[(int64_t)r->in[0].v[p]]++;
}

static void histc(const ref_call *r)
{
    const ref_tensor *x = &r->in[0];
    const int64_t bins = r->out->numel;
    double low = r->args[0].f, high = r->args[1].f;
    for (int64_t p = 0; p < x->numel && r->args[0].f == r->args[1].f; p++) {
        low = p == 0 || x->v[p] < low ? x->v[p] : low;
        high = p == 0 || x->v[p] > high ? x->v[p] : high;
    }
    if (low == high) low -= 1, high += 1;
    for (int64_t p = 0; p < bins; p++) r->out->v[p] = 0;
    for (int64_t p = 0; p < x->numel; p++) {
        if (x->v[p] < low || x->v[p] > high) continue;
        const int64_t bin = (int64_t)((x->v[p] - low) * (double)bins / (high - low));
        r->out->v[bin < bins ? bin : bins - 1]++;
    }
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
    { "embedding_bag", embedding_bag },
    { "wrap_index", wrap_index },
    { "divisor", same },
    { "probability", same },
    { "take", take },
    { "level", same },
    { "weights", same },
    { "put", put },
    { "take_along_dim", take_along_dim },
    { "slice_assign", slice_assign },
    { "index", index_named },
    { "index_put", index_put },
    { "index_fill", index_fill },
    { "index_reduce", index_reduce },
    { "scatter_fold", scatter_fold },
    { "scatter_reduce", scatter_reduce },
    { "masked_scatter", masked_scatter },
    { "bincount", bincount },
    { "histc", histc },
    { "masked_fill", masked_fill },
    { "masked_select", masked_select },
    { "nonzero", nonzero },
    { "one_hot", one_hot },
    { NULL, NULL },
};
