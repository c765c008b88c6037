/* ONNX files that were made to do harm: nodes that ask for memory or time without end, numbers that overflow, inputs of
   the wrong kind, functions that call themselves. Each gets an error or a result, soon, and never a crash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/onnx_write.h"
#include "support/scratch.h"

#define SIZES(...) \
    (const int[]) { __VA_ARGS__, -2 }
#define SINGLE \
    (const int[]) { -2 }

static cn_ctx *cn;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- one node, in words ---- */

/* "name=1" is a whole number, "name=1,2" a list of them, "name:word" a text. */
static onnx_bytes attributes_of(const char *words)
{
    onnx_bytes all = { 0 };
    char copy[400], *rest = copy;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        onnx_bytes a = { 0 };
        char *value = word + strcspn(word, "=:");
        const bool text = *value == ':', list = strchr(value, ',') != NULL;
        *value++ = 0;
        onnx_text_field(&a, 1, word);
        if (text) onnx_text_field(&a, 4, value);
        for (char *number = text ? NULL : value; number && *number; number += *number == ',')
            onnx_number(&a, list ? 8 : 3, strtoll(number, &number, 10));
        onnx_number(&a, 20, text ? 3 : list ? 7 : 2);
        onnx_message(&all, 5, &a);
    }
    return all;
}

/* "s 1 2 3; t" are i64 initializers: s of 3 elements, t of none. "s() 1" is one of no axes, "r. 1 2" one of floats. */
static void add_initializers(onnx_bytes *g, const char *words)
{
    char copy[400], *rest = copy;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *one; (one = strtok_r(rest, ";", &rest));) {
        int64_t v[64];
        float floats[64];
        int n = 0;
        char *name = strtok_r(one, " ", &one);
        for (char *word; n < 64 && (word = strtok_r(NULL, " ", &one)); n++) {
            v[n] = strtoll(word, NULL, 10);
            floats[n] = strtof(word, NULL);
        }
        char *mark = name + strcspn(name, "().");
        const bool single = *mark == '(', real = *mark == '.';
        *mark = 0;
        if (real) onnx_floats_tensor(g, 5, name, SIZES(n), floats);
        else onnx_wholes_tensor(g, 5, name, single ? SINGLE : SIZES(n), v);
    }
}

typedef struct attack {
    const char *node;         /* "Expand x s -> y": x is the input, y the result */
    const char *initializers; /* as add_initializers has them */
    const char *attributes;   /* as attributes_of has them */
    cn_dims x;
    int result; /* ERROR, or ANY: an error or a result */
    int version;
} attack;

enum { ERROR, ANY };

static cn_module *model_of(const attack *a)
{
    onnx_bytes g = { 0 }, attributes = attributes_of(a->attributes);
    char node[200];
    snprintf(node, sizeof node, "%s", a->node);
    onnx_node_text(&g, 1, node, &attributes);
    add_initializers(&g, a->initializers);
    onnx_value_info(&g, 11, "x", 1, SIZES(-1));
    onnx_value_info(&g, 12, "y", 1, SIZES(-1));
    onnx_bytes bytes = onnx_model_of(&g, a->version ? a->version : 18);
    cn_module *m = cn_onnx_load_memory(cn, bytes.v, bytes.n);
    onnx_free(&bytes);
    return m;
}

static void try_attack(const attack *a)
{
    cn_scope s = cn_scope_begin(cn);
    const double before = seconds();
    cn_module *m = model_of(a);
    cn_tensor *x = m ? cn_rand(cn, CN_F32, a->x) : NULL, *y = NULL;
    bool ok = m && x && cn_eval(x);
    for (int i = 0; i < 6 && ok; i++) { /* with gradients, then without: more is kept there */
        if (i == 2) cn_no_grad_begin(cn);
        y = cn_forward(m, x);
        ok = y && cn_eval(y);
        if (i >= 2 && (!ok || i == 5)) cn_no_grad_end(cn);
    }
    check(ok == !cn_failed(cn), "%s (%s; %s): a result or an error", a->node, a->initializers, a->attributes);
    check(a->result == ANY || !ok, "%s (%s; %s): an error is expected", a->node, a->initializers, a->attributes);
    const double took = seconds() - before;
    check(took < (test_is_quick() ? 20 : 2), "%s (%s; %s) takes %.1f s", a->node, a->initializers, a->attributes, took);
    if (getenv("SHOW"))
        printf("%5.2f s  %s (%s; %s): %s\n", took, a->node, a->initializers, a->attributes, cn_error(cn));
    cn_error_clear(cn);
    cn_module_free(m);
    cn_scope_end(cn, s);
}

#define HUGE_ "1099511627776"        /* 2^40 */
#define MOST  "9223372036854775807"  /* 2^63 - 1 */
#define LEAST "-9223372036854775808" /* -2^63 */

static const attack attacks[] = {
#include "onnx/attacks.def"
};

static void test_attacks(void)
{
    check_group("single nodes");
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) try_attack(&attacks[i]);
}

/* ---- what repeats ---- */

static onnx_bytes graph_attribute(const char *name, onnx_bytes *graph)
{
    onnx_bytes a = { 0 }, node = { 0 };
    onnx_text_field(&a, 1, name);
    onnx_message(&a, 6, graph);
    onnx_number(&a, 20, 5);
    onnx_message(&node, 5, &a);
    return node;
}

/* Runs x → y of ones, and says how it ended. */
static void ends(onnx_bytes *bytes, cn_code code, const char *message, const char *what)
{
    cn_scope s = cn_scope_begin(cn);
    const double before = seconds();
    cn_module *m = cn_onnx_load_memory(cn, bytes->v, bytes->n);
    onnx_free(bytes);
    cn_tensor *y = m ? cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(2))) : NULL;
    if (y) cn_eval(y);
    check(cn_error_code(cn) == code && strstr(cn_error(cn), message), "%s: %s", what, cn_error(cn));
    check(seconds() - before < (test_is_quick() ? 200 : 20), "%s takes %.1f s", what, seconds() - before);
    if (getenv("SHOW")) printf("%5.2f s  %s: %s\n", seconds() - before, what, cn_error(cn));
    cn_error_clear(cn);
    cn_module_free(m);
    cn_scope_end(cn, s);
}

/* A Loop of `trips`, whose body has no nodes or one. */
static onnx_bytes loop_model(const char *trips, bool works)
{
    onnx_bytes body = { 0 }, g = { 0 };
    if (works) onnx_node_text(&body, 1, "Neg v -> w", NULL);
    onnx_value_info(&body, 11, "i", 7, SINGLE);
    onnx_value_info(&body, 11, "cond", 9, SINGLE);
    onnx_value_info(&body, 11, "v", 1, SIZES(2));
    onnx_value_info(&body, 12, "cond", 9, SINGLE);
    onnx_value_info(&body, 12, works ? "w" : "v", 1, SIZES(2));
    onnx_bytes attributes = graph_attribute("body", &body);
    onnx_node_text(&g, 1, "Loop trips _ x -> y", &attributes);
    add_initializers(&g, trips);
    onnx_value_info(&g, 11, "x", 1, SIZES(2));
    onnx_value_info(&g, 12, "y", 1, SIZES(2));
    return onnx_model_of(&g, 18);
}

static void test_loops(void)
{
    check_group("loops without end");
    onnx_bytes bytes = loop_model("trips() 4611686018427387904", false);
    ends(&bytes, CN_UNSUPPORTED, "at most", "2^62 trips that do nothing");
    if (!test_is_quick()) {
        bytes = loop_model("trips() 4611686018427387904", true);
        ends(&bytes, CN_UNSUPPORTED, "at most", "2^62 trips");
    }
    bytes = loop_model("trips() " LEAST, true);
    ends(&bytes, CN_OK, "", "a negative count is no trip");
    bytes = loop_model("trips", true);
    ends(&bytes, CN_BAD_ARGUMENT, "one number", "a count without numbers");
    bytes = loop_model("trips 1 2", true);
    ends(&bytes, CN_BAD_ARGUMENT, "one number", "two counts");
}

static void function_of(onnx_bytes *model, const char *name, const char *const *nodes, onnx_bytes *attributes)
{
    onnx_bytes f = { 0 }, set = { 0 };
    onnx_text_field(&f, 1, name);
    onnx_text_field(&f, 4, "a");
    onnx_text_field(&f, 5, "b");
    for (int i = 0; nodes[i]; i++) onnx_node_text(&f, 7, nodes[i], i ? NULL : attributes);
    onnx_number(&set, 2, 18);
    onnx_message(&f, 9, &set);
    onnx_text_field(&f, 10, "mine");
    onnx_message(model, 25, &f);
}

static void test_functions(void)
{
    check_group("functions without end");
    onnx_bytes g = { 0 };
    onnx_node_text(&g, 1, "mine.f0 x -> y", NULL);
    onnx_value_info(&g, 11, "x", 1, SIZES(2));
    onnx_value_info(&g, 12, "y", 1, SIZES(2));
    onnx_bytes bytes = onnx_model_of(&g, 18);
    function_of(&bytes, "f0", (const char *const[]){ "mine.f0 a -> b", NULL }, NULL);
    ends(&bytes, CN_UNSUPPORTED, "nest deeper", "a function that calls itself");
    for (int depth = 40; depth < 60; depth += 19) { /* each calls the next one twice: 2^depth calls */
        g = (onnx_bytes){ 0 };
        onnx_node_text(&g, 1, "mine.f0 x -> y", NULL);
        onnx_value_info(&g, 11, "x", 1, SIZES(2));
        onnx_value_info(&g, 12, "y", 1, SIZES(2));
        bytes = onnx_model_of(&g, 18);
        for (int i = 0; i < depth; i++) {
            char name[20], first[40], second[40];
            snprintf(name, sizeof name, "f%d", i);
            snprintf(first, sizeof first, i + 1 < depth ? "mine.f%d a -> c" : "Neg a -> c", i + 1);
            snprintf(second, sizeof second, i + 1 < depth ? "mine.f%d c -> b" : "Neg c -> b", i + 1);
            function_of(&bytes, name, (const char *const[]){ first, second, NULL }, NULL);
        }
        if (depth == 40) ends(&bytes, CN_UNSUPPORTED, "at most", "2^40 calls");
        else ends(&bytes, CN_BAD_FILE, "nest deeper", "59 functions, each in another");
    }
}

/* A graph that a function gets as an attribute: its names are those of another place, so it is refused. */
static void test_graphs_by_reference(void)
{
    check_group("graphs by reference");
    for (int in_call = 0; in_call < 2; in_call++) {
        onnx_bytes branch = { 0 }, g = { 0 }, ref = { 0 }, attributes = { 0 }, none = { 0 };
        onnx_node_text(&branch, 1, in_call ? "Neg x -> z" : "Constant -> z", NULL);
        onnx_value_info(&branch, 12, "z", 1, SIZES(2));
        onnx_bytes given = graph_attribute("then_branch", &branch);
        onnx_node_text(&g, 1, "mine.f x -> y", in_call ? &given : &none);
        onnx_value_info(&g, 11, "x", 1, SIZES(2));
        onnx_value_info(&g, 12, "y", 1, SIZES(2));
        onnx_bytes model = onnx_model_of(&g, 18), f = { 0 }, set = { 0 };
        onnx_text_field(&ref, 1, "then_branch");
        onnx_text_field(&ref, 21, "then_branch");
        onnx_number(&ref, 20, 5);
        onnx_message(&attributes, 5, &ref);
        onnx_text_field(&f, 1, "f");
        onnx_text_field(&f, 4, "a");
        onnx_text_field(&f, 5, "b");
        onnx_node_text(&f, 7, "ReduceMax a _ -> m", NULL);
        onnx_node_text(&f, 7, "If m -> b", &attributes);
        if (!in_call) { /* the function's default: field 11 is a list of attributes, field 5 of a node */
            onnx_bytes a = { 0 };
            onnx_bytes other = { 0 };
            onnx_node_text(&other, 1, "Constant -> z", NULL);
            onnx_value_info(&other, 12, "z", 1, SIZES(2));
            onnx_text_field(&a, 1, "then_branch");
            onnx_message(&a, 6, &other);
            onnx_number(&a, 20, 5);
            onnx_message(&f, 11, &a);
            onnx_free(&given);
        }
        onnx_number(&set, 2, 17);
        onnx_message(&f, 9, &set);
        onnx_text_field(&f, 10, "mine");
        onnx_message(&model, 25, &f);
        ends(&model, CN_BAD_FILE, "of its own", in_call ? "of a call" : "of a function");
    }
}

/* ---- tensors ---- */

/* A model with one initializer w, whose message the caller writes; y = x + w. */
static void tensor_says(onnx_bytes *w, bool sparse, cn_code code, const char *message, const char *what)
{
    onnx_bytes g = { 0 };
    onnx_node_text(&g, 1, "Add x w -> y", NULL);
    onnx_message(&g, sparse ? 15 : 5, w);
    onnx_value_info(&g, 11, "x", 1, SIZES(2));
    onnx_value_info(&g, 12, "y", 1, SIZES(2));
    onnx_bytes bytes = onnx_model_of(&g, 18);
    ends(&bytes, code, message, what);
}

static onnx_bytes tensor_message(const int64_t *dims, int n, int type, size_t bytes)
{
    onnx_bytes t = { 0 };
    char raw[64] = { 0 };
    for (int i = 0; i < n; i++) onnx_number(&t, 1, dims[i]);
    onnx_number(&t, 2, type);
    onnx_text_field(&t, 8, "w");
    onnx_data(&t, 9, raw, bytes);
    return t;
}

static void test_tensors(void)
{
    check_group("tensors");
    const struct {
        int64_t dims[3];
        int n, type;
        size_t bytes;
        cn_code code;
        const char *message;
    } all[] = {
        { { 2 }, 1, 1, 8, CN_OK, "" },
        { { -2 }, 1, 1, 8, CN_BAD_FILE, "impossible" },
        { { INT64_MIN }, 1, 1, 8, CN_BAD_FILE, "impossible" },
        { { INT64_MAX, 2 }, 2, 1, 8, CN_BAD_FILE, "impossible" },
        { { (int64_t)1 << 32, (int64_t)1 << 32 }, 2, 1, 0, CN_BAD_FILE, "impossible" },
        { { (int64_t)1 << 62 }, 1, 1, 8, CN_BAD_FILE, "" },
        { { 0, INT64_MAX, 2 }, 3, 1, 0, CN_BAD_FILE, "impossible" },
        { { 3 }, 1, 1, 8, CN_BAD_FILE, "its shape needs" },
        { { 2 }, 1, 99, 8, CN_UNSUPPORTED, "no dtype" },
        { { 2 }, 1, -1, 8, CN_UNSUPPORTED, "no dtype" },
        { { 2 }, 1, 8, 8, CN_UNSUPPORTED, "string" },
        { { 2 }, 1, 22, 1, CN_UNSUPPORTED, "int4" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        onnx_bytes w = tensor_message(all[i].dims, all[i].n, all[i].type, all[i].bytes);
        char what[60];
        snprintf(what, sizeof what, "tensor %d", (int)i);
        tensor_says(&w, false, all[i].code, all[i].message, what);
    }
    onnx_bytes many = { 0 };
    for (int i = 0; i < 1000; i++) onnx_number(&many, 1, 1);
    onnx_number(&many, 2, 1);
    onnx_text_field(&many, 8, "w");
    onnx_data(&many, 9, "1234", 4);
    tensor_says(&many, false, CN_UNSUPPORTED, "1000 axes", "1000 axes");
}

/* Values and indices of a sparse tensor of 2 elements. */
static onnx_bytes sparse_message(int type, const int64_t *index, int64_t dense)
{
    onnx_bytes s = { 0 };
    onnx_bytes values = tensor_message((const int64_t[]){ 1 }, 1, type, 4);
    onnx_message(&s, 1, &values);
    if (index) {
        onnx_bytes t = { 0 };
        onnx_number(&t, 1, 1);
        onnx_number(&t, 2, 7);
        onnx_data(&t, 9, index, sizeof *index);
        onnx_message(&s, 2, &t);
    }
    onnx_number(&s, 3, dense);
    return s;
}

static void test_sparse(void)
{
    check_group("sparse tensors");
    const int64_t one = 1, far = INT64_MAX;
    onnx_bytes w = sparse_message(1, &one, 2);
    tensor_says(&w, true, CN_OK, "", "as it should be");
    w = sparse_message(99, &one, 2);
    tensor_says(&w, true, CN_UNSUPPORTED, "no dtype", "an unknown type");
    w = sparse_message(8, &one, 2);
    tensor_says(&w, true, CN_UNSUPPORTED, "no dtype", "texts");
    w = sparse_message(1, NULL, 2);
    tensor_says(&w, true, CN_UNSUPPORTED, "", "no indices");
    w = sparse_message(1, &far, 2);
    tensor_says(&w, true, CN_BAD_INDEX, "", "an index out of range");
    w = sparse_message(1, &one, -2);
    tensor_says(&w, true, CN_BAD_FILE, "impossible", "a negative size");
    w = sparse_message(1, &one, INT64_MAX);
    tensor_says(&w, true, CN_BAD_FILE, "impossible", "a size that overflows");
}

/* ---- results that outlive what they came from ---- */

static void test_results(void)
{
    check_group("results");
    onnx_bytes g = { 0 };
    onnx_node_text(&g, 1, "Shape x -> s", NULL);
    onnx_node_text(&g, 1, "Identity x -> same", NULL);
    onnx_floats_tensor(&g, 5, "w", SIZES(2), (const float[]){ 1, 2 });
    onnx_node_text(&g, 1, "Identity w -> weight", NULL);
    onnx_value_info(&g, 11, "x", 1, SIZES(-1));
    onnx_value_info(&g, 12, "s", 7, SIZES(1));
    onnx_value_info(&g, 12, "same", 1, SIZES(-1));
    onnx_value_info(&g, 12, "weight", 1, SIZES(2));
    onnx_bytes bytes = onnx_model_of(&g, 18);
    cn_module *m = cn_onnx_load_memory(cn, bytes.v, bytes.n);
    onnx_free(&bytes);
    if (!check(m != NULL, "it loads: %s", cn_error(cn))) return;
    cn_tensor *shapes[4];
    for (int i = 0; i < 4; i++) { /* each result is asked for twice; shapes differ, so what was known is replaced */
        cn_scope inner = cn_scope_begin(cn);
        cn_onnx_value in = { .tensor = cn_ones(cn, CN_F32, CN_DIMS(i + 1)) };
        cn_onnx_value out[] = {
            { .name = "s" }, { .name = "same" }, { .name = "weight" }, { .name = "s" }, { .name = "weight" }
        };
        check(cn_onnx_run(m, &in, 1, out, 5), "run %d: %s", i, cn_error(cn));
        check(out[1].tensor && cn_numel(out[1].tensor) == i + 1 && out[2].tensor && cn_numel(out[2].tensor) == 2,
              "run %d", i);
        shapes[i] = cn_scope_return(cn, inner, out[0].tensor);
    }
    for (int i = 0; i < 4; i++)
        check(shapes[i] && cn_item(cn_reshape(shapes[i], CN_SCALAR)) == i + 1, "shape %d stays", i);
    check(cn_module_get(m, "w") != NULL && cn_item(cn_sum(cn_module_get(m, "w"), CN_ALL, false)) == 3,
          "the weight stays");
    cn_module_free(m);
    for (int i = 0; i < 4; i++) check(cn_item(cn_reshape(shapes[i], CN_SCALAR)) == i + 1, "without the module, too");
}

/* A convolution that lacks its weight, or its input, before a normalisation: where no gradients are recorded, both are
   run as one. */
static void test_pairs(void)
{
    check_group("a convolution and a normalisation");
    const char *const convolutions[] = { "Conv -> h",     "Conv x -> h",   "Conv x _ -> h",
                                         "Conv _ s -> h", "Conv x s -> h", "Conv x x x x x x x x x x -> h" };
    const char *const norms[] = { "BatchNormalization h s s s s -> y", "BatchNormalization h s s s x -> y",
                                  "BatchNormalization h _ _ _ _ -> y", "BatchNormalization h h h h h -> y",
                                  "BatchNormalization h s s s s -> y a b c d e f g" };
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions * (sizeof norms / sizeof *norms); i++) {
        onnx_bytes g = { 0 };
        onnx_node_text(&g, 1, convolutions[i % (sizeof convolutions / sizeof *convolutions)], NULL);
        onnx_node_text(&g, 1, norms[i / (sizeof convolutions / sizeof *convolutions)], NULL);
        onnx_floats_tensor(&g, 5, "s", SIZES(2), (const float[]){ 1, 2 });
        onnx_value_info(&g, 11, "x", 1, SIZES(-1));
        onnx_value_info(&g, 12, "y", 1, SIZES(-1));
        onnx_bytes bytes = onnx_model_of(&g, 18);
        cn_module *m = cn_onnx_load_memory(cn, bytes.v, bytes.n);
        onnx_free(&bytes);
        cn_no_grad_begin(cn);
        cn_tensor *y = m ? cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(1, 2, 4, 4))) : NULL;
        cn_no_grad_end(cn);
        check(!y && cn_failed(cn), "pair %d: an error", (int)i);
        cn_error_clear(cn);
        cn_module_free(m);
    }
}

/* ---- lack of memory: every allocation of loading and running fails once ---- */

enum { MOST_PORTS = 4 };

static cn_tensor *ones_for(cn_ctx *ctx, const cn_onnx_port *p)
{
    static const struct {
        const char *name;
        cn_dtype dtype;
    } types[] = { { "int64", CN_I64 }, { "int32", CN_I32 }, { "uint8", CN_U8 },
                  { "int8", CN_I8 },   { "bool", CN_BOOL }, { "double", CN_F64 } };
    cn_dtype t = CN_F32;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(p->type, types[i].name)) t = types[i].dtype;
    cn_dims shape = { .n = p->ndim < 0 ? 0 : p->ndim };
    for (int i = 0; i < shape.n; i++) shape.v[i] = p->shape[i] < 0 ? 2 : p->shape[i];
    return cn_ones(ctx, t, shape);
}

/* Loads and runs; returns how it ended. */
static cn_code load_and_run(cn_ctx *ctx, const unsigned char *v, size_t n)
{
    cn_onnx_port ports[MOST_PORTS];
    cn_onnx_value in[MOST_PORTS] = { 0 }, out[MOST_PORTS] = { 0 };
    cn_module *m = cn_onnx_load_memory(ctx, v, n);
    const int n_in = m ? cn_onnx_inputs(m, ports, MOST_PORTS) : 0, n_out = m ? cn_onnx_outputs(m, NULL, 0) : 0;
    for (int i = 0; i < n_in && i < MOST_PORTS; i++) in[i].tensor = ones_for(ctx, &ports[i]);
    const bool ok = m && n_in <= MOST_PORTS && n_out <= MOST_PORTS && cn_onnx_run(m, in, n_in, out, n_out);
    for (int i = 0; i < n_out && ok; i++)
        if (out[i].tensor) cn_eval(out[i].tensor);
    return cn_error_code(ctx);
}

static void fail_each(const char *name, const unsigned char *v, size_t n)
{
    cn_ctx *whole = cn_open(&(cn_desc){ .threads = 1 });
    const cn_code usual = whole ? load_and_run(whole, v, n) : CN_NO_MEMORY; /* ones may not suit the model */
    cn_close(whole);
    bool done = false;
    for (int64_t at = 1; at < 100000 && !done; at += test_is_quick() ? 13 : 1) {
        faulty f = { .fail_at = at };
        cn_ctx *ctx = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        if (!ctx) continue;
        const cn_code code = load_and_run(ctx, v, n);
        check(code == usual || code == CN_NO_MEMORY, "%s, call %d: %s", name, (int)at, cn_error(ctx));
        done = f.calls < at;
        cn_close(ctx);
        check(f.blocks == 0 && f.bytes == 0, "%s, call %d: %d blocks are left", name, (int)at, (int)f.blocks);
    }
    check(done, "%s: it ends", name);
}

static void test_memory(void)
{
    check_group("lack of memory");
    const char *const names[] = { "if",
                                  "loop11",
                                  "scan9_sum",
                                  "lstm_defaults",
                                  "einsum_sum",
                                  "gemm_all_attributes",
                                  "constant",
                                  "optional_has_element_optional_input",
                                  "reshape_extended_dims",
                                  "sequence_insert_at_back",
                                  "slice_neg_steps",
                                  "split_variable_parts_1d_opset18",
                                  "resize_upsample_scales_nearest",
                                  "qlinearmatmul_2D_uint8_float32" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[1024];
        unsigned char data[8192];
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/onnx/%s.onnx", CAIRN_SOURCE_DIR, names[i]);
        FILE *f = fopen(path, "rb");
        if (!check(f != NULL, "%s is there", path)) continue;
        const size_t n = fread(data, 1, sizeof data, f);
        fclose(f);
        fail_each(names[i], data, n);
    }
}

int main(void)
{
    if (!enter_scratch()) return finish();
    cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1, .memory_limit = (size_t)1 << 30 });
    if (!check(cn != NULL, "a context")) return finish();
    test_attacks();
    test_loops();
    test_functions();
    test_graphs_by_reference();
    test_tensors();
    test_sparse();
    test_results();
    test_pairs();
    test_memory();
    check(!cn_failed(cn), "no error is left: %s", cn_error(cn));
    cn_close(cn);
    return finish();
}
