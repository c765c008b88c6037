/* A worker's scratch memory, its errors, and rooms: memory for items whose shape varies. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/util.h"
#include "data/data.h"

#define ALIGN       64
#define FIRST_CHUNK ((size_t)64 << 10)

typedef struct cn__chunk {
    struct cn__chunk *next;
    size_t bytes; /* after the header */
} chunk;

static char *memory_of(chunk *c) { return (char *)c + ALIGN; }

static bool add_chunk(cn__arena *a, size_t bytes)
{
    size_t size = a->chunks ? 2 * a->chunks->bytes : FIRST_CHUNK;
    if (size < bytes) size = bytes;
    chunk *c = aligned_alloc(ALIGN, ALIGN + size);
    if (!c) return false;
    *c = (chunk){ a->chunks, size };
    a->chunks = c;
    a->used = 0;
    return true;
}

void *cn__arena_alloc(cn__arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 4) return NULL;
    bytes = cn__round_up_bytes(bytes ? bytes : 1, ALIGN);
    if (!a->chunks || a->chunks->bytes - a->used < bytes) {
        if (!add_chunk(a, bytes)) return NULL;
    }
    void *p = memory_of(a->chunks) + a->used;
    a->used += bytes;
    return p;
}

static void free_chunks(chunk *c)
{
    for (chunk *next; c; c = next) {
        next = c->next;
        free(c);
    }
}

void cn__arena_reset(cn__arena *a)
{
    a->used = 0;
    if (!a->chunks) return;
    free_chunks(a->chunks->next);
    a->chunks->next = NULL;
}

void cn__arena_free(cn__arena *a)
{
    free_chunks(a->chunks);
    *a = (cn__arena){ 0 };
}

bool(cn__fetch_fail)(cn__fetch *f, cn_code code, const char *message, ...)
{
    va_list list;
    va_start(list, message);
    vsnprintf(f->error, sizeof f->error, message, list);
    va_end(list);
    f->code = code;
    return false;
}

bool(cn__fetch_no_memory)(cn__fetch *f) { return cn__fetch_fail(f, CN_NO_MEMORY, "out of memory"); }

/* ---- rooms */

void cn__room_open(cn_room *room, const cn_field *field, cn__arena *from)
{
    *room = (cn_room){ .field = *field, .from = from };
}

void cn__room_close(cn_room *room)
{
    if (!room->from) free(room->data);
    room->data = NULL;
    room->bytes = 0;
}

static bool shape_fits(const cn_field *field, cn_dims shape)
{
    if (shape.n != field->shape.n) return false;
    for (int i = 0; i < shape.n; i++)
        if (shape.v[i] < 0 || (field->shape.v[i] >= 0 && field->shape.v[i] != shape.v[i])) return false;
    return true;
}

void *cn_room_take(cn_room *room, cn_dims shape)
{
    if (!room || !shape_fits(&room->field, shape)) return NULL;
    size_t bytes = cn__shape_bytes(room->field.dtype, shape);
    if (bytes == SIZE_MAX) return NULL;
    if (room->data == NULL || room->bytes < bytes) {
        if (!room->from) free(room->data);
        size_t size = cn__round_up_bytes(bytes ? bytes : 1, ALIGN);
        room->data = room->from ? cn__arena_alloc(room->from, size) : aligned_alloc(ALIGN, size);
        room->bytes = room->data ? size : 0;
    }
    room->shape = shape;
    return room->data;
}
