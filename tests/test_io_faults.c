/* Files and saving when things go wrong: damaged bytes, full disks, no permission, a killed process, no memory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cairn/cairn.h"
#include "cairn/io.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/scratch.h"
#include "support/dicts.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define REFERENCE    CAIRN_SOURCE_DIR "/tests/reference/io/"

static uint64_t state = 1;
static uint64_t draw(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

/* Files of this folder whose names have the part in them; they are removed if that is asked. */
static int files_with(const char *part, bool remove)
{
    int n = 0;
    DIR *folder = opendir(".");
    for (struct dirent *e; folder && (e = readdir(folder));) {
        if (!strstr(e->d_name, part)) continue;
        n++;
        if (remove) unlink(e->d_name);
    }
    if (folder) closedir(folder);
    return n;
}

/* ---- damaged files ---- */

typedef struct outcome {
    int loaded, refused;
} outcome;

/* From memory exactly as long as the file, now and then from a file: an error, or a dict whose numbers can be read. */
static void try(cn_ctx *cn, const unsigned char *data, size_t bytes, bool from_file, outcome *o)
{
    cn_dict *d;
    if (from_file) {
        file_write("damaged", data, bytes);
        d = cn_load(cn, "damaged");
    } else {
        unsigned char *copy = malloc(bytes ? bytes : 1);
        memcpy(copy, data, bytes);
        d = cn_load_memory(cn, copy, bytes);
        free(copy);
    }
    if (d) o->loaded++, dict_touch(d);
    else o->refused++;
    cn_code code = cn_error_code(cn);
    check(d ? code == CN_OK : code == CN_BAD_FILE || code == CN_UNSUPPORTED, "dict %d, %s: %s", d != NULL,
          cn_code_name(code), cn_error(cn));
    cn_dict_free(d);
    cn_error_clear(cn);
}

static void damage(cn_ctx *cn, const char *name, int rounds)
{
    char path[512];
    size_t bytes;
    snprintf(path, sizeof path, REFERENCE "%s", name);
    unsigned char *file = file_read(path, &bytes);
    if (!check(file != NULL, "%s is there", name)) return;
    outcome cut = { 0 }, flipped = { 0 }, wild = { 0 };
    for (size_t n = 0; n < bytes; n++) try(cn, file, n, n % 64 == 0, &cut);
    check(cut.loaded == 0, "%s: %d of %zu cut off were loaded", name, cut.loaded, bytes);
    static const unsigned char masks[] = { 0x01, 0x80, 0xff };
    for (size_t i = 0; i < bytes * COUNT(masks); i++) {
        unsigned char *at = &file[i / COUNT(masks)], was = *at;
        *at ^= masks[i % COUNT(masks)];
        try(cn, file, bytes, i % 64 == 0, &flipped);
        *at = was;
    }
    unsigned char *copy = malloc(bytes + 8);
    for (int i = 0; i < rounds; i++) { /* several bytes, many of them digits and other marks of the format */
        memcpy(copy, file, bytes);
        size_t n = bytes;
        for (uint64_t k = 1 + draw(6); k; k--) {
            static const char marks[] = "0123456789{}[]\",:'()<>PK\xff";
            size_t place = draw(2) ? draw(n < 1200 ? n : 1200) : draw(n);
            copy[place] = draw(3) ? (unsigned char)marks[draw(sizeof marks)] : (unsigned char)draw(256);
        }
        if (draw(8) == 0) n = draw(n);
        try(cn, copy, n, i % 64 == 0, &wild);
    }
    free(copy);
    printf("%s: cut off %d refused; a byte changed %d refused, %d loaded; several %d refused, %d loaded\n", name,
           cut.refused, flipped.refused, flipped.loaded, wild.refused, wild.loaded);
    free(file);
}

static void damaged_files(void)
{
    static const char *const names[] = {
        "all.safetensors", "misaligned.safetensors", "fortran.npy",          "version3.npy",     "stored.npz",
        "deflated.npz",    "../pt/views.pt",         "../pt/no_checksum.pt", "../pt/deflated.pt"
    };
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    for (size_t i = 0; i < COUNT(names); i++) {
        check_group(names[i]);
        damage(cn, names[i], test_is_quick() ? 300 : 3000);
    }
    check_group("");
    cn_close(cn);
}

/* Its numbers are guarded by a checksum: no change of them goes unseen. */
static void checksums(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_dict *d = cn_dict_new(cn);
    cn_dict_set(d, "a", cn_arange(cn, CN_F32, 0, 64, 1));
    cn_save(d, "sums.npz");
    size_t bytes;
    unsigned char *file = file_read("sums.npz", &bytes);
    size_t seen = 0, start = bytes - 22 - 20 - 56 - (46 + 5 + 28) - 256;
    for (size_t i = 0; i < 256; i++) {
        file[start + i] ^= 4;
        seen += !cn_load_memory(cn, file, bytes) && strstr(cn_error(cn), "checksum");
        file[start + i] ^= 4;
        cn_error_clear(cn);
    }
    check(seen == 256, "%zu of 256 changed bytes were seen", seen);
    free(file);
    cn_close(cn);
}

/* ---- saving where it cannot be done ---- */

static cn_dict *large(cn_ctx *cn, double value, int64_t n)
{
    cn_dict *d = cn_dict_new(cn);
    cn_scope s = cn_scope_begin(cn);
    cn_dict_set(d, "a", cn_full(cn, CN_F32, CN_DIMS(n), value));
    cn_dict_set(d, "b", cn_full(cn, CN_F64, CN_DIMS(n / 4, 2), value));
    cn_scope_end(cn, s);
    cn_dict_set_number(d, "value", value);
    return d;
}

/* The value everything in the file has, or -1. */
static double only_value(const cn_dict *d, int64_t n)
{
    double value = -1;
    if (cn_dict_count(d) != 2 || !cn_dict_number(d, "value", &value)) return -1;
    for (int i = 0; i < 2; i++) {
        cn_tensor *t = cn_dict_at(d, i);
        if (cn_numel(t) != (i ? n / 4 * 2 : n)) return -1;
        cn_scope s = cn_scope_begin(cn_context(t));
        bool same = cn_item(cn_all(cn_eq(t, cn_full(cn_context(t), cn_type(t), CN_SCALAR, value)), CN_ALL, false)) == 1;
        cn_scope_end(cn_context(t), s);
        if (!same) return -1;
    }
    return value;
}

static void refused(cn_ctx *cn, const cn_dict *d, const char *path, int error)
{
    check(!cn_save(d, path) && cn_error_code(cn) == CN_BAD_FILE && strstr(cn_error(cn), path) &&
              strstr(cn_error(cn), strerror(error)),
          "%s: \"%s\" wanted, \"%s\" said", path, strerror(error), cn_error(cn));
    check(files_with(".tmp-", true) == 0, "%s: no temporary file is left", path);
    cn_error_clear(cn);
}

static void places_that_cannot_be_saved_to(cn_ctx *cn)
{
    cn_dict *d = large(cn, 1, 1000);
    refused(cn, d, "no/such/folder/x.safetensors", ENOENT);
    mkdir("folder.safetensors", 0777);
    refused(cn, d, "folder.safetensors", EISDIR);
    rmdir("folder.safetensors");
    file_write("plain", "x", 1);
    refused(cn, d, "plain/x.npz", ENOTDIR);
    static const char *const paths[] = { "full.safetensors", "full.npz" };
    for (size_t i = 0; i < COUNT(paths); i++) { /* a device is written to, not replaced */
        struct stat st;
        if (!check(symlink("/dev/full", paths[i]) == 0, "a link")) continue;
        refused(cn, d, paths[i], ENOSPC);
        check(stat("/dev/full", &st) == 0 && S_ISCHR(st.st_mode), "/dev/full is still a device");
        unlink(paths[i]);
    }
    char longest[290];
    memset(longest, 'x', sizeof longest);
    strcpy(longest + sizeof longest - 13, ".safetensors");
    refused(cn, d, longest, ENAMETOOLONG);
    cn_dict_free(d);
}

static void folders_without_permission(cn_ctx *cn)
{
    cn_dict *d = large(cn, 1, 1000);
    mkdir("closed", 0777);
    cn_save(d, "closed/x.safetensors");
    chmod("closed/x.safetensors", 0400);
    chmod("closed", 0555);
    cn_save(d, "readonly.safetensors");
    chmod("readonly.safetensors", 0444);
    bool root = geteuid() == 0;
    if (root && seteuid(65534)) skip();
    else {
        refused(cn, d, "closed/x.safetensors", EACCES);
        refused(cn, d, "closed/y.safetensors", EACCES);
        refused(cn, d, "readonly.safetensors", EACCES);
        if (root)
            check(!cn_load(cn, "closed/x.safetensors") && strstr(cn_error(cn), "Permission denied"), "reading: %s",
                  cn_error(cn));
        cn_error_clear(cn);
    }
    if (root) check(seteuid(0) == 0, "root again");
    chmod("closed", 0777);
    unlink("closed/x.safetensors");
    check(rmdir("closed") == 0, "nothing else is in the folder");
    cn_dict_free(d);
}

/* The disk fills up at every place of the file in turn: the old file stays. */
static void a_disk_that_fills_up(cn_ctx *cn)
{
    static const char *const paths[] = { "limited.safetensors", "limited.npz", "limited.npy" };
    const int64_t n = 1000;
    cn_dict *old = large(cn, 1, n), *new = large(cn, 2, n), *one = cn_dict_new(cn);
    cn_dict_set(one, "arr_0", cn_dict_get(new, "a"));
    struct rlimit limit, was;
    getrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < COUNT(paths); i++) {
        cn_dict *first = i == 2 ? cn_dict_new(cn) : old;
        if (i == 2) cn_dict_set(first, "arr_0", cn_dict_get(old, "a"));
        check(cn_save(first, paths[i]), "%s", cn_error(cn));
        int failed = 0, wrong = 0;
        for (rlim_t most = 0; most < 14000; most += most < 700 ? 7 : 997) {
            limit = (struct rlimit){ most, was.rlim_max };
            setrlimit(RLIMIT_FSIZE, &limit);
            bool saved = cn_save(i == 2 ? one : new, paths[i]);
            setrlimit(RLIMIT_FSIZE, &was);
            if (saved) break;
            failed++;
            wrong += cn_error_code(cn) != CN_BAD_FILE || !strstr(cn_error(cn), strerror(EFBIG));
            cn_error_clear(cn);
            cn_dict *d = cn_load(cn, paths[i]);
            wrong += !d || dicts_differ(first, d, true);
            cn_dict_free(d);
        }
        check(failed > 50 && wrong == 0, "%s: %d limits, %d times something else than the old file and words", paths[i],
              failed, wrong);
        check(files_with(".tmp-", true) == 0, "%s: no temporary file is left", paths[i]);
    }
    cn_dict_free(old);
    cn_dict_free(new);
    cn_dict_free(one);
}

static void what_saving_keeps(cn_ctx *cn)
{
    cn_dict *d = large(cn, 3, 100);
    cn_save(d, "real.safetensors");
    chmod("real.safetensors", 0640);
    check(symlink("real.safetensors", "link.safetensors") == 0 && cn_save(d, "link.safetensors"), "%s", cn_error(cn));
    struct stat st;
    check(lstat("link.safetensors", &st) == 0 && S_ISLNK(st.st_mode), "a link stays one");
    check(stat("real.safetensors", &st) == 0 && (st.st_mode & 0777) == 0640, "a file keeps its mode: %o",
          st.st_mode & 0777);
    int taken = open("busy.npz.tmp-x", O_CREAT | O_WRONLY, 0666);
    close(taken);
    char name[64];
    snprintf(name, sizeof name, "busy.npz.tmp-%ld", (long)getpid());
    rename("busy.npz.tmp-x", name);
    check(cn_save(d, "busy.npz") && access(name, F_OK) == 0, "a temporary file of someone else is left alone: %s",
          cn_error(cn));
    unlink(name);
    cn_dict_free(d);
}

/* ---- a killed process ---- */

enum { KILLED_SIZE = 400000 };

static void save_for_ever(const char *path)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_dict *d[2] = { large(cn, 1, KILLED_SIZE), large(cn, 2, KILLED_SIZE) };
    for (int i = 1; cn_save(d[i % 2], path); i++) continue;
    _exit(1);
}

static void sleep_ms(uint64_t ms)
{
    struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    nanosleep(&t, NULL);
}

static void killed_while_saving(void)
{
    const char *path = "killed.safetensors";
    int found[3] = { 0 }, changed = 0;
    double last = 1;
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_dict *d = large(cn, 1, KILLED_SIZE);
    check(cn_save(d, path), "%s", cn_error(cn));
    cn_close(cn);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) save_for_ever(path);
        sleep_ms(5 + draw(test_is_quick() ? 200 : 100));
        int status;
        kill(child, SIGKILL);
        check(waitpid(child, &status, 0) == child && WIFSIGNALED(status), "round %d: it was saving until then", i);
        cn = cn_open(&(cn_desc){ .threads = 1 });
        d = cn_load(cn, path);
        double value = d ? only_value(d, KILLED_SIZE) : -1;
        check(value == 1 || value == 2, "round %d: one content or the other, completely: %g %s", i, value,
              cn_error(cn));
        if (value > 0) found[(int)value]++;
        changed += value != last;
        last = value;
        cn_close(cn);
    }
    int left = files_with(".tmp-", true);
    printf(
        "killed 20 times: the first content %d times, the second %d times, changed %d times; %d temporary files left\n",
        found[1], found[2], changed, left);
    check(left > 0 && changed > 0, "kills came while saving");
}

/* ---- no memory ---- */

static bool load_it(cn_ctx *cn, const char *path) { return cn_load(cn, path) != NULL; }

static bool load_from_memory(cn_ctx *cn, const char *path)
{
    size_t bytes;
    unsigned char *file = file_read(path, &bytes);
    cn_dict *d = cn_load_memory(cn, file, bytes);
    free(file);
    return d != NULL;
}

static bool save_it(cn_ctx *cn, const char *path)
{
    cn_dict *d = dict_of_everything(cn, false);
    return cn_save(d, path);
}

static bool copy_parts(cn_ctx *cn, const char *path)
{
    cn_dict *d = cn_load(cn, path), *p = cn_dict_prefixed(d, "n");
    return p && cn_random_save(cn, p, "random/") && cn_random_load(cn, p, "random/");
}

/* True when the fault was reached. */
static bool run_with_fault(int64_t n, bool (*run)(cn_ctx *cn, const char *path), const char *path)
{
    faulty f = { 0 };
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
    f.calls = 0;
    f.fail_at = n;
    bool ok = run(cn, path), reached = f.calls >= n;
    check(ok || (reached && cn_error_code(cn) == CN_NO_MEMORY), "allocation %lld: %s: %s", (long long)n,
          cn_code_name(cn_error_code(cn)), cn_error(cn));
    f.fail_at = 0;
    cn_error_clear(cn);
    check(run(cn, path), "allocation %lld: the next time it works: %s", (long long)n, cn_error(cn));
    cn_close(cn);
    check(f.blocks == 0 && f.bytes == 0, "allocation %lld: %lld blocks leak", (long long)n, (long long)f.blocks);
    check(files_with(".tmp-", true) == 0, "allocation %lld: no temporary file is left", (long long)n);
    return reached;
}

static void every_allocation_fails_once(void)
{
    static const struct {
        const char *name;
        bool (*run)(cn_ctx *cn, const char *path);
        const char *path;
        int least;
    } table[] = {
        { "load safetensors", load_it, REFERENCE "all.safetensors", 20 },
        { "load safetensors from memory", load_from_memory, REFERENCE "misaligned.safetensors", 10 },
        { "load npz", load_it, REFERENCE "stored.npz", 20 },
        { "load compressed npz", load_it, REFERENCE "deflated.npz", 20 },
        { "load pt", load_it, REFERENCE "../pt/views.pt", 20 },
        { "load pt from memory", load_from_memory, REFERENCE "../pt/dtypes.pt", 20 },
        { "load compressed pt", load_it, REFERENCE "../pt/deflated.pt", 20 },
        { "load npy", load_it, REFERENCE "fortran_big.npy", 5 },
        { "save safetensors", save_it, "memory.safetensors", 20 },
        { "save npz", save_it, "memory.npz", 20 },
        { "parts of a dict", copy_parts, REFERENCE "stored.npz", 20 },
    };
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    bool has_zlib = load_it(cn, REFERENCE "deflated.npz");
    cn_close(cn);
    for (size_t i = 0; i < COUNT(table); i++) {
        if (strstr(table[i].name, "compressed") && !has_zlib) {
            skip();
            continue;
        }
        check_group(table[i].name);
        int64_t n = 1;
        while (run_with_fault(n, table[i].run, table[i].path)) n++;
        printf("%s: %lld allocations made to fail\n", table[i].name, (long long)(n - 1));
        check(n > table[i].least, "it allocates at all: %lld", (long long)n);
    }
    check_group("");
}

int main(void)
{
    if (!enter_scratch()) return finish();
    killed_while_saving(); /* before any thread is started */
    damaged_files();
    checksums();
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    places_that_cannot_be_saved_to(cn);
    folders_without_permission(cn);
    a_disk_that_fills_up(cn);
    what_saving_keeps(cn);
    cn_close(cn);
    every_allocation_fails_once();
    return finish();
}
