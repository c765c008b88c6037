/* onnx_write.h: small ONNX files in memory, for tests: the wire format of protobuf, written by hand.

       onnx_bytes node = { 0 };
       onnx_text(&node, 1, "x");                   field 1, a text
       onnx_number(&model, 1, 8);                  field 1, a number
       onnx_message(&graph, 1, &node);             field 1, a message; node is freed */
#ifndef TESTS_ONNX_WRITE_H
#define TESTS_ONNX_WRITE_H

#include <stddef.h>
#include <stdint.h>

typedef struct onnx_bytes {
    unsigned char *v;
    size_t n, room;
} onnx_bytes;

void onnx_free(onnx_bytes *b);
void onnx_raw(onnx_bytes *b, const void *data, size_t n); /* bytes as they are */
void onnx_number(onnx_bytes *b, int field, int64_t value);
void onnx_float(onnx_bytes *b, int field, float value);
void onnx_data(onnx_bytes *b, int field, const void *data, size_t n);
void onnx_text_field(onnx_bytes *b, int field, const char *text);
void onnx_message(onnx_bytes *b, int field, onnx_bytes *message); /* frees the message */

/* Parts of a graph; sizes end with -2, and -1 is the symbolic axis "n". */
void onnx_value_info(onnx_bytes *graph, int field, const char *name, int type, const int *sizes);
void onnx_floats_tensor(onnx_bytes *graph, int field, const char *name, const int *sizes, const float *v);
void onnx_wholes_tensor(onnx_bytes *graph, int field, const char *name, const int *sizes, const int64_t *v);
/* A node: "Gemm x w b -> y". `attributes` is appended to it, and freed; NULL: none. */
void onnx_node_text(onnx_bytes *graph, int field, const char *words, onnx_bytes *attributes);
void onnx_int_attribute(onnx_bytes *node, const char *name, int64_t value);
/* The graph becomes a model of an operator set; the graph is freed. */
onnx_bytes onnx_model_of(onnx_bytes *graph, int version);

#endif
