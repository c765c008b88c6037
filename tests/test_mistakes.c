/* Random programs with deliberate mistakes. A program makes tensors, scopes, dicts, modules and optimizers in two
   contexts. Each step may be a mistake: a tensor whose scope has ended, a second release, a freed object, NULL, a wrong
   shape or dtype, a tensor of the other context, a spent graph. A shadow of the program in plain arrays knows which
   calls must fail, with which code, and the right numbers of the others. After a mistake the error is cleared and the
   program goes on.

       test_mistakes [SEED]        one program, step by step */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"

enum { SLOTS = 24, SIDE = 4, MOST = SIDE * SIDE, SCOPES = 6, CONTEXTS = 2, STEPS = 60, LAYERS = 3, DICTS = 2 };

/* ---- the shadow ---- */

typedef struct slot { /* a tensor that the program holds, and what it must be */
    cn_tensor *t;
    int context, rows, cols;
    double v[MOST];
    int scope;      /* the number of the scope that it belongs to; -1: none any more */
    int keeps;      /* by the program */
    int held;       /* by dicts */
    bool parameter; /* a module keeps it */
    bool let_go;    /* an assignment may have replaced what it would be computed from */
    uint32_t needs; /* slots that its value depends on */
    bool used;
} slot;

typedef struct layer { /* Linear, SIDE to SIDE, with whole numbers, and its optimizer */
    cn_module *m;
    cn_optim *opt;
    double w[MOST], b[SIDE];
    bool freed, opt_freed, adopted;
} layer;

typedef struct dict {
    cn_dict *d;
    bool freed;
    int slot; /* that it holds as "x", or -1 */
} dict;

typedef struct world {
    cn_ctx *cn;
    faulty memory;
    cn_scope scopes[SCOPES];
    int depth;
    layer layer;
    dict dict;
} world;

typedef struct program {
    world w[CONTEXTS];
    slot slot[SLOTS];
    uint64_t random;
    uint64_t seed;
    int step, mistakes, right;
    bool shown;
} program;

static uint32_t draw(program *p, uint32_t n)
{
    p->random ^= p->random << 13, p->random ^= p->random >> 7, p->random ^= p->random << 17;
    return (uint32_t)(p->random >> 33) % n;
}

static bool alive(const slot *s) { return s->used && (s->scope >= 0 || s->keeps || s->held || s->parameter); }

/* ---- what must happen ---- */

/* The call was right: it succeeded, and no error stands. */
static void right(program *p, bool ok, const char *what)
{
    p->right++;
    for (int i = 0; i < CONTEXTS && p->w[i].cn; i++) {
        const bool fine = ok && !cn_failed(p->w[i].cn);
        check(fine, "seed %llu, step %d: %s must succeed: %s", (unsigned long long)p->seed, p->step, what,
              cn_error(p->w[i].cn));
        cn_error_clear(p->w[i].cn);
    }
    if (p->shown) printf("%3d %s\n", p->step, what);
}

/* The call was a mistake: it failed, and the error in this context has this code. */
static void wrong(program *p, int context, bool failed, cn_code code, const char *what)
{
    p->mistakes++;
    cn_ctx *cn = p->w[context].cn;
    check(failed && cn_error_code(cn) == code && strchr(cn_error(cn), ':'),
          "seed %llu, step %d: %s must fail with %s: %s, %s: %s", (unsigned long long)p->seed, p->step, what,
          cn_code_name(code), failed ? "failed" : "succeeded", cn_code_name(cn_error_code(cn)), cn_error(cn));
    if (p->shown) printf("%3d mistake: %s\n      %s\n", p->step, what, cn_error(cn));
    for (int i = 0; i < CONTEXTS; i++) cn_error_clear(p->w[i].cn);
}

/* ---- slots ---- */

static slot *find(program *p, int context, bool is_alive)
{
    const int from = (int)draw(p, SLOTS);
    for (int k = 0; k < SLOTS; k++) {
        slot *s = &p->slot[(from + k) % SLOTS];
        if (s->used && s->context == context && alive(s) == is_alive && !(is_alive && s->let_go)) return s;
    }
    return NULL;
}

static slot *like(program *p, const slot *a, bool same)
{
    const int from = (int)draw(p, SLOTS);
    for (int k = 0; k < SLOTS; k++) {
        slot *s = &p->slot[(from + k) % SLOTS];
        if (alive(s) && !s->let_go && s->context == a->context && (s->rows == a->rows && s->cols == a->cols) == same)
            return s;
    }
    return NULL;
}

static int number_of(const program *p, const slot *s) { return (int)(s - p->slot); }

static slot *free_slot(program *p)
{
    for (int i = 0; i < SLOTS; i++)
        if (!p->slot[i].used) return &p->slot[i];
    for (int k = 0; k < SLOTS; k++) { /* forget one that is stale, or that only a scope has */
        slot *s = &p->slot[draw(p, SLOTS)];
        if (s->keeps || s->held || s->parameter) continue;
        for (int i = 0; i < SLOTS; i++) p->slot[i].let_go |= p->slot[i].needs >> number_of(p, s) & 1;
        return s;
    }
    return NULL;
}

static slot *store(program *p, int context, cn_tensor *t, int rows, int cols, const double *v, uint32_t needs)
{
    slot *s = free_slot(p);
    if (!s) return NULL;
    *s = (slot){ .t = t,
                 .context = context,
                 .rows = rows,
                 .cols = cols,
                 .scope = p->w[context].depth,
                 .needs = needs,
                 .used = true };
    for (int i = 0; i < rows * cols; i++) s->v[i] = v[i];
    return s;
}

static uint32_t needs_of(const program *p, const slot *a) { return a->needs | 1u << number_of(p, a); }

static bool bounded(const double *v, int n)
{
    for (int i = 0; i < n; i++)
        if (fabs(v[i]) > 1e5) return false;
    return true;
}

/* ---- steps ---- */

static void make(program *p, int context)
{
    const int rows = 1 + (int)draw(p, SIDE), cols = 1 + (int)draw(p, SIDE);
    float data[MOST];
    double v[MOST];
    for (int i = 0; i < rows * cols; i++) data[i] = (float)(v[i] = (double)draw(p, 17) - 8);
    cn_tensor *t = cn_from(p->w[context].cn, CN_F32, CN_DIMS(rows, cols), data);
    right(p, t != NULL, "from");
    if (t) store(p, context, t, rows, cols, v, 0);
}

static void bad_make(program *p, int context)
{
    cn_ctx *cn = p->w[context].cn;
    const float data[2] = { 1, 2 };
    switch (draw(p, 4)) {
    case 0:
        wrong(p, context, !cn_from(cn, CN_F32, CN_DIMS(-1, 2), data), CN_BAD_SHAPE, "from with a negative size");
        break;
    case 1: wrong(p, context, !cn_from(cn, CN_F32, CN_DIMS(2), NULL), CN_BAD_ARGUMENT, "from without data"); break;
    case 2: wrong(p, context, !cn_zeros(cn, (cn_dtype)77, CN_DIMS(2)), CN_BAD_DTYPE, "zeros of dtype 77"); break;
    default: wrong(p, context, !cn_ones(cn, CN_F32, (cn_dims){ .n = 9 }), CN_BAD_SHAPE, "ones of nine axes"); break;
    }
}

static void binary(program *p, int context)
{
    slot *a = find(p, context, true), *b = a ? like(p, a, true) : NULL;
    if (!b) return;
    double v[MOST];
    const uint32_t op = draw(p, 4);
    for (int i = 0; i < a->rows * a->cols; i++)
        v[i] = op == 0   ? a->v[i] + b->v[i]
               : op == 1 ? a->v[i] - b->v[i]
               : op == 2 ? a->v[i] * b->v[i]
                         : fmax(a->v[i], b->v[i]);
    if (!bounded(v, a->rows * a->cols)) return;
    cn_tensor *t = op == 0   ? cn_add(a->t, b->t)
                   : op == 1 ? cn_sub(a->t, b->t)
                   : op == 2 ? cn_mul(a->t, b->t)
                             : cn_maximum(a->t, b->t);
    right(p, t != NULL, "binary");
    if (t) store(p, context, t, a->rows, a->cols, v, needs_of(p, a) | needs_of(p, b));
}

static void bad_binary(program *p, int context)
{
    slot *a = find(p, context, true), *stale = find(p, context, false), *b = a ? like(p, a, false) : NULL;
    slot *foreign = find(p, !context, true);
    if (!a) return;
    switch (draw(p, 6)) {
    case 0:
        if (stale) wrong(p, context, !cn_mul(a->t, stale->t), CN_RELEASED, "mul with a stale tensor");
        break;
    case 1:
        if (stale) wrong(p, context, !cn_relu(stale->t), CN_RELEASED, "relu of a stale tensor");
        break;
    case 2: wrong(p, context, !cn_add(a->t, NULL), CN_BAD_ARGUMENT, "add with NULL"); break;
    case 3:
        if (foreign) wrong(p, context, !cn_sub(a->t, foreign->t), CN_BAD_DEVICE, "sub with the other context's tensor");
        break;
    case 4:
        if (b && a->rows > 1 && b->rows > 1 && a->rows != b->rows)
            wrong(p, context, !cn_add(a->t, b->t), CN_BAD_SHAPE, "add of unlike shapes");
        break;
    default: wrong(p, context, !cn_bitwise_and(a->t, a->t), CN_BAD_DTYPE, "bitwise_and of floats"); break;
    }
}

static void product(program *p, int context)
{
    slot *a = find(p, context, true), *b = find(p, context, true);
    if (!a || !b) return;
    if (a->cols != b->rows) {
        wrong(p, context, !cn_matmul(a->t, b->t), CN_BAD_SHAPE, "matmul of unlike sizes");
        return;
    }
    double v[MOST] = { 0 };
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < b->cols; j++)
            for (int k = 0; k < a->cols; k++) v[i * b->cols + j] += a->v[i * a->cols + k] * b->v[k * b->cols + j];
    if (!bounded(v, a->rows * b->cols)) return;
    cn_tensor *t = cn_matmul(a->t, b->t);
    right(p, t != NULL, "matmul");
    if (t) store(p, context, t, a->rows, b->cols, v, needs_of(p, a) | needs_of(p, b));
}

static void view(program *p, int context)
{
    slot *a = find(p, context, true);
    if (!a) return;
    double v[MOST];
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < a->cols; j++) v[j * a->rows + i] = a->v[i * a->cols + j];
    cn_tensor *t = cn_transpose(a->t, 0, 1);
    right(p, t != NULL, "transpose");
    if (t) store(p, context, t, a->cols, a->rows, v, needs_of(p, a));
}

static void bad_view(program *p, int context)
{
    slot *a = find(p, context, true);
    if (!a) return;
    switch (draw(p, 4)) {
    case 0:
        wrong(p, context, !cn_reshape(a->t, CN_DIMS(a->rows * a->cols + 1)), CN_BAD_SHAPE, "reshape to more elements");
        break;
    case 1:
        wrong(p, context, !cn_transpose(a->t, 0, 2), CN_BAD_ARGUMENT, "transpose of an axis that is not there");
        break;
    case 2: wrong(p, context, !cn_select(a->t, 0, a->rows), CN_BAD_ARGUMENT, "select beyond the end"); break;
    default: wrong(p, context, !cn_cat((cn_tensor *[]){ a->t, NULL }, 2, 0), CN_BAD_ARGUMENT, "cat with NULL"); break;
    }
}

/* A value that was let go and cannot be computed again is an error; it is never a wrong number. */
static void read_slot(program *p, slot *s)
{
    double got[MOST];
    cn_ctx *cn = p->w[s->context].cn;
    const bool ok = cn_read_f64(s->t, got, s->rows * s->cols);
    if (!ok && s->let_go && !s->keeps && !s->held && cn_error_code(cn) == CN_LET_GO) {
        cn_error_clear(cn);
        return;
    }
    right(p, ok, "read");
    for (int i = 0; i < s->rows * s->cols && ok; i++)
        if (!check(got[i] == s->v[i], "seed %llu, step %d: element %d is %g, not %g", (unsigned long long)p->seed,
                   p->step, i, got[i], s->v[i]))
            return;
}

static void bad_read(program *p, int context)
{
    slot *a = find(p, context, true), *stale = find(p, context, false);
    double out[MOST];
    switch (draw(p, 5)) {
    case 0:
        if (stale) wrong(p, context, !cn_read_f64(stale->t, out, 1), CN_RELEASED, "reading a stale tensor");
        break;
    case 1:
        if (stale) wrong(p, context, isnan(cn_item(stale->t)), CN_RELEASED, "item of a stale tensor");
        break;
    case 2:
        if (a) wrong(p, context, !cn_read(a->t, out, 3), CN_BAD_ARGUMENT, "reading 3 bytes");
        break;
    case 3:
        if (a) wrong(p, context, isnan(cn_get(a->t, CN_DIMS(a->rows, 0))), CN_BAD_INDEX, "get beyond the end");
        break;
    default:
        if (a && a->rows * a->cols > 1)
            wrong(p, context, isnan(cn_item(a->t)), CN_BAD_SHAPE, "item of several elements");
        break;
    }
}

static void keep(program *p, int context)
{
    slot *a = find(p, context, true);
    if (!a || a->let_go) return;
    if (a->keeps && draw(p, 2)) {
        cn_release(a->t);
        a->keeps--;
        right(p, true, "release");
    } else {
        right(p, cn_keep(a->t) == a->t, "keep");
        a->keeps++;
    }
}

static void bad_keep(program *p, int context)
{
    slot *stale = find(p, context, false), *a = find(p, context, true);
    layer *l = &p->w[context].layer;
    switch (draw(p, 4)) {
    case 0:
        if (!stale) break;
        cn_release(stale->t);
        wrong(p, context, true, CN_RELEASED, "a release too many");
        break;
    case 1:
        if (stale) wrong(p, context, !cn_keep(stale->t), CN_RELEASED, "keeping a stale tensor");
        break;
    case 2:
        if (!a || a->keeps) break;
        cn_release(a->t);
        wrong(p, context, true, CN_RELEASED, "a release without a keep");
        break;
    default:
        if (l->freed) break;
        cn_release(cn_module_get(l->m, "weight"));
        wrong(p, context, true, CN_RELEASED, "a release of what a module keeps");
        break;
    }
}

static void scope(program *p, int context)
{
    world *w = &p->w[context];
    if (w->depth < SCOPES && draw(p, 2)) {
        w->scopes[w->depth++] = cn_scope_begin(w->cn);
        return;
    }
    if (!w->depth) return;
    const int to = w->depth > 1 && !draw(p, 4) ? w->depth - 2 : w->depth - 1; /* some end two scopes at once */
    cn_scope_end(w->cn, w->scopes[to]);
    if (!draw(p, 4)) cn_scope_end(w->cn, w->scopes[to]); /* it is empty now: nothing happens */
    if (!draw(p, 4))
        cn_scope_end(w->cn, w->scopes[w->depth - 1]); /* so is a scope inside it, which has ended with it */
    w->depth = to;
    for (int i = 0; i < SLOTS; i++)
        if (p->slot[i].used && p->slot[i].context == context && p->slot[i].scope > to) p->slot[i].scope = -1;
    right(p, true, "scope_end");
}

static void assign(program *p, int context)
{
    slot *a = find(p, context, true), *b = a ? like(p, a, true) : NULL;
    if (!b || a == b || a->let_go || b->let_go) return;
    right(p, cn_assign(a->t, b->t), "assign");
    memcpy(a->v, b->v, sizeof a->v);
    for (int i = 0; i < SLOTS; i++)
        p->slot[i].let_go |= i != number_of(p, a) && p->slot[i].needs >> number_of(p, a) & 1;
    a->needs = needs_of(p, b) & ~(1u << number_of(p, a));
}

static void bad_assign(program *p, int context)
{
    slot *a = find(p, context, true), *b = a ? like(p, a, false) : NULL, *stale = find(p, context, false);
    slot *foreign = find(p, !context, true);
    if (!a) return;
    switch (draw(p, 5)) {
    case 0:
        if (b) wrong(p, context, !cn_assign(a->t, b->t), CN_BAD_SHAPE, "assigning another shape");
        break;
    case 1:
        if (stale) wrong(p, context, !cn_assign(a->t, stale->t), CN_RELEASED, "assigning a stale tensor");
        break;
    case 2:
        if (stale) wrong(p, context, !cn_assign(stale->t, a->t), CN_RELEASED, "assigning to a stale tensor");
        break;
    case 3:
        if (foreign)
            wrong(p, context, !cn_assign(a->t, foreign->t), CN_BAD_DEVICE, "assigning the other context's tensor");
        break;
    default: wrong(p, context, !cn_assign(a->t, NULL), CN_BAD_ARGUMENT, "assigning NULL"); break;
    }
}

/* ---- dicts ---- */

static void forget_held(program *p, dict *d)
{
    if (d->slot >= 0) p->slot[d->slot].held--;
    d->slot = -1;
}

static void dict_step(program *p, int context)
{
    dict *d = &p->w[context].dict;
    slot *a = find(p, context, true);
    if (d->freed || !draw(p, 8)) {
        if (!d->freed) cn_dict_free(d->d);
        forget_held(p, d);
        *d = (dict){ cn_dict_new(p->w[context].cn), false, -1 };
        right(p, d->d != NULL, "a new dict");
    } else if (a && !a->let_go && draw(p, 2)) {
        right(p, cn_dict_set(d->d, "x", a->t), "dict_set");
        a->held++;
        forget_held(p, d);
        d->slot = number_of(p, a);
    } else if (d->slot >= 0) {
        right(p, cn_dict_get(d->d, "x") == p->slot[d->slot].t, "dict_get");
    }
}

static void bad_dict(program *p, int context)
{
    dict *d = &p->w[context].dict;
    slot *a = find(p, context, true), *stale = find(p, context, false), *foreign = find(p, !context, true);
    switch (draw(p, 6)) {
    case 0:
        if (d->freed) break;
        cn_dict_free(d->d);
        forget_held(p, d);
        d->freed = true;
        break;
    case 1:
        if (!d->freed) break;
        cn_dict_free(d->d);
        wrong(p, context, true, CN_RELEASED, "freeing a dict twice");
        break;
    case 2:
        if (d->freed && a) wrong(p, context, !cn_dict_set(d->d, "x", a->t), CN_RELEASED, "setting in a freed dict");
        break;
    case 3:
        if (!d->freed && stale)
            wrong(p, context, !cn_dict_set(d->d, "x", stale->t), CN_RELEASED, "a stale tensor in a dict");
        break;
    case 4:
        if (!d->freed && foreign)
            wrong(p, context, !cn_dict_set(d->d, "x", foreign->t), CN_BAD_DEVICE,
                  "the other context's tensor in a dict");
        break;
    default:
        if (!d->freed && a)
            wrong(p, context, !cn_dict_set(d->d, NULL, a->t), CN_BAD_ARGUMENT, "a dict's name that is NULL");
        break;
    }
}

/* ---- modules and optimizers ---- */

static void new_layer(program *p, int context)
{
    cn_ctx *cn = p->w[context].cn;
    layer *l = &p->w[context].layer;
    float w[MOST], b[SIDE];
    if (l->m && !l->opt_freed) cn_optim_free(l->opt);
    if (l->m && !l->freed) cn_module_free(l->m);
    *l = (layer){ .m = cn_nn_linear(cn, SIDE, SIDE, NULL) };
    for (int i = 0; i < MOST; i++) w[i] = (float)(l->w[i] = (double)draw(p, 5) - 2);
    for (int i = 0; i < SIDE; i++) b[i] = (float)(l->b[i] = (double)draw(p, 5) - 2);
    bool ok =
        cn_write(cn_module_get(l->m, "weight"), w, sizeof w) && cn_write(cn_module_get(l->m, "bias"), b, sizeof b);
    l->opt = cn_sgd(cn, cn_parameters(l->m), &(cn_sgd_desc){ .lr = 1 });
    right(p, ok && l->opt, "a new layer");
}

static void forward(const layer *l, const slot *x, double *v)
{
    for (int i = 0; i < x->rows; i++)
        for (int o = 0; o < SIDE; o++) {
            v[i * SIDE + o] = l->b[o];
            for (int k = 0; k < SIDE; k++) v[i * SIDE + o] += x->v[i * SIDE + k] * l->w[o * SIDE + k];
        }
}

static slot *input(program *p, int context)
{
    for (int tries = 0; tries < SLOTS; tries++) {
        slot *s = &p->slot[draw(p, SLOTS)];
        if (alive(s) && s->context == context && s->cols == SIDE && !s->let_go && bounded(s->v, s->rows * SIDE))
            return s;
    }
    return NULL;
}

/* The loss is the sum of the results: the gradient of the weight is the sum of x over rows, that of the bias rows. */
static void train(program *p, int context)
{
    layer *l = &p->w[context].layer;
    slot *x = input(p, context);
    if (l->freed || l->opt_freed) new_layer(p, context);
    if (!x) return;
    cn_ctx *cn = p->w[context].cn;
    double y[MOST], sum = 0;
    forward(l, x, y);
    for (int i = 0; i < x->rows * SIDE; i++) sum += y[i];
    if (fabs(sum) > 1e6 || !bounded(l->w, MOST)) {
        new_layer(p, context);
        return;
    }
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x_alone = cn_detach(x->t), *loss = cn_sum(cn_forward(l->m, x_alone), CN_ALL, false);
    right(p, loss && cn_backward(loss), "backward");
    const bool twice = draw(p, 3) == 0;
    if (twice) wrong(p, context, !cn_backward(loss), CN_NO_GRADIENT, "backward through a spent graph");
    const bool idle = draw(p, 4) == 0;
    if (idle)
        wrong(p, context, !cn_add(loss, NULL) && !cn_step(l->opt), CN_BAD_ARGUMENT, "a step while an error stands");
    right(p, cn_step(l->opt), "step");
    for (int o = 0; o < SIDE; o++) {
        for (int k = 0; k < SIDE; k++)
            for (int i = 0; i < x->rows; i++) l->w[o * SIDE + k] -= x->v[i * SIDE + k];
        l->b[o] -= x->rows;
    }
    const double got = cn_item(loss);
    right(p, got == sum, "the loss after the step");
    cn_scope_end(cn, s);
}

static void check_layer(program *p, int context)
{
    layer *l = &p->w[context].layer;
    if (l->freed) return;
    double w[MOST], b[SIDE];
    right(p, cn_read_f64(cn_module_get(l->m, "weight"), w, MOST) && cn_read_f64(cn_module_get(l->m, "bias"), b, SIDE),
          "parameters");
    check(!memcmp(w, l->w, sizeof w) && !memcmp(b, l->b, sizeof b), "seed %llu, step %d: wrong parameters",
          (unsigned long long)p->seed, p->step);
}

static void apply_layer(program *p, int context)
{
    layer *l = &p->w[context].layer;
    slot *x = input(p, context);
    if (l->freed || !x) return;
    double v[MOST];
    forward(l, x, v);
    if (!bounded(v, x->rows * SIDE)) return;
    cn_no_grad_begin(p->w[context].cn);
    cn_tensor *t = cn_forward(l->m, x->t);
    cn_no_grad_end(p->w[context].cn);
    right(p, t != NULL, "forward");
    slot *s = t ? store(p, context, t, x->rows, SIDE, v, needs_of(p, x)) : NULL;
    if (s) read_slot(p, s); /* a later step changes the weights */
    if (s) s->let_go = true;
}

static void bad_layer(program *p, int context)
{
    world *w = &p->w[context];
    layer *l = &w->layer;
    slot *a = find(p, context, true), *stale = find(p, context, false), *foreign = find(p, !context, true);
    switch (draw(p, 9)) {
    case 0:
        if (l->freed) break;
        cn_module_free(l->m);
        l->freed = true;
        right(p, true, "module_free");
        break;
    case 1:
        if (!l->freed) break;
        cn_module_free(l->m);
        wrong(p, context, true, CN_RELEASED, "freeing a module twice");
        break;
    case 2:
        if (l->freed && a) wrong(p, context, !cn_forward(l->m, a->t), CN_RELEASED, "forward of a freed module");
        break;
    case 3:
        if (l->opt_freed) break;
        cn_optim_free(l->opt);
        l->opt_freed = true;
        right(p, true, "optim_free");
        break;
    case 4:
        if (l->opt_freed) wrong(p, context, !cn_step(l->opt), CN_RELEASED, "a step of a freed optimizer");
        break;
    case 5:
        if (!l->freed && a && a->cols != SIDE)
            wrong(p, context, !cn_forward(l->m, a->t), CN_BAD_SHAPE, "forward of a wrong size");
        break;
    case 6:
        if (!l->freed && stale)
            wrong(p, context, !cn_forward(l->m, stale->t), CN_RELEASED, "forward of a stale tensor");
        break;
    case 7:
        if (!l->freed && foreign)
            wrong(p, context, !cn_forward(l->m, foreign->t), CN_BAD_DEVICE, "forward of the other context's tensor");
        break;
    default:
        if (a && a->rows * a->cols == 1)
            wrong(p, context, !cn_backward(a->t), CN_NO_GRADIENT, "backward without a parameter");
        break;
    }
}

/* ---- programs ---- */

typedef void step(program *p, int context);
static step *const steps[] = { make,  make,  binary, binary,    product, view,       keep,
                               scope, scope, assign, dict_step, train,   apply_layer };
static step *const bad_steps[] = { bad_make, bad_binary, bad_binary, bad_view, bad_read,
                                   bad_keep, bad_assign, bad_dict,   bad_layer };

static void open_worlds(program *p)
{
    for (int i = 0; i < CONTEXTS; i++) {
        world *w = &p->w[i];
        w->cn = cn_open(&(cn_desc){
            .seed = 1, .threads = 1, .allocator = { faulty_resize, &w->memory }, .eager = draw(p, 8) == 0 });
        w->dict = (dict){ cn_dict_new(w->cn), false, -1 };
        w->layer.freed = w->layer.opt_freed = true;
        new_layer(p, i);
    }
}

static void run(uint64_t seed, bool shown, int *mistakes, int *correct)
{
    static program p;
    p = (program){ .random = seed * 0x9E3779B97F4A7C15u + 1, .seed = seed, .shown = shown };
    open_worlds(&p);
    for (p.step = 0; p.step < STEPS; p.step++) {
        const int context = draw(&p, 4) == 0;
        if (draw(&p, 3) == 0) bad_steps[draw(&p, sizeof bad_steps / sizeof *bad_steps)](&p, context);
        else steps[draw(&p, sizeof steps / sizeof *steps)](&p, context);
        slot *s = &p.slot[draw(&p, SLOTS)];
        if (draw(&p, 4) == 0 && alive(s)) read_slot(&p, s);
    }
    for (int i = 0; i < SLOTS; i++)
        if (alive(&p.slot[i])) read_slot(&p, &p.slot[i]);
    for (int i = 0; i < CONTEXTS; i++) check_layer(&p, i);
    for (int i = 0; i < CONTEXTS; i++) {
        cn_close(p.w[i].cn);
        check(p.w[i].memory.blocks == 0, "seed %llu: %lld blocks are lost", (unsigned long long)seed,
              (long long)p.w[i].memory.blocks);
    }
    *mistakes += p.mistakes;
    *correct += p.right;
}

int main(int argc, char **argv)
{
    int mistakes = 0, correct = 0;
    const int programs = argc > 1 ? 1 : test_is_quick() ? 150 : 1000;
    for (int i = 0; i < programs; i++)
        run(argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)i + 1, argc > 1, &mistakes, &correct);
    printf("%d programs: %d calls, %d mistakes\n", programs, correct + mistakes, mistakes);
    check(mistakes > programs, "there are mistakes");
    return finish();
}
