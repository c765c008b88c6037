/* Losses against PyTorch: values and gradients of reference/loss.txt, in f64 and f32, eager and planned alike; gradients
   by finite differences; what a loss costs in kernels. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/loss.h"
#include "support/check.h"

enum { MOST_INPUTS = 5, MOST_NUMBERS = 256, MOST_LINE = 1 << 16 };

/* ---- a case of the file */

typedef struct array {
    char role[16];
    bool whole, wants; /* of i64; its gradient is in the file */
    cn_dims shape;
    int n;
    double v[MOST_NUMBERS], grad[MOST_NUMBERS];
} array;

/* One field for each option of any loss. */
typedef struct options {
    double reduction, beta, delta, margin, no_margin, p, eps, swap, full, log_target, no_log_input, blank,
        zero_infinity, axis, keepdim;
} options;

typedef struct sample {
    char name[32];
    int number; /* in the file */
    options o;
    array in[MOST_INPUTS], value;
    int n_in;
} sample;

static double *option_of(options *o, const char *key)
{
    const struct {
        const char *key;
        double *at;
    } all[] = {
        { "reduction", &o->reduction },
        { "beta", &o->beta },
        { "delta", &o->delta },
        { "margin", &o->margin },
        { "no_margin", &o->no_margin },
        { "p", &o->p },
        { "eps", &o->eps },
        { "swap", &o->swap },
        { "full", &o->full },
        { "log_target", &o->log_target },
        { "blank", &o->blank },
        { "no_log_input", &o->no_log_input },
        { "axis", &o->axis },
        { "zero_infinity", &o->zero_infinity },
        { "keepdim", &o->keepdim },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].key, key) == 0) return all[i].at;
    return NULL;
}

/* ---- reading it */

static void wrong(const char *what, const char *line)
{
    printf("loss.txt: %s: %.60s\n", what, line);
    exit(1);
}

static int numbers(const char *text, double *v)
{
    int n = 0;
    for (char *end; n < MOST_NUMBERS; text = end) {
        const double x = strtod(text, &end);
        if (end == text) break;
        v[n++] = x;
    }
    return n;
}

/* "2 3 : 1 2 3 4 5 6" */
static void read_array(array *a, const char *text)
{
    const char *colon = strchr(text, ':');
    double sizes[MOST_NUMBERS];
    if (!colon) wrong("no colon", text);
    int64_t n = 1;
    a->shape.n = numbers(text, sizes);
    for (int d = 0; d < a->shape.n; d++) n *= a->shape.v[d] = (int64_t)sizes[d];
    a->n = numbers(colon + 1, a->v);
    if (a->n != n) wrong("another number of elements than the shape has", text);
}

static void read_options(sample *s, char *text)
{
    for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n")) {
        char *equals = strchr(word, '=');
        if (!equals) wrong("no =", word);
        *equals = 0;
        double *at = option_of(&s->o, word);
        if (!at) wrong("unknown option", word);
        *at = strtod(equals + 1, NULL);
    }
}

static void read_line(sample *s, char *line)
{
    char role[16], dtype[8], wants;
    int at = 0;
    if (sscanf(line, "loss %31s%n", s->name, &at) == 1) {
        read_options(s, line + at);
    } else if (sscanf(line, "input %15s %7s %c%n", role, dtype, &wants, &at) == 3 && s->n_in < MOST_INPUTS) {
        array *a = &s->in[s->n_in++];
        strcpy(a->role, role);
        a->whole = strcmp(dtype, "i64") == 0;
        a->wants = wants == '*';
        read_array(a, line + at);
    } else if (strncmp(line, "value ", 6) == 0) {
        read_array(&s->value, line + 6);
    } else if (sscanf(line, "grad %15s%n", role, &at) == 1) {
        for (int i = 0; i < s->n_in; i++)
            if (strcmp(s->in[i].role, role) == 0 && numbers(strchr(line, ':') + 1, s->in[i].grad) == s->in[i].n) return;
        wrong("a gradient of nothing", line);
    } else wrong("a strange line", line);
}

static bool read_sample(FILE *f, sample *s)
{
    static char line[MOST_LINE];
    const int number = s->number + 1;
    memset(s, 0, sizeof *s);
    s->number = number;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "end", 3) == 0) return true;
        read_line(s, line);
    }
    return false;
}

/* ---- calling it: in, in the order of the file, and the optional operands by their roles */

typedef cn_tensor *(*loss_fn)(cn_tensor *const *in, const options *o, cn_tensor *weight, cn_tensor *pos_weight);
#define LOSS(name) \
    static cn_tensor *name(cn_tensor *const *in, const options *o, cn_tensor *weight, cn_tensor *pos_weight)
#define UNUSED  (void)in, (void)o, (void)weight, (void)pos_weight
#define REDUCED .reduction = (cn_reduction)o->reduction

LOSS(mse)
{
    UNUSED;
    return cn_mse_loss(in[0], in[1], o->reduction != 0 ? &(cn_plain_loss_desc){ REDUCED } : NULL);
}
LOSS(l1)
{
    UNUSED;
    return cn_l1_loss(in[0], in[1], &(cn_plain_loss_desc){ REDUCED });
}
LOSS(smooth_l1)
{
    UNUSED;
    return cn_smooth_l1_loss(in[0], in[1], &(cn_smooth_l1_desc){ o->beta, REDUCED });
}
LOSS(huber)
{
    UNUSED;
    return cn_huber_loss(in[0], in[1], &(cn_huber_desc){ o->delta, REDUCED });
}
LOSS(bce)
{
    UNUSED;
    return cn_bce_loss(in[0], in[1], &(cn_bce_desc){ weight, pos_weight, REDUCED });
}
LOSS(bce_with_logits) { return cn_bce_with_logits_loss(in[0], in[1], &(cn_bce_desc){ weight, pos_weight, REDUCED }); }
LOSS(kl_div)
{
    UNUSED;
    return cn_kl_div(in[0], in[1], &(cn_kl_div_desc){ o->log_target != 0, REDUCED });
}
LOSS(gaussian_nll)
{
    UNUSED;
    return cn_gaussian_nll_loss(in[0], in[1], in[2], &(cn_gaussian_nll_desc){ o->full != 0, o->eps, REDUCED });
}
LOSS(poisson_nll)
{
    UNUSED;
    const cn_poisson_nll_desc desc = { o->no_log_input != 0, o->full != 0, o->eps, REDUCED };
    return cn_poisson_nll_loss(in[0], in[1], &desc);
}
static cn_margin_loss_desc margin_of(const options *o)
{
    return (cn_margin_loss_desc){ o->margin, o->no_margin != 0, REDUCED };
}
LOSS(hinge_embedding)
{
    UNUSED;
    const cn_margin_loss_desc desc = margin_of(o);
    return cn_hinge_embedding_loss(in[0], in[1], &desc);
}
LOSS(margin_ranking)
{
    UNUSED;
    const cn_margin_loss_desc desc = margin_of(o);
    return cn_margin_ranking_loss(in[0], in[1], in[2], &desc);
}
LOSS(cosine_embedding)
{
    UNUSED;
    const cn_margin_loss_desc desc = margin_of(o);
    return cn_cosine_embedding_loss(in[0], in[1], in[2], &desc);
}
LOSS(soft_margin)
{
    UNUSED;
    return cn_soft_margin_loss(in[0], in[1], &(cn_plain_loss_desc){ REDUCED });
}
LOSS(multi_margin)
{
    UNUSED;
    const cn_multi_margin_desc desc = { o->p, o->margin, o->no_margin != 0, weight, REDUCED };
    return cn_multi_margin_loss(in[0], in[1], &desc);
}
LOSS(triplet_margin)
{
    UNUSED;
    const cn_triplet_margin_desc desc = { o->margin, o->p, o->eps, o->swap != 0, REDUCED };
    return cn_triplet_margin_loss(in[0], in[1], in[2], &desc);
}
LOSS(cosine_similarity)
{
    UNUSED;
    return cn_cosine_similarity(in[0], in[1], (int64_t)o->axis, 1e-8);
}
LOSS(pairwise_distance)
{
    UNUSED;
    return cn_pairwise_distance(in[0], in[1], o->p, 1e-6, o->keepdim != 0);
}
LOSS(ctc)
{
    UNUSED;
    const cn_ctc_desc desc = { (int64_t)o->blank, o->zero_infinity != 0, REDUCED };
    return cn_ctc_loss(cn_log_softmax(in[0], -1), in[1], in[2], in[3], &desc);
}

static const struct {
    const char *name;
    loss_fn fn;
} losses[] = {
    { "mse_loss", mse },
    { "l1_loss", l1 },
    { "smooth_l1_loss", smooth_l1 },
    { "huber_loss", huber },
    { "bce_loss", bce },
    { "bce_with_logits_loss", bce_with_logits },
    { "kl_div", kl_div },
    { "gaussian_nll_loss", gaussian_nll },
    { "poisson_nll_loss", poisson_nll },
    { "hinge_embedding_loss", hinge_embedding },
    { "margin_ranking_loss", margin_ranking },
    { "cosine_embedding_loss", cosine_embedding },
    { "soft_margin_loss", soft_margin },
    { "multi_margin_loss", multi_margin },
    { "triplet_margin_loss", triplet_margin },
    { "cosine_similarity", cosine_similarity },
    { "pairwise_distance", pairwise_distance },
    { "ctc_loss", ctc },
};
enum { LOSSES = sizeof losses / sizeof *losses };

static loss_fn find_loss(const char *name)
{
    for (int i = 0; i < LOSSES; i++)
        if (strcmp(losses[i].name, name) == 0) return losses[i].fn;
    wrong("unknown loss", name);
    return NULL;
}

static cn_tensor *call(const sample *s, cn_tensor *const *t)
{
    cn_tensor *in[MOST_INPUTS] = { 0 }, *weight = NULL, *pos_weight = NULL;
    for (int i = 0, n = 0; i < s->n_in; i++) {
        if (strcmp(s->in[i].role, "weight") == 0) weight = t[i];
        else if (strcmp(s->in[i].role, "pos_weight") == 0) pos_weight = t[i];
        else in[n++] = t[i];
    }
    return find_loss(s->name)(in, &s->o, weight, pos_weight);
}

/* ---- running it */

typedef struct result {
    array value, grad[MOST_INPUTS];
} result;

static cn_tensor *tensor_of(cn_ctx *ctx, const array *a, cn_dtype dtype)
{
    cn_tensor *t = cn_from(ctx, CN_F64, a->shape, a->v);
    return a->whole ? cn_cast(t, dtype == CN_F32 ? CN_I32 : CN_I64) : cn_cast(t, dtype);
}

static bool read_out(cn_tensor *t, array *a)
{
    a->shape = t ? cn_shape(t) : CN_SCALAR;
    a->n = t ? (int)cn_numel(t) : 0;
    return t && a->n <= MOST_NUMBERS && cn_read_f64(t, a->v, a->n);
}

/* What arrives at each element of a loss that is not reduced, as make_loss.py has it. */
static cn_tensor *seed_of(cn_ctx *ctx, const sample *s, cn_tensor *loss)
{
    double v[MOST_NUMBERS];
    for (int i = 0; i < s->value.n; i++) v[i] = s->o.reduction == CN_NONE ? 0.5 + 0.25 * (i % 5) : 1;
    return cn_cast(cn_from(ctx, CN_F64, cn_shape(loss), v), cn_type(loss));
}

static bool same_shape(cn_dims a, cn_dims b) { return a.n == b.n && memcmp(a.v, b.v, (size_t)a.n * sizeof *a.v) == 0; }

static bool run(cn_ctx *ctx, const sample *s, cn_dtype dtype, result *r)
{
    cn_tensor *in[MOST_INPUTS] = { 0 };
    const cn_scope scope = cn_scope_begin(ctx);
    for (int i = 0; i < s->n_in; i++) {
        in[i] = tensor_of(ctx, &s->in[i], dtype);
        if (s->in[i].wants) in[i] = cn_param(in[i]);
    }
    cn_tensor *loss = call(s, in);
    bool ok = loss && same_shape(cn_shape(loss), s->value.shape) && cn_type(loss) == dtype;
    ok = ok && cn_backward_with(cn_keep(loss), &(cn_backward_desc){ .gradient = seed_of(ctx, s, loss) });
    ok = ok && read_out(loss, &r->value);
    for (int i = 0; i < s->n_in; i++) {
        if (!s->in[i].wants) continue;
        ok = ok && read_out(cn_grad_of(in[i]), &r->grad[i]);
        cn_release(in[i]);
    }
    cn_release(loss);
    check(ok, "case %d, %s: %s", s->number, cn_dtype_name(dtype), cn_error(ctx));
    cn_error_clear(ctx);
    cn_scope_end(ctx, scope);
    return ok;
}

static void compare(const sample *s, const char *what, const double *expected, const array *got, int n,
                    double tolerance)
{
    double largest = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(expected[i])) largest = fmax(largest, fabs(expected[i]));
    check(got->n == n, "case %d, %s: %d elements, not %d", s->number, what, got->n, n);
    for (int i = 0; i < n && i < got->n; i++) {
        const double e = expected[i], g = got->v[i];
        const bool ok = isnan(e) ? isnan(g) : isinf(e) ? g == e : fabs(g - e) <= tolerance * largest;
        if (!check(ok, "case %d, %s, element %d: %.17g, not %.17g", s->number, what, i, g, e)) return;
    }
}

static void try_sample(cn_ctx *planned, cn_ctx *eager, const sample *s)
{
    static result a, b;
    for (int pass = 0; pass < 2; pass++) {
        const cn_dtype dtype = pass ? CN_F32 : CN_F64;
        const double tolerance = pass ? 1e-5 : 1e-10;
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        if (!run(planned, s, dtype, &a) || !run(eager, s, dtype, &b)) continue;
        check(memcmp(&a, &b, sizeof a) == 0, "case %d, %s: eager and planned differ", s->number, cn_dtype_name(dtype));
        compare(s, pass ? "f32 value" : "value", s->value.v, &a.value, s->value.n, tolerance);
        for (int i = 0; i < s->n_in; i++)
            if (s->in[i].wants) compare(s, s->in[i].role, s->in[i].grad, &a.grad[i], s->in[i].n, tolerance);
    }
}

static void against_pytorch(cn_ctx *planned, cn_ctx *eager)
{
    static sample s;
    int seen[LOSSES] = { 0 };
    FILE *f = fopen(CAIRN_SOURCE_DIR "/tests/reference/loss.txt", "r");
    if (!check(f != NULL, "no reference/loss.txt")) return;
    while (read_sample(f, &s)) {
        check_group(s.name);
        for (int i = 0; i < LOSSES; i++) seen[i] += strcmp(losses[i].name, s.name) == 0;
        try_sample(planned, eager, &s);
    }
    fclose(f);
    check_group("reference/loss.txt");
    for (int i = 0; i < LOSSES; i++) check(seen[i] >= 6, "%d cases of %s", seen[i], losses[i].name);
}

/* ---- finite differences, once and twice */

typedef struct smooth {
    const char *name;
    options o;
    cn_dims shape[3]; /* of the inputs */
    double low[3], high[3];
} smooth;

static cn_tensor *smooth_fn(void *user, cn_tensor *const *in, int n_in)
{
    const smooth *s = user;
    (void)n_in;
    return find_loss(s->name)(in, &s->o, NULL, NULL);
}

#define S23  { 2, { 2, 3 } }
#define S2   { 1, { 2 } }
#define MEAN { .reduction = CN_MEAN }
static const smooth smooths[] = {
    { "mse_loss", MEAN, { S23, S23 }, { -2, -2 }, { 2, 2 } },
    { "smooth_l1_loss", { .beta = 0.5 }, { S23, S23 }, { -2, -2 }, { 2, 2 } },
    { "huber_loss", { .delta = 0.5, .reduction = CN_NONE }, { S23, S23 }, { -2, -2 }, { 2, 2 } },
    { "bce_loss", MEAN, { S23, S23 }, { 0.1, 0.1 }, { 0.9, 0.9 } },
    { "bce_with_logits_loss", MEAN, { S23, S23 }, { -3, 0 }, { 3, 1 } },
    { "kl_div", { .reduction = CN_BATCHMEAN }, { S23, S23 }, { -3, 0.1 }, { -1, 1 } },
    { "kl_div", { .log_target = 1 }, { S23, S23 }, { -3, -3 }, { -1, -1 } },
    { "gaussian_nll_loss", { .full = 1 }, { S23, S23, S2 }, { -2, -2, 0.5 }, { 2, 2, 2 } },
    { "poisson_nll_loss", { .full = 1 }, { S23, S23 }, { -2, 1.5 }, { 2, 4 } },
    { "poisson_nll_loss", { .no_log_input = 1, .full = 1 }, { S23, S23 }, { 0.5, 1.5 }, { 2, 4 } },
    { "soft_margin_loss", { .reduction = CN_SUM }, { S23, S23 }, { -2, -2 }, { 2, 2 } },
    { "triplet_margin_loss", { .margin = 5, .swap = 1 }, { S23, S23, S23 }, { -2, 1, -1 }, { -1, 2, 1 } },
    { "cosine_similarity", { .axis = 1 }, { S23, S23 }, { -2, -2 }, { 2, 2 } },
    { "pairwise_distance", { .p = 3 }, { S23, S23 }, { -2, 1 }, { 0, 2 } },
};

static cn_tensor *uniform(cn_ctx *ctx, cn_dims shape, double low, double high)
{
    return cn_add_s(cn_mul_s(cn_rand(ctx, CN_F64, shape), high - low), low);
}

static void by_differences(cn_ctx *ctx)
{
    for (size_t i = 0; i < sizeof smooths / sizeof *smooths; i++) {
        smooth s = smooths[i];
        char words[256] = "";
        const cn_gradcheck_desc desc = { .words = words, .words_size = sizeof words };
        cn_tensor *in[3];
        int n = 0;
        check_group(s.name);
        const cn_scope scope = cn_scope_begin(ctx);
        for (; n < 3 && s.shape[n].n; n++) in[n] = uniform(ctx, s.shape[n], s.low[n], s.high[n]);
        check(cn_gradcheck(smooth_fn, &s, in, n, &desc), "gradient: %s %s", words, cn_error(ctx));
        check(cn_gradgradcheck(smooth_fn, &s, in, n, &desc), "second order: %s %s", words, cn_error(ctx));
        cn_error_clear(ctx);
        cn_scope_end(ctx, scope);
    }
}

static cn_tensor *cosine_embedding_fn(void *user, cn_tensor *const *in, int n_in)
{
    (void)n_in;
    return cn_cosine_embedding_loss(in[0], in[1], user, &(cn_margin_loss_desc){ .margin = -2 });
}
static cn_tensor *multi_margin_fn(void *user, cn_tensor *const *in, int n_in)
{
    (void)n_in;
    return cn_multi_margin_loss(in[0], user, &(cn_multi_margin_desc){ .p = 2, .margin = 5 });
}
static cn_tensor *ctc_fn(void *user, cn_tensor *const *in, int n_in)
{
    (void)n_in;
    cn_tensor *const *t = user;
    return cn_ctc_loss(in[0], t[0], t[1], t[2], NULL);
}

static cn_tensor *wholes(cn_ctx *ctx, cn_dims shape, const int64_t *v) { return cn_from(ctx, CN_I64, shape, v); }

static void by_differences_with_targets(cn_ctx *ctx)
{
    char words[256] = "";
    const cn_gradcheck_desc desc = { .words = words, .words_size = sizeof words };
    const cn_scope scope = cn_scope_begin(ctx);
    const int64_t spelled[2][3] = { { 1, 2, 2 }, { 3, 1, 0 } };
    check_group("differences");
    cn_tensor *two[2] = { uniform(ctx, CN_DIMS(3, 4), -2, 2), uniform(ctx, CN_DIMS(3, 4), -2, 2) };
    cn_tensor *sign = wholes(ctx, CN_DIMS(3), (const int64_t[]){ 1, -1, 1 });
    cn_tensor *class = wholes(ctx, CN_DIMS(3), (const int64_t[]){ 3, 0, 2 });
    check(cn_gradcheck(cosine_embedding_fn, sign, two, 2, &desc), "cosine_embedding_loss: %s %s", words, cn_error(ctx));
    check(cn_gradgradcheck(cosine_embedding_fn, sign, two, 2, &desc), "cosine_embedding_loss, twice: %s", words);
    check(cn_gradcheck(multi_margin_fn, class, two, 1, &desc), "multi_margin_loss: %s %s", words, cn_error(ctx));
    check(cn_gradgradcheck(multi_margin_fn, class, two, 1, &desc), "multi_margin_loss, twice: %s", words);
    cn_tensor *x = uniform(ctx, CN_DIMS(6, 2, 4), -3, -0.5);
    cn_tensor *t[3] = { wholes(ctx, CN_DIMS(2, 3), spelled[0]), wholes(ctx, CN_DIMS(2), (const int64_t[]){ 6, 4 }),
                        wholes(ctx, CN_DIMS(2), (const int64_t[]){ 3, 2 }) };
    check(cn_gradcheck(ctc_fn, t, &x, 1, &desc), "ctc_loss of what is not normalised: %s %s", words, cn_error(ctx));
    check(!cn_gradgradcheck(ctc_fn, t, &x, 1, &desc) && cn_error_code(ctx) == CN_NO_GRADIENT,
          "ctc_loss has no second order: %s", cn_error(ctx));
    cn_error_clear(ctx);
    cn_scope_end(ctx, scope);
}

/* ---- fusion: a loop for the loss and one for its gradient, each with a kernel that divides a single number */

static void fuses(cn_ctx *ctx)
{
    check_group("fusion");
    const char *const names[] = { "mse_loss",
                                  "l1_loss",
                                  "smooth_l1_loss",
                                  "huber_loss",
                                  "bce_loss",
                                  "kl_div",
                                  "bce_with_logits_loss",
                                  "poisson_nll_loss",
                                  "hinge_embedding_loss",
                                  "soft_margin_loss" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const cn_scope scope = cn_scope_begin(ctx);
        const options o = { 0 };
        cn_tensor *in[4] = { cn_param(cn_rand(ctx, CN_F32, CN_DIMS(64, 1000))),
                             cn_rand(ctx, CN_F32, CN_DIMS(64, 1000)) };
        cn_eval_all(ctx);
        cn_tensor *loss = cn_keep(find_loss(names[i])(in, &o, NULL, NULL));
        const int64_t before = cn_count(ctx).kernels;
        check(cn_backward(loss) && cn_eval_all(ctx), "%s: %s", names[i], cn_error(ctx));
        const int64_t kernels = cn_count(ctx).kernels - before;
        check(kernels <= 4, "%s and its gradient: %lld kernels", names[i], (long long)kernels);
        cn_release(loss);
        cn_release(in[0]);
        cn_scope_end(ctx, scope);
    }
}

int main(void)
{
    cn_ctx *planned = cn_open(&(cn_desc){ .seed = 5, .threads = 2 });
    cn_ctx *eager = cn_open(&(cn_desc){ .seed = 5, .threads = 1, .eager = true });
    if (!planned || !eager) return 1;
    against_pytorch(planned, eager);
    by_differences(planned);
    by_differences_with_targets(planned);
    fuses(planned);
    check_group("");
    check(!cn_failed(planned) && !cn_failed(eager), "an error is left: %s", cn_error(planned));
    cn_close(planned);
    cn_close(eager);
    return finish();
}
