/* onnx/model.h: an ONNX file as structs. cn__onnx_parse makes them from the bytes of the file; weights stay where they
   lie. onnx/graph.c then resolves names: the fields below "resolved" are its work.

   Everything here lies in one cn__bump and is freed with it. Texts are copies that end with 0. */
#ifndef CN_ONNX_MODEL_H
#define CN_ONNX_MODEL_H

#include "core/object.h"
#include "onnx/wire.h"

enum { CN__ONNX_DEPTH = 48 }; /* how deep graphs, types and calls of functions may nest */

/* TensorProto.DataType */
typedef enum onnx_type {
    ONNX_UNDEFINED = 0,
    ONNX_FLOAT = 1,
    ONNX_UINT8 = 2,
    ONNX_INT8 = 3,
    ONNX_UINT16 = 4,
    ONNX_INT16 = 5,
    ONNX_INT32 = 6,
    ONNX_INT64 = 7,
    ONNX_STRING = 8,
    ONNX_BOOL = 9,
    ONNX_FLOAT16 = 10,
    ONNX_DOUBLE = 11,
    ONNX_UINT32 = 12,
    ONNX_UINT64 = 13,
    ONNX_BFLOAT16 = 16,
} onnx_type;

typedef struct onnx_text {
    const char *v; /* ends with 0, and may have a 0 inside only in attributes */
    size_t n;
} onnx_text;

typedef struct onnx_tensor {
    const char *name;
    int type; /* an onnx_type, or another number */
    int ndim;
    int64_t *dims;
    cn__wire body; /* the whole message: typed data are decoded from it */
    cn__wire raw;  /* raw_data */
    bool has_raw, external;
    const char *location; /* external: the file, relative to the model's folder */
    uint64_t offset, length;
    bool has_length;
} onnx_tensor;

/* A dense tensor in place of a sparse one: zeros, and values at indices. */
typedef struct onnx_sparse {
    onnx_tensor values, indices;
    int ndim;
    int64_t *dims;
} onnx_sparse;

typedef enum onnx_shape_kind { ONNX_IS_TENSOR, ONNX_IS_SEQUENCE, ONNX_IS_OPTIONAL, ONNX_IS_OTHER } onnx_shape_kind;

/* TypeProto: of a tensor, or a sequence or optional of `of`. */
typedef struct onnx_typed {
    onnx_shape_kind kind;
    int element; /* an onnx_type */
    bool has_shape;
    int ndim;
    int64_t *dims;        /* -1: symbolic or unknown */
    const char **symbols; /* "batch", or "" */
    const struct onnx_typed *of;
} onnx_typed;

typedef struct onnx_info {
    const char *name;
    const onnx_typed *type; /* or NULL */
} onnx_info;

typedef struct onnx_attr {
    const char *name, *ref; /* ref: the attribute of the calling function that it stands for, or NULL */
    int type;
    float f;
    int64_t i;
    onnx_text s;
    onnx_tensor *t;
    onnx_sparse *sparse;
    struct onnx_graph *g;
    const onnx_typed *tp;
    int n_ints, n_floats, n_strings;
    int64_t *ints;
    float *floats;
    onnx_text *strings;
} onnx_attr;

typedef struct onnx_import {
    const char *domain;
    int64_t version;
} onnx_import;

/* A value by its place: slot of the graph that stands `up` graphs further out. slot -1: absent. */
typedef struct onnx_ref {
    int up, slot;
} onnx_ref;

typedef struct onnx_node {
    const char *name, *op, *domain, *overload;
    int n_in, n_out, n_attr;
    const char **in, **out;
    onnx_attr *attr;
    /* resolved: */
    const struct onnx_row *row; /* the rule, or */
    const struct cn_op *record; /* the elementwise operator of Cairn with the same meaning, or */
    struct onnx_graph *call;    /* the function that it calls */
    int version;                /* of its domain */
    onnx_ref *from;
    int *to; /* -1: nobody asked for this result */
    struct onnx_memo *memo;
    cn_tensor *constant;          /* a large constant, which the module keeps as a buffer */
    int weight;                   /* the number of that buffer; 0: there is none */
    struct onnx_derived *derived; /* weights in another form, or NULL */
    struct onnx_derived *folded;  /* results that depend on weights alone, or NULL */
    struct onnx_node *takes;      /* of a normalisation: the convolution that it runs, or NULL */
    bool taken;                   /* of a convolution: such a normalisation runs it */
} onnx_node;

typedef struct onnx_initializer {
    onnx_tensor *tensor;
    onnx_sparse *sparse;
    /* resolved: */
    int slot, uses;           /* uses: bits of graph.c */
    int weight;               /* its number among the module's parameters and buffers, from 1 on; 0: it is neither */
    struct onnx_known *known; /* its numbers are part of the structure, or */
    cn_tensor *data;          /* a parameter or buffer */
} onnx_initializer;

/* A GraphProto, or the body of a FunctionProto. */
typedef struct onnx_graph {
    const char *name, *domain, *overload; /* the last two: of a function */
    int n_nodes, n_inputs, n_outputs, n_initializers, n_defaults, n_imports;
    onnx_node *nodes;
    onnx_info *inputs, *outputs;
    onnx_initializer *initializers;
    onnx_attr *defaults;  /* of a function: attributes with their default values */
    onnx_import *imports; /* of a function */
    /* resolved: */
    bool resolved;
    int n_slots;
    bool *input_given; /* whether an initializer is the input's default */
    int *input_slots;
    onnx_ref *output_refs;
} onnx_graph;

typedef struct onnx_pair {
    const char *key, *value;
} onnx_pair;

typedef struct onnx_file {
    int64_t ir_version, model_version;
    const char *producer, *producer_version, *domain, *doc;
    int n_imports, n_metadata, n_functions;
    onnx_import *imports;
    onnx_pair *metadata;
    onnx_graph *functions;
    onnx_graph *graph;
} onnx_file;

/* Where a file is read, and its name for errors. */
typedef struct onnx_reader {
    cn_ctx *ctx;
    cn__bump *memory;
    const char *name;
} onnx_reader;

/* False: an error is set. */
bool cn__onnx_parse(const onnx_reader *r, const void *data, size_t bytes, onnx_file *out);
/* The bytes of one TensorProto, as tests and tools have them in files. */
bool cn__onnx_parse_tensor(const onnx_reader *r, cn__wire body, onnx_tensor *out);
__attribute__((format(printf, 3, 4))) bool cn__onnx_fail(const onnx_reader *r, cn_code code, const char *message, ...);
void *cn__onnx_new(const onnx_reader *r, size_t count, size_t size); /* zeroed; NULL: an error is set */

#endif
