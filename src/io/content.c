/* Opens files for loading: maps them, or reads them where they cannot be mapped. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/errors.h"
#include "io/files.h"

static bool fail_errno(cn_ctx *ctx, const char *path, int error)
{
    return cn__fail(ctx, error == ENOMEM ? CN_NO_MEMORY : CN_BAD_FILE, "load %.300s: %s", path, strerror(error));
}

bool(cn__source_fail)(const cn__source *s, cn_code code, const char *message, ...)
{
    char text[400];
    va_list list;
    va_start(list, message);
    vsnprintf(text, sizeof text, message, list);
    va_end(list);
    return cn__fail(s->ctx, code, "load %.200s: %s", s->name, text);
}

static cn__content *content_new(cn_ctx *ctx)
{
    cn__content *c = cn__alloc(ctx, sizeof *c);
    if (c) *c = (cn__content){ .ctx = ctx, .refs = 1 };
    return c;
}

cn__content *cn__content_new(cn_ctx *ctx, size_t bytes)
{
    cn__content *c = content_new(ctx);
    if (!c) return NULL;
    c->bytes = bytes;
    c->room = bytes ? bytes : 1;
    c->data = cn__alloc(ctx, c->room);
    if (c->data) return c;
    c->room = 0;
    cn__content_release(c);
    return NULL;
}

void cn__content_release(void *content)
{
    cn__content *c = content;
    if (!c || --c->refs > 0) return;
    if (c->mapped) munmap(c->data, c->bytes);
    else cn__free(c->ctx, c->data, c->room);
    cn__free(c->ctx, c, sizeof *c);
}

/* The mapping is private: a write to this memory changes a copy of the page, never the file. */
static bool map(cn__content *c, int file, size_t bytes)
{
    void *p = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : MAP_FAILED;
    if (p == MAP_FAILED) return false;
    c->data = p;
    c->bytes = bytes;
    c->mapped = true;
    return true;
}

static bool grow(cn__content *c, const char *path)
{
    size_t room = c->room ? c->room * 2 : 1 << 16;
    void *p = cn__resize(&c->ctx->memory, c->data, c->room, room);
    if (!p) return fail_errno(c->ctx, path, ENOMEM);
    c->data = p;
    c->room = room;
    return true;
}

/* For pipes, and where mapping fails: reads to the end, whatever the length. */
static bool read_all(cn__content *c, int file, const char *path)
{
    for (;;) {
        if (c->bytes == c->room && !grow(c, path)) return false;
        ssize_t n = read(file, c->data + c->bytes, c->room - c->bytes);
        if (n == 0) return true;
        if (n < 0 && errno != EINTR) return fail_errno(c->ctx, path, errno);
        if (n > 0) c->bytes += (size_t)n;
    }
}

static bool read_content(cn__content *c, int file, const char *path)
{
    struct stat st;
    if (fstat(file, &st)) return fail_errno(c->ctx, path, errno);
    if (S_ISDIR(st.st_mode)) return fail_errno(c->ctx, path, EISDIR);
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size <= SIZE_MAX / 2 && map(c, file, (size_t)st.st_size)) return true;
    return read_all(c, file, path);
}

cn__content *cn__content_open(cn_ctx *ctx, const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        fail_errno(ctx, path, errno);
        return NULL;
    }
    cn__content *c = content_new(ctx);
    bool ok = c && read_content(c, file, path);
    close(file);
    if (ok) return c;
    cn__content_release(c);
    return NULL;
}
