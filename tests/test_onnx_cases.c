/* Cases of ONNX from files: the backend node suite of the PyPI package `onnx` (tests/onnx/make_cases.py), whole models
   (make_models.py), or gradients (make_gradients.py):

       test_onnx_cases FOLDER [--gradients] [--turned] [--every N] [--expected FILE] [PART]

   --gradients  compares gradients of f64 inputs with finite differences, instead of results
   --turned     then runs the model with its inputs turned round, and compares with a model that has run nothing else
   --every N    only each N-th case
   --expected   a list of cases that may fail, a line each: name, reason
   PART         only names that contain it; each case is then listed

   A case that does not pass is listed with its reason, and fails, unless the list has it or its element types are not
   Cairn's: then it counts as skipped. CAIRN_DEVICE=gpu runs all on the GPU. Without a folder nothing is checked:
   CAIRN_ONNX_CASES may name it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "onnx/weights.h"
#include "support/check.h"

enum { MOST = 64, LEAST_PASSED = 1500 };

typedef struct options {
    const char *root, *part;
    bool gradients, turned;
    int every;
    char *expected; /* the text of the list, or NULL */
} options;

typedef struct messages {
    cn_ctx *cn;
    cn__bump memory;
    onnx_weights weights;
} messages;

/* ---- messages: TensorProto, SequenceProto, OptionalProto ---- */

static unsigned char *read_file(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    unsigned char *data = malloc(*bytes + 1);
    if (data && fread(data, 1, *bytes, f) != *bytes) *bytes = 0;
    fclose(f);
    return data;
}

static cn_tensor *tensor_of(messages *m, cn__wire body)
{
    onnx_tensor t;
    return cn__onnx_parse_tensor(&m->weights.reader, body, &t) ? cn__onnx_tensor(&m->weights, &t, m->cn) : NULL;
}

static bool sequence_of(messages *m, cn__wire w, cn_onnx_value *out, cn_tensor **items)
{
    out->items = items;
    for (cn__field f; cn__wire_next(&w, &f);)
        if (f.number == 3 && out->n_items < MOST && !(items[out->n_items++] = tensor_of(m, f.bytes))) return false;
    return !w.bad;
}

static bool optional_of(messages *m, cn__wire w, cn_onnx_value *out, cn_tensor **items)
{
    for (cn__field f; cn__wire_next(&w, &f);) {
        if (f.number == 3 && !(out->tensor = tensor_of(m, f.bytes))) return false;
        if (f.number == 5 && !sequence_of(m, f.bytes, out, items)) return false;
    }
    return !w.bad;
}

/* False: the file is there, and cannot be used. */
static bool read_value(messages *m, const char *folder, const char *what, int i, const cn_onnx_port *port,
                       cn_onnx_value *out, cn_tensor **items, bool *there)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s_%d.pb", folder, what, i);
    size_t bytes = 0;
    unsigned char *data = read_file(path, &bytes);
    *out = (cn_onnx_value){ .name = port->name };
    *there = data != NULL;
    if (!data) return true;
    m->weights.content = cn__content_new(m->cn, bytes);
    bool ok = m->weights.content != NULL;
    if (ok) {
        memcpy(m->weights.content->data, data, bytes);
        cn__wire w = cn__wire_of(m->weights.content->data, bytes);
        if (!strcmp(port->kind, "sequence")) ok = sequence_of(m, w, out, items);
        else if (!strcmp(port->kind, "optional")) ok = optional_of(m, w, out, items);
        else ok = (out->tensor = tensor_of(m, w)) != NULL;
        cn__content_release(m->weights.content);
        m->weights.content = NULL;
    }
    free(data);
    return ok;
}

/* ---- comparing ---- */

static bool close_enough(double a, double b, double rtol, double atol)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= atol + rtol * fabs(b);
}

static bool same_tensor(cn_tensor *got, cn_tensor *want, double rtol, double atol, char *why, size_t size)
{
    if (!got || !want) return snprintf(why, size, "a tensor is not there"), got == want;
    if (cn_type(got) != cn_type(want))
        return snprintf(why, size, "type %s, expected %s", cn_dtype_name(cn_type(got)), cn_dtype_name(cn_type(want))),
               false;
    const cn_dims a = cn_shape(got), b = cn_shape(want);
    if (a.n != b.n || memcmp(a.v, b.v, sizeof *a.v * (size_t)a.n)) return snprintf(why, size, "another shape"), false;
    const int64_t n = cn_numel(got);
    double *x = malloc(sizeof *x * (size_t)(n + 1)), *y = malloc(sizeof *y * (size_t)(n + 1));
    bool ok = x && y && cn_read_f64(got, x, n) && cn_read_f64(want, y, n);
    if (!ok) snprintf(why, size, "%s", cn_error(cn_context(got)));
    for (int64_t i = 0; i < n && ok; i++) {
        ok = close_enough(x[i], y[i], rtol, atol);
        if (!ok) snprintf(why, size, "element %lld is %g, expected %g", (long long)i, x[i], y[i]);
    }
    free(x);
    free(y);
    return ok;
}

static bool same_value(const cn_onnx_value *got, const cn_onnx_value *want, double rtol, double atol, char *why,
                       size_t size)
{
    if (got->n_items != want->n_items)
        return snprintf(why, size, "%d items, expected %d", got->n_items, want->n_items), false;
    for (int i = 0; i < got->n_items; i++)
        if (!same_tensor(got->items[i], want->items[i], rtol, atol, why, size)) return false;
    return (!got->tensor && !want->tensor) || same_tensor(got->tensor, want->tensor, rtol, atol, why, size);
}

typedef enum verdict { PASSED, WRONG, REFUSED } verdict;

/* ---- gradients: of f64 inputs, by finite differences ---- */

typedef struct differentiated {
    cn_module *model;
    cn_onnx_value *in;
    int n_in, n_out;
    int which[CN_MAX_IN], n_which; /* the inputs that are varied */
} differentiated;

/* The sum of all floating results that are finite, each element with a weight of its own. */
static cn_tensor *weighted_sum(void *user, cn_tensor *const *x, int n)
{
    differentiated *d = user;
    if (n != d->n_which) return NULL;
    cn_onnx_value in[MOST], out[MOST] = { 0 };
    memcpy(in, d->in, sizeof *in * (size_t)d->n_in);
    for (int i = 0; i < d->n_which; i++) in[d->which[i]].tensor = x[i];
    if (!cn_onnx_run(d->model, in, d->n_in, out, d->n_out)) return NULL;
    cn_ctx *cn = cn_module_context(d->model);
    cn_tensor *sum = cn_mul_s(cn_sum(x[0], CN_ALL, false), 0);
    for (int i = 0; i < d->n_out; i++)
        for (int k = -1; k < out[i].n_items; k++) {
            cn_tensor *y = k < 0 ? out[i].tensor : out[i].items[k];
            if (!y || cn_type(y) != CN_F64 || !cn_numel(y)) continue;
            cn_tensor *w = cn_cos(cn_reshape(cn_arange(cn, CN_F64, 0, (double)cn_numel(y), 1), cn_shape(y)));
            y = cn_where(cn_isfinite(y), y, cn_zeros_like(y));
            sum = cn_add(sum, cn_sum(cn_mul(y, w), CN_ALL, false));
        }
    return sum;
}

static verdict check_gradients(cn_module *model, cn_onnx_value *in, int n_in, int n_out, char *why, size_t size)
{
    differentiated d = { .model = model, .in = in, .n_in = n_in, .n_out = n_out };
    cn_tensor *leaves[CN_MAX_IN];
    for (int i = 0; i < n_in && d.n_which < CN_MAX_IN; i++) {
        if (!in[i].tensor || cn_type(in[i].tensor) != CN_F64 || !cn_numel(in[i].tensor)) continue;
        leaves[d.n_which] = cn_param(in[i].tensor);
        d.which[d.n_which++] = i;
    }
    if (!d.n_which) return snprintf(why, size, "no input can be varied"), WRONG;
    const cn_gradcheck_desc desc = { .max_elements = test_is_long() ? 0 : 40, .words = why, .words_size = size };
    const bool ok = cn_gradcheck(weighted_sum, &d, leaves, d.n_which, &desc);
    if (cn_failed(cn_module_context(model))) snprintf(why, size, "%s", cn_error(cn_module_context(model)));
    for (int i = 0; i < d.n_which; i++) cn_release(leaves[i]);
    return ok ? PASSED : WRONG;
}

/* ---- one case ---- */

/* An input with its elements in the opposite order: the same shape, other values. */
static void turn_round(cn_onnx_value *v)
{
    cn_tensor *t = v->tensor;
    if (!t || cn_numel(t) < 2) return;
    v->tensor = cn_contiguous(cn_reshape(cn_flip(cn_reshape(t, CN_DIMS(-1)), CN_DIMS(0)), cn_shape(t)));
    cn_eval(v->tensor);
}

/* The model has run several times: with other values it must do what a new model does, which remembers nothing. */
static verdict compare_turned(cn_module *model, const char *path, cn_onnx_value *in, int n_in, int n_out, char *why,
                              size_t size)
{
    cn_ctx *cn = cn_module_context(model);
    cn_onnx_port ports[MOST];
    cn_onnx_value got[MOST], want[MOST];
    cn_onnx_outputs(model, ports, MOST);
    for (int i = 0; i < n_in; i++) turn_round(&in[i]);
    for (int i = 0; i < n_out; i++) got[i] = want[i] = (cn_onnx_value){ .name = ports[i].name };
    if (cn_failed(cn)) return snprintf(why, size, "turned round: %s", cn_error(cn)), WRONG;
    cn_no_grad_begin(cn);
    const bool ok = cn_onnx_run(model, in, n_in, got, n_out);
    for (int i = 0; i < n_out && ok; i++)
        if (got[i].tensor) cn_eval(got[i].tensor);
    cn_no_grad_end(cn);
    const bool failed = cn_failed(cn);
    cn_error_clear(cn);
    cn_module *fresh = cn_onnx_load(cn, path);
    const bool fine = fresh && cn_onnx_run(fresh, in, n_in, want, n_out);
    for (int i = 0; i < n_out && fine; i++)
        if (want[i].tensor) cn_eval(want[i].tensor);
    verdict v = failed == cn_failed(cn) ? PASSED : WRONG;
    if (v != PASSED) snprintf(why, size, "turned round: only one model fails: %s", cn_error(cn));
    for (int i = 0; i < n_out && v == PASSED && !failed; i++)
        if (!same_value(&got[i], &want[i], 1e-3, 1e-5, why, size)) v = WRONG;
    cn_error_clear(cn);
    cn_module_free(fresh);
    return v;
}

static verdict compare(messages *m, const char *folder, cn_module *model, const options *o, double rtol, double atol,
                       char *why, size_t size)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    static cn_tensor *in_items[MOST][MOST], *out_items[MOST][MOST];
    cn_onnx_port in_ports[MOST], out_ports[MOST];
    cn_onnx_value in[MOST], out[MOST], want[MOST];
    const int n_in = cn_onnx_inputs(model, in_ports, MOST), n_out = cn_onnx_outputs(model, out_ports, MOST);
    int given = 0;
    bool there;
    if (n_in > MOST || n_out > MOST) return snprintf(why, size, "too many inputs"), REFUSED;
    for (int i = 0; i < n_in; i++) {
        if (!read_value(m, folder, "input", i, &in_ports[i], &in[given], in_items[i], &there))
            return snprintf(why, size, "input: %s", cn_error(m->cn)), REFUSED;
        given += there;
    }
    if (o->gradients) return check_gradients(model, in, given, n_out, why, size);
    for (int i = 0; i < n_out; i++) {
        out[i] = (cn_onnx_value){ .name = out_ports[i].name };
        if (!read_value(m, folder, "output", i, &out_ports[i], &want[i], out_items[i], &there))
            return snprintf(why, size, "output: %s", cn_error(m->cn)), REFUSED;
    }
    verdict v = PASSED;
    for (int run = 0; run < 7 && v == PASSED; run++) { /* later ones take what the first remembered */
        if (run == 2) cn_no_grad_begin(m->cn);         /* more is remembered without gradients */
        if (!cn_onnx_run(model, in, given, out, n_out)) {
            snprintf(why, size, "%s%s", run ? "again: " : "", cn_error(m->cn));
            v = REFUSED;
        }
        for (int i = 0; i < n_out && v == PASSED; i++)
            if (!same_value(&out[i], &want[i], rtol, atol, why, size)) v = WRONG;
        if (run >= 2 && (run == 6 || v != PASSED)) cn_no_grad_end(m->cn);
    }
    return o->turned && v == PASSED ? compare_turned(model, path, in, given, n_out, why, size) : v;
}

static verdict run_case(cn_ctx *cn, const char *folder, const options *o, double rtol, double atol, char *why,
                        size_t size)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    messages m = { .cn = cn };
    m.weights.reader = (onnx_reader){ cn, &m.memory, folder };
    cn_scope s = cn_scope_begin(cn);
    cn_module *model = cn_onnx_load(cn, path);
    verdict v = REFUSED;
    const char *after_path = model ? NULL : strstr(cn_error(cn), "model.onnx: ");
    if (model) v = compare(&m, folder, model, o, rtol, atol, why, size);
    else snprintf(why, size, "%s", after_path ? after_path + strlen("model.onnx: ") : cn_error(cn));
    cn_error_clear(cn);
    cn_module_free(model);
    cn_scope_end(cn, s);
    cn__bump_free(&cn->memory, &m.memory);
    return v;
}

/* ---- all cases ---- */

/* The reason why a case may fail, by the list; NULL: it must not. */
static const char *expected_reason(const options *o, const char *name)
{
    static char reason[200];
    const size_t n = strlen(name);
    for (const char *line = o->expected; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (!strncmp(line, name, n) && line[n] == ' ') {
            snprintf(reason, sizeof reason, "%.*s", (int)strcspn(line + n + 1, "\n"), line + n + 1);
            return reason;
        }
    return NULL;
}

/* Runs one case and counts it. why_not: "-", or why Cairn need not pass it. True: it passed. */
static bool try_case(cn_ctx *cn, const options *o, const char *name, double rtol, double atol, const char *why_not)
{
    char path[1024], why[200] = "";
    const bool suited = !strcmp(why_not, "-");
    verdict v = REFUSED;
    check_group(name);
    snprintf(path, sizeof path, "%s/%s", o->root, name);
    if (o->gradients && !suited) snprintf(why, sizeof why, "%s", why_not);
    else v = run_case(cn, path, o, rtol, atol, why, sizeof why);
    const char *expected = suited ? expected_reason(o, name) : why_not;
    if (v == PASSED) check(true, "%s", name);
    else if (expected) skip();
    else check(false, "%s: %s%s", name, v == WRONG ? "" : "refused: ", why);
    if (v != PASSED && expected) printf("not passed: %s: %s\n", name, expected);
    else if (o->part) printf("%-8s %s %s\n", v == PASSED ? "passed" : v == WRONG ? "wrong" : "refused", name, why);
    fflush(stdout);
    return v == PASSED;
}

static void run_all(cn_ctx *cn, const options *o)
{
    char path[1024], line[512], name[256], why_not[200];
    double rtol, atol;
    int suited[2] = { 0 }, others[2] = { 0 }, at = 0; /* how many, and how many passed */
    const bool on_gpu = getenv("CAIRN_DEVICE") && !strcmp(getenv("CAIRN_DEVICE"), "gpu");
    snprintf(path, sizeof path, "%s/cases.txt", o->root);
    FILE *f = fopen(path, "r");
    if (!check(f != NULL, "%s is missing: run scripts/onnx.sh make", path)) return;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%255s %lf %lf %199[^\n]", name, &rtol, &atol, why_not) != 4) continue;
        if ((o->part && !strstr(name, o->part)) || at++ % o->every) continue;
        int *count = strcmp(why_not, "-") ? others : suited;
        count[0]++;
        count[1] += try_case(cn, o, name, rtol, on_gpu ? fmax(atol, 3e-5) : atol, why_not);
    }
    fclose(f);
    check_group("all cases");
    printf("%d of %d cases%s pass; of %d others %d\n", suited[1], suited[0], o->gradients ? " of gradients" : "",
           others[0], others[1]);
    if (suited[0] > LEAST_PASSED && !o->gradients)
        check(suited[1] >= LEAST_PASSED, "%d cases pass, expected %d or more", suited[1], LEAST_PASSED);
}

static bool read_options(int n, char **words, options *o)
{
    *o = (options){ .root = getenv("CAIRN_ONNX_CASES"), .every = 1 };
    for (int i = 1; i < n; i++) {
        const char *next = i + 1 < n ? words[i + 1] : "";
        if (!strcmp(words[i], "--gradients")) o->gradients = true;
        else if (!strcmp(words[i], "--turned")) o->turned = true;
        else if (!strcmp(words[i], "--every")) o->every = atoi(next) > 0 ? atoi(next) : 1, i++;
        else if (!strcmp(words[i], "--expected")) {
            size_t bytes = 0;
            o->expected = (char *)read_file(next, &bytes);
            if (!check(o->expected != NULL, "%s is missing", next)) return false;
            o->expected[bytes] = 0;
            i++;
        } else if (i == 1) o->root = words[i];
        else o->part = words[i];
    }
    return true;
}

int main(int n, char **words)
{
    options o;
    if (!read_options(n, words, &o)) return finish();
    if (!o.root) {
        skip();
        return finish();
    }
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    if (!check(cn != NULL, "a context")) return finish();
    run_all(cn, &o);
    cn_close(cn);
    free(o.expected);
    return finish();
}
