/* Opens files: mapped, decompressed into the context's memory, or read into a worker's arena. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef CAIRN_HAVE_ZLIB
#include <zlib.h>
#endif

#include "core/library.h"
#include "data/data.h"

static int open_regular(const char *path, size_t *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    struct stat st;
    int problem = fstat(fd, &st) ? errno : S_ISDIR(st.st_mode) ? EISDIR : !S_ISREG(st.st_mode) ? EINVAL : 0;
    if (problem) {
        close(fd);
        errno = problem;
        return -1;
    }
    *bytes = (size_t)st.st_size;
    return fd;
}

bool cn__file_map(cn_ctx *ctx, const char *who, const char *path, cn__file *out)
{
    *out = (cn__file){ 0 };
    if (!path) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: path is NULL", who);
    int fd = open_regular(path, &out->bytes);
    if (fd < 0) return cn__fail(ctx, CN_BAD_FILE, "%s: %s: %s", who, path, strerror(errno));
    void *p = out->bytes ? mmap(NULL, out->bytes, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    int problem = errno;
    close(fd);
    if (p == MAP_FAILED) return cn__fail(ctx, CN_BAD_FILE, "%s: %s: %s", who, path, strerror(problem));
    out->data = p;
    out->mapped = true;
    return true;
}

void cn__file_close(cn_ctx *ctx, cn__file *file)
{
    void *p = (void *)(uintptr_t)file->data;
    if (!p) return;
    if (file->mapped) munmap(p, file->bytes);
    else cn__free(ctx, p, file->capacity);
    *file = (cn__file){ 0 };
}

#ifdef CAIRN_HAVE_ZLIB
#define FUNCTIONS(ROW) ROW(gzopen) ROW(gzread) ROW(gzeof) ROW(gzclose)
typedef struct zlib {
    FUNCTIONS(CN__FUNCTION)
} zlib;
static const char *const names[] = { FUNCTIONS(CN__FUNCTION_NAME) };

/* Memory grows with the bytes that were read: the size that the file states is not trusted. */
static bool unzip_all(cn_ctx *ctx, const zlib *lib, gzFile z, cn__file *out)
{
    for (;;) {
        if (out->bytes == out->capacity) {
            size_t capacity = out->capacity ? 2 * out->capacity : (size_t)1 << 16;
            void *p = cn__resize(&ctx->memory, (void *)(uintptr_t)out->data, out->capacity, capacity);
            if (!p) return cn__fail(ctx, CN_NO_MEMORY, "out of memory: %zu bytes requested", capacity);
            out->data = p;
            out->capacity = capacity;
        }
        size_t room = out->capacity - out->bytes;
        void *to = (void *)(uintptr_t)(out->data + out->bytes);
        int n = lib->gzread(z, to, room < 1u << 30 ? (unsigned)room : 1u << 30);
        if (n < 0) return false;
        if (n == 0) return lib->gzeof(z);
        out->bytes += (size_t)n;
    }
}

bool cn__file_unzip(cn_ctx *ctx, const char *who, const char *path, cn__file *out)
{
    *out = (cn__file){ 0 };
    zlib lib;
    if (!cn__library_find(CN__LIBRARY("z", "1"), names, sizeof names / sizeof *names, &lib))
        return cn__fail(ctx, CN_UNSUPPORTED,
                        "%s: %s: this system has no zlib: install zlib (" CN__LIBRARY("z", "1") "), or decompress the "
                                                                                                "file",
                        who, path);
    errno = 0;
    gzFile z = lib.gzopen(path, "rb");
    if (!z) return cn__fail(ctx, CN_BAD_FILE, "%s: %s: %s", who, path, errno ? strerror(errno) : "cannot be opened");
    bool ok = unzip_all(ctx, &lib, z, out);
    if (lib.gzclose(z) != Z_OK) ok = false;
    if (ok) return true;
    cn__file_close(ctx, out);
    return cn__fail(ctx, CN_BAD_FILE, "%s: %s: the file is damaged or incomplete", who, path);
}
#else
bool cn__file_unzip(cn_ctx *ctx, const char *who, const char *path, cn__file *out)
{
    *out = (cn__file){ 0 };
    return cn__fail(ctx, CN_UNSUPPORTED,
                    "%s: %s: this build has no zlib: decompress the file, or install zlib and build again", who, path);
}
#endif

static bool read_all(int fd, uint8_t *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(fd, to + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

bool cn__file_read(cn__fetch *f, const char *path, const uint8_t **data, size_t *bytes)
{
    int fd = open_regular(path, bytes);
    if (fd < 0) return cn__fetch_fail(f, CN_BAD_FILE, "%s: %s", path, strerror(errno));
    uint8_t *p = cn__arena_alloc(&f->arena, *bytes);
    bool ok = p && read_all(fd, p, *bytes);
    close(fd);
    *data = p;
    if (ok) return true;
    return p ? cn__fetch_fail(f, CN_BAD_FILE, "%s: the file cannot be read to its end", path) : cn__fetch_no_memory(f);
}
