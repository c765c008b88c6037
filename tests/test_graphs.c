/* test_graphs: random programs give the same bits however they are evaluated.

       test_graphs            2,000 programs (CAIRN_TEST_QUICK=1: 60, CAIRN_TEST_LONG=1: 10,000)
       test_graphs SEED       one of them, shown (and shrunk even if it ends the process)
       test_graphs FIRST LAST those from FIRST to LAST

   Each program is run eagerly; lazily with 1, 2 and 3 threads; with a limit of 5 pending nodes; with plans whose hashes
   collide and a cache of 3; and a second time in the same context, where plans are found. Everything it reads must agree
   bit for bit. Every fifth is smooth: its gradients are compared with finite differences. A program that fails is shrunk. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/context.h"
#include "support/check.h"
#include "support/graph.h"

typedef enum way { LAZY, EAGER, TWO_THREADS, THREE_THREADS, SHORT_OF_ROOM, COLLIDING, AGAIN, WAYS } way;
static const char *const way_name[WAYS] = { "lazy",       "eager",           "2 threads",
                                            "3 threads",  "pending_limit 5", "colliding hashes",
                                            "second time" };
enum { SHRINK_TRIES = 2500, SHOWN_FAILURES = 6 };

static cn_ctx *open_for(way w)
{
    cn_desc d = { .device = "cpu", .threads = w == TWO_THREADS ? 2 : w == THREE_THREADS ? 3 : 1, .eager = w == EAGER };
    if (w == SHORT_OF_ROOM) d.pending_limit = 5;
    if (w == COLLIDING) d.plan_limit = 3;
    cn_ctx *ctx = cn_open(&d);
    if (!ctx) abort();
    if (w == COLLIDING) ctx->hash_mask = 1;
    return ctx;
}

static bool run_in(way w, const graph *p, graph_log *log)
{
    cn_ctx *ctx = open_for(w);
    bool ok = graph_run(p, ctx, log);
    if (w == AGAIN && ok) ok = graph_run(p, ctx, log);
    cn_close(ctx);
    return ok;
}

/* ---- one program, two ways ---- */

typedef struct verdict {
    way way;
    bool error; /* rather than a difference */
    char words[768];
} verdict;

static bool fault(verdict *v, way w, const graph_log *log)
{
    v->error = true;
    snprintf(v->words, sizeof v->words, "%s, at instruction %d: %s", way_name[w], log->failed_at, log->error);
    return false;
}

static bool agrees(const graph *p, way w, const graph_log *expected, verdict *v)
{
    static graph_log got;
    *v = (verdict){ .way = w };
    if (!run_in(w, p, &got)) return fault(v, w, &got);
    char words[400];
    if (graph_logs_agree(expected, &got, words, sizeof words)) return true;
    snprintf(v->words, sizeof v->words, "%s and lazy differ: %s", way_name[w], words);
    return false;
}

/* Whether a shrunk program still fails as the first one did. */
static bool still_fails(const graph *p, void *user)
{
    static graph_log lazy;
    const verdict *first = user;
    verdict v = { .way = LAZY };
    bool fine = run_in(LAZY, p, &lazy) || fault(&v, LAZY, &lazy);
    if (fine && first->way != LAZY) fine = agrees(p, first->way, &lazy, &v);
    return !fine && v.error == first->error && v.way == first->way;
}

/* ---- gradients of smooth programs ---- */

static int make_inputs(const graph *p, cn_ctx *ctx, cn_tensor **in)
{
    int n = 0;
    for (int k = 0; k < p->n; k++)
        if (p->code[k].op && p->code[k].op->act == ACT_PARAM && n < CN_MAX_IN)
            in[n++] = graph_leaf_tensor(ctx, &p->code[k]);
    return n;
}

static bool is_mild(graph *p, cn_tensor *const *in, int n)
{
    output o = { 0 };
    cn_tensor *y = graph_function(p, in, n);
    bool mild = y && take_output(&o, y);
    for (int64_t k = 0; k < o.numel && mild; k++) mild = fabs(output_at(&o, k)) < 1e4;
    free_outputs(&o, 1);
    return mild;
}

typedef enum outcome { RIGHT, WRONG, NOT_MILD } outcome;

/* A difference that is too coarse or too fine for a function is no fault of its gradient: one of three steps must agree. */
static outcome check_gradients(graph *p, char *words, size_t size)
{
    static const double steps[] = { 1e-5, 1e-4, 1e-6 };
    cn_ctx *ctx = open_for(LAZY);
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *in[CN_MAX_IN];
    int n = make_inputs(p, ctx, in);
    for (int k = 0; k < n; k++) cn_set_requires_grad(in[k], true);
    outcome result = n && is_mild(p, in, n) ? WRONG : NOT_MILD;
    for (int k = 0; k < 3 && result == WRONG; k++) {
        cn_gradcheck_desc d = {
            .eps = steps[k], .atol = 1e-4, .rtol = 2e-3, .max_elements = 6, .words = words, .words_size = size
        };
        if (cn_gradcheck(graph_function, p, in, n, &d)) result = RIGHT;
        if (cn_failed(ctx)) break;
    }
    if (result == NOT_MILD && cn_failed(ctx)) snprintf(words, size, "%s", cn_error(ctx)), result = WRONG;
    cn_scope_end(ctx, s);
    cn_close(ctx);
    return result;
}

static bool gradients_fail(const graph *p, void *user)
{
    static graph copy;
    char words[400];
    (void)user;
    copy = *p;
    return check_gradients(&copy, words, sizeof words) == WRONG;
}

/* ---- programs ---- */

static char current[96];

__attribute__((unused)) static void say_which(int number)
{
    ssize_t unused = write(2, current, strlen(current));
    (void)unused;
    signal(number, SIG_DFL);
    raise(number);
}

/* Whether running it, in a process of its own, ends with a signal. */
static bool kills(const graph *p, void *user)
{
    static graph_log log;
    (void)user;
    pid_t child = fork();
    if (child == 0) {
        current[0] = 0;
        for (way w = LAZY; w < WAYS; w++) run_in(w, p, &log);
        _exit(0); /* a sanitizer exits with another code */
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && (WIFSIGNALED(status) || WEXITSTATUS(status));
}

static void show_shrunk(const graph *p, graph_fails fails, void *user)
{
    static graph small;
    static int shown;
    if (shown++ >= SHOWN_FAILURES) return;
    small = *p;
    graph_shrink(&small, fails, user, fails == kills ? SHRINK_TRIES / 4 : SHRINK_TRIES);
    graph_print(&small, stdout);
    fflush(stdout);
}

static void test_ways(const graph *p)
{
    static graph_log lazy;
    verdict v = { .way = LAZY };
    if (!check(run_in(LAZY, p, &lazy) || fault(&v, LAZY, &lazy), "seed %" PRIu64 ": %s", p->seed, v.words)) {
        show_shrunk(p, still_fails, &v);
        return;
    }
    for (way w = EAGER; w < WAYS; w++)
        if (!check(agrees(p, w, &lazy, &v), "seed %" PRIu64 ": %s", p->seed, v.words)) {
            show_shrunk(p, still_fails, &v);
            break;
        }
    graph_log_free(&lazy);
}

static void test_one(uint64_t seed, bool shown)
{
    static graph p;
    char words[400] = "";
    snprintf(current, sizeof current, "test_graphs: died in the program of seed %" PRIu64 "\n", seed);
    graph_make(&p, seed, seed % 5 == 0);
    if (shown) graph_print(&p, stdout);
    fflush(stdout);
    if (shown && !check(!kills(&p, NULL), "seed %" PRIu64 ": it dies", seed)) {
        show_shrunk(&p, kills, NULL);
        return;
    }
    test_ways(&p);
    if (!p.smooth) return;
    outcome o = check_gradients(&p, words, sizeof words);
    if (o == NOT_MILD) skip();
    else if (!check(o == RIGHT, "seed %" PRIu64 ": gradients: %s", seed, words)) show_shrunk(&p, gradients_fail, NULL);
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = test_is_quick() ? 60 : test_is_long() ? 10000 : 2000;
    uint64_t last = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? first : count;
#ifndef __SANITIZE_ADDRESS__
    static const int deadly[] = { SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGABRT };
    for (size_t k = 0; k < sizeof deadly / sizeof *deadly; k++) signal(deadly[k], say_which);
#endif
    for (uint64_t seed = first; seed <= last; seed++) test_one(seed, argc == 2);
    return finish();
}
