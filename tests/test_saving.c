/* How a file is saved: which calls reach the system, in which order, and what happens if one of them fails. A crash at
   any moment must leave the old file or the new one: the bytes are on the disk before the name is, and the name before
   cn_save returns. The functions below stand in front of the system's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cairn/cairn.h"
#include "cairn/io.h"
#include "support/check.h"
#include "support/dicts.h"
#include "support/scratch.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* w: wrote to a file; f: synced a file; r: renamed; d: synced a folder. */
typedef struct event {
    char kind;
    ino_t file; /* of the file, or of the folder */
} event;

enum { MOST = 4096 };

static struct {
    bool on;
    event v[MOST];
    int n;
    char fail;        /* the first event of this kind fails with EIO */
    bool interrupted; /* every second write is interrupted by a signal, the others write a part */
} record;

/* False: this call must fail. */
static bool note(char kind, const struct stat *st)
{
    if (!record.on || record.n == MOST) return true;
    record.v[record.n++] = (event){ kind, st->st_ino };
    if (record.fail != kind) return true;
    record.fail = 0;
    errno = EIO;
    return false;
}

ssize_t write(int file, const void *data, size_t bytes)
{
    struct stat st;
    if (!fstat(file, &st) && S_ISREG(st.st_mode) && !note('w', &st)) return -1;
    if (record.interrupted && record.n % 2) return errno = EINTR, -1;
    if (record.interrupted && bytes > 7) bytes = 1 + bytes / 2;
    return syscall(SYS_write, file, data, bytes);
}

int fsync(int file)
{
    struct stat st;
    if (!fstat(file, &st) && !note(S_ISDIR(st.st_mode) ? 'd' : 'f', &st)) return -1;
    return (int)syscall(SYS_fsync, file);
}

int rename(const char *from, const char *to)
{
    struct stat st;
    if (!stat(from, &st) && !note('r', &st)) return -1;
    return (int)syscall(SYS_renameat2, -100 /* the current folder */, from, -100, to, 0);
}

static cn_ctx *cn;

static cn_dict *filled(double value)
{
    cn_dict *d = cn_dict_new(cn);
    cn_scope s = cn_scope_begin(cn);
    cn_dict_set(d, "arr_0", cn_full(cn, CN_F32, CN_DIMS(1000), value));
    cn_scope_end(cn, s);
    return d;
}

static bool holds(const char *path, double value)
{
    cn_dict *d = cn_load(cn, path);
    bool ok = d && cn_get(cn_dict_get(d, "arr_0"), CN_DIMS(999)) == value;
    cn_dict_free(d);
    return ok;
}

static bool save_recorded(cn_dict *d, const char *path, char fail)
{
    record.n = 0;
    record.fail = fail;
    record.on = true;
    bool ok = cn_save(d, path);
    record.on = false;
    return ok;
}

/* The kinds of events, a row of equal ones as one: "wfrd". */
static const char *kinds(void)
{
    static char text[MOST + 1];
    int n = 0;
    for (int i = 0; i < record.n; i++)
        if (!n || text[n - 1] != record.v[i].kind) text[n++] = record.v[i].kind;
    text[n] = 0;
    return text;
}

static ino_t number_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : st.st_ino;
}

static void order(const char *path, const char *folder)
{
    cn_dict *d = filled(1);
    check(save_recorded(d, path, 0), "%s: %s", path, cn_error(cn));
    check(!strcmp(kinds(), "wfrd"), "%s: write, sync the file, rename, sync the folder, got %s", path, kinds());
    bool same = record.n > 0;
    for (int i = 0; i < record.n; i++) same &= record.v[i].file == number_of(record.v[i].kind == 'd' ? folder : path);
    check(same, "%s: the file that gets the name is synced, and the folder it is in", path);
    cn_dict_free(d);
}

static void orders(void)
{
    char root[4096];
    mkdir("sub", 0777);
    mkdir("elsewhere", 0777);
    static const char *const ends[] = { "safetensors", "npz", "npy" };
    for (size_t i = 0; i < COUNT(ends); i++)
        for (int again = 0; again < 2; again++) { /* a new file, and one that is replaced */
            char path[64];
            snprintf(path, sizeof path, "x.%s", ends[i]);
            order(path, ".");
            snprintf(path, sizeof path, "sub/x.%s", ends[i]);
            order(path, "sub");
        }
    check(symlink("elsewhere/y.npy", "link.npy") == 0, "a link");
    file_write("elsewhere/y.npy", "old", 3);
    order("link.npy", "elsewhere"); /* the folder of the file, not of the link */
    if (check(getcwd(root, sizeof root - 16) != NULL, "a current folder")) {
        strcat(root, "/whole.npz");
        order(root, ".");
    }
}

/* A call that fails is an error, whatever it is; until the new name stands, the old file is there. */
static void failures(void)
{
    static const char *const paths[] = { "old.safetensors", "old.npz", "old.npy" };
    cn_dict *old = filled(1), *new = filled(2);
    for (size_t i = 0; i < COUNT(paths); i++)
        for (const char *kind = "wfrd"; *kind; kind++) {
            check(cn_save(old, paths[i]), "%s", cn_error(cn));
            check(!save_recorded(new, paths[i], *kind) && cn_error_code(cn) == CN_BAD_FILE &&
                      strstr(cn_error(cn), strerror(EIO)),
                  "%s: %c fails: \"%s\"", paths[i], *kind, cn_error(cn));
            cn_error_clear(cn);
            check(holds(paths[i], *kind == 'd' ? 2 : 1), "%s: %c fails: the file is complete: %s", paths[i], *kind,
                  cn_error(cn));
            check(strspn(kinds(), "wfrd") == strlen(kinds()) && kinds()[strlen(kinds()) - 1] == *kind,
                  "%s: nothing follows the failure of %c: %s", paths[i], *kind, kinds());
            cn_error_clear(cn);
        }
    cn_dict_free(old);
    cn_dict_free(new);
}

/* A write may do a part of its work, or none because of a signal. */
static void interruptions(void)
{
    static const char *const paths[] = { "part.safetensors", "part.npz", "part.npy" };
    cn_dict *d = filled(3);
    for (size_t i = 0; i < COUNT(paths); i++) {
        record.interrupted = true;
        check(save_recorded(d, paths[i], 0), "%s: %s", paths[i], cn_error(cn));
        record.interrupted = false;
        check(record.n > 20 && holds(paths[i], 3), "%s: after %d writes it is whole: %s", paths[i], record.n,
              cn_error(cn));
        cn_error_clear(cn);
    }
    cn_dict_free(d);
}

int main(void)
{
    if (!enter_scratch()) return finish();
    cn = cn_open(&(cn_desc){ .threads = 1 });
    orders();
    failures();
    interruptions();
    cn_close(cn);
    return finish();
}
