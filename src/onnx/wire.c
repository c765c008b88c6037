/* The wire format of protobuf: fields of a number, a kind and a value. */
#include "onnx/wire.h"

bool cn__wire_varint(cn__wire *w, uint64_t *value)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 70 && w->at < w->end; shift += 7) {
        const unsigned char byte = *w->at++;
        if (shift < 64) v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        *value = v;
        return true;
    }
    w->bad = true;
    return false;
}

static bool fixed(cn__wire *w, int size, uint64_t *value)
{
    if (cn__wire_left(w) < (size_t)size) {
        w->bad = true;
        return false;
    }
    *value = 0;
    for (int i = size; i-- > 0;) *value = *value << 8 | w->at[i];
    w->at += size;
    return true;
}

static bool bytes(cn__wire *w, cn__wire *out)
{
    uint64_t n;
    if (!cn__wire_varint(w, &n)) return false;
    if (n > cn__wire_left(w)) {
        w->bad = true;
        return false;
    }
    *out = cn__wire_of(w->at, (size_t)n);
    w->at += n;
    return true;
}

bool cn__wire_next(cn__wire *w, cn__field *f)
{
    uint64_t tag;
    if (w->bad || w->at >= w->end || !cn__wire_varint(w, &tag)) return false;
    *f = (cn__field){ .number = (uint32_t)(tag >> 3), .kind = (cn__wire_kind)(tag & 7) };
    if (tag >> 32 || !f->number) return !(w->bad = true);
    switch (f->kind) {
    case CN__WIRE_VARINT: return cn__wire_varint(w, &f->value);
    case CN__WIRE_FIXED64: return fixed(w, 8, &f->value);
    case CN__WIRE_BYTES: return bytes(w, &f->bytes);
    case CN__WIRE_FIXED32: return fixed(w, 4, &f->value);
    default: return !(w->bad = true);
    }
}

int64_t cn__field_count(const cn__field *f, int size)
{
    if (f->kind != CN__WIRE_BYTES)
        return f->kind == (size == 0 ? CN__WIRE_VARINT : size == 4 ? CN__WIRE_FIXED32 : CN__WIRE_FIXED64) ? 1 : -1;
    cn__wire w = f->bytes;
    if (size) return cn__wire_left(&w) % (size_t)size ? -1 : (int64_t)(cn__wire_left(&w) / (size_t)size);
    int64_t n = 0;
    for (uint64_t v; w.at < w.end; n++)
        if (!cn__wire_varint(&w, &v)) return -1;
    return n;
}

void cn__field_numbers(const cn__field *f, int size, uint64_t *out)
{
    if (f->kind != CN__WIRE_BYTES) {
        *out = f->value;
        return;
    }
    cn__wire w = f->bytes;
    while (w.at < w.end && (size ? fixed(&w, size, out) : cn__wire_varint(&w, out))) out++;
}
