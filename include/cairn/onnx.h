/* cairn/onnx.h: ONNX files as modules: run them, train them further, write them. Any module as an ONNX file.

       cn_module *m = cn_onnx_load(cn, "model.onnx");
       cn_tensor *y = cn_forward(m, x);                                  one input, one result

       cn_onnx_value in[] = { { .name = "ids", .tensor = ids }, { .name = "mask", .tensor = mask } };
       cn_onnx_value out[] = { { .name = "logits" } };
       if (!cn_onnx_run(m, in, 2, out, 1)) fprintf(stderr, "%s\n", cn_error(cn));
       out[0].tensor                                                     belongs to the current scope

       cn_onnx_save(m, CN_TENSORS(x), "tuned.onnx", NULL);               any module, of any layers

   Module     It is a module as any other: cn_parameters, optimizers, cn_module_freeze, cn_save, every device. Floating
              initializers that are used as data are parameters; running statistics, scales of quantisation, single
              numbers of arithmetic and large whole numbers are buffers. They have their ONNX names. If a file has no
              such initializers, its floating Constant nodes of several elements count as initializers. What is small
              and whole, and what only decides shapes, is part of the structure.
   Modes      The module starts with training mode off. In training mode BatchNormalization uses the statistics of
              the batch and updates the running ones, and Dropout drops.
   Shapes     The graph is interpreted at each forward, so symbolic axes may have any size, another one each time. If the
              first axis of an input has another size than the file says, a Reshape to the size that the file says takes
              the size that was given: files that were written for a batch of 1 accept any.
   Versions   Operator sets from 7 on. Functions, If, Loop and Scan, sequences and optionals, data in files beside the
              model.
   Types      Those of Cairn. uint16 becomes i32; uint32 and uint64 become i64. Strings, complex numbers and types of
              less than 8 bits are CN_UNSUPPORTED.
   Memory     The file is mapped: weights whose bytes are aligned are used where they lie (io.h).
   Writing    A module is run once, in evaluation mode and without gradients, and the operators that its forward calls
              become nodes: what a forward decides by an `if` in C or Python is decided as it is for the example.
              Parameters and buffers keep their names. Blocks are written as the standard operators that they mean
              (LayerNormalization, Gelu, LSTM), as far as the operator set has them. A second run, with another size of
              the batch, tells which sizes follow the batch: the file then serves every size. If the two runs call
              different operators, the file serves the size of the example, and the log says so.
              A module that cn_onnx_load made is written as it was read: names, metadata, documentation and attributes
              stay, and only the values of weights are new. The example may be missing then.
              The file appears when it is complete; after an error there is no new file, and an old one is unchanged.
              Random numbers, matrix decompositions and gradients that a forward computes cannot be written.
   Errors     CN_BAD_FILE for damaged files. If operators are missing, CN_UNSUPPORTED names all of them, and how many
              nodes need each. An error in a forward names the node. */
#ifndef CAIRN_ONNX_H
#define CAIRN_ONNX_H

#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

CN_API cn_module *cn_onnx_load(cn_ctx *ctx, const char *path); /* NULL: an error */
/* The same from the bytes of a file, which are copied. There are no files beside it. */
CN_API cn_module *cn_onnx_load_memory(cn_ctx *ctx, const void *data, size_t bytes);
/* The same, with options. */
typedef struct cn_onnx_load_desc {
    const void *data; /* the bytes of the file, which are copied. Then the path only says where files beside it are; it
                         may be NULL */
    size_t bytes;
    bool no_weights;  /* the module has neither parameters nor buffers: cn_onnx_run_with gives them */
} cn_onnx_load_desc;
CN_API cn_module *cn_onnx_load_with(cn_ctx *ctx, const char *path, const cn_onnx_load_desc *desc);

/* An input or a result of the graph. */
typedef struct cn_onnx_value {
    const char *name;        /* NULL: the next one, in the order of the graph */
    cn_tensor *tensor;       /* NULL: a sequence, or an empty optional */
    cn_tensor *const *items; /* of a sequence. Of a result: valid until the next run of the module */
    int n_items;
} cn_onnx_value;
/* Runs the graph. Inputs that are not in the list must have a default in the file. Sets tensor, or items, of the
   results, which belong to the current scope. out may be a part of the graph's results; n_out may be 0. It may also name
   values inside the graph, such as what the last layer reads: what nobody asks for is not computed. */
CN_API bool cn_onnx_run(cn_module *m, const cn_onnx_value *in, int n_in, cn_onnx_value *out, int n_out);
/* The same with other tensors in place of the module's parameters and buffers: all of them, in the order that
   cn_module_named has for a module with weights. Their shapes may differ from the file's, if the graph allows it. In
   training mode running statistics are assigned to the tensors that are given. */
CN_API bool cn_onnx_run_with(cn_module *m, cn_tensor *const *weights, int n_weights, const cn_onnx_value *in, int n_in,
                             cn_onnx_value *out, int n_out);

/* What the file says of an input or a result. Texts and lists are valid as long as the module. */
typedef struct cn_onnx_port {
    const char *name;
    const char *kind;           /* "tensor", "sequence", "optional" or "other" */
    const char *type;           /* of the elements, by ONNX's name: "float", "int64" */
    int ndim;                   /* -1: the file does not say */
    const int64_t *shape;       /* ndim sizes; -1: any size, which has a symbol */
    const char *const *symbols; /* ndim names of axes: "batch", or "" */
    bool has_default;           /* an input that may be left out */
} cn_onnx_port;
/* These write at most `room` ports and return how many there are; 0 also after an error. */
CN_API int cn_onnx_inputs(const cn_module *m, cn_onnx_port *out, int room);
CN_API int cn_onnx_outputs(const cn_module *m, cn_onnx_port *out, int room);
/* The name of the value that the layer of a weight reads: what a new layer in its place gets from cn_onnx_run. NULL: no
   layer has such a weight. Valid as long as the module. */
CN_API const char *cn_onnx_reads(const cn_module *m, const char *weight);
CN_API bool cn_onnx_texts(const cn_module *m, cn_dict *d); /* adds the metadata of the file as texts */

/* Prints what is in a file: producer, versions, inputs, results, weights, operators and how many nodes use them, which
   operators are missing, metadata. It needs no module: the file may use operators that are missing. Returns the length
   of the whole text, 0 after an error. Writes at most size bytes, always ended by 0. */
CN_API size_t cn_onnx_print(cn_ctx *ctx, const char *path, char *out, size_t size);

/* ---- writing ---- */

typedef struct cn_onnx_options {
    int opset;                        /* the operator set to write for, from 13 to 24; 0: 20 */
    const char *const *input_names;   /* one for each input; NULL: "input", or "input_0", "input_1", .. */
    const char *const *output_names;  /* one for each result; NULL: "output", or "output_0", .. */
    int n_outputs;                    /* how many results of the module are written; 0: the first, as of cn_forward */
    bool fixed_batch;                 /* every size is that of the example */
    const int *batch_axes;            /* which axis of each input is the batch; -1: none. NULL: the first of each */
    bool external_data;               /* weights go to a file PATH.data beside the model; above 2 GB they always do */
    const char *graph_name, *doc;     /* NULL: "cairn", none */
    const cn_dict *texts;             /* they become metadata; NULL: none */
    const char *const *symbols;       /* names of the sizes that may vary, in the order of the inputs' axes, at most 4;
                                         NULL: "batch", "size_1", .. */
    int n_symbols;
} cn_onnx_options;
/* Writes the module; in: an example of its inputs. options: NULL for the defaults. The mode of the module stays. If
   operators cannot be written, CN_UNSUPPORTED names all of them, and how often each is called. */
CN_API bool cn_onnx_save(cn_module *m, cn_tensor *const *in, int n_in, const char *path,
                         const cn_onnx_options *options);

/* A graph that the program has traced itself: what it called between cn_onnx_trace_begin and cn_onnx_trace_end.

       cn_onnx_trace_begin(cn);                                          no gradients; nothing is evaluated
       cn_tensor *y = my_model(x);
       cn_onnx_graph g = { .inputs = &x, .n_inputs = 1, .outputs = &y, .n_outputs = 1, .named = named, .n_named = n };
       bool ok = cn_onnx_save_graph(cn, &g, "model.onnx", NULL);
       cn_onnx_trace_end(cn); */
typedef struct cn_onnx_graph {
    cn_tensor *const *inputs;
    int n_inputs;
    cn_tensor *const *outputs;
    int n_outputs;
    /* A second trace of the same with other sizes, n_inputs and n_outputs; NULL: all sizes are fixed. Axes that have the
       same two sizes in the two traces are one size that may vary, such as the batch. Several may vary, at most 4: no two
       of them should grow by the same number or factor. */
    cn_tensor *const *other_inputs, *const *other_outputs;
    const cn_named *named; /* parameters and buffers, and their names in the file */
    int n_named;
    bool *fixed; /* becomes whether the sizes do not follow those of the inputs. Then nothing is written. NULL: then the
                    file has the sizes of the first trace */
} cn_onnx_graph;
CN_API bool cn_onnx_trace_begin(cn_ctx *ctx);
CN_API void cn_onnx_trace_end(cn_ctx *ctx);
/* n_outputs and batch_axes of the options are not used: the graph says them. */
CN_API bool cn_onnx_save_graph(cn_ctx *ctx, const cn_onnx_graph *graph, const char *path,
                               const cn_onnx_options *options);

#ifdef __cplusplus
}
#endif
#endif
