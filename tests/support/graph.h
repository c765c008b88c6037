/* graph.h: random programs over tensors, made from a seed, run in any context, shrunk when they fail.

       graph p;
       graph_make(&p, seed, false);          valid by construction: the model knows shapes, dtypes and lifetimes
       graph_log log;
       graph_run(&p, ctx, &log);             what the program read, in order, or the error it met
       graph_print(&p, stdout);              as pseudo-C

   A program is a list of instructions. Instruction i gives value i (or none, if it is an action such as a read);
   operands are numbers of earlier instructions. Dropping an instruction leaves a hole, so that numbers stay. */
#ifndef TESTS_GRAPH_H
#define TESTS_GRAPH_H

#include <stdio.h>

#include "cairn/cairn.h"
#include "trials/compare.h"

enum { GRAPH_ROOM = 96, GRAPH_IN = 3 };

typedef struct graph_meta {
    cn_dtype dtype;
    cn_dims shape;
    int64_t bound; /* whole numbers known to lie in [0, bound): usable as indices; 0: not known */
} graph_meta;

typedef struct graph_instr {
    const struct graph_op *op; /* NULL: a hole */
    int n_in, in[GRAPH_IN];    /* numbers of values; -1: an optional operand left out */
    int64_t a[4];
    double x[2];
    cn_dims dims, more;
    cn_dtype dtype;
    bool flag;
    bool keep;                 /* cn_keep the result at once */
    uint64_t seed;             /* of the numbers of a leaf */
    graph_meta out;            /* as the model says */
} graph_instr;

typedef struct graph {
    uint64_t seed;
    bool smooth; /* f64 and differentiable everywhere: a function of its parameters */
    bool busy;   /* few shapes, many assignments, gradients and steps: as training does */
    int n;
    graph_instr code[GRAPH_ROOM];
} graph;

/* ---- operators ---- */

/* Which dtypes an elementwise operator takes, and what it gives: see ops/map/classes.h. */
typedef enum graph_class { CLASS_NONE, CLASS_REAL, CLASS_FLOAT, CLASS_NUMBER, CLASS_ANY, CLASS_TEST, CLASS_BITS, CLASS_WHOLE } graph_class;

typedef enum graph_group {
    G_LEAF, G_CREATE, G_UNARY, G_BINARY, G_NUMBER, G_TERNARY, G_CAST, G_VIEW, G_REDUCE, G_BLOCK, G_CONTRACT, G_INDEX, G_SCAN,
    G_JOIN, G_IN_PLACE, G_ASSIGN, G_READ, G_SCOPE, G_KEEP, G_GRAD, GRAPH_GROUPS,
} graph_group;

enum { /* traits */
    OP_VIEW = 1,         /* may share its operand's memory */
    OP_SMOOTH = 2,       /* finite differences find its gradient */
    OP_ACTION = 4,       /* gives no value */
    OP_FIRST_ONLY = 8,   /* a gradient goes to operand 0 alone */
    OP_NO_FIRST = 16,    /* ... or to all but operand 0 */
    OP_CUT = 32,         /* no gradient goes through it */
};

/* What an action does to the model beyond its operands: see graph_model.c. */
typedef enum graph_act {
    ACT_NONE, ACT_PARAM, ACT_SECOND, ACT_IN_PLACE, ACT_ASSIGN, ACT_WRITE, ACT_SET, ACT_READ, ACT_EVAL_ALL, ACT_BEGIN, ACT_END,
    ACT_KEEP, ACT_RELEASE, ACT_BACKWARD, ACT_READ_GRAD, ACT_ZERO_GRAD, ACT_STEP, ACT_NO_GRAD, ACT_WITH_GRAD,
} graph_act;

typedef struct graph_runner graph_runner;
typedef struct graph_maker graph_maker;

typedef struct graph_op {
    const char *name, *form;       /* form: operands 0 1 2, attributes a b c d x y, dims D E, dtype t, flag f: in order of the call */
    graph_group group;
    graph_class class;
    unsigned traits;
    graph_act act;
    int n_in;
    bool (*draw)(graph_maker *m, graph_instr *i);                                          /* operands and attributes at random */
    bool (*rule)(const graph_instr *i, const graph_meta *const *in, graph_meta *out);      /* the result's meta; false: not valid */
    cn_tensor *(*call)(graph_runner *r, const graph_instr *i, cn_tensor *const *in);       /* NULL for actions */
    cn_tensor *(*unary)(cn_tensor *x);
    bool (*unary_)(cn_tensor *x);
    cn_tensor *(*binary)(cn_tensor *x, cn_tensor *y);
    bool (*binary_)(cn_tensor *x, cn_tensor *y);
    cn_tensor *(*number)(cn_tensor *x, double y);
    bool (*number_)(cn_tensor *x, double y);
    cn_tensor *(*reduce)(cn_tensor *x, cn_dims axes, bool keepdim);
    cn_tensor *(*along)(cn_tensor *x, int64_t axis);
} graph_op;

const graph_op *graph_ops(int *count);
const graph_op *graph_op_named(const char *name);

/* ---- rules ---- (graph_rules.c) */

int64_t graph_numel(const cn_dims *d);
bool graph_same_dims(const cn_dims *a, const cn_dims *b);
bool graph_broadcast(const cn_dims *a, const cn_dims *b, cn_dims *out);
#define RULE(name) bool rule_##name(const graph_instr *i, const graph_meta *const *in, graph_meta *out);
#define RULES                                                                                                          \
    RULE(created) RULE(index_leaf) RULE(map) RULE(number) RULE(where) RULE(cast) RULE(same) RULE(transpose) RULE(permute) \
    RULE(reshape) RULE(slice) RULE(select) RULE(narrow) RULE(expand) RULE(squeeze) RULE(unsqueeze) RULE(flip)          \
    RULE(diagonal) RULE(unfold) RULE(triangle) RULE(sum) RULE(mean) RULE(max) RULE(arg) RULE(truth) RULE(logsumexp)    \
    RULE(softmax) RULE(norm) RULE(dropout) RULE(scan) RULE(sort) RULE(topk) RULE(second) RULE(matmul) RULE(linear)     \
    RULE(conv1d) RULE(conv2d) RULE(pool) RULE(cross_entropy) RULE(gather) RULE(index_select) RULE(embedding)           \
    RULE(scatter_add) RULE(index_add) RULE(masked_fill) RULE(cat) RULE(stack) RULE(pad) RULE(repeat) RULE(roll)        \
    RULE(assign) RULE(none) RULE(item) RULE(set) RULE(backward) RULE(in_place) RULE(in_place_number)
RULES
#undef RULE

/* ---- model: what lives, what may be read, where gradients can go ---- (graph_model.c) */

typedef struct graph_node {
    bool source, view, param, needs_grad, replaced, spent;
    int kept;                     /* kept handles that mean it */
    int born;                     /* how many evaluations there had been */
    int n_in, in[GRAPH_IN];
} graph_node;

typedef struct graph_value {
    bool exists, alive, kept, in_scope, has_grad;
    int node, depth;              /* of scopes, where it was made */
    graph_meta meta;
} graph_value;

typedef struct graph_model {
    graph_value v[GRAPH_ROOM];
    graph_node node[2 * GRAPH_ROOM];
    int n, n_nodes, depth, no_grad, evaluations, params;
    int64_t elements;             /* made so far: a measure of the program's size */
} graph_model;

bool graph_accept(graph_model *m, graph_instr *i);    /* as instruction m->n; false: not valid, and m is unchanged */
bool graph_usable(const graph_model *m, int value);   /* can be an operand or read now */
bool graph_tracks(const graph_model *m, int value);   /* a gradient can be sent through it */
bool graph_validate(graph *p, graph_model *end);      /* all of it, from the start */

/* ---- making ---- (graph_make.c, graph_draws.c) */

struct graph_maker {
    graph *p;
    graph_model model;
    uint64_t state;
};

void graph_make(graph *p, uint64_t seed, bool smooth);
uint64_t graph_random(graph_maker *m);
int64_t graph_below(graph_maker *m, int64_t n);                       /* [0, n) */
bool graph_chance(graph_maker *m, int percent);
double graph_real(graph_maker *m, double low, double high);
int graph_pick(graph_maker *m, uint32_t dtypes, int min_dims);        /* a usable value, or -1 */
int graph_leaf(graph_maker *m, cn_dtype dtype, cn_dims shape);        /* one with this meta: found or made; -1: no room */
int graph_index(graph_maker *m, cn_dims shape, int64_t bound);
bool graph_emit(graph_maker *m, graph_instr *i);
const graph_meta *graph_meta_of(const graph_maker *m, int value);
#define DRAW(name) bool draw_##name(graph_maker *m, graph_instr *i);
#define DRAWS                                                                                                          \
    DRAW(leaf) DRAW(param) DRAW(index_leaf) DRAW(created) DRAW(unary) DRAW(binary) DRAW(number) DRAW(where)            \
    DRAW(ternary) DRAW(clamp) DRAW(cast) DRAW(transpose) DRAW(permute) DRAW(reshape) DRAW(slice) DRAW(select)          \
    DRAW(narrow) DRAW(expand) DRAW(squeeze) DRAW(unsqueeze) DRAW(flip) DRAW(diagonal) DRAW(unfold) DRAW(triangle)      \
    DRAW(reduce) DRAW(along) DRAW(norm) DRAW(dropout) DRAW(sort) DRAW(topk) DRAW(second) DRAW(matmul) DRAW(linear)     \
    DRAW(conv1d) DRAW(conv2d) DRAW(pool) DRAW(cross_entropy) DRAW(gather) DRAW(index_select) DRAW(embedding)           \
    DRAW(scatter_add) DRAW(index_add) DRAW(masked_fill) DRAW(join) DRAW(pad) DRAW(repeat) DRAW(roll) DRAW(any)         \
    DRAW(assign) DRAW(set) DRAW(item) DRAW(none) DRAW(keep) DRAW(release) DRAW(backward) DRAW(of_param)                \
    DRAW(binary_in_place) DRAW(number_in_place) DRAW(unary_in_place)
DRAWS
#undef DRAW

/* ---- running ---- (graph_run.c) */

typedef struct graph_log {
    int n;
    struct {
        int at;                  /* instruction; the program's length for what is read at the end */
        const char *what;        /* "value", "gradient", "loss" */
        int value;
        output data;
    } entry[4 * GRAPH_ROOM];
    int failed_at;               /* instruction, or -1 */
    char error[640];
} graph_log;

struct graph_runner {
    cn_ctx *ctx;
    const graph *p;
    graph_log *log;
    cn_tensor *v[GRAPH_ROOM], *second[GRAPH_ROOM];
    bool kept[GRAPH_ROOM];
    cn_scope scope[GRAPH_ROOM];
    int n_scopes;
    cn_tensor *const *inputs;    /* used in place of the parameters, in their order; NULL: none */
    int next_input;
};

bool graph_run(const graph *p, cn_ctx *ctx, graph_log *log); /* log may be reused; false: an error, said in it */
void graph_log_free(graph_log *log);
bool graph_logs_agree(const graph_log *a, const graph_log *b, char *words, size_t size);
cn_tensor *graph_leaf_tensor(cn_ctx *ctx, const graph_instr *i);
/* A smooth program as a function of its parameters (a cn_function, user: the graph). */
cn_tensor *graph_function(void *user, cn_tensor *const *in, int n_in);

/* ---- shrinking and showing ---- (graph_shrink.c) */

typedef bool (*graph_fails)(const graph *p, void *user);
void graph_shrink(graph *p, graph_fails fails, void *user, int tries);
void graph_print(const graph *p, FILE *out);

#endif
