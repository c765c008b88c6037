/* cairn/onnx.h: ONNX files as modules: run them, train them further.

       cn_module *m = cn_onnx_load(cn, "model.onnx");
       cn_tensor *y = cn_forward(m, x);                                  one input, one result

       cn_onnx_value in[] = { { .name = "ids", .tensor = ids }, { .name = "mask", .tensor = mask } };
       cn_onnx_value out[] = { { .name = "logits" } };
       if (!cn_onnx_run(m, in, 2, out, 1)) fprintf(stderr, "%s\n", cn_error(cn));
       out[0].tensor                                                     belongs to the current scope

   Module     It is a module as any other: cn_parameters, optimizers, cn_module_freeze, cn_save, every device. Floating
              initializers that are used as data are parameters; running statistics, scales of quantisation, single
              numbers of arithmetic and large whole numbers are buffers. They have their ONNX names. What is small
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

/* An input or a result of the graph. */
typedef struct cn_onnx_value {
    const char *name;        /* NULL: the next one, in the order of the graph */
    cn_tensor *tensor;       /* NULL: a sequence, or an empty optional */
    cn_tensor *const *items; /* of a sequence. Of a result: valid until the next run of the module */
    int n_items;
} cn_onnx_value;
/* Runs the graph. Inputs that are not in the list must have a default in the file. Sets tensor, or items, of the
   results, which belong to the current scope. out may be a part of the graph's results; n_out may be 0. */
CN_API bool cn_onnx_run(cn_module *m, const cn_onnx_value *in, int n_in, cn_onnx_value *out, int n_out);

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

/* Prints what is in a file: producer, versions, inputs, results, weights, operators and how many nodes use them, which
   operators are missing, metadata. It needs no module: the file may use operators that are missing. Returns the length
   of the whole text, 0 after an error. Writes at most size bytes, always ended by 0. */
CN_API size_t cn_onnx_print(cn_ctx *ctx, const char *path, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
