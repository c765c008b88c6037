/* Indexing, ranks and draws where cases of single operators do not reach: functions with several results, in-place
   forms, what is refused, and how often categories are drawn. Expected values are PyTorch's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

#define V(...) ((double[]){ __VA_ARGS__ })

static cn_ctx *cn;

/* Shape and values are these; NaN equals NaN. */
static void is(const char *what, cn_tensor *y, cn_dims shape, const double *expected)
{
    double got[64];
    int64_t n = cn_numel(y), i = 0;
    bool same = y && cn_ndim(y) == shape.n && n <= 64;
    for (int d = 0; d < shape.n && same; d++) same = cn_size(y, d) == shape.v[d];
    if (same && cn_read_f64(y, got, n))
        while (i < n && (got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i])))) i++;
    check(same && i == n && !cn_failed(cn), "%s: %s element %lld; %s", what, same ? "wrong" : "another shape,",
          (long long)i, cn_error(cn));
    cn_error_clear(cn);
}

/* The error has this code and says this. */
static void refused(const char *what, cn_tensor *y, cn_code code, const char *words)
{
    if (y && !cn_failed(cn)) cn_eval(y);
    check(cn_error_code(cn) == code && strstr(cn_error(cn), words), "%s: wanted %s with \"%s\", got %s: %s", what,
          cn_code_name(code), words, cn_code_name(cn_error_code(cn)), cn_error(cn));
    cn_error_clear(cn);
}

static cn_tensor *reals(cn_dims shape, const double *v) { return cn_cast(cn_from(cn, CN_F64, shape, v), CN_F32); }
static cn_tensor *wholes(cn_dims shape, const double *v) { return cn_cast(cn_from(cn, CN_F64, shape, v), CN_I64); }

/* ---- indices ---- */

static void indexing(void)
{
    cn_tensor *x = cn_reshape(cn_arange(cn, CN_F32, 0, 24, 1), CN_DIMS(2, 3, 4));
    cn_tensor *i = wholes(CN_DIMS(2), V(0, -1)), *j = wholes(CN_DIMS(2), V(1, 3));
    is("x[i, j]", cn_index(x, (cn_tensor *[]){ i, i }, 2), CN_DIMS(2, 4), V(0, 1, 2, 3, 20, 21, 22, 23));
    is("x[i, :, j]", cn_index(x, (cn_tensor *[]){ i, NULL, j }, 3), CN_DIMS(2, 3), V(1, 5, 9, 15, 19, 23));
    is("x[:, i, j]", cn_index(x, (cn_tensor *[]){ NULL, i, j }, 3), CN_DIMS(2, 2), V(1, 11, 13, 23));
    refused("no index", cn_index(x, (cn_tensor *[]){ NULL, NULL }, 2), CN_BAD_ARGUMENT, "at least one");
    refused("4 indices", cn_index(x, (cn_tensor *[]){ i, i, i, i }, 4), CN_BAD_ARGUMENT, "1 to 3 indices");
    refused("an index out of range", cn_index(x, (cn_tensor *[]){ cn_add_s(i, 2) }, 1), CN_BAD_INDEX, "2");
    refused("a mask of another size", cn_index(x, (cn_tensor *[]){ cn_ones(cn, CN_BOOL, CN_DIMS(3)) }, 1), CN_BAD_SHAPE,
            "a mask must have the sizes");
    refused("floats as indices", cn_index(x, (cn_tensor *[]){ x }, 1), CN_BAD_DTYPE, "i32 or i64");
}

static void assigning(void)
{
    cn_tensor *x = cn_zeros(cn, CN_F32, CN_DIMS(2, 3)), *old = cn_add_s(x, 0);
    cn_tensor *j = wholes(CN_DIMS(3), V(2, 0, 2)), *one = cn_ones(cn, CN_F32, CN_DIMS(1));
    check(cn_index_put_(x, (cn_tensor *[]){ NULL, j }, 2, one, true), "index_put_: %s", cn_error(cn));
    is("x[:, j] += 1", x, CN_DIMS(2, 3), V(1, 0, 2, 1, 0, 2));
    is("the value before", old, CN_DIMS(2, 3), V(0, 0, 0, 0, 0, 0));
    check(!cn_index_put_(x, (cn_tensor *[]){ j }, 1, cn_ones(cn, CN_I32, CN_DIMS(1)), false), "index_put_ of i32");
    refused("another dtype", NULL, CN_BAD_DTYPE, "must have x's dtype");
    cn_tensor *w = cn_param(cn_ones(cn, CN_F32, CN_DIMS(3))), *y = cn_mul_s(w, 2);
    check(cn_index_put_(y, (cn_tensor *[]){ wholes(CN_DIMS(1), V(1)) }, 1, one, false), "index_put_: %s", cn_error(cn));
    check(cn_backward(cn_sum(y, CN_ALL, false)), "backward: %s", cn_error(cn));
    is("the gradient around what was assigned", cn_grad_of(w), CN_DIMS(3), V(2, 0, 2));
}

static void refusals(void)
{
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(2, 3)), *i = wholes(CN_DIMS(2), V(0, 1));
    cn_tensor *mask = cn_ones(cn, CN_BOOL, CN_DIMS(2, 3)), *row = wholes(CN_DIMS(1, 3), V(0, 1, 0));
    refused("too few sources", cn_masked_scatter(x, mask, cn_ones(cn, CN_F32, CN_DIMS(5))), CN_BAD_INDEX, "");
    refused("another dtype", cn_masked_scatter(x, mask, cn_ones(cn, CN_F64, CN_DIMS(6))), CN_BAD_DTYPE, "dtype");
    refused("a fold", cn_scatter_reduce(x, 0, row, x, (cn_fold)9, true), CN_BAD_ARGUMENT, "cn_fold");
    refused("two axes", cn_take_along_dim(x, i, CN_DIMS(0, 1)), CN_BAD_ARGUMENT, "one axis");
    refused("a negative element", cn_bincount(wholes(CN_DIMS(2), V(1, -1)), NULL, 0), CN_BAD_INDEX, "from 0");
    refused("floats", cn_bincount(cn_ones(cn, CN_F32, CN_DIMS(2)), NULL, 0), CN_BAD_DTYPE, "whole numbers");
    refused("limits", cn_histc(x, 4, 2, 1), CN_BAD_ARGUMENT, "min must be < max");
    refused("an infinite range", cn_histc(cn_div_s(x, 0), 4, 0, 0), CN_BAD_ARGUMENT, "finite");
    refused("a sorter out of range",
            cn_searchsorted(cn_flatten(row, 0, -1), i, false, false, wholes(CN_DIMS(3), V(0, 1, 3))), CN_BAD_INDEX,
            "3");
    refused("k", cn_kthvalue(x, 4, 1, false, NULL), CN_BAD_ARGUMENT, "k must be 1 to 3");
    refused("an empty axis", cn_mode(cn_zeros(cn, CN_F32, CN_DIMS(2, 0)), 1, false, NULL), CN_BAD_SHAPE, "empty");
    refused("q", cn_quantile_s(x, 1.5, CN_ALL, false, CN_QUANTILE_LINEAR), CN_BAD_ARGUMENT, "q must be from 0 to 1");
    refused("a tensor q", cn_quantile(x, reals(CN_DIMS(1), V(-0.5)), CN_ALL, false, CN_QUANTILE_LINEAR),
            CN_BAD_ARGUMENT, "q must be from 0 to 1");
    refused("unique of nothing", cn_unique(cn_zeros(cn, CN_F32, CN_DIMS(2, 0)), true, CN_DIMS(0), NULL, NULL),
            CN_BAD_SHAPE, "must not be empty");
}

/* ---- counts and ranks ---- */

static void counting(void)
{
    cn_tensor *x = wholes(CN_DIMS(5), V(1, 3, 1, 0, 3)), *w = reals(CN_DIMS(5), V(0.5, 1, 2, 4, 8));
    is("bincount", cn_bincount(x, NULL, 6), CN_DIMS(6), V(1, 2, 0, 2, 0, 0));
    is("bincount of weights", cn_bincount(x, w, 0), CN_DIMS(4), V(4, 2.5, 0, 9));
    check(cn_type(cn_bincount(x, x, 0)) == CN_F64, "weights that are whole are summed in f64");
    cn_tensor *y = reals(CN_DIMS(7), V(0, 1, NAN, 2, 3, -1, 1.5));
    is("histc", cn_histc(y, 3, 0, 3), CN_DIMS(3), V(1, 2, 2));
    cn_tensor *sorter = wholes(CN_DIMS(3), V(2, 0, 1)), *s = reals(CN_DIMS(3), V(2, 3, 1));
    is("a sorter", cn_searchsorted(s, reals(CN_DIMS(3), V(1, 2.5, NAN)), true, true, sorter), CN_DIMS(3), V(1, 2, 3));
}

static void different(void)
{
    cn_tensor *inverse, *counts, *x = reals(CN_DIMS(2, 4), V(3, 1, 3, NAN, 1, -2, NAN, 3));
    is("unique", cn_unique(x, true, CN_ALL, &inverse, &counts), CN_DIMS(5), V(-2, 1, 3, NAN, NAN));
    is("inverse", inverse, CN_DIMS(2, 4), V(2, 1, 2, 3, 1, 0, 4, 2));
    is("counts", counts, CN_DIMS(5), V(1, 2, 3, 1, 1));
    cn_tensor *rows = wholes(CN_DIMS(4, 2), V(1, 2, 0, 5, 1, 2, 0, 4));
    is("unique rows", cn_unique(rows, true, CN_DIMS(0), &inverse, &counts), CN_DIMS(3, 2), V(0, 4, 0, 5, 1, 2));
    is("inverse of rows", inverse, CN_DIMS(4), V(2, 1, 2, 0));
    is("counts of rows", counts, CN_DIMS(3), V(1, 1, 2));
    cn_tensor *again = wholes(CN_DIMS(6), V(1, 1, 2, 2, 2, 1));
    is("unique_consecutive", cn_unique_consecutive(again, CN_ALL, &inverse, &counts), CN_DIMS(3), V(1, 2, 1));
    is("inverse", inverse, CN_DIMS(6), V(0, 0, 1, 1, 1, 2));
    is("counts", counts, CN_DIMS(3), V(2, 3, 1));
    is("of nothing", cn_unique(cn_zeros(cn, CN_I32, CN_DIMS(0, 3)), true, CN_ALL, &inverse, &counts), CN_DIMS(0), V(0));
    is("inverse of nothing", inverse, CN_DIMS(0, 3), V(0));
}

static void ranks(void)
{
    cn_tensor *at, *x = reals(CN_DIMS(2, 4), V(4, 1, 3, 2, 7, NAN, 5, NAN));
    is("median", cn_median_dim(x, 1, false, &at), CN_DIMS(2), V(2, NAN));
    is("its index", at, CN_DIMS(2), V(3, 1));
    is("nanmedian", cn_nanmedian_dim(x, -1, true, &at), CN_DIMS(2, 1), V(2, 5));
    is("its index", at, CN_DIMS(2, 1), V(3, 2));
    is("median of all", cn_median(x), (cn_dims){ 0 }, V(NAN));
    is("nanmedian of all", cn_nanmedian(x), (cn_dims){ 0 }, V(3));
    is("kthvalue", cn_kthvalue(x, 3, 1, false, &at), CN_DIMS(2), V(3, NAN));
    is("its index", at, CN_DIMS(2), V(2, 1));
    is("mode", cn_mode(wholes(CN_DIMS(2, 5), V(3, 3, 1, 1, 2, 0, 5, 0, 5, 5)), 1, false, &at), CN_DIMS(2), V(1, 5));
    is("its index", at, CN_DIMS(2), V(3, 4));
    is("nanquantile", cn_nanquantile_s(x, 0.5, CN_DIMS(1), false, CN_QUANTILE_LINEAR), CN_DIMS(2), V(2.5, 6));
    is("quantile", cn_quantile_s(x, 0.5, CN_DIMS(1), false, CN_QUANTILE_MIDPOINT), CN_DIMS(2), V(2.5, NAN));
    cn_tensor *w = cn_param(reals(CN_DIMS(5), V(2, 1, 2, 3, 2)));
    check(cn_backward(cn_median(w)), "backward: %s", cn_error(cn));
    double g[5] = { 0 };
    cn_read_f64(cn_grad_of(w), g, 5);
    check(fabs(g[0] - 1. / 3) < 1e-6 && g[1] == 0 && fabs(g[2] - 1. / 3) < 1e-6 && g[3] == 0 && g[4] == g[0],
          "equal elements share the gradient of a median: %g %g %g %g %g", g[0], g[1], g[2], g[3], g[4]);
}

/* ---- bags ---- */

static void bags(void)
{
    cn_tensor *w = cn_param(cn_reshape(cn_arange(cn, CN_F32, 0, 8, 1), CN_DIMS(4, 2)));
    cn_tensor *at = wholes(CN_DIMS(5), V(3, 0, 1, 3, 2)), *offsets = wholes(CN_DIMS(4), V(0, 2, 2, 5));
    cn_tensor *three = cn_narrow(offsets, 0, 0, 3), *scale = reals(CN_DIMS(5), V(1, 2, 3, 4, 5));
    is("means", cn_embedding_bag(w, at, three, NULL), CN_DIMS(3, 2), V(3, 4, 0, 0, 4, 5));
    cn_embedding_bag_desc sum = { .mode = CN_BAG_SUM, .per_sample_weights = scale, .include_last_offset = true };
    is("sums with weights", cn_embedding_bag(w, at, offsets, &sum), CN_DIMS(3, 2), V(6, 9, 0, 0, 50, 62));
    cn_embedding_bag_desc most = { .mode = CN_BAG_MAX, .has_padding = true, .padding_idx = -1 };
    cn_tensor *y = cn_embedding_bag(w, at, three, &most);
    is("largest without padding", y, CN_DIMS(3, 2), V(0, 1, 0, 0, 4, 5));
    check(cn_backward(cn_sum(y, CN_ALL, false)), "backward: %s", cn_error(cn));
    is("their gradient", cn_grad_of(w), CN_DIMS(4, 2), V(1, 1, 0, 0, 1, 1, 0, 0));
    refused("weights of a mean",
            cn_embedding_bag(w, at, three, &(cn_embedding_bag_desc){ .per_sample_weights = scale }), CN_BAD_ARGUMENT,
            "for sums");
    refused("no offsets", cn_embedding_bag(w, at, NULL, NULL), CN_BAD_SHAPE, "offsets");
    refused("padding",
            cn_embedding_bag(w, at, three, &(cn_embedding_bag_desc){ .has_padding = true, .padding_idx = 4 }),
            CN_BAD_ARGUMENT, "padding_idx");

    cn_module *m = cn_nn_embedding_bag(cn, 4, 2, &(cn_nn_embedding_bag_desc){ .mode = CN_BAG_SUM, .max_norm = 5 });
    cn_tensor *weight = cn_module_get(m, "weight");
    check(cn_assign(weight, reals(CN_DIMS(4, 2), V(3, 4, 6, 8, 0, 1, 30, 40))), "assign: %s", cn_error(cn));
    double got[8] = { 0 };
    cn_tensor *z = NULL;
    check(cn_forward_all(m, (cn_tensor *[]){ wholes(CN_DIMS(3), V(1, 0, 1)), wholes(CN_DIMS(1), V(0)) }, 2, &z, 1) &&
              cn_read_f64(z, got, 2),
          "EmbeddingBag: %s", cn_error(cn));
    check(fabs(got[0] - 9) < 1e-4 && fabs(got[1] - 12) < 1e-4, "rows of length 5: %g %g", got[0], got[1]);
    check(cn_read_f64(weight, got, 8) && fabs(got[2] - 3) < 1e-4 && got[0] == 3 && got[5] == 1 && got[6] == 30,
          "only rows that are looked up and longer change: %g %g %g %g", got[0], got[2], got[5], got[6]);
    cn_module *e = cn_nn_embedding(cn, 4, 2, &(cn_nn_embedding_desc){ .max_norm = 1, .norm_type = 1 });
    cn_tensor *rows = cn_forward(e, wholes(CN_DIMS(2), V(0, 2)));
    cn_read_f64(cn_norm(rows, 1, CN_DIMS(1), false), got, 2);
    check(got[0] <= 1 && got[1] <= 1 && cn_requires_grad(rows), "1-norms of at most 1: %g %g", got[0], got[1]);
    refused("a negative norm", (cn_nn_embedding(cn, 4, 2, &(cn_nn_embedding_desc){ .max_norm = -1 }), NULL),
            CN_BAD_ARGUMENT, "max_norm");
}

/* ---- draws ---- */

enum { DRAWS = 40000 };

/* Whether each category was drawn about as often as its weight says: within 5 standard deviations. */
static void frequencies(const char *what, const int64_t *drawn, int64_t n, const double *weights)
{
    double whole = 0, count[5] = { 0 };
    for (int k = 0; k < 5; k++) whole += weights[k];
    for (int64_t i = 0; i < n; i++) {
        if (drawn[i] >= 0 && drawn[i] < 5) count[drawn[i]]++;
        else check(false, "%s: category %lld", what, (long long)drawn[i]);
    }
    for (int k = 0; k < 5; k++) {
        const double p = weights[k] / whole, room = 5 * sqrt((double)n * p * (1 - p));
        check(fabs(count[k] - (double)n * p) <= room, "%s: category %d %g times of %lld, wanted %g ± %g", what, k,
              count[k], (long long)n, (double)n * p, room);
    }
}

static void drawing(void)
{
    static int64_t drawn[2 * DRAWS];
    static const double weights[] = { 1, 0, 4, 2.5, 0.5 };
    cn_tensor *w = reals(CN_DIMS(5), weights);
    check(cn_read(cn_multinomial(w, DRAWS, true), drawn, sizeof *drawn * DRAWS), "multinomial: %s", cn_error(cn));
    frequencies("with replacement", drawn, DRAWS, weights);
    cn_tensor *rows = cn_expand(w, CN_DIMS(DRAWS, 5));
    check(cn_read(cn_multinomial(rows, 2, false), drawn, sizeof drawn), "multinomial: %s", cn_error(cn));
    int64_t pairs = 0, twice = 0;
    for (int64_t i = 0; i < DRAWS; i++) {
        twice += drawn[2 * i] == drawn[2 * i + 1];
        pairs += drawn[2 * i] == 2 && drawn[2 * i + 1] == 0;
        drawn[i] = drawn[2 * i];
    }
    check(twice == 0, "drawn twice without replacement: %lld times", (long long)twice);
    frequencies("the first without replacement", drawn, DRAWS, weights);
    const double p = 4. / 8 * 1 / 4; /* 2 of 8, then 0 of the rest */
    check(fabs((double)pairs - DRAWS * p) <= 5 * sqrt(DRAWS * p * (1 - p)), "2, then 0: %lld times", (long long)pairs);
    cn_seed(cn, 5);
    double a[8], b[8];
    cn_read_f64(cn_multinomial(w, 8, true), a, 8);
    cn_seed(cn, 5);
    cn_read_f64(cn_multinomial(w, 8, true), b, 8);
    check(memcmp(a, b, sizeof a) == 0, "the same seed, other draws");
    refused("0 samples", cn_multinomial(w, 0, true), CN_BAD_ARGUMENT, "num_samples must be > 0");
    refused("more samples than categories", cn_multinomial(w, 6, false), CN_BAD_ARGUMENT, "at most the 5 categories");
    refused("more samples than weights above 0", cn_multinomial(w, 5, false), CN_BAD_ARGUMENT, "num_samples of them");
    refused("a negative weight", cn_multinomial(cn_sub_s(w, 1), 1, true), CN_BAD_ARGUMENT, "not negative");
    refused("an infinite weight", cn_multinomial(cn_div_s(w, 0), 1, true), CN_BAD_ARGUMENT, "finite");
    refused("no weight", cn_multinomial(cn_zeros_like(w), 1, true), CN_BAD_ARGUMENT, "above 0");
    refused("whole numbers", cn_multinomial(wholes(CN_DIMS(2), V(1, 2)), 1, true), CN_BAD_DTYPE, "floating");
}

int main(void)
{
    cn = cn_open(&(cn_desc){ .seed = 1 });
    indexing();
    assigning();
    refusals();
    counting();
    different();
    ranks();
    bags();
    drawing();
    cn_close(cn);
    return finish();
}
