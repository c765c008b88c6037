/* Reads shader files: fills holes, keeps or repeats lines, finds parts, and collects what a kernel uses. */
#include "gpu/shader.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors.h"
#include "core/object.h"
#include "gpu/shaders.h"

void cn__gpu_print(cn__gpu_source *s, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (n < 0 || !cn__vec_reserve(s->memory, &s->text, s->text.n + (size_t)n + 1, 1)) s->failed = true;
    else s->text.n += (size_t)vsnprintf((char *)s->text.v + s->text.n, (size_t)n + 1, format, again);
    va_end(again);
}

void cn__gpu_append(cn__gpu_source *s, const char *text, size_t n)
{
    if (!cn__vec_reserve(s->memory, &s->text, s->text.n + n + 1, 1)) {
        s->failed = true;
        return;
    }
    memcpy((char *)s->text.v + s->text.n, text, n);
    s->text.n += n;
    ((char *)s->text.v)[s->text.n] = 0;
}

/* ---- lines and words ---- */

typedef struct span {
    const char *at;
    size_t n;
} span;

static bool is(span s, const char *word) { return s.n == strlen(word) && !memcmp(s.at, word, s.n); }
static bool same(span a, span b) { return a.n == b.n && !memcmp(a.at, b.at, a.n); }

/* The line at `at`, without its end. */
static span line_at(const char *at)
{
    const char *end = strchr(at, '\n');
    return (span){ at, end ? (size_t)(end - at) : strlen(at) };
}

static const char *after(span line) { return line.at[line.n] ? line.at + line.n + 1 : line.at + line.n; }

static span word_of(span *rest)
{
    while (rest->n && *rest->at == ' ') rest->at++, rest->n--;
    span w = { rest->at, 0 };
    while (w.n < rest->n && w.at[w.n] != ' ') w.n++;
    rest->at += w.n, rest->n -= w.n;
    return w;
}

static span trimmed(span s)
{
    while (s.n && *s.at == ' ') s.at++, s.n--;
    while (s.n && s.at[s.n - 1] == ' ') s.n--;
    return s;
}

/* Whether a line is a declaration: its first word, and the rest of the line. */
static bool is_declaration(span line, span *word, span *rest)
{
    line = trimmed(line);
    if (line.n < 3 || memcmp(line.at, "//!", 3)) return false;
    *rest = (span){ line.at + 3, line.n - 3 };
    *word = word_of(rest);
    *rest = trimmed(*rest);
    return true;
}

static bool is_comment(span line)
{
    line = trimmed(line);
    return line.n >= 2 && !memcmp(line.at, "//", 2);
}

/* ---- holes ---- */

enum { LOOPS = 4 };

typedef struct filling {
    cn_ctx *ctx;
    cn__gpu_source *to;
    const cn_gpu_hole *holes;
    struct {
        span name;
        int value;
    } loops[LOOPS];
    int n_loops;
} filling;

static span value_of(const cn_gpu_hole *h, char number[24])
{
    if (h->text) return (span){ h->text, strlen(h->text) };
    return (span){ number, (size_t)snprintf(number, 24, "%lld", (long long)h->number) };
}

/* The value of a hole or of a repetition's counter. */
static bool find_value(const filling *f, span name, char number[24], span *value)
{
    for (int i = f->n_loops - 1; i >= 0; i--)
        if (same(f->loops[i].name, name)) {
            *value = (span){ number, (size_t)snprintf(number, 24, "%d", f->loops[i].value) };
            return true;
        }
    for (const cn_gpu_hole *h = f->holes; h && h->name; h++)
        if (is(name, h->name)) {
            *value = value_of(h, number);
            return true;
        }
    return cn__fail(f->ctx, CN_BAD_ARGUMENT,
                    "gpu: a shader has the hole {{%.*s}}, but the launch gives no value for it", (int)name.n, name.at);
}

static bool fill_line(filling *f, span line)
{
    const char *at = line.at, *end = line.at + line.n;
    while (at < end) {
        const char *hole = strstr(at, "{{");
        if (!hole || hole >= end) break;
        const char *close = strstr(hole, "}}");
        if (!close || close >= end)
            return cn__fail(f->ctx, CN_BAD_ARGUMENT, "gpu: a shader has {{ without }} in the line \"%.*s\"",
                            (int)line.n, line.at);
        char number[24];
        span value;
        if (!find_value(f, (span){ hole + 2, (size_t)(close - hole - 2) }, number, &value)) return false;
        cn__gpu_append(f->to, at, (size_t)(hole - at));
        cn__gpu_append(f->to, value.at, value.n);
        at = close + 2;
    }
    cn__gpu_append(f->to, at, (size_t)(end - at));
    cn__gpu_append(f->to, "\n", 1);
    return true;
}

/* The line `//! end` that closes what begins before `at`, and the `//! else` on the way, or NULL. */
static const char *find_end(const char *at, const char **otherwise)
{
    int depth = 0;
    *otherwise = NULL;
    for (; *at; at = after(line_at(at))) {
        span word, rest;
        if (!is_declaration(line_at(at), &word, &rest)) continue;
        if (is(word, "if") || is(word, "repeat")) depth++;
        else if (is(word, "else") && !depth) *otherwise = at;
        else if (is(word, "end") && !depth--) return at;
    }
    return NULL;
}

static bool fill_lines(filling *f, const char *at, const char *end);

/* `//! if NAME [VALUE]` */
static bool fill_if(filling *f, span rest, const char *at, const char *otherwise, const char *end)
{
    char number[24];
    span name = word_of(&rest), wanted = trimmed(rest), value;
    if (!find_value(f, name, number, &value)) return false;
    bool keep = wanted.n ? same(value, wanted) : !is(value, "false") && !is(value, "0") && value.n;
    if (keep) return fill_lines(f, at, otherwise ? otherwise : end);
    return !otherwise || fill_lines(f, after(line_at(otherwise)), end);
}

/* `//! repeat J COUNT` */
static bool fill_repeat(filling *f, span rest, const char *at, const char *end)
{
    char number[24];
    span name = word_of(&rest), count = trimmed(rest);
    if (count.n && !isdigit((unsigned char)*count.at) && !find_value(f, count, number, &count)) return false;
    const int n = atoi(count.at);
    if (f->n_loops == LOOPS)
        return cn__fail(f->ctx, CN_BAD_ARGUMENT, "gpu: a shader nests more than %d //! repeat", LOOPS);
    f->loops[f->n_loops++].name = name;
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        f->loops[f->n_loops - 1].value = i;
        ok = fill_lines(f, at, end);
    }
    f->n_loops--;
    return ok;
}

static bool fill_lines(filling *f, const char *at, const char *end)
{
    while (at < end) {
        span line = line_at(at), word, rest;
        at = after(line);
        if (!is_declaration(line, &word, &rest)) {
            if (!is_comment(line) && !fill_line(f, line)) return false;
            continue;
        }
        if (is(word, "hole")) continue;
        if (!is(word, "if") && !is(word, "repeat")) {
            if (!fill_line(f, line)) return false;
            continue;
        }
        const char *otherwise, *close = find_end(at, &otherwise);
        if (!close)
            return cn__fail(f->ctx, CN_BAD_ARGUMENT, "gpu: the line \"%.*s\" of a shader has no //! end", (int)line.n,
                            line.at);
        if (is(word, "if") ? !fill_if(f, rest, at, otherwise, close) : !fill_repeat(f, rest, at, close)) return false;
        at = after(line_at(close));
    }
    return true;
}

/* `//! hole NAME = V | V`: the values, or false if the file declares no such hole. */
static bool find_hole(const char *text, span name, span *values)
{
    for (const char *at = text; *at; at = after(line_at(at))) {
        span word;
        if (!is_declaration(line_at(at), &word, values) || !is(word, "hole")) continue;
        if (!same(word_of(values), name)) continue;
        word_of(values); /* = */
        *values = trimmed(*values);
        return true;
    }
    return false;
}

static span next_value(span *values)
{
    for (size_t i = 0; i + 2 < values->n; i++)
        if (!memcmp(values->at + i, " | ", 3)) {
            span v = { values->at, i };
            values->at += i + 3, values->n -= i + 3;
            return trimmed(v);
        }
    span v = *values;
    values->n = 0;
    return trimmed(v);
}

static bool check_value(cn_ctx *ctx, const char *text, const cn_gpu_hole *h)
{
    char number[24];
    span values, value = value_of(h, number);
    if (!find_hole(text, (span){ h->name, strlen(h->name) }, &values) || is(values, "any")) return true;
    for (span left = values; left.n;)
        if (same(next_value(&left), value)) return true;
    return cn__fail(ctx, CN_BAD_ARGUMENT, "gpu: the hole {{%s}} of a shader must be %.*s, got %.*s", h->name,
                    (int)values.n, values.at, (int)value.n, value.at);
}

static bool check_holes(cn_ctx *ctx, const char *text, const cn_gpu_hole *holes)
{
    for (const cn_gpu_hole *h = holes; h && h->name; h++)
        if (!check_value(ctx, text, h)) return false;
    return true;
}

static bool fill(cn_ctx *ctx, cn__gpu_source *s, const char *text, const char *end, const cn_gpu_hole *holes)
{
    filling f = { .ctx = ctx, .to = s, .holes = holes };
    return fill_lines(&f, text, end) && (!s->failed || cn__no_memory(ctx, "gpu"));
}

/* ---- forms ---- */

static const char *path_of(const cn__shader_context *c, const char *text)
{
    for (const cn__shader_file *f = c->forms->files; f && f->path; f++)
        if (f->text == text) return f->path;
    return NULL;
}

static uint64_t hash_line(const char *line)
{
    uint64_t h = 1469598103934665603u;
    for (; *line; line++) h = (h ^ (unsigned char)*line) * 1099511628211u;
    return h;
}

bool cn__shader_form_seen(const cn__shader_forms *f, const char *line)
{
    for (size_t i = 0; i < f->seen.n; i++)
        if (((const uint64_t *)f->seen.v)[i] == hash_line(line)) return true;
    return false;
}

static void note(const cn__shader_context *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(const cn__shader_context *c, const char *format, ...)
{
    char line[512];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    cn__vec *seen = &c->forms->seen;
    if (cn__shader_form_seen(c->forms, line) || !cn__vec_reserve(&c->ctx->memory, seen, seen->n + 1, sizeof(uint64_t)))
        return;
    ((uint64_t *)seen->v)[seen->n++] = hash_line(line);
}

static void note_holes(const cn__shader_context *c, const char *text, const cn_gpu_hole *holes)
{
    if (!path_of(c, text)) return;
    for (const cn_gpu_hole *h = holes; h && h->name; h++) {
        char number[24];
        span values, value = value_of(h, number);
        if (find_hole(text, (span){ h->name, strlen(h->name) }, &values) && !is(values, "any"))
            note(c, "%s hole %s = %.*s", path_of(c, text), h->name, (int)value.n, value.at);
    }
}

static void note_part(const cn__shader_context *c, const char *text, const cn__shader_part *p)
{
    if (path_of(c, text))
        note(c, "%s %s %.*s", path_of(c, text), p->kernel ? "kernel" : "part", (int)p->name_n, p->name);
}

void cn__shader_each_form(const char *path, const char *text, void (*form)(void *user, const char *line), void *user)
{
    char line[512];
    for (const char *at = text; *at; at = after(line_at(at))) {
        span word, rest;
        if (!is_declaration(line_at(at), &word, &rest)) continue;
        if (is(word, "kernel") || is(word, "part")) {
            snprintf(line, sizeof line, "%s %.*s %.*s", path, (int)word.n, word.at, (int)rest.n, rest.at);
            form(user, line);
        }
        if (!is(word, "hole")) continue;
        span name = word_of(&rest);
        word_of(&rest); /* = */
        rest = trimmed(rest);
        while (rest.n && !is(rest, "any")) {
            span value = next_value(&rest);
            snprintf(line, sizeof line, "%s hole %.*s = %.*s", path, (int)name.n, name.at, (int)value.n, value.at);
            form(user, line);
        }
    }
}

/* ---- parts ---- */

/* The part that begins at or after `at`; false: there is none. */
static bool next_part(const char *at, cn__shader_part *p)
{
    bool found = false;
    for (; *at; at = after(line_at(at))) {
        span word, rest;
        if (!is_declaration(line_at(at), &word, &rest) || (!is(word, "kernel") && !is(word, "part"))) continue;
        if (found) break;
        found = true;
        *p = (cn__shader_part){ rest.at, after(line_at(at)), NULL, rest.n, is(word, "kernel") };
    }
    p->end = at;
    return found;
}

bool cn__shader_parts_of(cn_ctx *ctx, const char *text, cn__shader_parts *parts)
{
    cn__shader_part p;
    parts->n = 0;
    for (const char *at = text; next_part(at, &p); at = p.end) {
        if (parts->n == CN__SHADER_PARTS)
            return cn__fail(ctx, CN_BAD_ARGUMENT, "gpu: a shader has more than %d parts", CN__SHADER_PARTS);
        parts->v[parts->n++] = p;
    }
    return true;
}

int cn__shader_find(const cn__shader_parts *parts, const char *name, size_t n)
{
    for (int i = 0; i < parts->n; i++)
        if (parts->v[i].name_n == n && !memcmp(parts->v[i].name, name, n)) return i;
    return -1;
}

void cn__shader_append(cn__gpu_source *s, const cn__shader_part *p)
{
    for (const char *at = p->begin; at < p->end; at = after(line_at(at))) {
        span line = line_at(at);
        if (!is_comment(line) && line.n) cn__gpu_append(s, line.at, (size_t)(after(line) - line.at));
    }
}

bool cn__shader_part_text(const cn__shader_context *c, cn__gpu_source *s, const char *text, const char *part,
                          const cn_gpu_hole *holes)
{
    cn__shader_part p;
    if (!check_holes(c->ctx, text, holes)) return false;
    for (const char *at = text; next_part(at, &p); at = p.end) {
        if (!is((span){ p.name, p.name_n }, part)) continue;
        note_part(c, text, &p);
        note_holes(c, text, holes);
        cn__gpu_source filled = { .memory = s->memory };
        bool ok = fill(c->ctx, &filled, p.begin, p.end, holes);
        if (ok && filled.text.n)
            cn__shader_append(
                s, &(cn__shader_part){ .begin = filled.text.v, .end = (char *)filled.text.v + filled.text.n });
        cn__vec_free(s->memory, &filled.text, 1);
        return ok && (!s->failed || cn__no_memory(c->ctx, "gpu"));
    }
    return cn__fail(c->ctx, CN_BAD_ARGUMENT, "gpu: a shader has no part \"%s\"", part);
}

/* ---- uses ---- */

static const struct {
    const char *name;
    cn__gpu_need need;
} plain_names[] = {
    { "store_result", CN__NEED_STORE_RESULT },
    { "par", CN__NEED_PAR },
    { "pari", CN__NEED_PARI },
    { "parf", CN__NEED_PARF },
    { "arg", CN__NEED_ARG },
    { "argu", CN__NEED_ARGU },
    { "argh", CN__NEED_ARGH },
    { "tmp", CN__NEED_TMP },
    { "set_tmp", CN__NEED_SET_TMP },
    { "fault", CN__NEED_FAULT },
    { "subgroups", CN__NEED_SUBGROUPS },
};

/* The K of a name like "in3", where the prefix is "in"; -1: the name is another. */
static int numbered(span s, const char *prefix)
{
    size_t n = strlen(prefix);
    if (s.n != n + 1 || memcmp(s.at, prefix, n)) return -1;
    int k = s.at[n] - '0';
    return k >= 0 && k < CN_MAX_IN ? k : -1;
}

/* Adds a name that cairn/kernel.h lists. False: it lists no such name. */
static bool add_name(cn__gpu_needs *needs, span s)
{
    int k;
    for (size_t i = 0; i < sizeof plain_names / sizeof *plain_names; i++)
        if (is(s, plain_names[i].name)) {
            needs->flags |= plain_names[i].need;
            return true;
        }
    const char *equals = memchr(s.at, '=', s.n);
    if (equals) {
        span value = { equals + 1, s.n - (size_t)(equals + 1 - s.at) };
        if ((k = numbered((span){ s.at, (size_t)(equals - s.at) }, "in")) < 0) return false;
        needs->in |= 1u << k;
        snprintf(needs->otherwise[k], sizeof needs->otherwise[k], "%.*s", (int)value.n, value.at);
        return true;
    }
    if (s.n && s.at[s.n - 1] == '?') {
        if ((k = numbered((span){ s.at, s.n - 1 }, "out")) < 0) return false;
        needs->out |= 1u << k;
        needs->maybe_out |= 1u << k;
        return true;
    }
    if ((k = numbered(s, "in")) >= 0) needs->in |= 1u << k;
    else if ((k = numbered(s, "raw")) >= 0) needs->raw |= 1u << k;
    else if ((k = numbered(s, "out")) >= 0) needs->out |= 1u << k;
    else if ((k = numbered(s, "set_raw")) >= 0) needs->set_raw |= 1u << k;
    return k >= 0;
}

/* The parts of a program, from one or two files, in the order of their first use. */
typedef struct closure {
    const cn__shader_context *c;
    const char *text[2]; /* of the files; the second may be NULL */
    const cn__shader_parts *files[2];
    const cn_gpu_hole *holes;
    const cn__shader_parts *library;
    cn__gpu_needs *needs;
    bool wanted[2][CN__SHADER_PARTS];
    const cn__shader_part *queue[2 * CN__SHADER_PARTS];
    int file_of[2 * CN__SHADER_PARTS], n;
} closure;

static void want(closure *k, int file, int i)
{
    if (k->wanted[file][i]) return;
    k->wanted[file][i] = true;
    k->file_of[k->n] = file;
    k->queue[k->n++] = &k->files[file]->v[i];
}

static bool add_use(closure *k, span name)
{
    for (int f = 0; f < 2 && k->files[f]; f++) {
        int i = cn__shader_find(k->files[f], name.at, name.n);
        if (i < 0) continue;
        want(k, f, i);
        return true;
    }
    if (add_name(k->needs, name)) return true;
    int i = k->library ? cn__shader_find(k->library, name.at, name.n) : -1;
    if (i >= 0) k->needs->library[i / 64] |= 1ull << (i % 64);
    return i >= 0 ||
           cn__fail(k->c->ctx, CN_BAD_ARGUMENT,
                    "gpu: a shader uses \"%.*s\": not a part of the file, a part of library.wgsl, or a name of "
                    "cairn/kernel.h",
                    (int)name.n, name.at);
}

/* Adds what the declarations of a part name. The part has no holes. */
static bool add_uses(closure *k, const cn__shader_part *p)
{
    for (const char *at = p->begin; at < p->end; at = after(line_at(at))) {
        span word, rest;
        if (!is_declaration(line_at(at), &word, &rest)) continue;
        if (is(word, "workgroup")) k->needs->group_bytes += atoi(rest.at);
        else if (is(word, "uses"))
            for (span name = word_of(&rest); name.n; name = word_of(&rest))
                if (!add_use(k, name)) return false;
    }
    return true;
}

/* Appends all wanted parts and the parts that they use. */
static bool append_closure(closure *k, cn__gpu_source *s)
{
    cn__gpu_source filled = { .memory = s->memory };
    bool ok = true;
    for (int i = 0; i < k->n && ok; i++) {
        const cn__shader_part *p = k->queue[i];
        filled.text.n = 0;
        note_part(k->c, k->text[k->file_of[i]], p);
        ok = fill(k->c->ctx, &filled, p->begin, p->end, k->holes);
        if (!ok || !filled.text.n) continue;
        const cn__shader_part full = { .begin = filled.text.v, .end = (char *)filled.text.v + filled.text.n };
        ok = add_uses(k, &full);
        cn__shader_append(s, &full);
    }
    cn__vec_free(s->memory, &filled.text, 1);
    return ok && (!s->failed || cn__no_memory(k->c->ctx, "gpu"));
}

static int find_kernel(const cn__shader_parts *parts, const char *kernel)
{
    for (int i = 0; i < parts->n; i++)
        if (parts->v[i].kernel && (!kernel || is((span){ parts->v[i].name, parts->v[i].name_n }, kernel))) return i;
    return -1;
}

bool cn__shader_kernel(const cn__shader_context *c, cn__gpu_source *s, const cn_gpu_launch *l, cn__gpu_needs *needs)
{
    cn__shader_parts own, with;
    *needs = (cn__gpu_needs){ 0 };
    if (!check_holes(c->ctx, l->shader, l->holes) || !cn__shader_parts_of(c->ctx, l->shader, &own)) return false;
    if (l->with && (!check_holes(c->ctx, l->with, l->holes) || !cn__shader_parts_of(c->ctx, l->with, &with)))
        return false;
    note_holes(c, l->shader, l->holes);
    if (l->with) note_holes(c, l->with, l->holes);
    closure k = { .c = c,
                  .text = { l->shader, l->with },
                  .files = { &own, l->with ? &with : NULL },
                  .holes = l->holes,
                  .library = c->library,
                  .needs = needs };
    const int root = find_kernel(&own, l->kernel);
    if (root < 0)
        return cn__fail(c->ctx, CN_BAD_ARGUMENT, "gpu: a shader has no kernel%s%s", l->kernel ? " " : "",
                        l->kernel ? l->kernel : "");
    want(&k, 0, root);
    return append_closure(&k, s);
}

bool cn__shader_library(const cn__shader_context *c, cn__gpu_source *s, const uint64_t *wanted)
{
    cn__gpu_needs none = { 0 };
    closure k = { .c = c, .text = { cn__wgsl_library, NULL }, .files = { c->library, NULL }, .needs = &none };
    for (int i = 0; i < c->library->n; i++)
        if (wanted[i / 64] >> (i % 64) & 1) want(&k, 0, i);
    return append_closure(&k, s);
}
