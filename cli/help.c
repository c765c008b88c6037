/* Prints help texts from the tables of commands and options, and finds the name that a misspelled one may mean. */
#include <string.h>

#include "cli.h"

enum { LEFT = 28, COLUMNS = 100 };

/* Prints a text that begins at a column. Lines break at spaces; all begin at that column. */
static void print_wrapped(int column, const char *text)
{
    int at = column;
    while (*text) {
        const int n = (int)strcspn(text, " ");
        if (at > column && at + 1 + n > COLUMNS) printf("\n%*s", column, ""), at = column;
        else if (at > column) putchar(' '), at++;
        printf("%.*s", n, text);
        at += n;
        text += n;
        text += *text == ' ';
    }
    putchar('\n');
}

/* "(gpt) " before the help of an option that not all of these commands have. */
static void name_commands(const option *o, unsigned among, char *out, size_t size)
{
    out[0] = 0;
    if ((o->commands & among) == among) return;
    size_t n = 0;
    for (int i = 0; i < n_commands; i++) {
        if (!(commands[i].bit & o->commands & among)) continue;
        const char *last = strrchr(commands[i].name, ' ');
        n += (size_t)snprintf(out + n, n < size ? size - n : 0, "%s%s", n ? ", " : "(",
                              last ? last + 1 : commands[i].name);
        if (n >= size) n = size - 1;
    }
    snprintf(out + n, size - n, ") ");
}

static void print_option(const option *o, unsigned among)
{
    char left[80], letter[8] = "   ", names[80], text[400], initial[80] = "";
    if (o->letter) snprintf(letter, sizeof letter, "-%c,", o->letter);
    const int n = snprintf(left, sizeof left, "  %s --%s %s", letter, o->name, o->value ? o->value : "");
    name_commands(o, among, names, sizeof names);
    if (o->initial && o->initial[0] != '\n') snprintf(initial, sizeof initial, " [%s]", o->initial);
    else if (o->initial) snprintf(initial, sizeof initial, " [line end]");
    snprintf(text, sizeof text, "%s%s%s", names, o->help, initial);
    printf("%-*s", LEFT, left);
    if (n >= LEFT) printf("\n%*s", LEFT, "");
    print_wrapped(LEFT, text);
}

static void print_options(unsigned among)
{
    const char *group = "";
    for (int i = 0; i < n_options; i++) {
        if (!(options[i].commands & among)) continue;
        if (strcmp(group, options[i].group)) printf("\n%s\n", group = options[i].group);
        print_option(&options[i], among);
    }
    print_option(&(option){ .letter = 'h', .name = "help", .help = "this text", .commands = EVERY }, among);
}

static void print_command(const command *c, bool named)
{
    enum { NAME = 15 };
    if (named) printf("  %-*s", NAME - 2, c->name);
    print_wrapped(named ? NAME : 0, c->help);
}

void print_command_help(const char *name, unsigned among)
{
    const command *only = NULL;
    for (int i = 0; i < n_commands; i++)
        if (commands[i].bit == among) only = &commands[i];
    const char *argument = only ? (only->argument ? only->argument : "") : "gpt|mlp|cnn";
    const bool maybe = only && only->argument_optional;
    printf("usage: cairn %s %s%s%s%s[options]\n\n", name, maybe ? "[" : "", argument, maybe ? "]" : "",
           *argument ? " " : "");
    for (int i = 0; i < n_commands; i++)
        if (commands[i].bit & among) print_command(&commands[i], !only);
    print_options(among);
    printf("\nDefaults are in brackets. Config files may set the same options: key = value.\n\nExamples\n");
    for (int i = 0; i < n_commands; i++) {
        if (!(commands[i].bit & among)) continue;
        for (const char *at = commands[i].examples; *at;) {
            const size_t n = strcspn(at, "\n");
            printf("  %.*s\n", (int)n, at);
            at += n + (at[n] == '\n');
        }
    }
}

void print_bundle_help(void)
{
    printf("usage: %s [options]\n\n", program);
    print_wrapped(0, "Writes text with the language model that is part of this program. It needs no other file and no "
                     "network. `cairn bundle` of Cairn made it.");
    print_options(GENERATE);
    printf("\nDefaults are in brackets.\n\nExample\n  %s --prompt \"Once \" --tokens 300\n", program);
}

void print_help(void)
{
    printf("cairn %s: trains small models on your own data, and uses them\n\nusage: cairn COMMAND [options]\n\n",
           cn_version());
    for (int i = 0; i < n_commands; i++) print_command(&commands[i], true);
    printf("\n  cairn COMMAND --help   options and examples of a command\n  cairn --version        the version\n\n"
           "Begin with\n  cairn train gpt --data my-texts --out run\n  cairn generate run --prompt \"Once \"\n");
}

/* ---- suggestions ---- */

/* The number of letters to insert, delete, change or swap with a neighbour. */
static int distance(const char *a, const char *b)
{
    enum { MOST = 40 };
    const int n = (int)strlen(a), m = (int)strlen(b);
    if (n > MOST || m > MOST) return MOST;
    int d[MOST + 1][MOST + 1];
    for (int i = 0; i <= n; i++)
        for (int k = 0; k <= m; k++) {
            if (!i || !k) {
                d[i][k] = i + k;
                continue;
            }
            int least = d[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
            if (d[i - 1][k] + 1 < least) least = d[i - 1][k] + 1;
            if (d[i][k - 1] + 1 < least) least = d[i][k - 1] + 1;
            const bool swapped = i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1];
            if (swapped && d[i - 2][k - 2] + 1 < least) least = d[i - 2][k - 2] + 1;
            d[i][k] = least;
        }
    return d[n][m];
}

static void consider(const char *word, const char *name, const char **best, int *least)
{
    int d = distance(word, name);
    const size_t n = strlen(word);
    if (n >= 3 && !strncmp(name, word, n) && d > 1) d = 1; /* a prefix */
    if (d < *least && d < (int)strlen(name)) *best = name, *least = d;
}

const char *nearest(const char *word, unsigned among)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    const char *best = NULL;
    int least = strlen(name) > 4 ? 4 : 3;
    if (!among) {
        for (int i = 0; i < n_commands; i++) consider(name, commands[i].name, &best, &least);
        consider(name, "train", &best, &least);
        return best;
    }
    for (int i = 0; i < n_options; i++)
        if (options[i].commands & among) consider(name, options[i].name, &best, &least);
    return best;
}
