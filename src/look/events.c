/* Writes TensorBoard's event files as protocol buffers. The messages, with the numbers of their fields:
       Event        1 wall_time double · 2 step int64 · 3 file_version string · 5 summary · 7 session_log
       Summary      1 value, repeated          Value       1 tag string · 2 simple_value float
       SessionLog   1 status enum: 1 is START */
#include <string.h>

#include "look/events.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum { MOST_NAME = 1024, MESSAGE = MOST_NAME + 128 };

/* ---- checksums ---- */

/* CRC-32C, a bit at a time: messages are short. */
uint32_t cn__crc32c(const void *data, size_t n)
{
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        c ^= ((const unsigned char *)data)[i];
        for (int b = 0; b < 8; b++) c = c >> 1 ^ (0x82f63b78u & (0u - (c & 1)));
    }
    return ~c;
}

uint32_t cn__crc32c_masked(const void *data, size_t n)
{
    const uint32_t c = cn__crc32c(data, n);
    return (c >> 15 | c << 17) + 0xa282ead8u;
}

/* ---- protocol buffers ---- */

typedef struct message {
    unsigned char v[MESSAGE];
    size_t n;
} message;

static void append_fixed(message *m, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++) m->v[m->n++] = (unsigned char)(x >> 8 * i);
}

static void append_varint(message *m, uint64_t x)
{
    for (; x >= 0x80; x >>= 7) m->v[m->n++] = (unsigned char)(x | 0x80);
    m->v[m->n++] = (unsigned char)x;
}

static void append_tag(message *m, int field, int type) { append_varint(m, (uint64_t)(field << 3 | type)); }

static void append_double(message *m, int field, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    append_tag(m, field, FIXED64);
    append_fixed(m, bits, 8);
}

static void append_float(message *m, int field, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    append_tag(m, field, FIXED32);
    append_fixed(m, bits, 4);
}

static void append_bytes(message *m, int field, const void *data, size_t n)
{
    append_tag(m, field, BYTES);
    append_varint(m, n);
    memcpy(m->v + m->n, data, n);
    m->n += n;
}

static message event_at(double time, int64_t step)
{
    message m = { .n = 0 };
    append_double(&m, 1, time);
    append_tag(&m, 2, VARINT);
    append_varint(&m, (uint64_t)step);
    return m;
}

/* ---- records ---- */

static bool write_record(FILE *f, const message *m)
{
    message head = { .n = 0 }, foot = { .n = 0 };
    append_fixed(&head, m->n, 8);
    append_fixed(&head, cn__crc32c_masked(head.v, 8), 4);
    append_fixed(&foot, cn__crc32c_masked(m->v, m->n), 4);
    return fwrite(head.v, 1, head.n, f) == head.n && fwrite(m->v, 1, m->n, f) == m->n &&
           fwrite(foot.v, 1, foot.n, f) == foot.n;
}

bool cn__events_begin(FILE *f, double time)
{
    static const char version[] = "brain.Event:2";
    message m = { .n = 0 };
    append_double(&m, 1, time);
    append_bytes(&m, 3, version, sizeof version - 1);
    return write_record(f, &m);
}

bool cn__events_restart(FILE *f, double time, int64_t step)
{
    message m = event_at(time, step), session = { .n = 0 };
    append_tag(&session, 1, VARINT);
    append_varint(&session, 1);
    append_bytes(&m, 7, session.v, session.n);
    return write_record(f, &m);
}

bool cn__events_scalar(FILE *f, double time, int64_t step, const char *name, double value)
{
    if (strlen(name) > MOST_NAME) return false;
    message m = event_at(time, step), one = { .n = 0 }, summary = { .n = 0 };
    append_bytes(&one, 1, name, strlen(name));
    append_float(&one, 2, (float)value);
    append_bytes(&summary, 1, one.v, one.n);
    append_bytes(&m, 5, summary.v, summary.n);
    return write_record(f, &m);
}
