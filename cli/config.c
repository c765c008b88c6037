/* Reads and writes config files, and settings in checkpoints.

       # comment
       threads = 2            for every command with this option
       [train.gpt]            [train]: for every kind
       layers = 6
       include = *.c          a list has a line for each value */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static char *trim(char *text)
{
    while (isspace((unsigned char)*text)) text++;
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1])) text[--n] = 0;
    return text;
}

/* The commands that a section ("train.gpt", "train") is for; 0: none. */
static unsigned commands_of(const char *section)
{
    unsigned found = 0;
    char name[32];
    const size_t n = strlen(section);
    for (int i = 0; i < n_commands; i++) {
        snprintf(name, sizeof name, "%s", commands[i].name);
        for (char *c = name; *c; c++)
            if (*c == ' ') *c = '.';
        const bool all_below = !strncmp(name, section, n) && name[n] == '.';
        if (!strcmp(name, section) || all_below) found |= commands[i].bit;
    }
    return found;
}

/* Replaces "\n", "\r", "\t", "\s" (a space) and "\\", which write_value writes, in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *c = text; *c; c++) {
        const char next = *c == '\\' ? c[1] : 0;
        static const char letters[] = "nrts\\", meanings[] = "\n\r\t \\";
        const char *known = next ? strchr(letters, next) : NULL;
        const char meant = known ? meanings[known - letters] : 0;
        *to++ = meant ? meant : *c;
        c += meant != 0;
    }
    *to = 0;
}

typedef struct place {
    settings *s;
    const char *path;
    int line;
    unsigned section;
    source by;
} place;

static int read_key(const place *p, const char *key, const char *value)
{
    const option *any = find_option(p->section, key, strlen(key));
    if (!any) {
        const char *near = nearest(key, p->section);
        if (near) return fail("%s: line %d: unknown key '%s': did you mean '%s'?", p->path, p->line, key, near);
        return fail("%s: line %d: unknown key '%s'", p->path, p->line, key);
    }
    const option *mine = find_option(p->section & p->s->command->bit, key, strlen(key));
    if (!mine || !strcmp(mine->name, "config")) return DONE; /* the option of another command */
    if (mine->here == WRITES && *value && p->by == BY_CONFIG_HERE)
        return fail("%s: line %d: '%s' names what is written: in the working folder's config file it is not allowed; "
                    "give --%s, or --config %s if the file is yours",
                    p->path, p->line, key, key, p->path);
    char error[300];
    if (set_option(p->s, mine, value, p->by, error, sizeof error)) return DONE;
    return fail("%s: line %d: %s: %s", p->path, p->line, key, error);
}

static int read_line(place *p, char *line)
{
    line = trim(line);
    if (!*line || *line == '#') return DONE;
    const size_t n = strlen(line);
    if (*line == '[') {
        if (line[n - 1] != ']') return fail("%s: line %d: the section must end with ], got %s", p->path, p->line, line);
        line[n - 1] = 0;
        p->section = commands_of(trim(line + 1));
        return p->section ? DONE
                          : fail("%s: line %d: unknown section [%s]; sections are commands, such as [train.gpt]",
                                 p->path, p->line, line + 1);
    }
    char *equals = strchr(line, '=');
    if (!equals) return fail("%s: line %d: expected 'key = value', got '%.60s'", p->path, p->line, line);
    *equals = 0;
    char *value = trim(equals + 1);
    char *comment = strstr(value, " #");
    if (comment) *comment = 0;
    value = trim(value);
    unescape(value);
    return read_key(p, trim(line), value);
}

int read_config(settings *s, const char *path, source by)
{
    text t = { 0 };
    if (read_file(path, &t) != DONE) return FAILED;
    int code = DONE;
    if (memchr(t.bytes, 0, t.n)) code = fail("%s: not a config file: it has bytes that are 0", path);
    place p = { .s = s, .path = path, .section = EVERY, .by = by };
    for (char *at = t.bytes, *next; code == DONE && *at; at = next) {
        const size_t n = strcspn(at, "\n");
        next = at + n + (at[n] == '\n');
        at[n] = 0;
        p.line++;
        code = read_line(&p, at);
    }
    free(t.bytes);
    return code;
}

/* $XDG_CONFIG_HOME/cairn/cairn.conf, or ~/.config/cairn/cairn.conf. */
static int read_user_config(settings *s)
{
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *folder = base && *base == '/' ? copy_text(base) : home && *home == '/' ? join_path(home, ".config") : NULL;
    if (!folder) return DONE;
    char *path = join_path(folder, "cairn/cairn.conf");
    const int code = is_file(path) ? read_config(s, path, BY_CONFIG_USER) : DONE;
    free(path);
    free(folder);
    return code;
}

int read_configs(settings *s)
{
    if (read_user_config(s) != DONE) return FAILED;
    if (is_file("cairn.conf") && read_config(s, "cairn.conf", BY_CONFIG_HERE) != DONE) return FAILED;
    return given(s, "config") ? read_config(s, text_of(s, "config"), BY_CONFIG) : DONE;
}

/* read_line loses a space at an end of the value, and takes one before a # for the beginning of a comment. */
static void write_value(FILE *f, const char *value)
{
    for (const char *c = value; *c; c++) {
        if (*c == '\n') fputs("\\n", f);
        else if (*c == '\r') fputs("\\r", f);
        else if (*c == '\t') fputs("\\t", f);
        else if (*c == '\\') fputs("\\\\", f);
        else if (*c == ' ' && (c == value || !c[1] || c[1] == '#')) fputs("\\s", f);
        else fputc(*c, f);
    }
}

void print_settings(const settings *s, FILE *f)
{
    for (int i = 0; i < n_options; i++) {
        if (!(options[i].commands & s->command->bit) || options[i].here) continue;
        for (int k = 0; k < s->of[i].n; k++) {
            fprintf(f, "%s = ", options[i].name);
            write_value(f, s->of[i].item[k]);
            fputc('\n', f);
        }
    }
}

#define HEAD "# settings of this run"

bool is_config_of_run(const char *path) { return begins_with(path, HEAD); }

int write_config(const settings *s, const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) return fail("%s: %s", path, strerror(errno));
    fprintf(f, HEAD "; use them with: cairn %s --config THIS-FILE\n[", s->command->name);
    for (const char *c = s->command->name; *c; c++) fputc(*c == ' ' ? '.' : *c, f);
    fprintf(f, "]\n");
    print_settings(s, f);
    const bool bad = ferror(f);
    return fclose(f) || bad ? fail("%s: %s", path, strerror(errno)) : DONE;
}

/* ---- in checkpoints: option/data/0, option/data/1, option/layers ---- */

static void name_of(const option *o, int k, char *out, size_t size)
{
    if (o->kind == LIST) snprintf(out, size, "option/%s/%d", o->name, k);
    else snprintf(out, size, "option/%s", o->name);
}

bool save_settings(const settings *s, cn_dict *d)
{
    char name[64];
    bool ok = true;
    for (int i = 0; i < n_options; i++) {
        if (!(options[i].commands & s->command->bit) || options[i].here) continue;
        for (int k = 0; k < s->of[i].n; k++) {
            name_of(&options[i], k, name, sizeof name);
            ok = ok && cn_dict_set_text(d, name, s->of[i].item[k]);
        }
    }
    return ok;
}

int load_settings(settings *s, const cn_dict *d)
{
    char name[64], error[300];
    for (int i = 0; i < n_options; i++) {
        if (!(options[i].commands & s->command->bit) || options[i].here) continue;
        for (int k = 0;; k++) {
            name_of(&options[i], k, name, sizeof name);
            const char *value = cn_dict_text(d, name);
            if (!value || (options[i].kind != LIST && k)) break;
            if (!set_option(s, &options[i], value, BY_CHECKPOINT, error, sizeof error))
                return fail("the checkpoint's %s: %s", name, error);
        }
    }
    return DONE;
}
