/* onnx/wire.h: a cursor over the bytes of a protobuf message. It allocates nothing and checks every length.

       cn__wire w = cn__wire_of(data, bytes);
       for (cn__field f; cn__wire_next(&w, &f);)
           if (f.number == 1) name = cn__field_bytes(&f);
       if (w.bad) ...                                    a field is cut off, or is of a kind that does not exist

   A repeated number is packed (one field of bytes) or not (a field for each): cn__field_numbers handles both. */
#ifndef CN_ONNX_WIRE_H
#define CN_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cn__wire {
    const unsigned char *at, *end;
    bool bad;
} cn__wire;

typedef enum cn__wire_kind {
    CN__WIRE_VARINT = 0,
    CN__WIRE_FIXED64 = 1,
    CN__WIRE_BYTES = 2,
    CN__WIRE_FIXED32 = 5,
} cn__wire_kind;

typedef struct cn__field {
    uint32_t number;
    cn__wire_kind kind;
    uint64_t value; /* of a varint, or the bits of a fixed number */
    cn__wire bytes; /* CN__WIRE_BYTES: the content */
} cn__field;

static inline cn__wire cn__wire_of(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    return (cn__wire){ p, p ? p + bytes : p, false };
}
static inline size_t cn__wire_left(const cn__wire *w) { return (size_t)(w->end - w->at); }

/* The next field. False: the message has ended, or is bad. */
bool cn__wire_next(cn__wire *w, cn__field *f);
bool cn__wire_varint(cn__wire *w, uint64_t *value);

/* How many numbers of a repeated field this field has. A fixed number has `size` bytes; size 0: varints. -1: bad. */
int64_t cn__field_count(const cn__field *f, int size);
/* Writes them to out, as bits. The caller has made room for cn__field_count of them. */
void cn__field_numbers(const cn__field *f, int size, uint64_t *out);

#endif
