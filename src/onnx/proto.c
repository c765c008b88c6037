/* Fields of protobuf messages. */
#include "onnx/proto.h"

void cn__proto_raw(onnx_writer *w, cn__vec *to, const void *data, size_t bytes)
{
    if (w->failed || !bytes) return;
    if (!cn__vec_reserve(&w->ctx->memory, to, to->n + bytes, 1)) {
        w->failed = true;
        cn__no_memory(w->ctx, "onnx_save");
        return;
    }
    memcpy((char *)to->v + to->n, data, bytes);
    to->n += bytes;
}

static void number(onnx_writer *w, cn__vec *to, uint64_t v)
{
    unsigned char out[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) out[n++] = (unsigned char)(v | 0x80);
    out[n++] = (unsigned char)v;
    cn__proto_raw(w, to, out, n);
}

void cn__proto_varint(onnx_writer *w, cn__vec *to, uint32_t field, uint64_t value)
{
    number(w, to, (uint64_t)field << 3 | CN__WIRE_VARINT);
    number(w, to, value);
}

void cn__proto_float(onnx_writer *w, cn__vec *to, uint32_t field, float value)
{
    number(w, to, (uint64_t)field << 3 | CN__WIRE_FIXED32);
    cn__proto_raw(w, to, &value, sizeof value);
}

void cn__proto_head(onnx_writer *w, cn__vec *to, uint32_t field, uint64_t bytes)
{
    number(w, to, (uint64_t)field << 3 | CN__WIRE_BYTES);
    number(w, to, bytes);
}

void cn__proto_bytes(onnx_writer *w, cn__vec *to, uint32_t field, const void *data, size_t bytes)
{
    cn__proto_head(w, to, field, bytes);
    cn__proto_raw(w, to, data, bytes);
}

void cn__proto_text(onnx_writer *w, cn__vec *to, uint32_t field, const char *text)
{
    cn__proto_bytes(w, to, field, text, strlen(text));
}
