/* L-BFGS, as PyTorch has it: a direction from the last differences of positions and gradients, then a step of length lr
   along it, or a search for a length that meets the strong Wolfe conditions (Nocedal and Wright, chapters 3 and 7). All
   parameters are one vector x; g is the gradient of the loss f. */
#include <math.h>
#include <stdio.h>

#include "optim/optim.h"

/* One pair of the history. */
typedef struct pair {
    cn_tensor *y, *s; /* kept: differences of gradients and of positions */
    double ro;        /* 1 / (y·s) */
} pair;

typedef struct cn__lbfgs {
    int max_iter, max_eval, history_size;
    double tolerance_grad, tolerance_change;
    bool strong_wolfe;
    int64_t n_iter, func_evals;
    int pairs;
    pair *history;                   /* the oldest first */
    cn_tensor *direction, *previous; /* kept: the last direction, and the gradient before it */
    double t, scale;                 /* the last step's length, and the scale of the inverse Hessian */
    cn_tensor **start;               /* kept: the parameters where a search begins */
} lbfgs;

/* A place along the direction. */
typedef struct point {
    double t, f, slope; /* slope: g·direction */
    cn_tensor *g;       /* kept */
} point;

static void set(cn_tensor **to, cn_tensor *from)
{
    if (from) cn__keep(from);
    cn__release(*to);
    *to = from;
}
static void set_point(point *to, const point *from)
{
    set(&to->g, from->g);
    *to = *from;
}

/* ---- the parameters as one vector ---- */

static int64_t size_of(const cn_optim *opt)
{
    int64_t n = 0;
    for (size_t i = 0; i < opt->slots.n; i++) n += (int64_t)cn_numel(cn__optim_slot(opt, i)->p);
    return n;
}

static cn_tensor *flat_gradient(cn_optim *opt)
{
    cn_ctx *ctx = opt->object.ctx;
    cn_tensor **parts = opt->of.v; /* has room for every parameter */
    for (size_t i = 0; i < opt->slots.n; i++) {
        cn_tensor *p = cn__optim_slot(opt, i)->p, *g = cn_grad_of(p);
        parts[i] = cn_reshape(g ? g : cn_zeros_like(p), CN_DIMS(-1));
    }
    cn_tensor *g = opt->slots.n == 1 ? cn_clone(parts[0]) : cn_cat(parts, (int)opt->slots.n, 0);
    if (opt->h.maximize) g = cn_neg(g);
    return cn_eval(g) && !cn_failed(ctx) ? g : NULL;
}

static double number(cn_tensor *x) { return x ? cn_item(x) : NAN; }
static double largest(cn_tensor *x) { return number(cn_max(cn_abs(x), CN_ALL, false)); }

static void remember_start(cn_optim *opt)
{
    for (size_t i = 0; i < opt->slots.n; i++) set(&opt->lbfgs->start[i], cn_detach(cn__optim_slot(opt, i)->p));
}

/* The parameters become start + t · direction; with t = 0 what they were. */
static bool move(cn_optim *opt, double t)
{
    int64_t at = 0;
    opt->of.n = opt->to.n = opt->slots.n;
    for (size_t i = 0; i < opt->slots.n; i++) {
        cn_tensor *p = cn__optim_slot(opt, i)->p, *from = opt->lbfgs->start[i], *to = from;
        const int64_t n = (int64_t)cn_numel(p);
        if (t != 0) to = cn_add(from, cn_mul_s(cn_reshape(cn_narrow(opt->lbfgs->direction, 0, at, n), cn_shape(p)), t));
        ((cn_tensor **)opt->of.v)[i] = p;
        ((cn_tensor **)opt->to.v)[i] = to;
        if (!to) return false;
        at += n;
    }
    return cn__assign_all(opt->object.ctx, opt->of.v, opt->to.v, (int)opt->of.n) && cn_eval_all(opt->object.ctx);
}

/* ---- the loss and its gradient ---- */

typedef struct problem {
    cn_optim *opt;
    cn_closure closure;
    void *user;
    int evals; /* in this step */
} problem;

/* f and g at the present parameters. False: an error. */
static bool evaluate(problem *q, double *f, cn_tensor **g)
{
    cn_ctx *ctx = q->opt->object.ctx;
    *f = cn__call_closure(q->opt, q->closure, q->user);
    if (cn_failed(ctx)) return false;
    if (q->opt->h.maximize) *f = -*f;
    q->evals++;
    q->opt->lbfgs->func_evals++;
    cn_tensor *flat = flat_gradient(q->opt);
    set(g, flat);
    cn_optim_zero_grad(q->opt); /* an error if the closure freed the optimizer */
    return flat && !cn_failed(ctx);
}

static bool evaluate_at(problem *q, double t, point *p)
{
    if (!move(q->opt, t) || !evaluate(q, &p->f, &p->g)) return false;
    p->t = t;
    p->slope = number(cn_dot(p->g, q->opt->lbfgs->direction));
    return true;
}

/* ---- the search ---- */

/* The minimum between low and high of the cubic through a and b with their slopes; the middle if it has none. */
static double cubic_minimum(const point *a, const point *b, double low, double high)
{
    if (a->t > b->t) {
        const point *swap = a;
        a = b;
        b = swap;
    }
    const double d1 = a->slope + b->slope - 3 * (a->f - b->f) / (a->t - b->t), square = d1 * d1 - a->slope * b->slope;
    if (!(square >= 0)) return (low + high) / 2;
    const double d2 = sqrt(square);
    const double t = b->t - (b->t - a->t) * ((b->slope + d2 - d1) / (b->slope - a->slope + 2 * d2));
    return fmin(fmax(t, low), high);
}

static const double decrease = 1e-4, flattening = 0.9; /* c1 and c2 of the Wolfe conditions */

typedef struct search {
    problem *q;
    point begin, bracket[2]; /* a bracket of one point: that point is the result */
    int iterations, most;
    bool done;
} search;

static bool too_high(const search *s, const point *p) { return p->f > s->begin.f + decrease * p->t * s->begin.slope; }
static bool is_flat(const search *s, const point *p) { return fabs(p->slope) <= -flattening * s->begin.slope; }

/* Moves outwards until two points enclose a minimum, or one meets the conditions. */
static bool find_bracket(search *s, double t)
{
    point before = { 0 }, here = { 0 };
    set_point(&before, &s->begin);
    bool ok = evaluate_at(s->q, t, &here), found = false;
    for (; ok && !found && s->iterations < s->most; s->iterations++) {
        if (too_high(s, &here) || (s->iterations > 1 && here.f >= before.f)) break;
        if (is_flat(s, &here)) {
            s->done = found = true;
            break;
        }
        if (here.slope >= 0) break;
        const double next = cubic_minimum(&before, &here, here.t + 0.01 * (here.t - before.t), here.t * 10);
        set_point(&before, &here);
        ok = evaluate_at(s->q, next, &here);
    }
    if (ok) {
        const bool gave_up = s->iterations == s->most;
        set_point(&s->bracket[0], s->done ? &here : gave_up ? &s->begin : &before);
        set_point(&s->bracket[1], &here);
    }
    set(&before.g, NULL);
    set(&here.g, NULL);
    return ok;
}

/* Where to look inside the bracket: the cubic's minimum, but not near the same end twice. */
static double inside(const point *b, bool *hesitated)
{
    const double low = fmin(b[0].t, b[1].t), high = fmax(b[0].t, b[1].t), margin = 0.1 * (high - low);
    double t = cubic_minimum(&b[0], &b[1], low, high);
    if (fmin(high - t, t - low) >= margin) {
        *hesitated = false;
        return t;
    }
    if (!*hesitated && t < high && t > low) {
        *hesitated = true;
        return t;
    }
    *hesitated = false;
    return fabs(t - high) < fabs(t - low) ? high - margin : low + margin;
}

/* Narrows the bracket. Returns the index of its better end; -1: an error. */
static int narrow(search *s)
{
    const lbfgs *l = s->q->opt->lbfgs;
    const double reach = largest(l->direction);
    point *b = s->bracket, here = { 0 };
    int low = b[0].f <= b[1].f ? 0 : 1;
    bool hesitated = false, ok = true;
    while (ok && !s->done && s->iterations < s->most) {
        if (fabs(b[1].t - b[0].t) * reach < l->tolerance_change) break;
        ok = evaluate_at(s->q, inside(b, &hesitated), &here);
        if (!ok) break;
        s->iterations++;
        if (too_high(s, &here) || here.f >= b[low].f) {
            set_point(&b[1 - low], &here);
            low = b[0].f <= b[1].f ? 0 : 1;
            continue;
        }
        if (is_flat(s, &here)) s->done = true;
        else if (here.slope * (b[1 - low].t - b[low].t) >= 0) set_point(&b[1 - low], &b[low]);
        set_point(&b[low], &here);
    }
    set(&here.g, NULL);
    return ok ? low : -1;
}

/* Searches from `at` along the direction; `at` becomes the point that was found. */
static bool search_line(problem *q, point *at, double t)
{
    search s = { .q = q, .most = q->opt->lbfgs->max_eval - q->evals };
    set_point(&s.begin, at);
    const int low = find_bracket(&s, t) ? narrow(&s) : -1;
    if (low >= 0) set_point(at, &s.bracket[low]);
    set(&s.begin.g, NULL);
    set(&s.bracket[0].g, NULL);
    set(&s.bracket[1].g, NULL);
    return low >= 0 && move(q->opt, at->t);
}

/* ---- the direction ---- */

static void forget_oldest(lbfgs *l)
{
    set(&l->history[0].y, NULL);
    set(&l->history[0].s, NULL);
    memmove(l->history, l->history + 1, sizeof(pair) * (size_t)--l->pairs);
    l->history[l->pairs] = (pair){ NULL, NULL, 0 };
}

static void remember(lbfgs *l, cn_tensor *g)
{
    cn_tensor *y = cn_sub(g, l->previous), *s = cn_mul_s(l->direction, l->t);
    const double ys = number(cn_dot(y, s));
    if (!(ys > 1e-10)) return;
    if (l->pairs == l->history_size) forget_oldest(l);
    pair *p = &l->history[l->pairs++];
    set(&p->y, y);
    set(&p->s, s);
    p->ro = 1 / ys;
    l->scale = ys / number(cn_dot(y, y));
}

/* -H g, where H approximates the inverse Hessian: the two loops over the history. */
static cn_tensor *descent(cn_optim *opt, cn_tensor *g)
{
    lbfgs *l = opt->lbfgs;
    cn_tensor **share = opt->of.v, *d = cn_neg(g);
    for (int i = l->pairs - 1; i >= 0; i--) {
        share[i] = cn_mul_s(cn_dot(l->history[i].s, d), l->history[i].ro);
        d = cn_sub(d, cn_mul(l->history[i].y, share[i]));
    }
    d = cn_mul_s(d, l->scale);
    for (int i = 0; i < l->pairs; i++) {
        cn_tensor *back = cn_mul_s(cn_dot(l->history[i].y, d), l->history[i].ro);
        d = cn_add(d, cn_mul(l->history[i].s, cn_sub(share[i], back)));
    }
    return cn_eval(d) ? d : NULL;
}

/* ---- a step ---- */

/* One iteration from `at`. *stop: the minimisation ends. */
static bool iterate(problem *q, point *at, bool last, bool *stop)
{
    cn_optim *opt = q->opt;
    lbfgs *l = opt->lbfgs;
    const double lr = cn__optim_group(opt, 0)->h.lr, f = at->f;
    const bool first = l->n_iter++ == 0;
    if (!first) remember(l, at->g);
    set(&l->direction, descent(opt, at->g));
    set(&l->previous, at->g);
    if (!l->direction) return false;
    l->t = first ? fmin(1, 1 / number(cn_sum(cn_abs(at->g), CN_ALL, false))) * lr : lr;
    at->slope = number(cn_dot(at->g, l->direction));
    at->t = 0;
    *stop = last || !(at->slope <= -l->tolerance_change);
    if (!(at->slope <= -l->tolerance_change)) return true;

    remember_start(opt);
    bool ok;
    if (l->strong_wolfe) {
        ok = search_line(q, at, l->t);
        l->t = at->t;
    } else {
        ok = move(opt, l->t) && (last || evaluate(q, &at->f, &at->g));
    }
    if (!ok) {
        char message[512]; /* restoring needs a context without an error */
        snprintf(message, sizeof message, "%s", cn_error(opt->object.ctx));
        const cn_code code = cn_error_code(opt->object.ctx);
        cn_error_clear(opt->object.ctx);
        move(opt, 0);
        cn_error_clear(opt->object.ctx);
        return cn__fail(opt->object.ctx, code, "%s", message);
    }
    *stop = *stop || q->evals >= l->max_eval || largest(at->g) <= l->tolerance_grad ||
            largest(l->direction) * fabs(l->t) <= l->tolerance_change || fabs(at->f - f) < l->tolerance_change;
    return true;
}

static bool minimize(cn_optim *opt, cn_closure closure, void *user, double *loss)
{
    cn_ctx *ctx = opt->object.ctx;
    problem q = { opt, closure, user, 0 };
    point at = { 0 };
    cn_no_grad_begin(ctx);
    bool ok = evaluate(&q, &at.f, &at.g), stop = false;
    *loss = opt->h.maximize ? -at.f : at.f;
    stop = ok && largest(at.g) <= opt->lbfgs->tolerance_grad;
    for (int i = 1; ok && !stop; i++) {
        cn_scope scope = cn_scope_begin(ctx);
        ok = iterate(&q, &at, i == opt->lbfgs->max_iter, &stop);
        cn_scope_end(ctx, scope);
    }
    for (size_t i = 0; i < opt->slots.n; i++) set(&opt->lbfgs->start[i], NULL);
    set(&at.g, NULL);
    cn_no_grad_end(ctx);
    return ok && !cn_failed(ctx);
}

/* ---- freeing, saving, loading ---- */

static size_t start_bytes(const cn_optim *opt) { return sizeof(cn_tensor *) * opt->slots.n; }
static size_t history_bytes(const lbfgs *l) { return sizeof(pair) * (size_t)l->history_size; }

static void free_state(cn_optim *opt)
{
    lbfgs *l = opt->lbfgs;
    cn_ctx *ctx = opt->object.ctx;
    while (l->pairs) forget_oldest(l);
    set(&l->direction, NULL);
    set(&l->previous, NULL);
    if (l->history) cn__free(ctx, l->history, history_bytes(l));
    if (l->start) cn__free(ctx, l->start, start_bytes(opt));
    cn__free(ctx, l, sizeof *l);
    opt->lbfgs = NULL;
}

enum { NAME = 256 };
static const char *name_of(char out[NAME], const char *prefix, const char *what, int i)
{
    const int n = i < 0 ? snprintf(out, NAME, "%sstate/0/%s", prefix ? prefix : "", what)
                        : snprintf(out, NAME, "%sstate/0/%s/%d", prefix ? prefix : "", what, i);
    return n >= 0 && n < NAME ? out : NULL;
}

static bool save_state(cn_optim *opt, cn_dict *d, const char *prefix)
{
    const lbfgs *l = opt->lbfgs;
    char name[NAME];
    bool ok = cn_dict_set_whole(d, name_of(name, prefix, "n_iter", -1), l->n_iter) &&
              cn_dict_set_whole(d, name_of(name, prefix, "func_evals", -1), l->func_evals) &&
              cn_dict_set_whole(d, name_of(name, prefix, "pairs", -1), l->pairs) &&
              cn_dict_set_number(d, name_of(name, prefix, "t", -1), l->t) &&
              cn_dict_set_number(d, name_of(name, prefix, "H_diag", -1), l->scale);
    if (ok && l->direction)
        ok = cn_dict_set(d, name_of(name, prefix, "d", -1), l->direction) &&
             cn_dict_set(d, name_of(name, prefix, "prev_flat_grad", -1), l->previous);
    for (int i = 0; i < l->pairs && ok; i++)
        ok = cn_dict_set(d, name_of(name, prefix, "old_dirs", i), l->history[i].y) &&
             cn_dict_set(d, name_of(name, prefix, "old_stps", i), l->history[i].s) &&
             cn_dict_set_number(d, name_of(name, prefix, "ro", i), l->history[i].ro);
    return ok;
}

/* A vector of the dict that fits the parameters. */
static cn_tensor *vector(cn_optim *opt, const cn_dict *d, const char *name)
{
    cn_tensor *x = name ? cn_dict_get(d, name) : NULL;
    const bool fits = x && cn_ndim(x) == 1 && (int64_t)cn_numel(x) == size_of(opt) &&
                      cn_type(x) == cn_type(cn__optim_slot(opt, 0)->p);
    if (!fits)
        cn__fail(opt->object.ctx, CN_BAD_ARGUMENT,
                 "optim_load: %s must be a vector of %lld elements of the parameters' dtype", name ? name : "a name",
                 (long long)size_of(opt));
    return fits ? x : NULL;
}

/* Pair i of the dict; false after an error. */
static bool read_pair(cn_optim *opt, const cn_dict *d, const char *prefix, int i, pair *p)
{
    char name[NAME];
    p->y = vector(opt, d, name_of(name, prefix, "old_dirs", i));
    p->s = p->y ? vector(opt, d, name_of(name, prefix, "old_stps", i)) : NULL;
    return p->s && (cn_dict_number(d, name_of(name, prefix, "ro", i), &p->ro) ||
                    cn__fail(opt->object.ctx, CN_BAD_ARGUMENT, "optim_load: the dict has no ro for pair %d", i));
}

/* First checks all pairs, then replaces the history. */
static bool load_pairs(cn_optim *opt, const cn_dict *d, const char *prefix, int pairs)
{
    lbfgs *l = opt->lbfgs;
    pair p;
    for (int i = 0; i < pairs; i++)
        if (!read_pair(opt, d, prefix, i, &p)) return false;
    while (l->pairs) forget_oldest(l);
    for (; l->pairs < pairs; l->pairs++) {
        read_pair(opt, d, prefix, l->pairs, &p);
        set(&l->history[l->pairs].y, p.y);
        set(&l->history[l->pairs].s, p.s);
        l->history[l->pairs].ro = p.ro;
    }
    return true;
}

static bool load_state(cn_optim *opt, const cn_dict *d, const char *prefix)
{
    lbfgs *l = opt->lbfgs;
    cn_ctx *ctx = opt->object.ctx;
    char name[NAME];
    int64_t n_iter = 0, evals = 0, pairs = 0;
    double t = 0, scale = 1;
    if (!cn_dict_whole(d, name_of(name, prefix, "n_iter", -1), &n_iter) ||
        !cn_dict_whole(d, name_of(name, prefix, "func_evals", -1), &evals) ||
        !cn_dict_whole(d, name_of(name, prefix, "pairs", -1), &pairs) ||
        !cn_dict_number(d, name_of(name, prefix, "t", -1), &t) ||
        !cn_dict_number(d, name_of(name, prefix, "H_diag", -1), &scale))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "optim_load: the dict must have n_iter, func_evals, pairs, t and H_diag");
    if (n_iter < 0 || evals < 0 || pairs < 0 || pairs > l->history_size)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "optim_load: pairs must be from 0 to history_size, %d, got %lld",
                        l->history_size, (long long)pairs);
    cn_tensor *direction = NULL, *previous = NULL;
    if (n_iter > 0) {
        direction = vector(opt, d, name_of(name, prefix, "d", -1));
        previous = vector(opt, d, name_of(name, prefix, "prev_flat_grad", -1));
        if (!direction || !previous) return false;
    }
    if (!load_pairs(opt, d, prefix, (int)pairs)) return false;
    set(&l->direction, direction);
    set(&l->previous, previous);
    l->n_iter = n_iter;
    l->func_evals = evals;
    l->t = t;
    l->scale = scale;
    return true;
}

/* ---- making ---- */

static unsigned no_states(const cn__hyper *h)
{
    (void)h;
    return 0;
}

static const cn__rule rule = {
    .name = "lbfgs", .uses = no_states, .minimize = minimize, .free = free_state, .save = save_state, .load = load_state
};

static bool check(cn_ctx *ctx, cn_params params, const lbfgs *l)
{
    if (l->max_iter < 1 || l->max_eval < 1 || l->history_size < 1)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "lbfgs: max_iter, max_eval and history_size must be ≥ 1, got %d, %d and %d", l->max_iter,
                        l->max_eval, l->history_size);
    if (!(l->tolerance_grad >= 0) || !(l->tolerance_change >= 0))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "lbfgs: tolerances must be ≥ 0, got %g and %g", l->tolerance_grad,
                        l->tolerance_change);
    for (int i = 1; i < params.n; i++)
        if (params.v[0] && params.v[i] && cn_type(params.v[i]) != cn_type(params.v[0]))
            return cn__fail(ctx, CN_BAD_DTYPE, "lbfgs: all parameters must have one dtype, got %s and %s",
                            cn_dtype_name(cn_type(params.v[0])), cn_dtype_name(cn_type(params.v[i])));
    return true;
}

static bool attach(cn_optim *opt, const lbfgs *settings)
{
    cn_ctx *ctx = opt->object.ctx;
    lbfgs *l = opt->lbfgs = cn__alloc(ctx, sizeof *l);
    if (!l) return cn__no_memory(ctx, "lbfgs");
    *l = *settings;
    l->history = cn__alloc(ctx, history_bytes(l));
    l->start = cn__alloc(ctx, start_bytes(opt));
    if (!l->history || !l->start) return cn__no_memory(ctx, "lbfgs");
    memset(l->history, 0, history_bytes(l));
    memset(l->start, 0, start_bytes(opt));
    /* descent() keeps a number for each pair in opt->of */
    return cn__vec_reserve(&ctx->memory, &opt->of, (size_t)l->history_size, sizeof(cn_tensor *)) ||
           cn__no_memory(ctx, "lbfgs");
}

cn_optim *cn_lbfgs(cn_ctx *ctx, cn_params params, const cn_lbfgs_desc *desc)
{
    const cn_lbfgs_desc d = desc ? *desc : (cn_lbfgs_desc){ 0 };
    const cn__hyper h = { .lr = cn__given(d.lr, 1), .maximize = d.maximize };
    lbfgs l = { .max_iter = d.max_iter ? d.max_iter : 20,
                .history_size = d.history_size ? d.history_size : 100,
                .tolerance_grad = cn__given(d.tolerance_grad, 1e-7),
                .tolerance_change = cn__given(d.tolerance_change, 1e-9),
                .strong_wolfe = d.strong_wolfe,
                .scale = 1 };
    l.max_eval = d.max_eval ? d.max_eval : (int)((int64_t)l.max_iter * 5 / 4);
    CN__CALL call = cn__enter(ctx, "lbfgs");
    if (!call.ctx) return NULL;
    cn_optim *opt = cn__optim_new(ctx, &rule, &h, params, false);
    if (!opt) return NULL;
    if (check(ctx, params, &l) && attach(opt, &l)) return opt;
    cn__object_free(opt);
    return NULL;
}
