/* LBFGS and closures: PyTorch's steps, saved states, errors in the closure and in memory. */
#include <math.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/stored.h"

enum { NUMBERS = 64 };

/* Rosenbrock's function of x and y in a row; it does not depend on z. tests/reference/make_optim.py has the same. */
typedef struct valley {
    cn_ctx *cn;
    cn_tensor *p[3];
    cn_optim *opt;
    double sign;
    int calls, fails_at; /* the closure returns NULL at this call */
} valley;

static cn_tensor *loss_of(void *user)
{
    valley *v = user;
    if (++v->calls == v->fails_at) return NULL;
    cn_tensor *x = cn_cat((cn_tensor *[]){ cn_reshape(v->p[0], CN_DIMS(-1)), v->p[1] }, 2, 0);
    cn_tensor *a = cn_narrow(x, 0, 0, 6), *b = cn_narrow(x, 0, 1, 6);
    cn_tensor *hill = cn_mul_s(cn_square(cn_sub(b, cn_square(a))), 100);
    cn_tensor *f = cn_mul_s(cn_sum(cn_add(hill, cn_square(cn_rsub_s(a, 1))), CN_ALL, false), v->sign);
    return cn_backward(f) ? f : NULL;
}

static valley valley_new(cn_desc desc, cn_dtype dtype, const cn_lbfgs_desc *d)
{
    static const double x[] = { -1.2, 1.0, 0.5, -0.3 }, y[] = { 0.7, 0.1, 1.5 }, z[] = { 2.0 };
    valley v = { .cn = cn_open(&desc), .sign = d && d->maximize ? -1 : 1 };
    if (!v.cn) return v;
    v.p[0] = cn_param(cn_cast(cn_from(v.cn, CN_F64, CN_DIMS(2, 2), x), dtype));
    v.p[1] = cn_param(cn_cast(cn_from(v.cn, CN_F64, CN_DIMS(3), y), dtype));
    v.p[2] = cn_param(cn_cast(cn_from(v.cn, CN_F64, (cn_dims){ 0 }, z), dtype));
    cn_eval_all(v.cn);
    if (d) v.opt = cn_lbfgs(v.cn, (cn_params){ v.p, 3 }, d);
    return v;
}

static void read_point(valley *v, double out[8])
{
    cn_read_f64(v->p[0], out, 4);
    cn_read_f64(v->p[1], out + 4, 3);
    cn_read_f64(v->p[2], out + 7, 1);
}

static void steps_are_pytorchs(const stored *s)
{
    static const struct {
        const char *name;
        cn_lbfgs_desc desc;
    } cases[] = {
        { "lbfgs", { .lr = 0.01 } },
        { "lbfgs_search", { .strong_wolfe = true } },
        { "lbfgs_short", { .lr = 0.5, .max_iter = 7, .history_size = 3, .strong_wolfe = true } },
        { "lbfgs_maximize", { .max_iter = 5, .max_eval = 9, .strong_wolfe = true, .maximize = true } },
    };
    for (int i = 0; i < 4; i++) {
        check_group(cases[i].name);
        valley v = valley_new((cn_desc){ .threads = 1 }, CN_F64, &cases[i].desc);
        int seen = 0;
        for (int t = 1; t <= 5; t++) {
            double want[NUMBERS], have[9];
            check(cn_step_closure(v.opt, loss_of, &v, &have[0]), "step %d: %s", t, cn_error(v.cn));
            if (stored_find(s, cases[i].name, "f64", t, want, NUMBERS) != 9) continue;
            read_point(&v, have + 1);
            seen++;
            /* the path is chaotic: rounding grows from step to step */
            for (int k = 0; k < 9; k++)
                check(fabs(have[k] - want[k]) <= 1e-6 * fmax(1, fabs(want[k])), "step %d, number %d: %.12g, not %.12g",
                      t, k, have[k], want[k]);
        }
        check(seen == 3, "%d of 3 were compared", seen);
        cn_close(v.cn);
    }
}

/* A state that was saved and loaded goes on bit for bit. */
static void states_go_on(void)
{
    check_group("states");
    const cn_lbfgs_desc d = { .max_iter = 4, .strong_wolfe = true };
    valley a = valley_new((cn_desc){ .threads = 1 }, CN_F64, &d);
    for (int t = 0; t < 3; t++) cn_step_closure(a.opt, loss_of, &a, NULL);
    cn_dict *dict = cn_dict_new(a.cn);
    check(cn_optim_save(a.opt, dict, "opt."), "%s", cn_error(a.cn));
    cn_optim *again = cn_lbfgs(a.cn, (cn_params){ a.p, 3 }, &d);
    check(cn_optim_load(again, dict, "opt."), "%s", cn_error(a.cn));

    cn_tensor *before[3];
    for (int i = 0; i < 3; i++) before[i] = cn_keep(cn_clone(a.p[i]));
    cn_eval_all(a.cn);
    double first[8], second[8];
    cn_step_closure(a.opt, loss_of, &a, NULL);
    read_point(&a, first);
    cn_no_grad_begin(a.cn);
    for (int i = 0; i < 3; i++) cn_assign(a.p[i], before[i]);
    cn_no_grad_end(a.cn);
    cn_step_closure(again, loss_of, &a, NULL);
    read_point(&a, second);
    check(!memcmp(first, second, sizeof first), "a loaded state takes the same step");
    cn_optim *small = cn_lbfgs(a.cn, (cn_params){ a.p, 3 }, &(cn_lbfgs_desc){ .history_size = 2 });
    check(!cn_optim_load(small, dict, "opt.") && strstr(cn_error(a.cn), "pairs must be from 0 to history_size, 2"),
          "%s", cn_error(a.cn));
    cn_error_clear(a.cn);
    check(cn_step_closure(small, loss_of, &a, NULL), "a state that was refused has changed nothing: %s",
          cn_error(a.cn));
    cn_close(a.cn);
}

/* A closure that fails leaves the parameters where the iteration began. */
static void failures_restore(void)
{
    check_group("failures");
    for (int at = 1; at <= 6; at++) {
        valley v = valley_new((cn_desc){ .threads = 1 }, CN_F64, &(cn_lbfgs_desc){ .strong_wolfe = true });
        double begin[8], end[8];
        read_point(&v, begin);
        v.fails_at = at;
        check(!cn_step_closure(v.opt, loss_of, &v, NULL), "the closure fails at call %d", at);
        check(strstr(cn_error(v.cn), "step_closure: the loss that the closure returns"), "%s", cn_error(v.cn));
        cn_error_clear(v.cn);
        read_point(&v, end);
        check(at > 2 || !memcmp(begin, end, sizeof begin), "call %d: the parameters are as before", at);
        for (int k = 0; k < 8; k++)
            check(isfinite(end[k]) && fabs(end[k]) < 10, "call %d: number %d is %g", at, k, end[k]);
        v.fails_at = 0;
        check(cn_step_closure(v.opt, loss_of, &v, NULL), "a step afterwards: %s", cn_error(v.cn));
        cn_close(v.cn);
    }
}

static void memory_may_end(void)
{
    check_group("memory");
    int64_t fail_at = 0, calls = 1;
    for (int64_t n = 1; n <= calls; n += test_is_quick() ? 37 : 5) {
        faulty f = { 0 };
        valley v = valley_new((cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } }, CN_F32,
                              &(cn_lbfgs_desc){ .max_iter = 3, .strong_wolfe = true });
        const int64_t before = f.calls;
        f.fail_at = fail_at ? before + n : 0; /* the first time nothing fails: it counts the calls */
        const bool ok = cn_step_closure(v.opt, loss_of, &v, NULL);
        if (!fail_at) calls = f.calls - before;
        fail_at = 1;
        check(ok != cn_failed(v.cn), "allocation %lld: an error or a step", (long long)n);
        f.fail_at = 0;
        cn_close(v.cn);
        check(f.blocks == 0 && f.bytes == 0, "allocation %lld: all memory is given back", (long long)n);
    }
}

static cn_tensor *frees(void *user)
{
    valley *v = user;
    if (v->calls + 1 == v->fails_at) {
        v->fails_at = 0;
        cn_optim_free(v->opt);
    }
    return loss_of(v);
}

static void closures_may_free(void)
{
    check_group("closures that free the optimizer");
    for (int k = 0; k < 4; k++) {
        valley v = valley_new((cn_desc){ .threads = 1 }, CN_F32, &(cn_lbfgs_desc){ .strong_wolfe = k % 2 });
        const int at = v.fails_at = 1 + k / 2;
        check(!cn_step_closure(v.opt, frees, &v, NULL) && strstr(cn_error(v.cn), "was freed before") && v.calls == at,
              "call %d of %d: %s", at, v.calls, cn_error(v.cn));
        cn_close(v.cn);
    }
}

/* Gradients are recorded in a closure, also where the program records none. */
static void without_gradients(void)
{
    check_group("inside cn_no_grad_begin");
    valley v = valley_new((cn_desc){ .threads = 1 }, CN_F64, &(cn_lbfgs_desc){ .strong_wolfe = true });
    cn_optim *sgd = cn_sgd(v.cn, (cn_params){ v.p, 3 }, &(cn_sgd_desc){ .lr = 1e-4 });
    double one = 0, two = 0, three = 0;
    cn_no_grad_begin(v.cn);
    check(cn_step_closure(v.opt, loss_of, &v, &one) && cn_step_closure(sgd, loss_of, &v, &two) &&
              cn_step_closure(sgd, loss_of, &v, &three) && two < one && three < two && !cn_grad_enabled(v.cn),
          "%g, %g, %g: %s", one, two, three, cn_error(v.cn));
    cn_no_grad_end(v.cn);
    cn_close(v.cn);
}

static void errors(void)
{
    check_group("errors");
    valley v = valley_new((cn_desc){ .threads = 1 }, CN_F32, NULL);
    cn_params p = { v.p, 3 };
    check(!cn_lbfgs(v.cn, p, &(cn_lbfgs_desc){ .max_iter = -1 }) && strstr(cn_error(v.cn), "max_iter"), "max_iter");
    cn_error_clear(v.cn);
    cn_optim *opt = cn_lbfgs(v.cn, p, NULL);
    check(!cn_step(opt) && strstr(cn_error(v.cn), "lbfgs: a step computes the loss several times"), "%s",
          cn_error(v.cn));
    cn_error_clear(v.cn);
    check(cn_optim_add_group(opt, p, NULL) == -1 && strstr(cn_error(v.cn), "one group"), "%s", cn_error(v.cn));
    cn_error_clear(v.cn);
    check(!cn_step_closure(opt, NULL, NULL, NULL) && strstr(cn_error(v.cn), "closure must not be NULL"), "%s",
          cn_error(v.cn));
    cn_error_clear(v.cn);

    /* another optimizer calls the closure once */
    cn_optim *sgd = cn_sgd(v.cn, p, &(cn_sgd_desc){ .lr = 1e-4 });
    double one = 0, two = 0;
    v.calls = 0;
    check(cn_step_closure(sgd, loss_of, &v, &one) && cn_step_closure(sgd, loss_of, &v, &two) && v.calls == 2 &&
              two < one,
          "sgd by closure: %g, then %g in %d calls: %s", one, two, v.calls, cn_error(v.cn));
    cn_close(v.cn);
}

int main(void)
{
    stored s = stored_open(CAIRN_SOURCE_DIR, "optim.txt");
    check(s.text != NULL, "tests/reference/optim.txt");
    if (s.text) steps_are_pytorchs(&s);
    stored_close(&s);
    states_go_on();
    failures_restore();
    closures_may_free();
    without_gradients();
    memory_may_end();
    errors();
    return finish();
}
