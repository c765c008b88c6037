/* Help texts out of the tables, and guesses at what was meant. */
#include <string.h>

#include "cli.h"

enum { LEFT = 28, COLUMNS = 112 };

/* Words, broken at spaces, each line after the first at the same column. */
static void print_words(int column, const char *words)
{
    int at = column;
    while (*words) {
        const int n = (int)strcspn(words, " ");
        if (at > column && at + 1 + n > COLUMNS) printf("\n%*s", column, ""), at = column;
        else if (at > column) putchar(' '), at++;
        printf("%.*s", n, words);
        at += n;
        words += n;
        words += *words == ' ';
    }
    putchar('\n');
}

/* "(gpt)" beside an option that not all of these commands have. */
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
    char left[80], letter[8] = "   ", names[80], words[400], initial[80] = "";
    if (o->letter) snprintf(letter, sizeof letter, "-%c,", o->letter);
    const int n = snprintf(left, sizeof left, "  %s --%s %s", letter, o->name, o->value ? o->value : "");
    name_commands(o, among, names, sizeof names);
    if (o->initial && o->initial[0] != '\n') snprintf(initial, sizeof initial, " [%s]", o->initial);
    else if (o->initial) snprintf(initial, sizeof initial, " [a line end]");
    snprintf(words, sizeof words, "%s%s%s", names, o->words, initial);
    printf("%-*s", LEFT, left);
    if (n >= LEFT) printf("\n%*s", LEFT, "");
    print_words(LEFT, words);
}

static void print_options(unsigned among)
{
    const char *group = "";
    for (int i = 0; i < n_options; i++) {
        if (!(options[i].commands & among)) continue;
        if (strcmp(group, options[i].group)) printf("\n%s\n", group = options[i].group);
        print_option(&options[i], among);
    }
    print_option(&(option){ .letter = 'h', .name = "help", .words = "this text", .commands = EVERY }, among);
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
        if (commands[i].bit & among)
            printf("%s%s%s\n", only ? "" : commands[i].name, only ? "" : ": ", commands[i].words);
    print_options(among);
    printf("\nIn brackets: defaults. %s\n\nFor example\n", "Config files may say the same: key = value.");
    for (int i = 0; i < n_commands; i++) {
        if (!(commands[i].bit & among)) continue;
        for (const char *at = commands[i].examples; *at;) {
            const size_t n = strcspn(at, "\n");
            printf("  %.*s\n", (int)n, at);
            at += n + (at[n] == '\n');
        }
    }
}

void print_help(void)
{
    printf("cairn %s: train small models on your own data, and use them\n\nusage: cairn COMMAND [options]\n\n",
           cn_version());
    for (int i = 0; i < n_commands; i++) printf("  %-12s %s\n", commands[i].name, commands[i].words);
    printf("\n  cairn COMMAND --help   its options, with examples\n  cairn --version        the version\n\n"
           "Begin with\n  cairn train gpt --data my-texts --out run\n  cairn generate run --prompt \"Once \"\n");
}

/* ---- what was meant ---- */

/* Letters to insert, delete, change or swap with their neighbour. */
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
    if (n >= 3 && !strncmp(name, word, n) && d > 1) d = 1; /* the beginning of it */
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
