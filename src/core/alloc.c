/* The memory of a context: pools of blocks, growing arrays, and memory that is freed all at once. */
#include "core/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_FIRST 4096
#define CHUNK_LAST  (64 * 1024)

/* The head of memory that smaller pieces are cut from. */
typedef struct chunk {
    struct chunk *next;
    size_t bytes;
} chunk;

static void *libc_resize(void *user, void *p, size_t old_bytes, size_t new_bytes)
{
    (void)user, (void)old_bytes;
    if (new_bytes == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, new_bytes);
}

void cn__memory_open(cn__memory *m, const cn_allocator *a)
{
    memset(m, 0, sizeof *m);
    m->allocator = *a;
    if (!m->allocator.resize) m->allocator.resize = libc_resize;
}

static size_t large_bytes(int class) { return (size_t)4096 << class; }

#define LARGEST_BLOCK ((size_t)4096 << (CN__LARGE_CLASSES - 1))

static int large_class(size_t bytes)
{
    int class = 0;
    while (class < CN__LARGE_CLASSES && large_bytes(class) < bytes) class ++;
    return class;
}

void cn__memory_close(cn__memory *m)
{
    for (int class = 0; class < CN__LARGE_CLASSES; class ++) {
        for (void *p = m->free_large[class], *next; p; p = next) {
            next = *(void **)p;
            cn__resize(m, p, large_bytes(class), 0);
        }
        m->free_large[class] = NULL;
    }
    if (m->heir) *m->heir = m->chunks;
    else cn__chunks_free(&m->allocator, m->chunks);
    m->chunks = NULL;
}

void cn__chunks_free(const cn_allocator *a, void *chunks)
{
    for (chunk *s = chunks, *next; s; s = next) {
        next = s->next;
        a->resize(a->user, s, s->bytes, 0);
    }
}

void *cn__resize(cn__memory *m, void *p, size_t old_bytes, size_t new_bytes)
{
    if (new_bytes) m->calls++;
    if (!m->thread) return m->allocator.resize(m->allocator.user, p, old_bytes, new_bytes);
    void *was = atomic_exchange(m->thread, (void *)m->thread); /* it must not use the context: cn__shut */
    p = m->allocator.resize(m->allocator.user, p, old_bytes, new_bytes);
    atomic_store(m->thread, was);
    return p;
}

static size_t class_of(size_t bytes) { return (bytes + CN__BLOCK - 1) / CN__BLOCK; }

/* The first chunk of a size is small: a context that needs few blocks of that size touches little memory. */
static bool add_chunk(cn__memory *m, size_t class)
{
    const size_t grown = (size_t)CHUNK_FIRST << m->chunks_of[class], bytes = grown < CHUNK_LAST ? grown : CHUNK_LAST;
    chunk *s = cn__resize(m, NULL, 0, bytes);
    if (!s) return false;
    s->next = m->chunks;
    s->bytes = bytes;
    m->chunks = s;
    if (grown < CHUNK_LAST) m->chunks_of[class]++;
    size_t step = class * CN__BLOCK;
    char *p = (char *)s + sizeof *s, *end = (char *)s + bytes;
    p += (CN__LINE - (uintptr_t)p % CN__LINE) % CN__LINE;
    for (; p + step <= end; p += step) {
        *(void **)p = m->free_blocks[class];
        m->free_blocks[class] = p;
    }
    return true;
}

static void *large_new(cn__memory *m, size_t bytes)
{
    int class = large_class(bytes);
    if (class == CN__LARGE_CLASSES) return cn__resize(m, NULL, 0, bytes);
    void *p = m->free_large[class];
    if (!p) return cn__resize(m, NULL, 0, large_bytes(class));
    m->free_large[class] = *(void **)p;
    return p;
}

static void large_free(cn__memory *m, void *p, size_t bytes)
{
    int class = large_class(bytes);
    if (class == CN__LARGE_CLASSES) {
        cn__resize(m, p, bytes, 0);
        return;
    }
    *(void **)p = m->free_large[class];
    m->free_large[class] = p;
}

void *cn__block_new(cn__memory *m, size_t bytes)
{
    size_t class = class_of(bytes ? bytes : 1);
    if (class > CN__BLOCK_CLASSES) return large_new(m, bytes);
    if (!m->free_blocks[class] && !add_chunk(m, class)) return NULL;
    void *p = m->free_blocks[class];
    m->free_blocks[class] = *(void **)p;
    return p;
}

void cn__block_free(cn__memory *m, void *p, size_t bytes)
{
    if (!p) return;
    size_t class = class_of(bytes ? bytes : 1);
    if (class > CN__BLOCK_CLASSES) {
        large_free(m, p, bytes);
        return;
    }
    *(void **)p = m->free_blocks[class];
    m->free_blocks[class] = p;
}

bool cn__vec_reserve(cn__memory *m, cn__vec *a, size_t n, size_t element)
{
    if (n <= a->capacity) return true;
    size_t capacity = a->capacity ? a->capacity : 64;
    while (capacity < n) capacity += capacity * element < LARGEST_BLOCK ? capacity : capacity / 2;
    if (a->capacity * element > LARGEST_BLOCK) { /* the allocator may move it without a copy */
        void *v = cn__resize(m, a->v, a->capacity * element, capacity * element);
        if (!v) return false;
        a->v = v;
        a->capacity = capacity;
        return true;
    }
    void *v = cn__block_new(m, capacity * element);
    if (!v) return false;
    if (a->v) memcpy(v, a->v, a->capacity * element);
    cn__block_free(m, a->v, a->capacity * element);
    a->v = v;
    a->capacity = capacity;
    return true;
}

void cn__vec_free(cn__memory *m, cn__vec *a, size_t element)
{
    cn__block_free(m, a->v, a->capacity * element);
    *a = (cn__vec){ 0 };
}

void *cn__bump_new(cn__memory *m, cn__bump *b, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (b->used + bytes > b->size) {
        size_t room = b->size ? b->size * 2 : 2048;
        if (room > 1 << 20) room = 1 << 20;
        if (room < bytes + sizeof(chunk)) room = bytes + sizeof(chunk);
        chunk *s = cn__resize(m, NULL, 0, room);
        if (!s) return NULL;
        s->next = b->chunks;
        s->bytes = room;
        b->chunks = s;
        b->used = sizeof(chunk);
        b->size = room;
    }
    void *p = (char *)b->chunks + b->used;
    b->used += bytes;
    return memset(p, 0, bytes);
}

void cn__bump_free(cn__memory *m, cn__bump *b)
{
    for (chunk *s = b->chunks, *next; s; s = next) {
        next = s->next;
        cn__resize(m, s, s->bytes, 0);
    }
    *b = (cn__bump){ 0 };
}
