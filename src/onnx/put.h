/* onnx/put.h: what rules for writing are written with. A rule turns one call of Cairn into nodes of ONNX:

       bool cn__write_softmax(onnx_put *c)
       {
           const cn__softmax_attrs *a = c->step->attrs;
           cn__put_int(c, "axis", a->axis);                 attributes come first;
           return GIVE(EMIT("Softmax", OF(0)));             the next node takes them
       }

   A value is a name in the file: an onnx_val. NULL stands for an absent input. After an error every value is NULL, and
   the error is reported at the end. */
#ifndef CN_ONNX_PUT_H
#define CN_ONNX_PUT_H

#include "core/errors.h"
#include "onnx/model.h"
#include "onnx/steps.h"

typedef struct onnx_val {
    const char *name;
    bool fixed; /* an input or a weight: its name stays */
    bool used;
    bool last;     /* the last cells (1,B,H) of an LSTM, in place of those of all steps: write_recurrent.c */
    int64_t steps; /* the number of that step */
} onnx_val;

typedef struct onnx_made {
    const char *op;
    onnx_val **in, **out;
    int n_in, n_out;
    unsigned char *attrs; /* as the file has them */
    size_t attr_bytes;
    bool used;
} onnx_made;

/* A weight, or a large constant. */
typedef struct onnx_stored {
    onnx_val *val;
    cn_tensor *tensor;
} onnx_stored;

/* A small constant, which is a node. */
typedef struct onnx_constant {
    const unsigned char *bytes; /* the TensorProto */
    size_t n;
    onnx_val *val;
} onnx_constant;

typedef struct onnx_missing {
    const char *op, *why; /* why: or NULL, there is no rule */
    int count;
} onnx_missing;

/* A size of the inputs that may vary. */
enum { CN__ONNX_SYMBOLS = 4 };
typedef struct onnx_symbol {
    char name[40];   /* "batch" */
    int64_t size[2]; /* in the two traces */
    onnx_val *input; /* an input that has it, or NULL: no node reads one */
    int64_t axis;    /* there */
    onnx_val *value; /* (1), i64; NULL: not needed so far */
} onnx_symbol;

/* A symbol, or the product of two. */
typedef struct onnx_scale {
    onnx_symbol *by, *with; /* with: or NULL */
    int64_t size[2];
} onnx_scale;

/* One file that is being made. */
typedef struct onnx_writer {
    cn_ctx *ctx;
    int opset;
    cn__bump memory;
    const onnx_trace *trace, *other; /* other: the second trace, or NULL */
    cn__vec nodes;                   /* of onnx_made */
    cn__vec stored;                  /* of onnx_stored */
    cn__vec missing;                 /* of onnx_missing */
    cn__vec constants;               /* of onnx_constant */
    cn__vec attrs;                   /* bytes: the attributes of the next node */
    onnx_symbol symbols[CN__ONNX_SYMBOLS];
    int n_symbols;
    int names;
    bool failed;    /* an error is set */
    bool not_alike; /* a number follows the symbols in a way that cannot be written: they must be fixed */
} onnx_writer;

/* The call of a rule. */
typedef struct onnx_put {
    onnx_writer *w;
    onnx_step *step;
    const onnx_step *twin; /* in the second trace, or NULL */
} onnx_put;

typedef bool onnx_write_rule(onnx_put *put);
typedef bool onnx_write_fits(const onnx_step *s, int opset);

/* A row of write.def: an operator of Cairn and how it is written. */
typedef struct onnx_writing {
    const char *op;
    onnx_write_rule *rule;  /* or */
    const char *expression; /* see put_expression.c */
    int since;              /* the operator set from which on the row holds */
    bool sizes;             /* the rule looks at the twin: attributes and arguments may follow the batch */
    onnx_write_fits *fits;  /* or NULL: every call */
} onnx_writing;
/* table_write.c: the row for a call, or NULL */
const onnx_writing *cn__onnx_writing(const onnx_step *s, int opset);

#define OF(i)           cn__put_operand(c, i)
#define GIVE(v)         cn__put_give(c, 0, v)
#define EMIT(...)       cn__put_node(c, EMIT_COUNT(__VA_ARGS__), __VA_ARGS__)
#define EMIT_COUNT(...) (int)(sizeof((const void *[]){ __VA_ARGS__ }) / sizeof(void *) - 1)

onnx_val *cn__put_operand(onnx_put *c, int i); /* NULL: absent */
bool cn__put_has(const onnx_put *c, int i);
const cn_meta *cn__put_meta(const onnx_put *c, int i);   /* of operand i */
const cn_meta *cn__put_result(const onnx_put *c, int i); /* of result i */
static inline const cn_layout *cn__put_in(const onnx_put *c) { return &cn__put_meta(c, 0)->layout; }
bool cn__put_wanted(const onnx_put *c, int i);      /* whether any step, or the graph, reads result i */
bool cn__put_give(onnx_put *c, int i, onnx_val *v); /* result i is v; false: v is NULL */
/* Whether the first n arguments are the same, bit for bit, in the second trace; also if there is none. */
bool cn__put_same_args(const onnx_put *c, int n);
/* The call cannot be written. The reason is a literal: "steps are not 1". Returns false. */
bool cn__put_refuse(onnx_put *c, const char *why);

/* Attributes of the next node. */
void cn__put_int(onnx_put *c, const char *name, int64_t v);
void cn__put_float(onnx_put *c, const char *name, double v);
void cn__put_text(onnx_put *c, const char *name, const char *v);
void cn__put_ints(onnx_put *c, const char *name, const int64_t *v, int n);
void cn__put_texts(onnx_put *c, const char *name, const char *const *v, int n);

/* A node: op, then n inputs (NULL: absent). Returns its only result. */
onnx_val *cn__put_node(onnx_put *c, int n, const char *op, ...);
/* The same with a list of inputs, and several results. False: no memory. */
bool cn__put_nodes(onnx_put *c, const char *op, onnx_val *const *in, int n_in, onnx_val **out, int n_out);

/* Constants. */
onnx_val *cn__put_number(onnx_put *c, cn_dtype t, double v); /* without axes */
onnx_val *cn__put_whole(onnx_put *c, int64_t v);             /* (1), i64 */
onnx_val *cn__put_wholes(onnx_put *c, const int64_t *v, int n);
onnx_val *cn__put_constant(onnx_put *c, cn_dtype t, cn_dims shape, const void *data);
onnx_val *cn__put_filled(onnx_put *c, cn_dtype t, cn_dims shape, double v);

/* Numbers that may follow the batch: a[] in the first trace, b[] in the second (NULL: they do not). (n), i64. */
onnx_val *cn__put_sizes(onnx_put *c, const int64_t *a, const int64_t *b, int n);
/* The value of a plain number, which may follow the batch too. */
onnx_val *cn__put_plain(onnx_put *c, const onnx_step *s, const onnx_step *twin);

/* What differs between operator sets. */
onnx_val *cn__put_cast(onnx_put *c, onnx_val *x, cn_dtype to);
onnx_val *cn__put_reduce(onnx_put *c, const char *op, onnx_val *x, const int64_t *axes, int n, bool keepdim);
onnx_val *cn__put_transpose(onnx_put *c, onnx_val *x, const int64_t *order, int n);
onnx_val *cn__put_unsqueeze(onnx_put *c, onnx_val *x, int64_t axis);
onnx_val *cn__put_squeeze(onnx_put *c, onnx_val *x, int64_t axis);
onnx_val *cn__put_slice(onnx_put *c, onnx_val *x, int64_t axis, int64_t start, int64_t end, int64_t step);
onnx_val *cn__put_join(onnx_put *c, int64_t axis, onnx_val *const *v, int n);
int cn__onnx_type_of(cn_dtype t); /* TensorProto.DataType */

/* put_expression.c: an expression in x, y, z (the operands) and p0, p1 (the arguments). NULL after an error. */
onnx_val *cn__put_expression(onnx_put *c, const char *text);

/* put.c, for the writer. */
bool cn__put_scale(onnx_writer *w, int i, onnx_scale *out); /* the i-th one; false: there are fewer */
onnx_val *cn__put_value(onnx_writer *w, const char *name);  /* NULL name: a new one */

#define RULE(op, rule, ...) bool cn__write_##rule(onnx_put *c);
#define EXPRESSION(...)
#include "onnx/write.def"
#undef RULE
#undef EXPRESSION

/* ---- write.c ---- */

extern const cn_onnx_options cn__onnx_usual_options;
bool cn__onnx_check_options(cn_ctx *ctx, const char *path, const cn_onnx_options *o); /* false: an error is set */
bool cn__onnx_check_list(cn_ctx *ctx, cn_tensor *const *t, int n, int least, const char *what);
/* Writes a graph, in a trace that is open. *fixed: the two traces differ, so that nothing was written. */
bool cn__onnx_write_graph(cn_ctx *ctx, const cn_onnx_graph *g, const char *path, const cn_onnx_options *o, bool *fixed);

/* ---- files: write_file.c ---- */

typedef struct onnx_port_out {
    const onnx_val *val;
    cn_dtype dtype;
    int ndim;
    int64_t shape[CN_MAX_DIMS], other[CN_MAX_DIMS]; /* other: in the second trace */
} onnx_port_out;

typedef struct onnx_model_out {
    const onnx_port_out *inputs, *outputs;
    int n_inputs, n_outputs;
    const cn_onnx_options *options;
} onnx_model_out;
bool cn__onnx_write_file(onnx_writer *w, const onnx_model_out *m, const char *path);

#endif
