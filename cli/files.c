/* Reads texts, and finds tokenizers and models in folders. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

char *join_path(const char *folder, const char *name)
{
    const size_t n = strlen(folder), size = n + strlen(name) + 2;
    char *path = grow(NULL, size);
    snprintf(path, size, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name);
    return path;
}

char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return copy_text(".");
    char *folder = copy_text(path);
    folder[slash == path ? 1 : slash - path] = 0;
    return folder;
}

bool begins_with(const char *path, const char *bytes)
{
    char head[128];
    const size_t n = strlen(bytes);
    FILE *f = is_file(path) && n <= sizeof head ? fopen(path, "rb") : NULL;
    const bool same = f && fread(head, 1, n, f) == n && !memcmp(head, bytes, n);
    if (f) fclose(f);
    return same;
}

int may_write(const settings *s, const char *path, bool own)
{
    struct stat st;
    if (own || lstat(path, &st) || flag_of(s, "force")) return DONE;
    return fail("%s exists, and cairn did not write it: give another path, or --force to overwrite it", path);
}

int make_folder(const char *path)
{
    char *part = copy_text(path);
    int code = DONE;
    for (char *c = part + 1; code == DONE; c++) {
        if (*c && *c != '/') continue;
        const char kept = *c;
        *c = 0;
        if (mkdir(part, 0777) && errno != EEXIST) code = fail("%s: %s", part, strerror(errno));
        *c = kept;
        if (!kept) break;
    }
    free(part);
    return code != DONE || is_folder(path) ? code : fail("%s: not a folder", path);
}

/* ---- texts ---- */

int read_file(const char *path, text *t)
{
    FILE *f = fopen(path, "rb");
    if (!f) return fail("%s: %s", path, strerror(errno));
    if (is_folder(path)) return fclose(f), fail("%s: this is a folder, expected a file", path);
    size_t room = t->n, got;
    do {
        if (t->n == room) t->bytes = grow(t->bytes, (room = room * 2 + 65536) + 1);
        got = fread(t->bytes + t->n, 1, room - t->n, f);
        t->n += got;
    } while (got);
    t->bytes[t->n] = 0;
    t->files++;
    const bool bad = ferror(f);
    fclose(f);
    return bad ? fail("%s: %s", path, strerror(errno)) : DONE;
}

static bool wanted(const settings *s, const char *name)
{
    char **patterns;
    const int n = items_of(s, "include", &patterns);
    for (int i = 0; i < n; i++)
        if (fnmatch(patterns[i], name, 0) == 0) return true;
    return false;
}

static int not_hidden(const struct dirent *e) { return e->d_name[0] != '.'; }
static int by_bytes(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static int read_found(const char *path, text *t)
{
    const size_t before = t->n;
    if (read_file(path, t) != DONE) return FAILED;
    if (memchr(t->bytes + before, 0, t->n - before)) { /* binary */
        t->n = before;
        t->files--;
    }
    return DONE;
}

/* In the order of names, so that a folder always gives the same text. Links to folders are not followed: they may form
   a cycle. */
static int read_folder(const settings *s, const char *folder, text *t)
{
    struct dirent **entry;
    const int n = scandir(folder, &entry, not_hidden, by_bytes);
    if (n < 0) return fail("%s: %s", folder, strerror(errno));
    int code = DONE;
    for (int i = 0; i < n; i++) {
        char *path = join_path(folder, entry[i]->d_name);
        struct stat st, target;
        const bool seen = code == DONE && lstat(path, &st) == 0;
        if (seen && S_ISDIR(st.st_mode)) code = read_folder(s, path, t);
        else if (seen && stat(path, &target) == 0 && S_ISREG(target.st_mode) && wanted(s, entry[i]->d_name))
            code = read_found(path, t);
        free(path);
        free(entry[i]);
    }
    free(entry);
    return code;
}

int read_texts(const settings *s, text *t)
{
    char **paths;
    const int n = items_of(s, "data", &paths);
    if (!n) return usage("texts are needed: --data FILE or FOLDER");
    for (int i = 0; i < n; i++) {
        const int64_t before = t->files;
        const int code = is_folder(paths[i]) ? read_folder(s, paths[i], t) : read_file(paths[i], t);
        if (code != DONE) return code;
        if (t->files == before) return fail("%s: no text file in this folder matches --include", paths[i]);
    }
    return t->n ? DONE : fail("%s: the text is empty", paths[0]);
}

bool encode_text(cn_ctx *cn, cn_tokenizer *t, const char *bytes, size_t n, int32_t **ids, int64_t *count)
{
    int64_t room = (int64_t)n + 1; /* one token per byte is nearly always enough */
    *ids = grow(NULL, (size_t)room * sizeof **ids);
    *count = cn_encode(t, bytes, n, *ids, room);
    if (*count > room) {
        *ids = grow(*ids, (size_t)*count * sizeof **ids);
        *count = cn_encode(t, bytes, n, *ids, *count);
    }
    return *count >= 0 && !cn_failed(cn);
}

char *clean_text(const char *bytes, size_t n)
{
    static const char dot[] = "·"; /* two bytes */
    char *out = grow(NULL, 2 * n + 1), *to = out;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        const bool c1 = c == 0xc2 && i + 1 < n && (unsigned char)bytes[i + 1] < 0xa0; /* U+0080 to U+009F */
        const bool control = (c < 32 && c != '\n' && c != '\t') || c == 127 || c1;
        if (control) *to++ = dot[0], *to++ = dot[1], i += c1;
        else *to++ = (char)c;
    }
    *to = 0;
    return out;
}

void print_clean(FILE *out, const char *bytes, size_t n)
{
    char *clean = clean_text(bytes, n);
    fputs(clean, out);
    free(clean);
}

/* ---- models ---- */

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

char *find_model(const char *path)
{
    if (!is_folder(path)) return is_file(path) ? copy_text(path) : (fail("%s: %s", path, strerror(errno)), NULL);
    static const char *const usual[] = { "model.safetensors", "pytorch_model.bin" };
    char *best = NULL;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        best = join_path(path, usual[i]);
        if (is_file(best)) return best;
        free(best);
    }
    best = NULL;
    struct timespec newest = { 0 };
    struct dirent **entry;
    const int n = scandir(path, &entry, not_hidden, by_bytes);
    for (int i = 0; i < n; i++) {
        char *file = join_path(path, entry[i]->d_name);
        struct stat st;
        bool better = ends_in(file, ".safetensors") && stat(file, &st) == 0 && S_ISREG(st.st_mode);
        better = better && (!best || st.st_mtim.tv_sec > newest.tv_sec ||
                            (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec > newest.tv_nsec));
        if (better) newest = st.st_mtim;
        free(better ? best : file);
        if (better) best = file;
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    if (!best) fail("%s: no .safetensors file in this folder", path);
    return best;
}

/* The file of --tokenizer, or the files beside the model: tokenizer.json, or GPT-2's vocab.json and merges.txt; or the
   text "tokenizer.json" of the model's own file, so that a checkpoint can travel alone. */
cn_tokenizer *find_tokenizer(cn_ctx *cn, const settings *s, const char *model, const cn_dict *file)
{
    const char *own = cn_dict_text(file, "tokenizer.json");
    if (given(s, "tokenizer")) return cn_tokenizer_load(cn, text_of(s, "tokenizer"));
    char *folder = folder_of(model), *json = join_path(folder, "tokenizer.json");
    char *vocab = join_path(folder, "vocab.json"), *merges = join_path(folder, "merges.txt");
    cn_tokenizer *t = NULL;
    if (is_file(json)) t = cn_tokenizer_load(cn, json);
    else if (is_file(vocab) && is_file(merges)) t = cn_tokenizer_load_pair(cn, vocab, merges);
    else if (own) t = cn_tokenizer_parse(cn, own, strlen(own));
    else fail("%s: no such file; name a tokenizer with --tokenizer", json);
    free(folder), free(json), free(vocab), free(merges);
    return t;
}

/* Finds one number in a small JSON file, without parsing the rest. */
int64_t heads_beside(const char *model)
{
    char *folder = folder_of(model), *path = join_path(folder, "config.json");
    text t = { 0 };
    int64_t heads = 0;
    if (is_file(path) && read_file(path, &t) == DONE) {
        const char *at = strstr(t.bytes, "\"n_head\"");
        if (at) at += strlen("\"n_head\"");
        if (at) at += strspn(at, " \t\r\n");
        if (at && *at == ':') heads = strtoll(at + 1, NULL, 10);
    }
    free(folder), free(path), free(t.bytes);
    return heads > 0 && heads <= 1000 ? heads : 0;
}
