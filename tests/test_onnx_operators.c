/* Every operator as ONNX: the operands of its own cases become inputs of a file, its results the file's. Read back, the
   file gives the same. What cannot be written is refused by its name. A folder as argument: the files and their numbers
   are left there, for onnx/check_written.py.

       build/tests/test_onnx_operators [FOLDER]
       build/tests/test_onnx_operators =softmax         one operator, with words */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/onnx.h"
#include "cairn/op_cases.h"
#include "support/check.h"
#include "support/scratch.h"

static const char *folder; /* or NULL */
static const char *only;

/* ---- operands ---- */

static uint64_t state;
static double draw(double low, double high)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (double)(state >> 11) * 0x1p-53;
}

static void fill(const cn_spec *s, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        switch (s->fill) {
        case CN_FILL_INDEX: out[i] = floor(draw(s->low, s->high)); break;
        case CN_FILL_BOOL: out[i] = draw(0, 1) < 0.5; break;
        case CN_FILL_DISTINCT: out[i] = (double)((i * 7919) % n) * 0.25 - (double)n * 0.125; break;
        case CN_FILL_PERMUTATION: out[i] = (double)((i * 7919) % n); break;
        default: out[i] = draw(s->low, s->high);
        }
    }
    if (s->fill != CN_FILL_POSITIVE) return;
    const int64_t k = s->shape.v[s->shape.n - 1];
    for (int64_t i = 0; i < n; i++) { /* symmetric, and the diagonal outweighs the rest */
        const int64_t row = i / k % k, col = i % k, base = i - row * k - col;
        if (row < col) out[base + col * k + row] = out[i] = draw(-0.5, 0.5);
        if (row == col) out[i] = (double)k + draw(0.5, 1);
    }
}

static cn_tensor *operand(cn_ctx *cn, const cn_op *op, const cn_spec *s, int k)
{
    int64_t n = 1;
    for (int d = 0; d < s->shape.n; d++) n *= s->shape.v[d];
    double *v = malloc(sizeof *v * (size_t)(n + 1));
    if (!v) return NULL;
    fill(s, n, v);
    cn_tensor *x = cn_from(cn, CN_F64, s->shape, v);
    free(v);
    const uint32_t can = op->dtypes ? op->dtypes : CN_FLOATS;
    const bool own = k < 32 && op->free_dtype >> k & 1;
    cn_dtype t = can & CN_BIT(CN_F32) || own ? CN_F32 : can & CN_BIT(CN_I64) ? CN_I64 : CN_BOOL;
    if (s->fill == CN_FILL_INDEX || s->fill == CN_FILL_PERMUTATION) t = CN_I64;
    if (s->fill == CN_FILL_BOOL) t = CN_BOOL;
    return cn_cast(x, t);
}

/* ---- one case ---- */

typedef enum outcome { WRITTEN, REFUSED, LEFT_OUT, WRONG } outcome;

/* The largest difference, relative to the largest number above 1; NaN is NaN. */
static double difference(cn_tensor *a, cn_tensor *b)
{
    const cn_dims x = cn_shape(a), y = cn_shape(b);
    if (x.n != y.n || memcmp(x.v, y.v, sizeof *x.v * (size_t)x.n) != 0 || cn_type(a) != cn_type(b)) return INFINITY;
    const int64_t n = cn_numel(a);
    double *p = malloc(sizeof *p * (size_t)(n + 1)), *q = malloc(sizeof *q * (size_t)(n + 1)), most = 0, scale = 1;
    bool ok = p && q &&
              (!n || (cn_read(cn_cast(a, CN_F64), p, sizeof *p * (size_t)n) &&
                      cn_read(cn_cast(b, CN_F64), q, sizeof *q * (size_t)n)));
    for (int64_t i = 0; i < n && ok; i++) {
        if (isnan(p[i]) && isnan(q[i])) continue;
        const double d = p[i] == q[i] ? 0 : fabs(p[i] - q[i]);
        if (!(d <= most)) most = d;
        if (isfinite(p[i])) scale = fmax(scale, fabs(p[i]));
    }
    free(p);
    free(q);
    return ok ? most / scale : INFINITY;
}

static void leave(cn_ctx *cn, const char *name, cn_tensor *const *in, int n_in, cn_tensor *const *out, int n_out)
{
    char path[600], entry[32];
    cn_dict *d = cn_dict_new(cn);
    for (int i = 0; i < n_in; i++) snprintf(entry, sizeof entry, "in_%d", i), cn_dict_set(d, entry, in[i]);
    for (int i = 0; i < n_out; i++) snprintf(entry, sizeof entry, "out_%d", i), cn_dict_set(d, entry, out[i]);
    snprintf(path, sizeof path, "%s/%s.npz", folder, name);
    check(cn_save(d, path), "%s: %s", path, cn_error(cn));
    cn_dict_free(d);
}

/* Inputs that are there, in the order of operands. */
static int present(cn_tensor *const *in, int n, cn_tensor **out)
{
    int k = 0;
    for (int i = 0; i < n; i++)
        if (in[i]) out[k++] = in[i];
    return k;
}

static outcome round_trip(cn_ctx *cn, const cn_op *op, const cn_case *c, int number)
{
    cn_spec spec[CN_MAX_IN];
    cn_tensor *in[CN_MAX_IN] = { NULL }, *given[CN_MAX_IN], *out[CN_MAX_OUT], *want[CN_MAX_OUT];
    cn_arg args[CN_MAX_ARGS];
    char path[600], name[64];
    const int n = cn_case_operands(op, c, spec), n_out = op->n_out;
    cn_case_args(c, args);
    for (int i = 0; i < n; i++)
        if (spec[i].fill != CN_FILL_ABSENT) in[i] = operand(cn, op, &spec[i], i);
    /* the one that must be sorted */
    if (!strcmp(op->name, "searchsorted")) in[0] = cn_sort(in[0], -1, false, NULL);
    if (!strcmp(op->name, "bucketize")) in[1] = cn_sort(in[1], -1, false, NULL);
    const int n_given = present(in, n, given);
    for (int i = 0; i < n_given; i++)
        if (!cn_eval(given[i])) return LEFT_OUT;
    if (n ? !cn_apply_n(op, in, n, c->attrs, args, want) : !(want[0] = cn_apply_in(cn, op, c->attrs, args)))
        return LEFT_OUT; /* it needs operands of another kind */
    const int results = op->kind == CN_COMPOSITE || !n ? 1 : n_out;
    for (int i = 0; i < results; i++)
        if (!cn_eval(want[i]) || !cn_numel(want[0])) return LEFT_OUT;
    snprintf(name, sizeof name, "op_%s_%d", op->name, number);
    snprintf(path, sizeof path, "%s/%s.onnx", folder ? folder : ".", name);
    if (!cn_onnx_trace_begin(cn)) return WRONG;
    bool ok = n ? cn_apply_n(op, in, n, c->attrs, args, out) : (out[0] = cn_apply_in(cn, op, c->attrs, args)) != NULL;
    cn_onnx_graph g = { .inputs = given, .n_inputs = n_given, .outputs = out, .n_outputs = 1 };
    ok = ok && cn_onnx_save_graph(cn, &g, path, NULL);
    cn_onnx_trace_end(cn);
    if (!ok) {
        if (only) printf("%s: %s\n", name, cn_error(cn));
        if (cn_error_code(cn) != CN_UNSUPPORTED) check(false, "%s: %s", name, cn_error(cn));
        cn_error_clear(cn);
        return REFUSED;
    }
    cn_module *m = cn_onnx_load(cn, path);
    cn_onnx_value from[CN_MAX_IN] = { { 0 } }, to = { 0 };
    for (int i = 0; i < n_given; i++) from[i].tensor = given[i];
    ok = m && cn_onnx_run(m, from, n_given, &to, 1) && to.tensor;
    const double d = ok ? difference(want[0], to.tensor) : INFINITY;
    check(d <= 1e-5, "%s: read back it differs by %g: %s", name, d, cn_error(cn));
    cn_error_clear(cn);
    cn_module_free(m);
    if (folder && d <= 1e-5 && cn_type(want[0]) != CN_BF16) leave(cn, name, given, n_given, want, 1);
    return d <= 1e-5 ? WRITTEN : WRONG;
}

/* ---- all operators ---- */

enum { MOST_NUMEL = 20000 };

static bool small_case(const cn_op *op, const cn_case *c)
{
    cn_spec spec[CN_MAX_IN];
    const int n = cn_case_operands(op, c, spec);
    for (int i = 0; i < n; i++) {
        int64_t numel = 1;
        for (int d = 0; d < spec[i].shape.n; d++) numel *= spec[i].shape.v[d];
        if (numel > MOST_NUMEL || numel == 0) return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == '=') only = argv[1] + 1;
    else if (argc > 1) folder = argv[1];
    if (!folder && !enter_scratch()) return finish();
    int count, written = 0, partly = 0, differentiable = 0, of_these = 0;
    const cn_op *const *ops = cn_ops(&count);
    char refused[8000] = "";
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1 });
    for (int i = 0; i < count && check(cn != NULL, "a context"); i++) {
        int seen[4] = { 0 };
        check_group(ops[i]->name);
        if (only && strcmp(only, ops[i]->name)) continue;
        for (int k = 0; k < ops[i]->n_cases; k++) {
            if (!small_case(ops[i], &ops[i]->cases[k])) continue;
            cn_scope s = cn_scope_begin(cn);
            state = (uint64_t)(k + 1) * 977;
            seen[round_trip(cn, ops[i], &ops[i]->cases[k], k)]++;
            cn_error_clear(cn);
            cn_scope_end(cn, s);
        }
        const bool all = seen[WRITTEN] && !seen[REFUSED] && !seen[WRONG], forward = !strstr(ops[i]->name, "backward");
        written += all;
        partly += seen[WRITTEN] && !all;
        differentiable += ops[i]->grad && forward;
        of_these += ops[i]->grad && forward && seen[WRITTEN];
        if (seen[REFUSED] && strlen(refused) + 80 < sizeof refused)
            sprintf(refused + strlen(refused), " %s%s", ops[i]->name, seen[WRITTEN] ? "*" : "");
    }
    printf("%d of %d operators are written, %d more in part; of %d that have a gradient: %d\nrefused (* in part):%s\n",
           written, count, partly, differentiable, of_these, refused);
    /* what was reached; raise the numbers with the table */
    if (!only) check(written >= 257 && of_these >= 142, "fewer operators are written than before");
    cn_close(cn);
    return finish();
}
