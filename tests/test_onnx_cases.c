/* The backend node suite of the PyPI package `onnx`, from files that tests/onnx/make_cases.py wrote:

       test_onnx_cases FOLDER [PART]        PART: only names that contain it; each case is then listed

   Prints how many cases passed, how many gave other numbers, and how many were refused. Without a folder nothing is
   checked: CAIRN_ONNX_CASES may name it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "onnx/weights.h"
#include "support/check.h"

enum { MOST = 64, REASONS = 400 };

typedef struct reason {
    char text[160];
    int cases;
} reason;

typedef struct tally {
    int passed, wrong, refused;
    reason reasons[REASONS];
    int n_reasons;
    bool list;
} tally;

typedef struct messages {
    cn_ctx *cn;
    cn__bump memory;
    onnx_weights weights;
} messages;

static void because(tally *t, const char *text)
{
    int i = 0;
    while (i < t->n_reasons && strncmp(t->reasons[i].text, text, sizeof t->reasons[i].text - 1)) i++;
    if (i == REASONS) return;
    if (i == t->n_reasons) snprintf(t->reasons[t->n_reasons++].text, sizeof t->reasons[i].text, "%s", text);
    t->reasons[i].cases++;
}

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
        if (*port->kind == 's') ok = sequence_of(m, w, out, items);
        else if (*port->kind == 'o') ok = optional_of(m, w, out, items);
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

/* ---- gradients: of f32 inputs, by finite differences ---- */

typedef struct differentiated {
    cn_module *model;
    cn_onnx_value *in;
    int n_in, n_out;
    int which[CN_MAX_IN], n_which; /* the inputs that are varied */
} differentiated;

/* The sum of all floating results, each element with a weight of its own. */
static cn_tensor *weighted_sum(void *user, cn_tensor *const *x, int n)
{
    differentiated *d = user;
    if (n != d->n_which) return NULL;
    cn_onnx_value in[MOST], out[MOST] = { 0 };
    memcpy(in, d->in, sizeof *in * (size_t)d->n_in);
    for (int i = 0; i < d->n_which; i++) in[d->which[i]].tensor = cn_cast(x[i], CN_F32);
    if (!cn_onnx_run(d->model, in, d->n_in, out, d->n_out)) return NULL;
    cn_ctx *cn = cn_module_context(d->model);
    cn_tensor *sum = cn_mul_s(cn_sum(x[0], CN_ALL, false), 0);
    for (int i = 0; i < d->n_out; i++) {
        cn_tensor *y = out[i].tensor;
        if (!y || cn_type(y) != CN_F32 || !cn_numel(y)) continue;
        cn_tensor *w = cn_cos(cn_reshape(cn_arange(cn, CN_F64, 0, (double)cn_numel(y), 1), cn_shape(y)));
        sum = cn_add(sum, cn_sum(cn_mul(cn_cast(y, CN_F64), w), CN_ALL, false));
    }
    return sum;
}

static verdict check_gradients(cn_module *model, cn_onnx_value *in, int n_in, int n_out, char *why, size_t size)
{
    differentiated d = { .model = model, .in = in, .n_in = n_in, .n_out = n_out };
    cn_tensor *leaves[CN_MAX_IN];
    for (int i = 0; i < n_in && d.n_which < CN_MAX_IN; i++) {
        if (!in[i].tensor || cn_type(in[i].tensor) != CN_F32 || !cn_numel(in[i].tensor)) continue;
        leaves[d.n_which] = cn_param(cn_cast(in[i].tensor, CN_F64));
        d.which[d.n_which++] = i;
    }
    if (!d.n_which) return PASSED;
    const cn_gradcheck_desc desc = {
        .eps = 1e-2, .atol = 2e-2, .rtol = 2e-2, .max_elements = 12, .words = why, .words_size = size
    };
    return cn_gradcheck(weighted_sum, &d, leaves, d.n_which, &desc) ? PASSED : WRONG;
}

/* ---- one case ---- */

static verdict compare(messages *m, const char *folder, cn_module *model, double rtol, double atol, char *why,
                       size_t size)
{
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
    for (int i = 0; i < n_out; i++) {
        out[i] = (cn_onnx_value){ .name = out_ports[i].name };
        if (!read_value(m, folder, "output", i, &out_ports[i], &want[i], out_items[i], &there))
            return snprintf(why, size, "output: %s", cn_error(m->cn)), REFUSED;
    }
    if (getenv("CAIRN_ONNX_GRADIENTS")) return check_gradients(model, in, given, n_out, why, size);
    if (!cn_onnx_run(model, in, given, out, n_out)) return snprintf(why, size, "%s", cn_error(m->cn)), REFUSED;
    for (int i = 0; i < n_out; i++)
        if (!same_value(&out[i], &want[i], rtol, atol, why, size)) return WRONG;
    /* a second run takes what the first remembered */
    if (!cn_onnx_run(model, in, given, out, n_out)) return snprintf(why, size, "again: %s", cn_error(m->cn)), WRONG;
    for (int i = 0; i < n_out; i++)
        if (!same_value(&out[i], &want[i], rtol, atol, why, size)) return WRONG;
    return PASSED;
}

static verdict run_case(const char *folder, double rtol, double atol, char *why, size_t size)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    messages m = { .cn = cn_open(&(cn_desc){ .threads = 1 }) };
    if (!m.cn) return REFUSED;
    m.weights.reader = (onnx_reader){ m.cn, &m.memory, folder };
    cn_module *model = cn_onnx_load(m.cn, path);
    verdict v = REFUSED;
    if (!model)
        snprintf(why, size, "%s",
                 strstr(cn_error(m.cn), "model.onnx: ") ? strstr(cn_error(m.cn), "model.onnx: ") + 12 : cn_error(m.cn));
    else v = compare(&m, folder, model, rtol, atol, why, size);
    cn__bump_free(&m.cn->memory, &m.memory);
    cn_close(m.cn);
    return v;
}

int main(int n, char **words)
{
    const char *root = n > 1 ? words[1] : getenv("CAIRN_ONNX_CASES"), *part = n > 2 ? words[2] : NULL;
    char path[1024], line[512], name[256], why_not[64], why[150];
    double rtol, atol;
    static tally suited, others;
    if (!root) {
        skip();
        return finish();
    }
    snprintf(path, sizeof path, "%s/cases.txt", root);
    FILE *f = fopen(path, "r");
    if (!check(f != NULL, "%s is missing: run tests/onnx/make_cases.py", path)) return finish();
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%255s %lf %lf %63s", name, &rtol, &atol, why_not) != 4 || (part && !strstr(name, part)))
            continue;
        tally *t = strcmp(why_not, "-") ? &others : &suited;
        snprintf(path, sizeof path, "%s/%s", root, name);
        *why = 0;
        const verdict v = run_case(path, rtol, atol, why, sizeof why);
        *(v == PASSED ? &t->passed : v == WRONG ? &t->wrong : &t->refused) += 1;
        if (v != PASSED && t == &suited) printf("%-8s %s: %s\n", v == WRONG ? "WRONG" : "REFUSED", name, why);
        else if (part) printf("%-8s %s: %s\n", v == PASSED ? "passed" : v == WRONG ? "wrong" : "refused", name, why);
        if (v != PASSED) because(t, v == WRONG ? "other numbers" : why);
        fflush(stdout);
    }
    fclose(f);
    printf("suited cases: %d passed, %d other numbers, %d refused\n", suited.passed, suited.wrong, suited.refused);
    printf("other cases:  %d passed, %d other numbers, %d refused\n", others.passed, others.wrong, others.refused);
    check(part || suited.passed >= 1500, "%d suited cases passed, expected 1500 or more", suited.passed);
    return finish();
}
