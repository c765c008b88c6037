/* onnx/run.h: how a graph is run: values, frames of names, calls of rules.

   A graph is interpreted at every forward: each node calls its rule, and the rule makes nodes of Cairn. Shapes come
   from the tensors of this forward, so one import serves every batch size.

   value    A tensor, a sequence of values, or nothing (an absent input, an empty optional). An optional that holds
            something is that thing.
   known    A small tensor whose numbers are known on the CPU before anything is evaluated: a constant, a shape, and
            what is computed from these. It lives in the model's second context, `host`, which is always on the CPU. A
            node whose inputs are all known is run there, by the same rule. So the sizes that Reshape and Slice ask
            for never wait for a device. Where a known value meets data, it is copied to the model's context.
   memo     A node's known results, with the known inputs that they came from. While these are the same, they are
            reused: a second forward with the same shapes computes no shape.
   frame    The values of one run of one graph. A body of If, Loop and Scan has a frame of its own, whose `outer` is the
            frame of the graph around it. A function's frame has no outer one, but the node that called it: the
            function's attributes stand there. */
#ifndef CN_ONNX_RUN_H
#define CN_ONNX_RUN_H

#include "cairn/cairn.h"
#include "onnx/weights.h"

enum {
    CN__ONNX_KNOWN = 4096,    /* known values have at most so many elements */
    CN__ONNX_WORK = 1 << 24,  /* nodes of one forward, with those of loops and functions: files may loop for ever */
    CN__ONNX_GRAPH_WORK = 64, /* what a run of a graph counts beside its nodes */
    CN__ONNX_LIST = 1 << 30,  /* bytes of a list that a rule makes: a file may ask for any size */
};

typedef struct onnx_known {
    cn_tensor *host; /* in the host context; kept if `lasts` */
    cn_tensor *data; /* the same in the model's context, or NULL: not needed so far */
    uint64_t stamp;  /* another one for every content */
    bool lasts;      /* beyond this forward */
} onnx_known;

typedef enum onnx_kind { ONNX_NOTHING, ONNX_TENSOR, ONNX_SEQUENCE } onnx_kind;

typedef struct onnx_value {
    onnx_kind kind;
    cn_tensor *data;        /* in the model's context, or NULL if it is only known */
    onnx_known *known;      /* or NULL */
    bool fixed;             /* data is a weight, or depends on weights and constants alone; the model keeps it */
    struct onnx_list *list; /* of a sequence */
} onnx_value;

typedef struct onnx_list {
    int n;
    onnx_value *v;
} onnx_list;

typedef struct onnx_memo {
    uint64_t run; /* the forward in which it was used last */
    bool filled;
    uint64_t *stamps; /* of the inputs */
    cn_dims shape;    /* of Shape and Size: of the input */
    onnx_known *out;
} onnx_memo;

/* What was made of weights alone: a weight in the form that a rule needs, or a node's result. It is kept where no
   gradients are recorded, as long as the weights have the same values. */
enum { CN__ONNX_DERIVED = 8, CN__ONNX_SOURCES = 6 };
typedef struct onnx_form {
    struct cn__node *source[CN__ONNX_SOURCES]; /* the values that it was made from; counted */
    cn_tensor *made;
    int filled; /* how often it was made */
} onnx_form;
typedef struct onnx_derived {
    onnx_form form[CN__ONNX_DERIVED];
} onnx_derived;

typedef struct onnx_frame {
    const onnx_graph *graph;
    onnx_value *v;
    struct onnx_frame *outer;
    const onnx_node *caller; /* of a function */
    struct onnx_frame *caller_frame;
} onnx_frame;

/* Forwards that were recorded: replay.c. */
typedef struct onnx_replays onnx_replays;

/* What a module of ONNX is: the data of cn_module. */
typedef struct onnx_model {
    cn_module *module;
    cn_ctx *ctx, *host;
    cn__bump memory;
    onnx_file file;
    onnx_weights weights;
    char *path;
    uint64_t runs, stamps;
    bool running;
    int n_weights;         /* parameters and buffers */
    bool no_weights;       /* the module does not hold them: each run is given all of them */
    onnx_replays *replays; /* or NULL */
    cn__bump results;      /* sequences that cn_onnx_run returned last */
} onnx_model;

/* The inputs and results of a forward, and their numbers in the graph. */
enum { CN__ONNX_PORTS = 16 };
typedef struct onnx_ports {
    int n_in, n_out;
    int in_at[CN__ONNX_PORTS], out_at[CN__ONNX_PORTS];
    cn_tensor *in[CN__ONNX_PORTS];
    cn_tensor *const *weights; /* of this run; NULL: the module's own */
} onnx_ports;

/* One forward. */
typedef struct onnx_run {
    onnx_model *model;
    cn__bump memory; /* lists, frames, values known in this forward only */
    int depth;
    int64_t work;                        /* nodes so far */
    bool folds;                          /* nothing is recorded: what depends on weights alone is kept */
    onnx_value absent;                   /* what an absent input is */
    cn_tensor *const *weights;           /* in place of the module's parameters and buffers; or NULL */
    int64_t batch_declared, batch_given; /* the first axis of an input that has another size than the file says; or 0 */
} onnx_run;

/* The call of a rule. */
typedef struct onnx_call {
    onnx_run *run;
    onnx_frame *frame;
    onnx_node *node;
    cn_ctx *ctx; /* where the rule makes its tensors: the model's or the host's */
    int version; /* of the operator set */
    int n_in, n_out;
    onnx_value **in;        /* an absent one is of kind ONNX_NOTHING */
    onnx_value *out;        /* to fill */
    struct onnx_call *norm; /* of a convolution: the normalisation that its weights take over, or NULL */
} onnx_call;

typedef bool onnx_rule(onnx_call *c);

enum {
    ONNX_CONTROL = 1,    /* gets its inputs as they are: known ones are not a reason to run on the host */
    ONNX_SHAPE = 2,      /* looks at the shape of its input only: the result is known */
    ONNX_RANDOM = 4,     /* is never run on the host, and never remembered */
    ONNX_ARITHMETIC = 8, /* elementwise: a single number beside data is a constant, not a parameter */
};

/* A row of the table: an ONNX operator and its rule. */
typedef struct onnx_row {
    const char *op, *domain;
    onnx_rule *rule;
    int needs;      /* inputs that must be there */
    uint32_t known; /* bit i: input i is structure (a shape, axes, a limit), no data that can be trained */
    uint32_t state; /* bit i: input i is data that is not trained, such as running statistics */
    int flags;
} onnx_row;

/* onnx.c: the model of a module that cn_onnx_load made; NULL: of any other. */
onnx_model *cn__onnx_imported(const cn_module *module);

/* table.c: the row for an operator, or NULL. */
const onnx_row *cn__onnx_row(const char *domain, const char *op);
/* table.c: the elementwise operator of Cairn whose record names this operator of ONNX, or NULL. */
const cn_op *cn__onnx_record(const char *domain, const char *op);
/* graph.c: resolves names, finds rules, makes parameters; false: an error is set. */
bool cn__onnx_resolve(onnx_model *m);
/* fold.c: frees what was made of weights; pairs convolutions with the normalisation behind them. */
void cn__onnx_forget(onnx_node *node);
bool cn__onnx_pair_norms(const onnx_reader *r, onnx_graph *g);
/* fold.c: whether a value can be changed by nobody else: what is made of it may be kept. */
bool cn__onnx_lasts(const cn_tensor *t);
/* fold.c: lets kernels keep a weight in other forms. */
void cn__onnx_fix(cn_tensor *weight);
/* fold.c: whether all inputs are weights or constants. Then its results are found (false: there are none), or kept. */
bool cn__onnx_is_fixed(const onnx_call *c);
bool cn__onnx_unfold(onnx_call *c);
bool cn__onnx_fold(onnx_call *c);
bool cn__onnx_can_take(const onnx_call *c, const onnx_call *norm);
/* replay.c: repeats a forward that was recorded for inputs of these shapes, while the weights have the same values.
   False in *found: there is none. */
bool cn__onnx_replay(onnx_model *m, const onnx_ports *at, cn_onnx_value *out, bool *found);
/* replay.c: after a forward that has only made nodes: evaluates its results, if it is the time to record it. */
bool cn__onnx_note_forward(onnx_model *m, const onnx_ports *at, cn_onnx_value *out);
void cn__onnx_replays_free(onnx_model *m);
/* run.c */
bool cn__onnx_run_graph(onnx_run *run, onnx_frame *frame);
/* Counts n steps of what a file may repeat as often as it likes. False: the forward has had CN__ONNX_WORK of them. */
bool cn__onnx_work(onnx_run *run, int64_t n);
/* A graph of an attribute, in a frame inside `outer`; in and out are values. */
bool cn__onnx_body(onnx_call *c, onnx_graph *g, const onnx_value *in, int n_in, onnx_value *out, int n_out);
onnx_known *cn__onnx_known_new(onnx_run *run, cn_tensor *host);
/* The parameter or buffer of a number > 0; own: the module's. */
static inline cn_tensor *cn__onnx_weight(const onnx_run *run, cn_tensor *own, int number)
{
    return run->weights ? run->weights[number - 1] : own;
}
cn_tensor *cn__onnx_data(onnx_model *m, onnx_value *v); /* the value in the model's context; NULL: an error */
/* Moves an error of the host's context to the model's. Returns false if there is an error. */
bool cn__onnx_checked(onnx_model *m);
void *cn__onnx_run_new(onnx_run *run, size_t count, size_t size); /* memory of this forward, zeroed; NULL: an error */

#endif
