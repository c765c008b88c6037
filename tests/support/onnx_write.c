/* Small ONNX files in memory. */
#include "support/onnx_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void onnx_free(onnx_bytes *b)
{
    free(b->v);
    *b = (onnx_bytes){ 0 };
}

void onnx_raw(onnx_bytes *b, const void *data, size_t n)
{
    if (b->n + n > b->room) {
        b->room = 2 * (b->n + n) + 64;
        unsigned char *v = realloc(b->v, b->room);
        if (!v) abort();
        b->v = v;
    }
    if (n) memcpy(b->v + b->n, data, n);
    b->n += n;
}

static void varint(onnx_bytes *b, uint64_t v)
{
    do {
        const unsigned char byte = (unsigned char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        onnx_raw(b, &byte, 1);
    } while (v >>= 7);
}

void onnx_number(onnx_bytes *b, int field, int64_t value)
{
    varint(b, (uint64_t)field << 3);
    varint(b, (uint64_t)value);
}

void onnx_float(onnx_bytes *b, int field, float value)
{
    varint(b, (uint64_t)field << 3 | 5);
    onnx_raw(b, &value, 4);
}

void onnx_data(onnx_bytes *b, int field, const void *data, size_t n)
{
    varint(b, (uint64_t)field << 3 | 2);
    varint(b, n);
    onnx_raw(b, data, n);
}

void onnx_text_field(onnx_bytes *b, int field, const char *text) { onnx_data(b, field, text, strlen(text)); }

void onnx_message(onnx_bytes *b, int field, onnx_bytes *message)
{
    onnx_data(b, field, message->v, message->n);
    onnx_free(message);
}

void onnx_value_info(onnx_bytes *graph, int field, const char *name, int type, const int *sizes)
{
    onnx_bytes shape = { 0 }, tensor = { 0 }, kind = { 0 }, info = { 0 };
    for (; *sizes != -2; sizes++) {
        onnx_bytes dim = { 0 };
        if (*sizes == -1) onnx_text_field(&dim, 2, "n");
        else onnx_number(&dim, 1, *sizes);
        onnx_message(&shape, 1, &dim);
    }
    onnx_number(&tensor, 1, type);
    onnx_message(&tensor, 2, &shape);
    onnx_message(&kind, 1, &tensor);
    onnx_text_field(&info, 1, name);
    onnx_message(&info, 2, &kind);
    onnx_message(graph, field, &info);
}

static void tensor(onnx_bytes *graph, int field, const char *name, const int *sizes, int type, const void *v,
                   size_t size)
{
    onnx_bytes t = { 0 };
    size_t n = 1;
    for (; *sizes != -2; sizes++) {
        onnx_number(&t, 1, *sizes);
        n *= (size_t)*sizes;
    }
    onnx_number(&t, 2, type);
    onnx_text_field(&t, 8, name);
    onnx_data(&t, 9, v, n * size);
    onnx_message(graph, field, &t);
}

void onnx_floats_tensor(onnx_bytes *graph, int field, const char *name, const int *sizes, const float *v)
{
    tensor(graph, field, name, sizes, 1, v, sizeof *v);
}

void onnx_wholes_tensor(onnx_bytes *graph, int field, const char *name, const int *sizes, const int64_t *v)
{
    tensor(graph, field, name, sizes, 7, v, sizeof *v);
}

void onnx_node_text(onnx_bytes *graph, int field, const char *words, onnx_bytes *attributes)
{
    onnx_bytes node = { 0 };
    char copy[256], *rest = copy;
    snprintf(copy, sizeof copy, "%s", words);
    int to = 1;
    char *op = strtok_r(rest, " ", &rest);
    for (char *word; (word = strtok_r(NULL, " ", &rest));) {
        if (!strcmp(word, "->")) to = 2;
        else onnx_text_field(&node, to, strcmp(word, "_") ? word : "");
    }
    char *dot = strrchr(op, '.');
    onnx_text_field(&node, 4, dot ? dot + 1 : op);
    if (dot) onnx_data(&node, 7, op, (size_t)(dot - op));
    if (attributes) onnx_raw(&node, attributes->v, attributes->n);
    if (attributes) onnx_free(attributes);
    onnx_message(graph, field, &node);
}

void onnx_int_attribute(onnx_bytes *node, const char *name, int64_t value)
{
    onnx_bytes a = { 0 };
    onnx_text_field(&a, 1, name);
    onnx_number(&a, 3, value);
    onnx_number(&a, 20, 2);
    onnx_message(node, 5, &a);
}

onnx_bytes onnx_model_of(onnx_bytes *graph, int version)
{
    onnx_bytes model = { 0 }, set = { 0 };
    onnx_number(&model, 1, 8);
    onnx_text_field(&set, 1, "");
    onnx_number(&set, 2, version);
    onnx_message(&model, 8, &set);
    onnx_message(&model, 7, graph);
    return model;
}
