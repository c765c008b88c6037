/* cairn bundle: binds a model into a copy of the program. The copy runs by itself, with nothing beside it.

   The copy is the program, then zeros up to a whole page, the model (safetensors), and the tokenizer (JSON). Where they
   lie is written over the bytes of the variable `slot` in the copied program, so a bundle knows that it is one before it
   opens a file, and one that was cut short can say so. The model is mapped from the executable, not copied. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

enum { PAGE = 4096, MARK = 32 };

/* Numbers as memory holds them: Cairn runs on little-endian machines. All 0: no bundle. */
typedef struct slot {
    char mark[MARK];
    uint64_t model_at, model_bytes, tokenizer_at, tokenizer_bytes, file_bytes;
} slot;

/* volatile: the compiler must not replace reads by these values. The mark is in a program once. */
static const volatile slot own = { .mark = "the model in this cairn program" };

bool is_bundle(void) { return own.file_bytes || own.model_bytes; }

/* ---- make one ---- */

static void *find_slot(text *t, const slot *s)
{
    char *found = NULL;
    for (char *at = t->bytes, *end = t->bytes + t->n; (size_t)(end - at) >= sizeof *s; at++) {
        at = memchr(at, s->mark[0], (size_t)(end - at) - sizeof *s + 1);
        if (!at) break;
        if (memcmp(at, s->mark, MARK)) continue;
        if (found) return NULL;
        found = at;
    }
    return found;
}

/* Appends zeros up to a whole page, then the file. */
static int append_file(text *t, const char *path, uint64_t *at, uint64_t *bytes)
{
    const size_t n = (t->n + PAGE - 1) / PAGE * PAGE;
    t->bytes = grow(t->bytes, n + 1);
    memset(t->bytes + t->n, 0, n - t->n);
    *at = t->n = n;
    const int code = read_file(path, t);
    *bytes = t->n - n;
    return code;
}

/* The name of a file that is on its way into `path`. */
static char *part_of(const char *path, const char *ending)
{
    const size_t size = strlen(path) + strlen(ending) + 1;
    char *part = grow(NULL, size);
    snprintf(part, size, "%s%s", path, ending);
    return part;
}

/* The weights alone: a checkpoint has the state of its optimizer too. */
static bool save_parts(cn_module *model, cn_tokenizer *tokenizer, cn_ctx *cn, const char *weights, const char *json)
{
    cn_dict *d = cn_dict_new(cn);
    const bool ok = d && cn_gpt_save(model, d) && cn_save(d, weights) && cn_tokenizer_save(tokenizer, json);
    cn_dict_free(d);
    return ok;
}

static int write_program(const char *path, const text *t)
{
    char *part = part_of(path, ".part"); /* renamed when it is complete */
    FILE *f = fopen(part, "wb");
    bool ok = f && fwrite(t->bytes, 1, t->n, f) == t->n;
    if (f && fclose(f)) ok = false;
    ok = ok && chmod(part, 0755) == 0 && rename(part, path) == 0;
    const int problem = errno;
    if (f && !ok) remove(part);
    free(part);
    return ok ? DONE : fail("%s: %s", path, strerror(problem));
}

static int bind_model(const settings *s, cn_ctx *cn, const char *path, text *t)
{
    cn_module *model;
    cn_tokenizer *tokenizer;
    const int opened = open_writer(cn, s, path, &model, &tokenizer);
    if (opened != DONE) return opened;
    const char *out = text_of(s, "out"), *from = given(s, "program") ? text_of(s, "program") : NULL;
    char *self = from ? copy_text(from) : own_path(), *weights = part_of(out, ".part.safetensors"),
         *json = part_of(out, ".part.json");
    const slot empty = own;
    slot filled = empty;
    int code = self ? read_file(self, t) : FAILED;
    if (code == DONE && !find_slot(t, &empty)) code = fail("%s: not a cairn program", self);
    if (code == DONE && !save_parts(model, tokenizer, cn, weights, json)) code = fail_in(cn);
    if (code == DONE) code = append_file(t, weights, &filled.model_at, &filled.model_bytes);
    if (code == DONE) code = append_file(t, json, &filled.tokenizer_at, &filled.tokenizer_bytes);
    filled.file_bytes = t->n;
    if (code == DONE) memcpy(find_slot(t, &empty), &filled, sizeof filled);
    if (code == DONE) code = write_program(out, t);
    if (code == DONE && !flag_of(s, "quiet"))
        printf("%s: %.1f MB, of which the model is %.1f MB\n", out, (double)t->n / 1e6,
               (double)filled.model_bytes / 1e6);
    remove(weights), remove(json);
    free(self), free(weights), free(json);
    return code;
}

int make_bundle(settings *s)
{
    if (!given(s, "out")) return usage("the name of the new program is needed: --out FILE");
    int code = may_write(s, text_of(s, "out"), false);
    char *path = code == DONE ? find_model(s->argument) : NULL;
    cn_ctx *cn = path ? cn_open(&(cn_desc){ .device = "cpu", .threads = 1 }) : NULL;
    text t = { 0 };
    if (code == DONE) code = cn ? bind_model(s, cn, path, &t) : FAILED;
    cn_close(cn);
    free(path), free(t.bytes);
    return code;
}

/* ---- run as one ---- */

/* The file this program was started from, or NULL. Windows always has its path; without /proc, as the shell found it. */
char *own_path(void)
{
    if (strchr(program, '\\') && is_file(program)) return copy_text(program);
    if (is_file("/proc/self/exe")) return copy_text("/proc/self/exe");
    if (strchr(program, '/')) return copy_text(program);
    for (const char *at = getenv("PATH"); at && *at;) {
        const size_t n = strcspn(at, ":");
        char *folder = copy_text(at);
        folder[n] = 0;
        char *path = join_path(n ? folder : ".", program);
        free(folder);
        if (is_file(path)) return path;
        free(path);
        at += n + (at[n] == ':');
    }
    fail("%s: cannot find the file of this program", program);
    return NULL;
}

/* Whether `bytes` bytes from `at` on are inside a file. */
static bool inside(uint64_t at, uint64_t bytes, uint64_t file) { return at <= file && bytes && bytes <= file - at; }

static int damaged(const char *path, const char *why) { return fail("%s: the model in this program %s", path, why); }

int open_bundle(cn_ctx *cn, char **path, cn_dict **weights, cn_tokenizer **tokenizer)
{
    const slot s = own;
    *path = own_path();
    FILE *f = *path ? fopen(*path, "rb") : NULL;
    if (!f) return *path ? fail("%s: %s", *path, strerror(errno)) : FAILED;
    struct stat st;
    int code = DONE;
    if (fstat(fileno(f), &st) || (uint64_t)st.st_size < s.file_bytes) code = damaged(program, "is incomplete");
    else if (!inside(s.model_at, s.model_bytes, s.file_bytes) ||
             !inside(s.tokenizer_at, s.tokenizer_bytes, s.file_bytes))
        code = damaged(program, "is damaged");
    char *json = code == DONE ? malloc(s.tokenizer_bytes) : NULL;
    if (code == DONE && (!json || fseeko(f, (off_t)s.tokenizer_at, SEEK_SET) ||
                         fread(json, 1, s.tokenizer_bytes, f) != s.tokenizer_bytes))
        code = damaged(program, "cannot be read");
    fclose(f);
    const cn_load_desc part = { .offset = s.model_at, .bytes = s.model_bytes };
    *weights = code == DONE ? cn_load_with(cn, *path, &part) : NULL;
    *tokenizer = *weights ? cn_tokenizer_parse(cn, json, s.tokenizer_bytes) : NULL;
    free(json);
    return code == DONE && !*tokenizer ? fail_in(cn) : code;
}

int run_bundle(int argc, char **argv)
{
    static const command writes = { "generate", GENERATE, NULL, false, "writes text with the model in this program",
                                    "",         generate };
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return print_bundle_help(), DONE;
        if (!strcmp(argv[i], "--version")) return printf("cairn %s, with a model\n", cn_version()) < 0;
    }
    settings *s = need(sizeof *s);
    s->command = &writes;
    int code = parse_options(s, argc - 1, argv + 1);
    if (code == DONE && given(s, "config")) code = read_config(s, text_of(s, "config"), BY_CONFIG);
    if (code == DONE) code = check_trace(s);
    if (code == DONE) code = generate(s);
    free_settings(s);
    free(s);
    if (fflush(stdout) && code == DONE) code = fail("cannot write to the standard output");
    return code;
}
