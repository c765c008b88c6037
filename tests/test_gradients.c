/* Gradients as users ask for them: backward, grad, hooks, custom gradients, recomputation, the checker itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

extern const cn_op cn__op_slice_add;

static cn_ctx *cn;

static cn_tensor *param(cn_dims shape, const double *v)
{
    cn_tensor *p = cn_param(cn_from(cn, CN_F64, shape, v));
    return p;
}

static const double ABC[6] = { 0.5, -1.25, 2, 0.75, -0.5, 1.5 };

static double at(cn_tensor *t, int64_t i) { return cn_get(cn_reshape(t, CN_DIMS(-1)), CN_DIMS(i)); }

static void backward_and_accumulation(void)
{
    check_group("backward");
    cn_tensor *w = param(CN_DIMS(3), ABC);
    check(!cn_grad_of(w) && cn_requires_grad(w), "no gradient at first");
    for (int i = 1; i <= 3; i++) {
        check(cn_backward(cn_sum(cn_square(w), CN_ALL, false)), "backward %d: %s", i, cn_error(cn));
        check(fabs(at(cn_grad_of(w), 1) - i * 2 * ABC[1]) < 1e-12, "gradients add up: %g", at(cn_grad_of(w), 1));
    }
    cn_zero_grad(w);
    check(!cn_grad_of(w), "zero_grad forgets");
    cn_tensor *y = cn_mul_s(w, 3);
    check(!cn_backward(y) && cn_error_code(cn) == CN_BAD_SHAPE, "several elements need a gradient to start from: %s",
          cn_error(cn));
    cn_error_clear(cn);
    double seed[3] = { 1, 10, 100 };
    check(cn_backward_with(y, &(cn_backward_desc){ .gradient = cn_from(cn, CN_F64, CN_DIMS(3), seed) }), "%s",
          cn_error(cn));
    check(at(cn_grad_of(w), 2) == 300, "a given gradient: %g", at(cn_grad_of(w), 2));
    check(!cn_backward(cn_sum(cn_from(cn, CN_F64, CN_DIMS(3), ABC), CN_ALL, false)) &&
              cn_error_code(cn) == CN_NO_GRADIENT,
          "nothing requires a gradient: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_release(w);
}

static void spent_and_retained(void)
{
    check_group("retain");
    cn_tensor *w = param(CN_DIMS(3), ABC), *loss = cn_sum(cn_exp(w), CN_ALL, false);
    check(cn_backward_with(loss, &(cn_backward_desc){ .retain = true }), "%s", cn_error(cn));
    check(cn_backward(loss), "a retained graph is walked again: %s", cn_error(cn));
    check(!cn_backward(loss) && strstr(cn_error(cn), "spent"), "a spent graph is an error: %s", cn_error(cn));
    cn_error_clear(cn);
    check(fabs(at(cn_grad_of(w), 0) - 2 * exp(0.5)) < 1e-12, "two walks count");
    cn_tensor *y = cn_sum(cn_square(w), CN_ALL, false);
    cn_assign(w, cn_mul_s(w, 2));
    check(!cn_backward(y) && strstr(cn_error(cn), "assigned"), "a parameter assigned to before backward: %s",
          cn_error(cn));
    cn_error_clear(cn);
    cn_release(w);
}

static void grad_of_anything(void)
{
    check_group("grad");
    cn_tensor *a = param(CN_DIMS(2, 3), ABC), *b = param(CN_DIMS(3), ABC), *c = param(CN_DIMS(2), ABC);
    cn_tensor *h = cn_mul(a, b), *y = cn_sum(cn_square(h), CN_ALL, false), *g[3];
    cn_tensor *in[3] = { a, h, c };
    check(cn_grad(&y, 1, in, 2, g, &(cn_grad_desc){ .retain = true }), "%s", cn_error(cn));
    check(fabs(at(g[1], 4) - 2 * ABC[4] * ABC[1]) < 1e-12 && fabs(at(g[0], 4) - 2 * ABC[4] * ABC[1] * ABC[1]) < 1e-12,
          "of a leaf and of an intermediate");
    check(!cn_grad_of(a), "leaves' own gradients are not touched");
    check(!cn_grad(&y, 1, in, 3, g, &(cn_grad_desc){ .retain = true }) && cn_error_code(cn) == CN_NO_GRADIENT,
          "an input not reached is an error: %s", cn_error(cn));
    cn_error_clear(cn);
    check(cn_grad(&y, 1, in, 3, g, &(cn_grad_desc){ .retain = true, .allow_unused = true }) && !g[2],
          "or NULL when allowed");
    cn_tensor *first, *second;
    check(cn_grad(&y, 1, &b, 1, &first, &(cn_grad_desc){ .create_graph = true }), "%s", cn_error(cn));
    cn_tensor *s = cn_sum(first, CN_ALL, false);
    check(cn_grad(&s, 1, &b, 1, &second, NULL), "the gradient of a gradient: %s", cn_error(cn));
    check(fabs(at(second, 1) - 2 * (ABC[1] * ABC[1] + ABC[4] * ABC[4])) < 1e-12, "is right: %g", at(second, 1));
    cn_release(a), cn_release(b), cn_release(c);
}

static void no_grad_and_detach(void)
{
    check_group("no_grad");
    cn_tensor *w = param(CN_DIMS(3), ABC);
    cn_no_grad_begin(cn);
    cn_no_grad_begin(cn);
    cn_no_grad_end(cn);
    check(!cn_requires_grad(cn_exp(w)) && !cn_grad_enabled(cn), "no-grad scopes nest");
    cn_no_grad_end(cn);
    check(cn_requires_grad(cn_exp(w)) && cn_grad_enabled(cn), "and end");
    cn_tensor *y = cn_sum(cn_mul(w, cn_detach(w)), CN_ALL, false);
    cn_backward(y);
    check(at(cn_grad_of(w), 2) == ABC[2], "no gradient flows through detach");
    check(!cn_requires_grad(cn_gt_s(w, 0)) && !cn_requires_grad(cn_argmax(w, CN_ALL, false)),
          "results that are not floats require none");
    check(!cn_set_requires_grad(cn_exp(w), true), "requires_grad is for leaves: %s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_param(cn_arange(cn, CN_I64, 0, 3, 1)) && cn_error_code(cn) == CN_BAD_DTYPE, "and for floats: %s",
          cn_error(cn));
    cn_error_clear(cn);
    cn_release(w);
}

static cn_tensor *same_gradient(void *user, cn_tensor *g)
{
    (void)user;
    return g;
}

static cn_tensor *halve(void *user, cn_tensor *g)
{
    ++*(int *)user;
    return cn_mul_s(g, 0.5);
}

static void hooks(void)
{
    check_group("hooks");
    int called = 0;
    cn_tensor *w = param(CN_DIMS(3), ABC), *h = cn_mul_s(w, 4);
    check(cn_add_hook(w, halve, &called) && cn_add_hook(h, halve, &called), "%s", cn_error(cn));
    cn_backward(cn_sum(h, CN_ALL, false));
    check(called == 2 && at(cn_grad_of(w), 0) == 1,
          "hooks on a leaf and on an intermediate see and change gradients: %g", at(cn_grad_of(w), 0));
    cn_no_grad_begin(cn);
    cn_assign(w, cn_mul_s(w, 2));
    cn_no_grad_end(cn);
    cn_zero_grad(w);
    cn_backward(cn_sum(w, CN_ALL, false));
    check(called == 3 && at(cn_grad_of(w), 0) == 0.5, "a leaf's hook stays with the handle");
    cn_release(w);
}

static void count_end(void *user) { ++*(int *)user; }

static void ends_of_hooks(void)
{
    check_group("ends of hooks");
    int ended = 0;
    cn_tensor *w = param(CN_DIMS(3), ABC);
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *h = cn_mul_s(w, 4);
    check(cn_add_hook_until(h, same_gradient, &ended, count_end), "%s", cn_error(cn));
    check(cn_backward_with(cn_sum(h, CN_ALL, false), &(cn_backward_desc){ .retain = true }) && ended == 0,
          "a hook lasts as long as backward can reach it");
    cn_backward(cn_sum(h, CN_ALL, false));
    check(ended == 1, "it ends when its graph is spent: %d", ended);
    cn_add_hook_until(cn_mul_s(w, 3), same_gradient, &ended, count_end);
    cn_scope_end(cn, s);
    check(ended == 2, "it ends when its tensor has gone: %d", ended);
    cn_release(w);
}

/* ---- functions with a gradient of their own ---- */

static cn_tensor *cube_forward(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    return cn_mul(cn_mul(in[0], in[0]), in[0]);
}
static void cube_backward(void *user, cn_tensor *const *in, int n, cn_tensor *out, cn_tensor *g, cn_tensor **grads)
{
    (void)n, (void)out;
    grads[0] = cn_mul(g, cn_mul_s(cn_square(in[0]), *(double *)user));
}
static cn_tensor *cube(void *user, cn_tensor *const *in, int n)
{
    return cn_custom_apply(&(cn_custom){ cube_forward, cube_backward, user }, in, n);
}

static void custom_gradients_and_the_checker(void)
{
    check_group("custom");
    double right = 3, wrong = 3.01;
    cn_tensor *x = cn_from(cn, CN_F64, CN_DIMS(2, 3), ABC);
    char words[256] = "";
    cn_gradcheck_desc d = { .words = words, .words_size = sizeof words };
    check(cn_gradcheck(cube, &right, &x, 1, &d), "a right custom gradient passes: %s", words);
    check(cn_gradgradcheck(cube, &right, &x, 1, &d), "and its second order: %s", words);
    check(!cn_gradcheck(cube, &wrong, &x, 1, &d) && strstr(words, "finite difference"),
          "a gradient wrong by 0.3 %% is caught: %s", words);
    cn_tensor *f = cn_from(cn, CN_F32, CN_DIMS(1), (float[]){ 1 });
    check(!cn_gradcheck(cube, &right, &f, 1, &d) && strstr(words, "f64"), "f32 is refused: %s", words);
}

typedef struct layer {
    cn_tensor *w, *b;
    int calls;
} layer;

static cn_tensor *layer_forward(void *user, cn_tensor *const *in, int n)
{
    layer *l = user;
    (void)n;
    l->calls++;
    cn_tensor *h = cn_dropout(cn_tanh(cn_add(cn_matmul(in[0], l->w), l->b)), 0.3, true);
    return cn_tanh(cn_matmul(cn_exp(cn_mul_s(h, 0.3)), l->w));
}

static void recomputation(void)
{
    check_group("checkpoint");
    double g[2][4];
    int64_t arena[2];
    for (int again = 0; again < 2; again++) {
        cn_ctx *c = cn_open(&(cn_desc){ .seed = 5, .threads = 1 });
        layer l[6];
        for (int i = 0; i < 6; i++)
            l[i] = (layer){ cn_param(cn_mul_s(cn_randn(c, CN_F64, CN_DIMS(16, 16)), 0.3)),
                            cn_param(cn_zeros(c, CN_F64, CN_DIMS(16))), 0 };
        cn_tensor *x = cn_keep(cn_randn(c, CN_F64, CN_DIMS(300, 16)));
        cn_eval_all(c);
        cn_scope s = cn_scope_begin(c);
        cn_tensor *h = x;
        for (int i = 0; i < 6; i++)
            h = again ? cn_checkpoint(layer_forward, &l[i], &h, 1) : layer_forward(&l[i], &h, 1);
        check(cn_backward(cn_mean(cn_square(h), CN_ALL, false)), "%s", cn_error(c));
        cn_eval_all(c);
        for (int i = 0; i < 4; i++) g[again][i] = at(cn_grad_of(i % 2 ? l[i].b : l[i].w), i);
        cn_scope_end(c, s);
        arena[again] = cn_count(c).arena_bytes;
        check(l[2].calls == 1 + again && !cn_failed(c), "the function ran %d times: %s", l[2].calls, cn_error(c));
        cn_close(c);
    }
    check(!memcmp(g[0], g[1], sizeof g[0]),
          "with and without recomputation, dropout included, gradients have the same bits");
    check(arena[1] < arena[0] * 7 / 10, "and recomputation needs less memory: %lld, %lld bytes", (long long)arena[1],
          (long long)arena[0]);
}

/* The second run draws the same numbers as the first; what is drawn afterwards is not drawn again. */
static void recomputation_and_random_numbers(void)
{
    check_group("checkpoint, random numbers");
    double drawn[2][4];
    for (int again = 0; again < 2; again++) {
        cn_ctx *c = cn_open(&(cn_desc){ .seed = 5, .threads = 1 });
        layer l = { cn_param(cn_randn(c, CN_F64, CN_DIMS(4, 4))), cn_param(cn_zeros(c, CN_F64, CN_DIMS(4))), 0 };
        cn_tensor *x = cn_randn(c, CN_F64, CN_DIMS(3, 4));
        cn_tensor *y = again ? cn_checkpoint(layer_forward, &l, &x, 1) : layer_forward(&l, &x, 1);
        cn_read(cn_rand(c, CN_F64, CN_DIMS(2)), drawn[again], 2 * sizeof(double));
        check(cn_backward(cn_sum(y, CN_ALL, false)), "%s", cn_error(c));
        cn_read(cn_rand(c, CN_F64, CN_DIMS(2)), drawn[again] + 2, 2 * sizeof(double));
        cn_close(c);
    }
    check(!memcmp(drawn[0], drawn[1], sizeof drawn[0]), "random numbers go on as without recomputation");
}

/* PyTorch's choices where a function has a corner. */
static void gradients_at_corners(void)
{
    check_group("corners");
    cn_tensor *x = param(CN_DIMS(3), (double[]){ -1, 0.5, 2 });
    static const double expected[4][3] = { { 0, 1, 0 }, { 0, 1, 0 }, { 0, 1, 1 }, { -1, 0, 1 } };
    for (int i = 0; i < 4; i++) {
        cn_tensor *y = i == 0   ? cn_clamp(x, -1, 2)
                       : i == 1 ? cn_hardtanh(x, -1, 2)
                       : i == 2 ? cn_relu(cn_add_s(x, 1))
                                : cn_abs(cn_sub_s(x, 0.5));
        check(cn_backward(cn_sum(y, CN_ALL, false)), "%s", cn_error(cn));
        for (int k = 0; k < 3; k++)
            check(at(cn_grad_of(x), k) == expected[i][k], "function %d at %g: %g", i, at(x, k), at(cn_grad_of(x), k));
        cn_zero_grad(x);
    }
    cn_release(x);
}

/* A gradient for one input leaves the graph of another as it is. */
static void graphs_beside_the_path(void)
{
    check_group("beside the path");
    cn_tensor *a = param(CN_DIMS(3), ABC), *b = param(CN_DIMS(3), ABC + 3), *shared = cn_exp(b), *g = NULL;
    cn_tensor *first = cn_sum(cn_mul(a, shared), CN_ALL, false), *second = cn_sum(cn_square(shared), CN_ALL, false);
    check(cn_grad(&first, 1, &a, 1, &g, NULL), "the gradient of a: %s", cn_error(cn));
    check(fabs(at(g, 1) - exp(ABC[4])) < 1e-12, "is %g", at(g, 1));
    check(cn_backward(second) && fabs(at(cn_grad_of(b), 1) - 2 * exp(2 * ABC[4])) < 1e-12,
          "what does not lead to a can still be walked: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_zero_grad(b);
    cn_release(a);
    cn_release(b);
}

static void missing_gradients_are_errors(void)
{
    check_group("missing");
    cn_tensor *w = param(CN_DIMS(3), ABC);
    cn_tensor *p = cn_bernoulli(cn_sigmoid(w));
    check(!cn_requires_grad(p) || (!cn_backward(cn_sum(p, CN_ALL, false)) && cn_error_code(cn) == CN_NO_GRADIENT),
          "bernoulli: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_release(w);
}

/* A loss that uses overlapping pieces of x, its rows in turn, and x as a whole. */
static cn_tensor *of_pieces(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    cn_tensor *x = in[0], *half[2];
    cn_tensor *y = cn_mul(cn_slice(x, 1, 0, 4, 1), cn_slice(x, 1, 1, 5, 1));
    y = cn_add(y, cn_mul(cn_slice(x, 1, 2, 6, 1), cn_exp(cn_slice(x, 1, 0, 4, 1))));
    for (int i = 0; i < 4; i++) y = cn_add(y, cn_square(cn_slice(cn_select(x, 0, i), 0, i % 3, i % 3 + 4, 1)));
    if (cn_chunk(x, 2, 1, half, 2) != 2) return NULL;
    return cn_add(cn_sum(y, CN_ALL, false),
                  cn_sum(cn_mul(cn_mul(half[0], half[1]), cn_slice(x, 1, 0, 6, 2)), CN_ALL, false));
}

/* A tensor gets a piece of itself added: its memory must not be taken over while the piece is read. */
static void piece_of_itself(void)
{
    struct {
        int64_t axis, length, step;
    } attrs = { 0, 6, 1 };
    cn_arg from[CN_MAX_ARGS] = { { .i = 1 } };
    cn_tensor *y = cn_mul_s(cn_from(cn, CN_F64, CN_DIMS(6), ABC), 2);
    cn_tensor *in[2] = { y, cn_slice(y, 0, 0, 4, 1) };
    cn_tensor *z = cn_mul_s(cn_apply(&cn__op_slice_add, in, 2, &attrs, from), 1);
    for (int i = 0; i < 6; i++) {
        double want = 2 * ABC[i] + (i > 0 && i < 5 ? 2 * ABC[i - 1] : 0);
        check(at(z, i) == want, "element %d: %g, not %g", i, at(z, i), want);
    }
}

static void pieces_of_one_tensor(void)
{
    check_group("pieces");
    piece_of_itself();
    cn_tensor *x = cn_param(cn_randn(cn, CN_F64, CN_DIMS(4, 6)));
    char why[256] = "";
    cn_gradcheck_desc d = { .words = why, .words_size = sizeof why };
    check(cn_gradcheck(of_pieces, NULL, &x, 1, &d), "%s %s", why, cn_error(cn));
    check(cn_gradgradcheck(of_pieces, NULL, &x, 1, &d), "%s %s", why, cn_error(cn));
    cn_tensor *g[4] = { x, x, x, x };
    check(cn_chunk(NULL, 4, 1, g, 4) == 0 && !g[0] && !g[3], "what is not cut is NULL");
    check(!cn_grad(NULL, 0, CN_TENSORS(x), g + 3, NULL) && !g[3], "no gradient is NULL");
    check(strstr(cn_error(cn), "at least 1 output"), "%s", cn_error(cn));
    cn_error_clear(cn);
    cn_release(x);
}

static void deep_graphs(void)
{
    check_group("deep");
    cn_ctx *c = cn_open(&(cn_desc){ .threads = 1, .pending_limit = 1 << 20 });
    double one[2] = { 1, 1 };
    cn_tensor *w = cn_param(cn_from(c, CN_F64, CN_DIMS(2), one)), *x = w;
    int depth = test_is_quick() ? 20000 : 100000;
    for (int i = 0; i < depth; i++) x = cn_mul_s(x, i % 2 ? 2 : 0.5);
    check(cn_backward(cn_sum(x, CN_ALL, false)) && at(cn_grad_of(w), 1) == 1, "%d operations deep: %s", depth,
          cn_error(c));
    cn_close(c);
}

int main(void)
{
    cn = cn_open(&(cn_desc){ .seed = 1, .threads = 2 });
    void (*const all[])(void) = { backward_and_accumulation,
                                  spent_and_retained,
                                  grad_of_anything,
                                  no_grad_and_detach,
                                  hooks,
                                  ends_of_hooks,
                                  custom_gradients_and_the_checker,
                                  recomputation,
                                  recomputation_and_random_numbers,
                                  gradients_at_corners,
                                  graphs_beside_the_path,
                                  missing_gradients_are_errors,
                                  pieces_of_one_tensor,
                                  deep_graphs };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cn_scope s = cn_scope_begin(cn);
        int64_t handles = cn_count(cn).handles, bytes = cn_count(cn).live_bytes;
        all[i]();
        cn_scope_end(cn, s);
        check(!cn_failed(cn), "group %zu leaves no error: %s", i, cn_error(cn));
        cn_error_clear(cn);
        check(cn_count(cn).handles == handles && cn_count(cn).live_bytes == bytes,
              "group %zu leaves nothing behind: %lld handles, %lld bytes", i,
              (long long)(cn_count(cn).handles - handles), (long long)(cn_count(cn).live_bytes - bytes));
    }
    cn_close(cn);
    return finish();
}
