/* Optimizers that write only the rows of an embedding that were looked up: against stored values of PyTorch, and the
   same bits as with the whole gradient. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/stored.h"

enum { ROWS = 9, WIDTH = 4, ALL = ROWS * WIDTH, PICKED = 10, STEPS = 20 };

typedef enum way {
    BY_ROWS,   /* the gradient is pending when the step is made */
    EVALUATED, /* the gradient was computed before */
    KEPT,      /* the optimizer keeps the gradients */
    TWO_PARTS, /* two lookups, whose gradients are added */
    CLIPPED,   /* by a norm that is never reached */
} way;

typedef struct rule {
    const char *name;
    bool sgd;
    cn_sparse_adam_desc adam;
} rule;

static const rule rules[] = {
    { "sparse_adam", false, { .lr = 0.1 } },
    { "sparse_adam_betas", false, { .lr = 0.05, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3 } },
    { "sparse_adam_maximize", false, { .lr = 0.1, .maximize = true } },
    { "sgd", true, { .lr = 0.1 } },
};
enum { RULES = sizeof rules / sizeof *rules };

typedef struct table {
    cn_ctx *cn;
    cn_tensor *p;
    cn_optim *opt;
    way way;
} table;

static table table_new(const rule *r, cn_dtype type, cn_desc desc, way w)
{
    table m = { .cn = cn_open(&desc), .way = w };
    double start[ALL];
    for (int i = 0; i < ALL; i++) start[i] = cos(i / 2.0);
    m.p = cn_param(cn_cast(cn_from(m.cn, CN_F64, CN_DIMS(ROWS, WIDTH), start), type));
    cn_sparse_adam_desc d = r->adam;
    d.keep_gradients = w == KEPT;
    m.opt = r->sgd
                ? cn_sgd(m.cn, (cn_params){ &m.p, 1 }, &(cn_sgd_desc){ .lr = d.lr, .keep_gradients = d.keep_gradients })
                : cn_sparse_adam(m.cn, (cn_params){ &m.p, 1 }, &d);
    cn_eval_all(m.cn);
    return m;
}

/* Of `count` rows that step t looks up, from number `from` on. */
static cn_tensor *loss_of(const table *m, int t, int from, int count)
{
    int64_t index[PICKED];
    double factor[PICKED * WIDTH];
    for (int j = 0; j < 5; j++) index[j] = (t + 3 * j) % 9, index[5 + j] = (t + 3 * j * j) % 7;
    for (int i = 0; i < PICKED * WIDTH; i++) factor[i] = sin(0.7 * t + 0.3 * i);
    cn_tensor *x = cn_embedding(m->p, cn_from(m->cn, CN_I64, CN_DIMS(count), index + from));
    cn_tensor *f = cn_from(m->cn, CN_F64, CN_DIMS(count, WIDTH), factor + from * WIDTH);
    return cn_sum(cn_mul(x, cn_cast(f, cn_type(m->p))), CN_ALL, false);
}

static bool step(const table *m, int t)
{
    cn_scope s = cn_scope_begin(m->cn);
    bool ok = true;
    if (m->way == TWO_PARTS) ok = cn_backward(cn_add(loss_of(m, t, 0, 5), loss_of(m, t, 5, 5)));
    else ok = cn_backward(loss_of(m, t, 0, PICKED));
    if (m->way == EVALUATED) ok = ok && cn_eval(cn_grad_of(m->p));
    if (m->way == CLIPPED) ok = ok && cn_clip_grad_norm((cn_params){ (cn_tensor **)&m->p, 1 }, 1e6, NULL);
    ok = ok && cn_step(m->opt);
    if (m->way == KEPT) cn_optim_zero_grad(m->opt);
    cn_scope_end(m->cn, s);
    return ok;
}

static void numbers_of(const table *m, double *out)
{
    cn_scope s = cn_scope_begin(m->cn);
    check(cn_read(cn_cast(m->p, CN_F64), out, ALL * sizeof *out), "read: %s", cn_error(m->cn));
    cn_scope_end(m->cn, s);
}

/* ---- PyTorch's numbers ---- */

static void compare_with_pytorch(const stored *s, const rule *r, cn_dtype type, way w)
{
    table m = table_new(r, type, (cn_desc){ .threads = 2 }, w);
    for (int t = 1; t <= STEPS; t++) {
        double want[ALL], got[ALL];
        check(step(&m, t), "%s: step %d: %s", r->name, t, cn_error(m.cn));
        if (stored_find(s, r->name, type == CN_F32 ? "f32" : "f64", t, want, ALL) != ALL) continue;
        numbers_of(&m, got);
        const double most = type == CN_F32 ? 4e-6 : 1e-13;
        for (int i = 0; i < ALL; i++)
            check(fabs(got[i] - want[i]) <= most * (1 + fabs(want[i])),
                  "%s %s way %d step %d: element %d is %.17g, not %.17g", r->name, cn_dtype_name(type), (int)w, t, i,
                  got[i], want[i]);
    }
    cn_close(m.cn);
}

/* ---- the same bits, whatever is computed when ---- */

static void ways_agree(const rule *r, cn_dtype type)
{
    double first[ALL], other[ALL];
    for (int k = 0; k < 5; k++) {
        table m = table_new(r, type, (cn_desc){ .threads = k == 3 ? 3 : 1, .eager = k == 4 }, k < 3 ? (way)k : BY_ROWS);
        for (int t = 1; t <= STEPS; t++) check(step(&m, t), "%s: %s", r->name, cn_error(m.cn));
        numbers_of(&m, k ? other : first);
        check(!k || !memcmp(first, other, sizeof first), "%s %s: way %d has other bits", r->name, cn_dtype_name(type),
              k);
        cn_close(m.cn);
    }
}

/* ---- what is written ---- */

static const char *plan_of(table *m, char *text, size_t size)
{
    cn_scope s = cn_scope_begin(m->cn);
    cn_tensor *loss = loss_of(m, 1, 0, PICKED);
    cn_backward(loss);
    cn_sgd_step(&m->p, NULL, 1, &(cn_sgd_step_desc){ .lr = 0.1 });
    cn_zero_grad(m->p);
    cn_plan_print(loss, text, size);
    cn_eval_all(m->cn);
    cn_scope_end(m->cn, s);
    return text;
}

/* A table so large that its whole gradient would be seen in the arena. */
static void only_rows_are_written(void)
{
    enum { MANY = 20000, WIDE = 64 };
    for (int adam = 0; adam < 2; adam++) {
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 2 });
        cn_tensor *p = cn_param(cn_ones(cn, CN_F32, CN_DIMS(MANY, WIDE)));
        cn_optim *opt = adam ? cn_sparse_adam(cn, (cn_params){ &p, 1 }, NULL) : cn_sgd(cn, (cn_params){ &p, 1 }, NULL);
        cn_eval_all(cn);
        const void *at = cn_data(p);
        const int64_t index[3] = { 7, MANY - 1, 7 };
        for (int t = 0; t < 3; t++) {
            cn_scope s = cn_scope_begin(cn);
            cn_backward(cn_sum(cn_embedding(p, cn_from(cn, CN_I64, CN_DIMS(3), index)), CN_ALL, false));
            check(cn_step(opt), "step: %s", cn_error(cn));
            cn_scope_end(cn, s);
        }
        const int64_t arena = cn_count(cn).arena_bytes;
        check(arena < 1 << 18, "no whole gradient is in the arena: %lld bytes", (long long)arena);
        check(cn_data(p) == at && cn_get(p, CN_DIMS(8, 0)) == 1 && cn_get(p, CN_DIMS(7, 3)) < 1 &&
                  cn_get(p, CN_DIMS(MANY - 1, 0)) < 1,
              "only the rows that were looked up change, in place");
        cn_close(cn);
    }
    static char text[1 << 13];
    table m = table_new(&rules[3], CN_F32, (cn_desc){ .threads = 1 }, BY_ROWS);
    plan_of(&m, text, sizeof text);
    check(strstr(text, "sgd_rows_step") && strstr(text, "in place") && !strstr(text, "embedding_backward"),
          "the function, too, writes rows:\n%s", text);
    cn_close(m.cn);
}

/* ---- all or nothing ---- */

static void a_failed_step_changes_nothing(const rule *r)
{
    int failed = 0;
    for (int64_t n = 1, reached = 1; reached; n++) {
        faulty f = { 0 };
        table m = table_new(r, CN_F32, (cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } }, BY_ROWS);
        double before[ALL], after[ALL];
        numbers_of(&m, before);
        f.calls = 0;
        f.fail_at = n;
        const bool ok = step(&m, 1);
        reached = f.calls >= n;
        f.fail_at = 0;
        cn_error_clear(m.cn);
        numbers_of(&m, after);
        check(ok == (memcmp(before, after, sizeof after) != 0), "%s: allocation %lld: all or nothing", r->name,
              (long long)n);
        failed += !ok;
        cn_optim_zero_grad(m.opt);
        if (!ok)
            check(step(&m, 1), "%s: allocation %lld: the next step works: %s", r->name, (long long)n, cn_error(m.cn));
        cn_close(m.cn);
        check(f.blocks == 0, "%s: allocation %lld: nothing leaks", r->name, (long long)n);
    }
    check(failed > 5, "%s: %d steps failed", r->name, failed);
}

/* After an error the gradient is there again, though the step never read it. */
static void gradients_come_back(void)
{
    table m = table_new(&rules[3], CN_F32, (cn_desc){ .threads = 1 }, BY_ROWS);
    cn_scope s = cn_scope_begin(m.cn);
    cn_backward(loss_of(&m, 1, 0, PICKED));
    const int64_t beyond = ROWS;
    cn_tensor *late = cn_index_select(cn_detach(m.p), 0, cn_from(m.cn, CN_I64, CN_DIMS(1), &beyond));
    double before[ALL], after[ALL];
    check(late && !cn_step(m.opt) && cn_error_code(m.cn) == CN_BAD_INDEX, "an index out of range: %s", cn_error(m.cn));
    cn_error_clear(m.cn);
    numbers_of(&m, before);
    check(cn_grad_of(m.p) && cn_get(cn_grad_of(m.p), CN_DIMS(1, 0)) != 0, "the gradient is there: %s", cn_error(m.cn));
    numbers_of(&m, after);
    check(!memcmp(before, after, sizeof after), "and the parameter as before");
    cn_scope_end(m.cn, s);
    cn_close(m.cn);
}

static void refusals(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_tensor *p = cn_param(cn_ones(cn, CN_F32, CN_DIMS(3)));
    check(!cn_sparse_adam(cn, (cn_params){ &p, 1 }, NULL) && strstr(cn_error(cn), "matrices"), "a vector: %s",
          cn_error(cn));
    cn_close(cn);
}

int main(void)
{
    stored s = stored_open(CAIRN_SOURCE_DIR, "sparse.txt");
    check(s.text != NULL, "sparse.txt");
    for (int i = 0; s.text && i < RULES; i++) {
        for (int w = BY_ROWS; w <= CLIPPED; w++) {
            compare_with_pytorch(&s, &rules[i], CN_F32, (way)w);
            compare_with_pytorch(&s, &rules[i], CN_F64, (way)w);
        }
        ways_agree(&rules[i], CN_F32);
        ways_agree(&rules[i], CN_F64);
        a_failed_step_changes_nothing(&rules[i]);
    }
    stored_close(&s);
    only_rows_are_written();
    gradients_come_back();
    refusals();
    return finish();
}
