/* Saves a file so that a crash or a full disk never damages the old one: writes a temporary file, then renames it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/errors.h"
#include "core/host.h"
#include "io/files.h"

#define LONGEST_WRITE ((size_t)1 << 30) /* some systems do not accept more at once */

static bool fail(const cn__sink *s, int error)
{
    return cn__fail(s->ctx, error == ENOMEM ? CN_NO_MEMORY : CN_BAD_FILE, "save %.300s: %s", s->path, strerror(error));
}

/* Resolves links, and checks the file that the path names already. direct: it is a pipe or a device. */
static bool find_target(cn__sink *s, bool *direct)
{
    char real[PATH_MAX];
    s->target = cn__copy_text(s->ctx, realpath(s->path, real) ? real : s->path);
    if (!s->target) return false;
    struct stat st;
    if (stat(s->target, &st)) return errno == ENOENT || fail(s, errno);
    if (S_ISDIR(st.st_mode)) return fail(s, EISDIR);
    *direct = !S_ISREG(st.st_mode);
    s->mode = st.st_mode & 0777;
    return *direct || faccessat(AT_FDCWD, s->target, W_OK, AT_EACCESS) == 0 || fail(s, errno);
}

/* TARGET.tmp-PID, with a number appended if that file exists. */
static bool open_temporary(cn__sink *s)
{
    size_t room = strlen(s->target) + 48;
    char *name = cn__alloc(s->ctx, room);
    if (!name) return false;
    for (int i = 0; i < 1000 && s->file < 0; i++) {
        int n = snprintf(name, room, "%s.tmp-%ld", s->target, (long)getpid());
        if (i) snprintf(name + n, room - (size_t)n, "-%d", i);
        s->file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (s->file < 0 && errno != EEXIST) break;
    }
    int error = errno;
    s->temporary = s->file < 0 ? NULL : cn__copy_text(s->ctx, name);
    if (s->file >= 0 && !s->temporary) unlink(name);
    cn__free(s->ctx, name, room);
    return s->file < 0 ? fail(s, error) : s->temporary != NULL;
}

static void free_names(cn__sink *s)
{
    cn__free_text(s->ctx, s->target);
    cn__free_text(s->ctx, s->temporary);
    s->target = s->temporary = NULL;
}

bool cn__sink_open(cn__sink *s, cn_ctx *ctx, const char *path)
{
    *s = (cn__sink){ .ctx = ctx, .path = path, .file = -1 };
    bool direct = false, ok = find_target(s, &direct);
    if (ok && direct) {
        s->file = open(s->target, O_WRONLY | O_CLOEXEC);
        ok = s->file >= 0 || fail(s, errno);
    } else if (ok) {
        ok = open_temporary(s);
    }
    if (ok) return true;
    if (s->file >= 0) close(s->file);
    free_names(s);
    return false;
}

bool cn__sink_write(cn__sink *s, const void *data, size_t bytes)
{
    const char *p = data;
    while (bytes) {
        ssize_t n = write(s->file, p, bytes < LONGEST_WRITE ? bytes : LONGEST_WRITE);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail(s, n ? errno : ENOSPC);
        p += n;
        bytes -= (size_t)n;
        s->at += (uint64_t)n;
    }
    return true;
}

/* EINVAL: this cannot be synced, such as a pipe, or a folder on some file systems. */
static bool sync_file(const cn__sink *s, int file) { return fsync(file) == 0 || errno == EINVAL || fail(s, errno); }

/* The new name is on the disk only after the folder was synced. */
static bool sync_folder(const cn__sink *s)
{
    char *slash = strrchr(s->target, '/');
    char name[PATH_MAX] = ".";
    if (slash) snprintf(name, sizeof name, "%.*s", slash == s->target ? 1 : (int)(slash - s->target), s->target);
    int folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return errno == EACCES || fail(s, errno); /* a folder may be writable but not readable */
    bool ok = sync_file(s, folder);
    close(folder);
    return ok;
}

bool cn__sink_close(cn__sink *s, bool complete)
{
    bool ok = complete && sync_file(s, s->file);
    if (ok && s->temporary && s->mode) ok = fchmod(s->file, (mode_t)s->mode) == 0 || fail(s, errno);
    if (close(s->file) && ok) ok = fail(s, errno);
    if (ok && s->temporary) ok = rename(s->temporary, s->target) == 0 || fail(s, errno);
    if (!ok && s->temporary) unlink(s->temporary);
    if (ok && s->temporary) ok = sync_folder(s);
    free_names(s);
    return ok;
}

bool cn__sink_write_tensor(cn__sink *s, cn_tensor *t)
{
    if (cn_numel(t) == 0) return true;
    cn_scope scope = cn_scope_begin(s->ctx);
    cn__host h;
    bool ok = cn__host_open(t, &h) && cn__sink_write(s, h.data, cn__tensor_bytes(t));
    cn__host_close(&h);
    cn_scope_end(s->ctx, scope);
    return ok;
}
