/* einsum: sums of products of the operands' elements, by an equation such as "bij,jk->bik".

   Every axis has a label: a letter, or a number for an axis of "...", counted from the last. Operands are multiplied
   from left to right. Labels that are no longer needed are summed first. A label that both operands have is a batch
   axis if it is needed later, otherwise it is contracted. So each pair of operands is one batched matrix product. */
#include "ops/contract/contract.h"

enum { LETTERS = 52, LABELS = LETTERS + CN_MAX_DIMS, MOST_TERMS = 256 };

typedef struct labels {
    int n, v[CN_MAX_DIMS];
} labels;

/* An operand or intermediate value, and the labels of its axes. */
typedef struct term {
    cn_tensor *x;
    labels l;
    int dots; /* the place of "..." among the labels, or -1 */
} term;

typedef struct equation {
    cn_ctx *ctx;
    const char *text;
    int n;                /* number of operands */
    int dots;             /* the largest number of axes of "..." */
    int64_t size[LABELS]; /* of each label; -1 if no operand has it */
    int times[LABELS];    /* how often the label occurs in operands */
    labels result;
} equation;

/* Capital letters come first, which matters for results without "->". */
static int label_of(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1; }
static char letter_of(int label)
{
    return (char)(label >= LETTERS ? '.' : label < 26 ? 'A' + label : 'a' + label - 26);
}

static bool has(const labels *l, int label)
{
    for (int i = 0; i < l->n; i++)
        if (l->v[i] == label) return true;
    return false;
}

/* ---- reading ---- */

/* Reads up to ',' or "->" or the end; NULL after an error. */
static const char *read_labels(const equation *e, const char *p, term *t)
{
    *t = (term){ .dots = -1 };
    for (; *p && *p != ',' && *p != '-'; p++) {
        int label = label_of(*p);
        if (*p == ' ') continue;
        if (label >= 0 && t->l.n < CN_MAX_DIMS) {
            t->l.v[t->l.n++] = label;
        } else if (label >= 0) {
            cn__fail(e->ctx, CN_BAD_ARGUMENT, "einsum: a tensor may have at most %d axes, got more in \"%s\"",
                     CN_MAX_DIMS, e->text);
            return NULL;
        } else if (!strncmp(p, "...", 3) && t->dots < 0) {
            t->dots = t->l.n;
            p += 2;
        } else {
            cn__fail(e->ctx, CN_BAD_ARGUMENT, "einsum: labels must be letters or \"...\", got '%c' in \"%s\"", *p,
                     e->text);
            return NULL;
        }
    }
    return p;
}

/* Inserts the labels of `axes` axes in place of "...". */
static bool fill_dots(const equation *e, term *t, int axes)
{
    if (t->l.n + axes > CN_MAX_DIMS)
        return cn__fail(e->ctx, CN_BAD_SHAPE,
                        "einsum: the result may have at most %d axes, got %d in \"%s\"", CN_MAX_DIMS, t->l.n + axes,
                        e->text);
    for (int i = t->l.n - 1; i >= t->dots; i--) t->l.v[i + axes] = t->l.v[i];
    for (int i = 0; i < axes; i++) t->l.v[t->dots + i] = LABELS - axes + i;
    t->l.n += axes;
    return true;
}

/* Reads the sizes of operand k's axes; a size of 1 broadcasts. */
static bool read_sizes(equation *e, int k, const term *t, const cn_layout *x)
{
    for (int d = 0; d < x->ndim; d++) {
        int64_t *size = &e->size[t->l.v[d]], here = x->shape[d];
        if (*size >= 0 && here != *size && here != 1 && *size != 1)
            return cn__fail(e->ctx, CN_BAD_SHAPE,
                            "einsum: '%c' of \"%s\" must have one size, got %lld in operand %d and %lld before",
                            letter_of(t->l.v[d]), e->text, (long long)here, k, (long long)*size);
        if (*size < 0 || *size == 1) *size = here;
        e->times[t->l.v[d]]++;
        for (int b = 0; b < d; b++)
            if (t->l.v[b] == t->l.v[d] && x->shape[b] != here)
                return cn__fail(e->ctx, CN_BAD_SHAPE,
                                "einsum: '%c' of \"%s\" must have one size, got %lld and %lld in operand %d",
                                letter_of(t->l.v[d]), e->text, (long long)x->shape[b], (long long)here, k);
    }
    return true;
}

static bool read_operand(equation *e, int k, term *t)
{
    const cn_layout *x = cn__layout(t->x);
    char s[96];
    if (t->dots < 0 ? t->l.n != x->ndim : t->l.n > x->ndim)
        return cn__fail(e->ctx, CN_BAD_SHAPE, "einsum: operand %d must have the %d axes that \"%s\" names, got %s", k,
                        t->l.n, e->text, cn__shape_text(x, s, sizeof s));
    int axes = x->ndim - t->l.n;
    if (axes > e->dots) e->dots = axes;
    if (t->dots >= 0 && !fill_dots(e, t, axes)) return false;
    return read_sizes(e, k, t, x);
}

/* The result without "->": the axes of "...", then the letters that occur once, in the order of the alphabet. */
static bool default_result(equation *e)
{
    term t = { .dots = 0 };
    for (int i = 0; i < LETTERS; i++) {
        if (e->times[i] != 1) continue;
        if (t.l.n == CN_MAX_DIMS)
            return cn__fail(e->ctx, CN_BAD_SHAPE, "einsum: the result may have at most %d axes, got more in \"%s\"",
                            CN_MAX_DIMS, e->text);
        t.l.v[t.l.n++] = i;
    }
    if (!fill_dots(e, &t, e->dots)) return false;
    e->result = t.l;
    return true;
}

static bool read_result(equation *e, const char *p)
{
    term t;
    p = read_labels(e, p, &t);
    if (!p) return false;
    if (*p)
        return cn__fail(e->ctx, CN_BAD_ARGUMENT, "einsum: \"%s\" must end after the result, got '%c'", e->text, *p);
    for (int i = 0; i < t.l.n; i++) {
        labels before = { i, { 0 } };
        memcpy(before.v, t.l.v, sizeof *t.l.v * (size_t)i);
        if (e->size[t.l.v[i]] < 0)
            return cn__fail(e->ctx, CN_BAD_ARGUMENT,
                            "einsum: labels of the result must be in an operand, got '%c' in \"%s\"",
                            letter_of(t.l.v[i]), e->text);
        if (has(&before, t.l.v[i]))
            return cn__fail(e->ctx, CN_BAD_ARGUMENT,
                            "einsum: a label may occur once in the result, got '%c' twice in \"%s\"",
                            letter_of(t.l.v[i]), e->text);
    }
    if (t.dots >= 0 && !fill_dots(e, &t, e->dots)) return false;
    e->result = t.l;
    return true;
}

static bool read_equation(equation *e, cn_tensor *const *in, int n_in, term *terms)
{
    int named = 1;
    for (const char *p = e->text; *p; p++) named += *p == ',';
    if (named != n_in)
        return cn__fail(e->ctx, CN_BAD_ARGUMENT, "einsum: \"%s\" needs %d operands, got %d", e->text, named, n_in);
    for (int i = 0; i < LABELS; i++) e->size[i] = -1;
    const char *p = e->text;
    for (;; p++) {
        term *t = &terms[e->n];
        p = read_labels(e, p, t);
        if (!p) return false;
        t->x = in[e->n];
        if (cn__dtype(t->x) != cn__dtype(in[0]))
            return cn__fail(e->ctx, CN_BAD_DTYPE,
                            "einsum: operands must have the same dtype, got %s and %s; convert one with cn_cast",
                            cn_dtype_name(cn__dtype(in[0])), cn_dtype_name(cn__dtype(t->x)));
        if (!read_operand(e, e->n++, t)) return false;
        if (*p != ',') break;
    }
    if (!*p) return default_result(e);
    if (p[1] != '>')
        return cn__fail(e->ctx, CN_BAD_ARGUMENT, "einsum: '>' must follow '-', got \"%s\"", e->text);
    return read_result(e, p + 2);
}

/* ---- computing ---- */

static labels join(const labels *a, const labels *b)
{
    labels both = *a;
    for (int i = 0; i < b->n; i++) both.v[both.n++] = b->v[i];
    return both;
}

static cn_dims sizes_of(const equation *e, const labels *l)
{
    cn_dims d = { l->n, { 0 } };
    for (int i = 0; i < l->n; i++) d.v[i] = e->size[l->v[i]];
    return d;
}

static int64_t count(const equation *e, const labels *l)
{
    int64_t n = 1;
    for (int i = 0; i < l->n; i++) n *= e->size[l->v[i]];
    return n;
}

static int axis_of(const labels *l, int label)
{
    int i = 0;
    while (l->v[i] != label) i++;
    return i;
}

/* Permutes the axes of a term into this order. */
static cn_tensor *arranged(const term *t, const labels *order)
{
    cn_dims axes = { order->n, { 0 } };
    bool same = true;
    for (int i = 0; i < order->n; i++) {
        axes.v[i] = axis_of(&t->l, order->v[i]);
        same &= axes.v[i] == i;
    }
    return same ? t->x : cn_permute(t->x, axes);
}

/* A label that occurs twice in a term means the diagonal. A size of 1 is expanded to the size of its label. */
static void prepare(const equation *e, term *t)
{
    for (int b = t->l.n - 1; b > 0; b--) {
        int a = axis_of(&t->l, t->l.v[b]), label = t->l.v[b];
        if (a == b) continue;
        t->x = cn_diagonal(t->x, 0, a, b);
        t->l.n--;
        memmove(&t->l.v[b], &t->l.v[b + 1], sizeof *t->l.v * (size_t)(t->l.n - b));
        memmove(&t->l.v[a], &t->l.v[a + 1], sizeof *t->l.v * (size_t)(t->l.n - 1 - a));
        t->l.v[t->l.n - 1] = label;
        b = t->l.n;
    }
    cn_dims full = sizes_of(e, &t->l);
    if (t->x && memcmp(full.v, cn__layout(t->x)->shape, sizeof *full.v * (size_t)full.n)) t->x = cn_expand(t->x, full);
}

/* Sums over the labels that are neither in keep nor in other. */
static void sum_out(term *t, const bool *keep, const labels *other)
{
    if (!t->x) return;
    cn_dims axes = { 0, { 0 } };
    labels left = { 0 };
    for (int i = 0; i < t->l.n; i++) {
        if (keep[t->l.v[i]] || (other && has(other, t->l.v[i]))) left.v[left.n++] = t->l.v[i];
        else axes.v[axes.n++] = i;
    }
    if (!axes.n) return;
    cn_dtype dtype = cn__dtype(t->x);
    t->x = cn_sum(t->x, axes, false);
    if (t->x && cn__dtype(t->x) != dtype) t->x = cn_cast(t->x, dtype); /* the sum of whole numbers is i64 */
    t->l = left;
}

/* The product if nothing is contracted: (batch, rows, 1...) times (batch, 1..., columns). */
static cn_tensor *spread_product(const equation *e, const term *a, const term *b, const labels *batch,
                                 const labels *rows, const labels *columns)
{
    labels left = join(batch, rows), right = join(batch, columns);
    cn_dims wide = sizes_of(e, &left), high = sizes_of(e, batch);
    for (int i = 0; i < columns->n; i++) wide.v[wide.n++] = 1;
    for (int i = 0; i < rows->n; i++) high.v[high.n++] = 1;
    for (int i = 0; i < columns->n; i++) high.v[high.n++] = e->size[columns->v[i]];
    return cn_mul(cn_reshape(arranged(a, &left), wide), cn_reshape(arranged(b, &right), high));
}

/* a = a b. Labels with keep[label] are needed later. */
static bool multiply(const equation *e, term *a, term *b, const bool *keep)
{
    sum_out(a, keep, &b->l);
    sum_out(b, keep, &a->l);
    if (!a->x || !b->x) return false;
    labels batch = { 0 }, rows = { 0 }, inner = { 0 }, columns = { 0 };
    for (int i = 0; i < a->l.n; i++) {
        int label = a->l.v[i];
        labels *to = !has(&b->l, label) ? &rows : keep[label] ? &batch : &inner;
        to->v[to->n++] = label;
    }
    for (int i = 0; i < b->l.n; i++)
        if (!has(&a->l, b->l.v[i])) columns.v[columns.n++] = b->l.v[i];
    if (batch.n + rows.n + columns.n > CN_MAX_DIMS)
        return cn__fail(e->ctx, CN_BAD_SHAPE,
                        "einsum: intermediate values may have at most %d axes, got more for \"%s\"; use two equations",
                        CN_MAX_DIMS, e->text);
    labels left = join(&batch, &rows), out = join(&left, &columns);
    if (inner.n) {
        labels a_order = join(&left, &inner), b_order = join(&batch, &inner);
        b_order = join(&b_order, &columns);
        int64_t n = count(e, &batch), m = count(e, &rows), k = count(e, &inner), p = count(e, &columns);
        cn_tensor *x = cn_reshape(arranged(a, &a_order), CN_DIMS(n, m, k));
        cn_tensor *y = cn_reshape(arranged(b, &b_order), CN_DIMS(n, k, p));
        a->x = cn_reshape(cn_matmul(x, y), sizes_of(e, &out));
    } else {
        a->x = spread_product(e, a, b, &batch, &rows, &columns);
    }
    a->l = out;
    return a->x != NULL;
}

static cn_tensor *compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)args;
    equation e = { .ctx = ctx, .text = ((const cn__einsum_attrs *)attrs)->text };
    term terms[MOST_TERMS];
    if (!read_equation(&e, in, n_in, terms)) return NULL;
    prepare(&e, &terms[0]);
    bool keep[LABELS];
    for (int t = 1; t < e.n; t++) {
        memset(keep, 0, sizeof keep);
        for (int i = 0; i < e.result.n; i++) keep[e.result.v[i]] = true;
        for (int later = t + 1; later < e.n; later++)
            for (int i = 0; i < terms[later].l.n; i++) keep[terms[later].l.v[i]] = true;
        prepare(&e, &terms[t]);
        if (!multiply(&e, &terms[0], &terms[t], keep)) return NULL;
    }
    memset(keep, 0, sizeof keep);
    for (int i = 0; i < e.result.n; i++) keep[e.result.v[i]] = true;
    sum_out(&terms[0], keep, NULL);
    return terms[0].x ? arranged(&terms[0], &e.result) : NULL;
}

const cn_op cn__op_einsum = {
    .call = "einsum(str equation, Tensor[] operands) -> Tensor",
    .name = "einsum",
    .doc = "Sums of products of the operands' elements, by an equation such as \"bij,jk->bik\".",
    .kind = CN_COMPOSITE,
    .n_in = 1,
    .n_out = 1,
    .variadic = true,
    .dtypes = CN_NUMBERS,
    .attr_size = sizeof(cn__einsum_attrs),
    .compose = compose,
    .onnx = "Einsum",
    CN_CASES({ CN_IN(CN_S(3, 4), CN_S(4, 5)), .attrs = &(const cn__einsum_attrs){ .text = "ij,jk->ik" } },
             { CN_IN(CN_S(3, 4), CN_S(4, 5)), .attrs = &(const cn__einsum_attrs){ .text = "ij, jk" } },
             { CN_IN(CN_S(2, 3)), .attrs = &(const cn__einsum_attrs){ .text = "ba" } },
             { CN_IN(CN_S(3, 3)), .attrs = &(const cn__einsum_attrs){ .text = "ii" } },
             { CN_IN(CN_S(2, 3, 3, 3)), .attrs = &(const cn__einsum_attrs){ .text = "aiii->ia" } },
             { CN_IN(CN_S(3, 2, 3, 2)), .attrs = &(const cn__einsum_attrs){ .text = "ijij->" } },
             { CN_IN(CN_S(2, 3), CN_S(2, 3)), .attrs = &(const cn__einsum_attrs){ .text = "ij,ij->ji" } },
             { CN_IN(CN_S(3), CN_S(2), CN_S(4)), .attrs = &(const cn__einsum_attrs){ .text = "i,j,k->kij" } },
             { CN_IN(CN_S(2, 3, 4, 5), CN_S(2, 3, 6, 5)),
               .attrs = &(const cn__einsum_attrs){ .text = "bhqd,bhkd->bhqk" } },
             { CN_IN(CN_S(2, 3, 4), CN_S(5, 1, 4, 2)),
               .attrs = &(const cn__einsum_attrs){ .text = "...ij,...jk->...ik" } },
             { CN_IN(CN_S(2, 3, 4), CN_S(4)), .attrs = &(const cn__einsum_attrs){ .text = "...i,i" } },
             { CN_IN(CN_S(2, 3), CN_S(4, 3, 5), CN_S(5, 2)),
               .attrs = &(const cn__einsum_attrs){ .text = "bn,anm,mb->ba" } },
             { CN_IN(CN_S(2, 1), CN_S(3, 4)), .attrs = &(const cn__einsum_attrs){ .text = "ij,jk->ik" } },
             { CN_IN(CN_S(2, 0), CN_S(0, 3)), .attrs = &(const cn__einsum_attrs){ .text = "ij,jk->ik" } },
             { CN_IN(CN_S0, CN_S(3)), .attrs = &(const cn__einsum_attrs){ .text = ",i->i" } },
             { CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__einsum_attrs){ .text = "a...->a" } },
             { CN_IN(CN_S(30, 40), CN_S(40, 30)), .attrs = &(const cn__einsum_attrs){ .text = "Kj,jK->j" } }),
};

cn_tensor *cn_einsum(const char *equation, cn_tensor *const *x, int n)
{
    cn_ctx *ctx = NULL;
    for (int i = 0; i < n && x && !ctx; i++) ctx = x[i] ? x[i]->ctx : NULL;
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    cn__einsum_attrs a = { .numbers = { 0 } };
    size_t length = equation ? strlen(equation) : 0;
    if (!equation || length >= sizeof a.text) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "einsum: the equation must have at most 255 characters, got %s",
                 equation ? "more" : "NULL");
        return NULL;
    }
    memcpy(a.text, equation, length);
    return cn_apply(&cn__op_einsum, x, n, &a, NULL);
}
