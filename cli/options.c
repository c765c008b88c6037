/* The one table of options, and reading them from the command line. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define MANY        1e15
#define MODEL_GROUP "Model"
#define DATA_GROUP  "Data"
#define FIT_GROUP   "Training"
#define WATCH_GROUP "Watching and saving"
#define DRAW_GROUP  "Sampling"
#define ALL_GROUP   "General"
#define READS_TEXT  (TRAIN_GPT | EVAL)
#define READS_IDX   (TRAIN_CNN | EVAL)
#define COMPUTES    (TRAIN | GENERATE | EVAL | BENCH)

/* group, commands, name, letter, kind, value, default, low, high, here, words */
const option options[] = {
    { DATA_GROUP, TRAIN_GPT, "data", 0, LIST, "PATH...", NULL, 0, 0, false,
      "text files, or folders that are searched" },
    { DATA_GROUP, TRAIN_MLP, "data", 0, LIST, "FILE", NULL, 0, 0, false, "a CSV file of numbers" },
    { DATA_GROUP, EVAL, "data", 0, LIST, "PATH...", NULL, 0, 0, false, "gpt: texts or folders; mlp: a CSV file" },
    { DATA_GROUP, READS_TEXT, "include", 0, LIST, "PATTERN...", "*", 0, 0, false,
      "which files of folders: '*.c' '*.md'; hidden and binary ones never" },
    { DATA_GROUP, TRAIN_GPT, "tokenizer", 0, TEXT, "KIND", "bytes", 0, 0, false,
      "bytes, chars, bpe, or a tokenizer.json" },
    { DATA_GROUP, GENERATE | EVAL, "tokenizer", 0, TEXT, "FILE", NULL, 0, 0, true,
      "a tokenizer.json (default: the one beside the model)" },
    { DATA_GROUP, TRAIN_GPT, "vocab", 0, WHOLE, "N", "2000", 256, 1e6, false,
      "tokens of a bpe tokenizer that is trained" },
    { DATA_GROUP, TRAIN_MLP, "target", 0, TEXT, "COLUMN", NULL, 0, 0, false,
      "the column to predict: its name, or number from 0" },
    { DATA_GROUP, TRAIN_MLP, "classes", 0, FLAG, NULL, NULL, 0, 0, false, "the target is a class, not a quantity" },
    { DATA_GROUP, TRAIN_MLP, "separator", 0, TEXT, "CHAR", ",", 0, 0, false, "between columns; tab for a tabulator" },
    { DATA_GROUP, TRAIN_MLP, "no-header", 0, FLAG, NULL, NULL, 0, 0, false, "the first row is data" },
    { DATA_GROUP, READS_IDX, "images", 0, TEXT, "FILE", NULL, 0, 0, false,
      "images as an idx file, plain or .gz (MNIST)" },
    { DATA_GROUP, READS_IDX, "labels", 0, TEXT, "FILE", NULL, 0, 0, false, "their labels as an idx file" },
    { DATA_GROUP, TRAIN_CNN, "test-images", 0, TEXT, "FILE", NULL, 0, 0, false,
      "images to measure on, instead of a part held out" },
    { DATA_GROUP, TRAIN_CNN, "test-labels", 0, TEXT, "FILE", NULL, 0, 0, false, "their labels" },
    { DATA_GROUP, TRAIN_GPT, "val", 0, NUMBER, "SHARE", "0.1", 0, 0.9, false,
      "of the text, its end, is held out; 0: nothing" },
    { DATA_GROUP, TRAIN_MLP | TRAIN_CNN, "val", 0, NUMBER, "SHARE", "0.1", 0, 0.9, false,
      "of the items, drawn at random, is held out; 0: nothing" },
    { MODEL_GROUP, TRAIN_GPT, "layers", 0, WHOLE, "N", "4", 1, 1000, false, "transformer blocks" },
    { MODEL_GROUP, TRAIN_GPT, "heads", 0, WHOLE, "N", "4", 1, 1000, false, "attention heads of each" },
    { MODEL_GROUP, GENERATE | EVAL, "heads", 0, WHOLE, "N", NULL, 1, 1000, true,
      "attention heads, of a file that does not say (default: config.json's, or width / 64)" },
    { MODEL_GROUP, TRAIN_GPT, "width", 0, WHOLE, "N", "128", 1, 1e5, false, "numbers a token is described by" },
    { MODEL_GROUP, TRAIN_GPT, "context", 0, WHOLE, "N", "128", 1, 1e6, false, "tokens it looks back at" },
    { MODEL_GROUP, TRAIN_MLP, "hidden", 0, SIZES, "N,N,...", "64,64", 1, 8, false, "widths of the hidden layers" },
    { MODEL_GROUP, TRAIN_CNN, "channels", 0, SIZES, "N,N", "16,32", 2, 2, false, "of the two convolutions" },
    { MODEL_GROUP, TRAIN_CNN, "hidden", 0, WHOLE, "N", "128", 1, 1e6, false,
      "width of the linear layer before the last" },
    { MODEL_GROUP, TRAIN, "dropout", 0, NUMBER, "P", "0", 0, 0.99, false, "probability of leaving a number out" },
    { FIT_GROUP, TRAIN_GPT, "steps", 0, WHOLE, "N", "1000", 1, MANY, false,
      "of the whole run: what the learning rate's way is laid out for" },
    { FIT_GROUP, TRAIN_MLP | TRAIN_CNN, "epochs", 0, WHOLE, "N", "10", 1, MANY, false, "times all data is looked at" },
    { FIT_GROUP, TRAIN, "stop-at", 0, WHOLE, "STEP", NULL, 1, MANY, true, "save and end there; --resume goes on" },
    { FIT_GROUP, TRAIN_GPT, "batch", 0, WHOLE, "N", "16", 1, 1e6, false, "windows of text a step" },
    { FIT_GROUP, TRAIN_MLP | TRAIN_CNN, "batch", 0, WHOLE, "N", "64", 1, 1e6, false, "items a step" },
    { FIT_GROUP, EVAL, "batch", 0, WHOLE, "N", "16", 1, 1e6, true, "items computed at a time" },
    { FIT_GROUP, TRAIN, "accumulate", 0, WHOLE, "N", "1", 1, 1e6, false,
      "batches whose gradients add up to one step's" },
    { FIT_GROUP, TRAIN, "lr", 0, NUMBER, "X", "0.001", 1e-12, 1e3, false, "largest learning rate, of AdamW" },
    { FIT_GROUP, TRAIN, "min-lr", 0, NUMBER, "X", "0.0001", 0, 1e3, false, "the last one: it falls as a cosine does" },
    { FIT_GROUP, TRAIN_GPT, "warmup", 0, WHOLE, "N", "50", 0, MANY, false,
      "steps that it rises before (at most half of all)" },
    { FIT_GROUP, TRAIN_MLP | TRAIN_CNN, "warmup", 0, WHOLE, "N", "20", 0, MANY, false,
      "steps that it rises before (at most half of all)" },
    { FIT_GROUP, TRAIN, "decay", 0, NUMBER, "X", "0.1", 0, 100, false, "weight decay, of matrices only" },
    { FIT_GROUP, TRAIN, "beta2", 0, NUMBER, "X", "0.99", 0.5, 0.999999, false,
      "how long AdamW remembers squares of gradients" },
    { FIT_GROUP, TRAIN, "clip", 0, NUMBER, "X", "1", 0, 1e9, false, "largest norm of the gradient; 0: any" },
    { FIT_GROUP, TRAIN, "workers", 0, WHOLE, "N", "0", 0, 64, true,
      "threads that prepare batches; 0: none besides the main one" },
    { FIT_GROUP, TRAIN, "resume", 0, TEXT, "FILE", NULL, 0, 0, true,
      "go on from this checkpoint, bit for bit; its settings are taken over" },
    { WATCH_GROUP, TRAIN, "out", 'o', TEXT, "DIR", "run", 0, 0, true, "where everything is written" },
    { WATCH_GROUP, TRAIN_GPT, "eval-every", 0, WHOLE, "N", "100", 0, MANY, false,
      "steps between measurements on what is held out; 0: at the end only" },
    { WATCH_GROUP, TRAIN_MLP | TRAIN_CNN, "eval-every", 0, WHOLE, "N", "0", 0, MANY, false,
      "steps between measurements on what is held out; 0: every epoch" },
    { WATCH_GROUP, TRAIN_GPT, "eval-windows", 0, WHOLE, "N", "128", 1, MANY, false,
      "windows of the held out text that are measured, spread over it" },
    { WATCH_GROUP, TRAIN, "save-every", 0, WHOLE, "N", "500", 0, MANY, false,
      "steps between checkpoints; 0: at the end only" },
    { WATCH_GROUP, TRAIN_GPT, "sample-every", 0, WHOLE, "N", "0", 0, MANY, false,
      "steps between samples; 0: one before and one after" },
    { DRAW_GROUP, TRAIN_GPT, "prompt", 0, TEXT, "TEXT", "\n", 0, 0, false, "what samples begin with" },
    { DRAW_GROUP, TRAIN_GPT, "tokens", 0, WHOLE, "N", "200", 0, 1e6, false, "in a sample" },
    { DRAW_GROUP, GENERATE, "prompt", 'p', TEXT, "TEXT", NULL, 0, 0, true, "what the text begins with" },
    { DRAW_GROUP, GENERATE, "prompt-file", 0, TEXT, "FILE", NULL, 0, 0, true, "the same, from a file" },
    { DRAW_GROUP, GENERATE, "tokens", 'n', WHOLE, "N", "200", 0, MANY, true, "to generate" },
    { DRAW_GROUP, TRAIN_GPT | GENERATE, "temperature", 't', NUMBER, "X", "0.8", 1e-6, 1e6, false,
      "less is more certain" },
    { DRAW_GROUP, TRAIN_GPT | GENERATE, "top-k", 'k', WHOLE, "N", "40", 0, 1e9, false,
      "only among the N most likely; 0: all" },
    { DRAW_GROUP, GENERATE, "top-p", 0, NUMBER, "P", "0", 0, 1, true,
      "only among the most likely that together have this probability; 0: all" },
    { DRAW_GROUP, GENERATE, "greedy", 0, FLAG, NULL, NULL, 0, 0, true, "always the most likely token" },
    { "Benchmark", BENCH, "list", 0, FLAG, NULL, NULL, 0, 0, true, "name the workloads" },
    { "Benchmark", BENCH, "only", 0, TEXT, "NAME,...", NULL, 0, 0, true, "run these" },
    { "Benchmark", BENCH, "extra", 0, FLAG, NULL, NULL, 0, 0, true, "run those of other sizes, types and operators" },
    { "Benchmark", BENCH, "seconds", 0, NUMBER, "S", "4", 0.01, 3600, true, "to measure each" },
    { "Examination", DOCTOR, "only", 0, TEXT, "PART", NULL, 0, 0, true,
      "of names: look at these alone; the verdict is not written then" },
    { "Examination", DOCTOR, "large", 0, FLAG, NULL, NULL, 0, 0, true,
      "large sizes too where the GPU is a CPU; elsewhere they are tried anyway" },
    { ALL_GROUP, TRAIN, "seed", 's', WHOLE, "N", "1", 0, 9e15, false,
      "of everything random: the same seed, the same run" },
    { ALL_GROUP, GENERATE, "seed", 's', WHOLE, "N", NULL, 0, 9e15, true,
      "the same seed, the same text (default: another one each time)" },
    { ALL_GROUP, COMPUTES, "device", 0, CHOICE, "auto|cpu|gpu|gpu:N", "auto", 0, 0, true,
      "what to compute on; gpu is the fastest card, N the number that cairn devices shows; auto is what CAIRN_DEVICE says, or "
      "the cpu" },
    { ALL_GROUP, DOCTOR, "device", 0, CHOICE, "gpu|gpu:N", "gpu", 0, 0, true, "the one to examine" },
    { ALL_GROUP, COMPUTES, "threads", 'j', WHOLE, "N", "0", 0, 1024, true, "to compute with; 0: one a core" },
    { ALL_GROUP, TRAIN | GENERATE | EVAL, "profile", 0, MAYBE, "[FILE.json]", NULL, 0, 0, true,
      "show at the end where the time went; a file gets a trace for chrome://tracing" },
    { ALL_GROUP, EVERY, "config", 'c', TEXT, "FILE", NULL, 0, 0, true,
      "defaults: key = value lines, [train.gpt] sections; so does ./cairn.conf" },
    { ALL_GROUP, COMPUTES & ~BENCH, "quiet", 'q', FLAG, NULL, NULL, 0, 0, true, "say nothing but errors and results" },
    { ALL_GROUP, COMPUTES & ~BENCH, "verbose", 'v', FLAG, NULL, NULL, 0, 0, true, "say more" },
};
const int n_options = sizeof options / sizeof *options;
_Static_assert(sizeof options / sizeof *options <= MOST_OPTIONS, "settings have room for every option");

/* ---- looking up ---- */

const option *find_option(unsigned among, const char *name, size_t n)
{
    for (int i = 0; i < n_options; i++)
        if (options[i].commands & among && strlen(options[i].name) == n && !memcmp(options[i].name, name, n))
            return &options[i];
    return NULL;
}

static const option *find_letter(unsigned among, char letter)
{
    for (int i = 0; i < n_options; i++)
        if (options[i].commands & among && options[i].letter == letter) return &options[i];
    return NULL;
}

static const struct setting *setting_of(const settings *s, const char *name)
{
    const option *o = find_option(s->command->bit, name, strlen(name));
    if (o) return &s->of[o - options];
    fprintf(stderr, "cairn: '%s' has no option '%s': a fault of this program\n", s->command->name, name);
    exit(70);
}

bool given(const settings *s, const char *name) { return setting_of(s, name)->n > 0; }

const char *text_of(const settings *s, const char *name)
{
    const struct setting *v = setting_of(s, name);
    return v->n ? v->item[0] : NULL;
}

int64_t whole_of(const settings *s, const char *name)
{
    const char *text = text_of(s, name);
    return text ? strtoll(text, NULL, 10) : 0;
}

double number_of(const settings *s, const char *name)
{
    const char *text = text_of(s, name);
    return text ? strtod(text, NULL) : 0;
}

bool flag_of(const settings *s, const char *name)
{
    const char *text = text_of(s, name);
    return text && !strcmp(text, "yes");
}

int items_of(const settings *s, const char *name, char ***items)
{
    const struct setting *v = setting_of(s, name);
    *items = v->item;
    return v->n;
}

/* ---- values ---- */

/* "16,32": whole numbers above 0. Gives how many there are, or -1. */
static int read_sizes(const char *text, int64_t *out, int most)
{
    for (int n = 0;;) {
        char *end;
        errno = 0;
        const long long v = strtoll(text, &end, 10);
        if (end == text || errno || v < 1 || v > 1000000 || n == most) return -1;
        out[n++] = v;
        if (!*end) return n;
        if (*end != ',') return -1;
        text = end + 1;
    }
}

int sizes_of(const settings *s, const char *name, int64_t *out, int most)
{
    return read_sizes(text_of(s, name), out, most);
}

static bool check_number(const option *o, const char *value, char *error, size_t size)
{
    char *end;
    errno = 0;
    const double v = o->kind == WHOLE ? (double)strtoll(value, &end, 10) : strtod(value, &end);
    if (end == value || *end || errno || !isfinite(v)) {
        snprintf(error, size, "'%s' is not a %snumber", value, o->kind == WHOLE ? "whole " : "");
        return false;
    }
    if (v >= o->low && v <= o->high) return true;
    snprintf(error, size, "%s is not between %.15g and %.15g", value, o->low, o->high);
    return false;
}

static const char *yes_or_no(const char *value)
{
    static const char *const words[] = { "yes", "true", "on", "1", "no", "false", "off", "0" };
    for (int i = 0; i < 8; i++)
        if (!strcmp(value, words[i])) return i < 4 ? "yes" : "no";
    return NULL;
}

/* Whether value is one of the words between bars; N at the end of a word is a number. */
static bool is_choice(const char *choices, const char *value)
{
    const size_t n = strlen(value), digits = n - strcspn(value, "0123456789");
    for (const char *at = choices; at; at = strchr(at, '|'), at = at ? at + 1 : NULL) {
        const size_t word = strcspn(at, "|"), same = at[word - 1] == 'N' ? word - 1 : word;
        const bool numbered = same < word && digits && digits < 4 && n - digits == same &&
                              strspn(value + same, "0123456789") == digits;
        if ((numbered || (same == word && n == word)) && !memcmp(at, value, same)) return true;
    }
    return false;
}

static bool check_value(const option *o, const char **value, char *error, size_t size)
{
    int64_t sizes[8];
    switch (o->kind) {
    case WHOLE:
    case NUMBER: return check_number(o, *value, error, size);
    case SIZES:
        if (read_sizes(*value, sizes, 8) >= (int)o->low && read_sizes(*value, sizes, (int)o->high) > 0) return true;
        snprintf(error, size, "'%s' is not a list of sizes such as %s", *value, o->initial);
        return false;
    case FLAG: {
        const char *word = yes_or_no(*value);
        if (!word) snprintf(error, size, "'%s' is neither yes nor no", *value);
        else *value = word;
        return word;
    }
    case LIST:
    case TEXT:
        if (**value) return true;
        if (!strcmp(o->name, "prompt")) return true;
        snprintf(error, size, "is empty");
        return false;
    case CHOICE:
        if (is_choice(o->value, *value)) return true;
        snprintf(error, size, "'%s' is not one of %s", *value, o->value);
        return false;
    case MAYBE: return true;
    }
    return true;
}

bool set_option(settings *s, const option *o, const char *value, source by, char *error, size_t size)
{
    if (!check_value(o, &value, error, size)) return false;
    struct setting *v = &s->of[o - options];
    if (v->n && by < v->by) return true;
    if (o->kind != LIST || by > v->by) {
        for (int i = 0; i < v->n; i++) free(v->item[i]);
        v->n = 0;
    }
    v->item = grow(v->item, (size_t)(v->n + 1) * sizeof *v->item);
    v->item[v->n++] = copy_text(value);
    v->by = by;
    return true;
}

static void set_defaults(settings *s)
{
    char error[200];
    for (int i = 0; i < n_options; i++)
        if (options[i].commands & s->command->bit && options[i].initial)
            set_option(s, &options[i], options[i].initial, BY_DEFAULT, error, sizeof error);
}

void free_settings(settings *s)
{
    for (int i = 0; i < n_options; i++) {
        for (int k = 0; k < s->of[i].n; k++) free(s->of[i].item[k]);
        free(s->of[i].item);
    }
}

/* ---- the command line ---- */

typedef struct reader {
    settings *s;
    int argc, at;
    char **argv;
    bool only_words; /* after -- */
} reader;

static bool is_word(const char *arg) { return arg[0] != '-' || !arg[1]; }

static int take(reader *r, const option *o, const char *value)
{
    char error[300];
    if (set_option(r->s, o, value, BY_COMMAND, error, sizeof error)) return DONE;
    return usage("--%s: %s", o->name, error);
}

/* What follows an option: as many words as its kind takes. */
static int take_values(reader *r, const option *o)
{
    if (o->kind == FLAG) return take(r, o, "yes");
    if (o->kind == MAYBE) {
        const char *next = r->at < r->argc ? r->argv[r->at] : "";
        const size_t n = strlen(next);
        const bool file = n > 5 && !strcmp(next + n - 5, ".json");
        return take(r, o, file ? r->argv[r->at++] : "");
    }
    if (r->at == r->argc) return usage("--%s needs a value: %s", o->name, o->value);
    int code = take(r, o, r->argv[r->at++]);
    while (o->kind == LIST && code == DONE && r->at < r->argc && is_word(r->argv[r->at]))
        code = take(r, o, r->argv[r->at++]);
    return code;
}

static int unknown_option(const settings *s, const char *arg)
{
    const char *near = nearest(arg + strspn(arg, "-"), s->command->bit);
    if (near) return usage("'%s' has no option '%s': did you mean --%s?", s->command->name, arg, near);
    return usage("'%s' has no option '%s': see cairn %s --help", s->command->name, arg, s->command->name);
}

static int take_argument(reader *r, const char *word)
{
    const command *c = r->s->command;
    if (!c->argument) return usage("'%s' takes no '%s': see cairn %s --help", c->name, word, c->name);
    if (r->s->argument) return usage("'%s' takes one %s, not also '%s'", c->name, c->argument, word);
    r->s->argument = word;
    return DONE;
}

static int take_next(reader *r)
{
    const char *arg = r->argv[r->at++];
    const unsigned bit = r->s->command->bit;
    if (r->only_words || is_word(arg)) return take_argument(r, arg);
    if (!strcmp(arg, "--")) return r->only_words = true, DONE;
    if (arg[1] != '-') {
        const option *o = arg[2] ? NULL : find_letter(bit, arg[1]);
        return o ? take_values(r, o) : unknown_option(r->s, arg);
    }
    const size_t n = strcspn(arg + 2, "=");
    const option *o = find_option(bit, arg + 2, n);
    if (!o) return unknown_option(r->s, arg);
    return arg[2 + n] ? take(r, o, arg + 2 + n + 1) : take_values(r, o);
}

int parse_options(settings *s, int argc, char **argv)
{
    set_defaults(s);
    reader r = { .s = s, .argc = argc, .argv = argv };
    while (r.at < argc) {
        const int code = take_next(&r);
        if (code != DONE) return code;
    }
    if (s->command->argument && !s->command->argument_optional && !s->argument)
        return usage("which %s? see cairn %s --help", s->command->argument, s->command->name);
    return DONE;
}
