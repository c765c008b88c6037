/* Results that kernels write where they are wanted: as a permuted copy, as parts of a joined tensor, as a kernel reads them.
   The plan says so, and the bits are those of one operation at a time. */
#include <stdlib.h>
#include <string.h>

#include "cairn/plan.h"
#include "support/check.h"
#include "support/destination_cases.h"

/* Whether a step of the plan has this name. */
static bool has_step(const char *plan, const char *name, size_t length)
{
    for (const char *line = strchr(plan, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        const char *at = line + 1 + strspn(line + 1, " 0123456789+&");
        if (!strncmp(at, name, length) && at[length] == ' ') return true;
    }
    return false;
}

static void check_steps(const home_case *c, const char *plan, const char *names, bool wanted)
{
    for (const char *n = names; n && *n; n += strcspn(n, " "), n += strspn(n, " "))
        check(has_step(plan, n, strcspn(n, " ")) == wanted, "%s: %s%.*s in\n%s", c->name, wanted ? "no " : "",
              (int)strcspn(n, " "), n, plan);
}

/* The parts of a joined tensor have one place: gradients of q, k and v take no more memory than their whole. */
static void check_arena(const char *plan)
{
    const char *at = strstr(plan, "arena ");
    long bytes = at ? strtol(at + 6, NULL, 10) : 0, whole = B * T * 3 * H * D * (long)sizeof(float);
    check(bytes > whole && bytes < 3 * whole, "an arena of %ld bytes for gradients of %ld:\n%s", bytes, whole, plan);
}

static void *run_case(const home_case *c, cn_desc desc, size_t *bytes, bool look)
{
    static char plan[1 << 16];
    desc.seed = 3;
    cn_ctx *cn = cn_open(&desc);
    given g = given_new(cn);
    void *data = NULL;
    for (int again = 0; again < 2 && !cn_failed(cn); again++) { /* the second time the plan is found */
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *y = c->run(&g);
        if (look && check(cn_plan_print(y, plan, sizeof plan) > 0, "%s: a plan", c->name)) {
            check_steps(c, plan, c->with, true);
            check_steps(c, plan, c->without, false);
            if (!strcmp(c->name, "gradient of attention")) check_arena(plan);
        }
        free(data);
        *bytes = (size_t)cn_numel(y) * cn_dtype_size(cn_type(y));
        data = malloc(*bytes);
        cn_read(y, data, *bytes);
        cn_scope_end(cn, s);
    }
    check(!cn_failed(cn), "%s: %s", c->name, cn_error(cn));
    cn_close(cn);
    return data;
}

static void known_cases(void)
{
    for (size_t i = 0; i < (size_t)n_destination_cases; i++) {
        check_group(destination_cases[i].name);
        size_t n[2] = { 0 };
        void *eager = run_case(&destination_cases[i], (cn_desc){ .threads = 1, .eager = true }, &n[0], false);
        for (int threads = 1; threads < 4; threads++) {
            void *planned = run_case(&destination_cases[i], (cn_desc){ .threads = threads }, &n[1], threads == 1);
            check(n[0] == n[1] && !memcmp(eager, planned, n[0]), "%s: the same bits, %d threads", destination_cases[i].name,
                  threads);
            free(planned);
        }
        free(eager);
    }
}

/* ---- random programs ---- */

static bool run_program(uint64_t seed, cn_desc desc, char *out, size_t size)
{
    desc.seed = seed + 1;
    cn_ctx *cn = cn_open(&desc);
    cn_tensor *p = cn_param(ready(cn_randn(cn, CN_F32, CN_DIMS(3, 4, 3, 4))));
    cn_tensor *y = random_program(seed, p);
    size_t n = y ? (size_t)cn_numel(y) * 4 : 0;
    bool ok = y && n <= size && cn_read(y, out, n);
    check(ok && !cn_failed(cn), "program %d: %s", (int)seed, cn_error(cn));
    memset(out + n, 0, size - n);
    cn_close(cn);
    return ok;
}

static void random_programs(void)
{
    static char eager[1 << 16], planned[1 << 16];
    check_group("random programs");
    for (uint64_t seed = 0; seed < (test_is_quick() ? 300 : 3000); seed++) {
        if (!run_program(seed, (cn_desc){ .threads = 1, .eager = true }, eager, sizeof eager)) continue;
        if (!run_program(seed, (cn_desc){ .threads = 2 }, planned, sizeof planned)) continue;
        check(!memcmp(eager, planned, sizeof eager), "program %d: other bits than one operation at a time", (int)seed);
    }
}

/* ---- second order, recomputation ---- */

static cn_tensor *of_thirds(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    cn_tensor *third[3];
    if (cn_chunk(in[0], 3, 1, third, 3) != 3) return NULL;
    return cn_sum(cn_matmul(cn_mul(third[0], third[1]), cn_transpose(cn_exp(third[2]), 0, 1)), CN_ALL, false);
}

/* Slices that overlap, arriving in both orders. */
static cn_tensor *of_overlaps(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    cn_tensor *x = in[0], *y = cn_mul(cn_slice(x, 1, 0, 4, 1), cn_slice(x, 1, 2, 6, 1));
    cn_tensor *z = cn_mul(cn_slice(x, 0, 1, 3, 1), cn_slice(x, 0, 0, 2, 1));
    return cn_add(cn_sum(cn_square(y), CN_ALL, false), cn_sum(z, CN_ALL, false));
}

static void second_order(void)
{
    check_group("second order");
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 2 });
    cn_tensor *x = cn_param(cn_randn(cn, CN_F64, CN_DIMS(3, 6)));
    char why[256] = "";
    cn_gradcheck_desc d = { .words = why, .words_size = sizeof why };
    check(cn_gradcheck(of_thirds, NULL, &x, 1, &d), "%s %s", why, cn_error(cn));
    check(cn_gradgradcheck(of_thirds, NULL, &x, 1, &d), "%s %s", why, cn_error(cn));
    check(cn_gradcheck(of_overlaps, NULL, &x, 1, &d), "%s %s", why, cn_error(cn));
    check(cn_gradgradcheck(of_overlaps, NULL, &x, 1, &d), "%s %s", why, cn_error(cn));
    cn_close(cn);
}

static cn_tensor *block(void *user, cn_tensor *const *in, int n)
{
    (void)n;
    const given *g = user;
    return cn_matmul(side_by_side(attend(in[0], true)), g->w);
}

static void recomputation(void)
{
    check_group("recomputation");
    float got[2][B * T * 3 * H * D];
    for (int again = 0; again < 2; again++) {
        cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3, .threads = 2 });
        given g = given_new(cn);
        cn_tensor *x = cn_tanh(g.p);
        cn_tensor *y = again ? cn_checkpoint(block, &g, &x, 1) : block(&g, &x, 1);
        cn_tensor *dx = gradient(cn_square(y), g.p);
        check(cn_read(dx, got[again], sizeof got[again]) && !cn_failed(cn), "%s", cn_error(cn));
        cn_close(cn);
    }
    check(!memcmp(got[0], got[1], sizeof got[0]), "the same bits with recomputation");
}

int main(void)
{
    known_cases();
    random_programs();
    second_order();
    recomputation();
    return finish();
}
