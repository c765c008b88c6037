/* onnx/proto.h: fields of protobuf messages, appended to bytes. A failure is remembered in the writer. */
#ifndef CN_ONNX_PROTO_H
#define CN_ONNX_PROTO_H

#include "onnx/put.h"

void cn__proto_raw(onnx_writer *w, cn__vec *to, const void *data, size_t bytes);
void cn__proto_varint(onnx_writer *w, cn__vec *to, uint32_t field, uint64_t value);
void cn__proto_float(onnx_writer *w, cn__vec *to, uint32_t field, float value);
void cn__proto_bytes(onnx_writer *w, cn__vec *to, uint32_t field, const void *data, size_t bytes);
void cn__proto_text(onnx_writer *w, cn__vec *to, uint32_t field, const char *text);
/* The head of a field of bytes, which the caller appends or streams. */
void cn__proto_head(onnx_writer *w, cn__vec *to, uint32_t field, uint64_t bytes);

#endif
