/* onnx/weights.h: tensors of a file, and of the files beside it that it names. */
#ifndef CN_ONNX_WEIGHTS_H
#define CN_ONNX_WEIGHTS_H

#include "io/files.h"
#include "onnx/model.h"

/* A file with external data, open. */
typedef struct onnx_beside {
    const char *location;
    cn__content *content;
    struct onnx_beside *next;
} onnx_beside;

typedef struct onnx_weights {
    onnx_reader reader;
    cn__content *content; /* the model's own bytes */
    const char *path;     /* of the model; NULL: it comes from memory, and has no files beside it */
    onnx_beside *beside;
} onnx_weights;

/* The tensor in a context: in the model's, it borrows the file's memory where that is possible; otherwise it is a copy.
   NULL: an error is set in the model's context. */
cn_tensor *cn__onnx_tensor(onnx_weights *w, const onnx_tensor *t, cn_ctx *ctx);
cn_tensor *cn__onnx_dense(onnx_weights *w, const onnx_sparse *t, cn_ctx *ctx);
void cn__onnx_weights_close(onnx_weights *w);

/* The dtype that holds elements of a type. False: none does. */
bool cn__onnx_dtype(int type, cn_dtype *out);
const char *cn__onnx_type_name(int type); /* "float16" */

#endif
