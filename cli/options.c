/* The table of all options, and the parser of the command line. */
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
#define COMPUTES    (TRAIN | GENERATE | EVAL | BENCH | RUN)

/* group, commands, name, letter, kind, value, default, low, high, here, help */
const option options[] = {
    { DATA_GROUP, TRAIN_GPT, "data", 0, LIST, "PATH...", NULL, 0, 0, false,
      "text files, or folders, which are searched" },
    { DATA_GROUP, TRAIN_MLP, "data", 0, LIST, "FILE", NULL, 0, 0, false, "a CSV file of numbers" },
    { DATA_GROUP, EVAL, "data", 0, LIST, "PATH...", NULL, 0, 0, false, "gpt: texts or folders; mlp: a CSV file" },
    { DATA_GROUP, READS_TEXT, "include", 0, LIST, "PATTERN...", "*", 0, 0, false,
      "files to read in folders: '*.c' '*.md'; never hidden or binary files" },
    { DATA_GROUP, TRAIN_GPT, "tokenizer", 0, TEXT, "KIND", "bytes", 0, 0, false,
      "bytes, chars, bpe, or the path of a tokenizer.json" },
    { DATA_GROUP, GENERATE | EVAL | BUNDLE, "tokenizer", 0, TEXT, "FILE", NULL, 0, 0, true,
      "a tokenizer.json (default: the one beside the model)" },
    { DATA_GROUP, TRAIN_GPT, "vocab", 0, WHOLE, "N", "2000", 256, 1e6, false, "number of tokens of a bpe tokenizer" },
    { DATA_GROUP, TRAIN_MLP, "target", 0, TEXT, "COLUMN", NULL, 0, 0, false,
      "the column to predict: its name, or its number from 0" },
    { DATA_GROUP, TRAIN_MLP, "classes", 0, FLAG, NULL, NULL, 0, 0, false, "the target is a class, not a quantity" },
    { DATA_GROUP, TRAIN_MLP, "separator", 0, TEXT, "CHAR", ",", 0, 0, false,
      "separates columns; 'tab' for a tabulator" },
    { DATA_GROUP, TRAIN_MLP, "no-header", 0, FLAG, NULL, NULL, 0, 0, false, "the first row is data" },
    { DATA_GROUP, READS_IDX, "images", 0, TEXT, "FILE", NULL, 0, 0, false,
      "images as an idx file, plain or .gz (MNIST)" },
    { DATA_GROUP, READS_IDX, "labels", 0, TEXT, "FILE", NULL, 0, 0, false, "their labels as an idx file" },
    { DATA_GROUP, TRAIN_CNN, "test-images", 0, TEXT, "FILE", NULL, 0, 0, false,
      "images for validation, instead of a held-out part" },
    { DATA_GROUP, TRAIN_CNN, "test-labels", 0, TEXT, "FILE", NULL, 0, 0, false, "their labels" },
    { DATA_GROUP, TRAIN_GPT, "val", 0, NUMBER, "SHARE", "0.1", 0, 0.9, false,
      "part of the text (its end) that is held out for validation; 0: none" },
    { DATA_GROUP, TRAIN_MLP | TRAIN_CNN, "val", 0, NUMBER, "SHARE", "0.1", 0, 0.9, false,
      "part of the items (random) that is held out for validation; 0: none" },
    { MODEL_GROUP, TRAIN_GPT, "layers", 0, WHOLE, "N", "4", 1, 1000, false, "transformer blocks" },
    { MODEL_GROUP, TRAIN_GPT, "heads", 0, WHOLE, "N", "4", 1, 1000, false, "attention heads of each block" },
    { MODEL_GROUP, GENERATE | EVAL | BUNDLE | CONVERT, "heads", 0, WHOLE, "N", NULL, 1, 1000, true,
      "attention heads, if the file does not have the number (default: that of config.json, or width / 64)" },
    { MODEL_GROUP, TRAIN_GPT, "width", 0, WHOLE, "N", "128", 1, 1e5, false, "size of the embeddings" },
    { MODEL_GROUP, TRAIN_GPT, "context", 0, WHOLE, "N", "128", 1, 1e6, false, "tokens the model sees at once" },
    { MODEL_GROUP, TRAIN_MLP, "hidden", 0, SIZES, "N,N,...", "64,64", 1, 8, false, "widths of the hidden layers" },
    { MODEL_GROUP, TRAIN_CNN, "channels", 0, SIZES, "N,N", "16,32", 2, 2, false,
      "output channels of the two convolutions" },
    { MODEL_GROUP, TRAIN_CNN, "hidden", 0, WHOLE, "N", "128", 1, 1e6, false,
      "width of the linear layer before the last" },
    { MODEL_GROUP, TRAIN, "dropout", 0, NUMBER, "P", "0", 0, 0.99, false, "probability of setting an activation to 0" },
    { FIT_GROUP, TRAIN_GPT, "steps", 0, WHOLE, "N", "1000", 1, MANY, false,
      "steps of the whole run; the schedule of the learning rate depends on it" },
    { FIT_GROUP, TRAIN_MLP | TRAIN_CNN, "epochs", 0, WHOLE, "N", "10", 1, MANY, false, "passes over all data" },
    { FIT_GROUP, TRAIN, "stop-at", 0, WHOLE, "STEP", NULL, 1, MANY, true,
      "save and stop after this step; --resume continues" },
    { FIT_GROUP, TRAIN_GPT, "batch", 0, WHOLE, "N", "16", 1, 1e6, false, "windows of text per step" },
    { FIT_GROUP, TRAIN_MLP | TRAIN_CNN, "batch", 0, WHOLE, "N", "64", 1, 1e6, false, "items per step" },
    { FIT_GROUP, EVAL, "batch", 0, WHOLE, "N", "16", 1, 1e6, true, "items computed at a time" },
    { FIT_GROUP, TRAIN, "accumulate", 0, WHOLE, "N", "1", 1, 1e6, false,
      "batches whose gradients are averaged in one step" },
    { FIT_GROUP, TRAIN, "lr", 0, NUMBER, "X", "0.001", 1e-12, 1e3, false, "largest learning rate (AdamW)" },
    { FIT_GROUP, TRAIN, "min-lr", 0, NUMBER, "X", "0.0001", 0, 1e3, false,
      "last learning rate; it decays as a cosine" },
    { FIT_GROUP, TRAIN_GPT, "warmup", 0, WHOLE, "N", "50", 0, MANY, false,
      "first steps, in which the learning rate rises (at most half of all)" },
    { FIT_GROUP, TRAIN_MLP | TRAIN_CNN, "warmup", 0, WHOLE, "N", "20", 0, MANY, false,
      "first steps, in which the learning rate rises (at most half of all)" },
    { FIT_GROUP, TRAIN, "decay", 0, NUMBER, "X", "0.1", 0, 100, false, "weight decay (of matrices only)" },
    { FIT_GROUP, TRAIN, "beta2", 0, NUMBER, "X", "0.99", 0.5, 0.999999, false,
      "decay rate of the second moment in AdamW" },
    { FIT_GROUP, TRAIN, "clip", 0, NUMBER, "X", "1", 0, 1e9, false, "largest norm of the gradient; 0: no limit" },
    { FIT_GROUP, TRAIN, "workers", 0, WHOLE, "N", "0", 0, 64, true,
      "threads that prepare batches; 0: the main thread does it" },
    { FIT_GROUP, TRAIN, "resume", 0, TEXT, "FILE", NULL, 0, 0, WRITES,
      "continue from this checkpoint, with its settings; the result has the same bits" },
    { WATCH_GROUP, TRAIN, "out", 'o', TEXT, "DIR", NULL, 0, 0, WRITES,
      "folder for all output (default: runs/ and a name made of the model, the device and what is not the default)" },
    { WATCH_GROUP, TRAIN, "runs", 0, TEXT, "FILE", NULL, 0, 0, WRITES,
      "table that a line about this run is appended to (default: runs.csv beside the folder of --out)" },
    { WATCH_GROUP, TRAIN_GPT, "eval-every", 0, WHOLE, "N", "100", 0, MANY, false,
      "steps between validations; 0: at the end only" },
    { WATCH_GROUP, TRAIN_MLP | TRAIN_CNN, "eval-every", 0, WHOLE, "N", "0", 0, MANY, false,
      "steps between validations; 0: once per epoch" },
    { WATCH_GROUP, TRAIN_GPT, "eval-windows", 0, WHOLE, "N", "128", 1, MANY, false,
      "windows of the held-out text in a validation, spread evenly" },
    { WATCH_GROUP, TRAIN, "save-every", 0, WHOLE, "N", "500", 0, MANY, false,
      "steps between checkpoints; 0: at the end only" },
    { WATCH_GROUP, TRAIN_GPT, "sample-every", 0, WHOLE, "N", "0", 0, MANY, false,
      "steps between samples; 0: one before and one after the training" },
    { DRAW_GROUP, TRAIN_GPT, "prompt", 0, TEXT, "TEXT", "\n", 0, 0, false, "beginning of the samples" },
    { DRAW_GROUP, TRAIN_GPT, "tokens", 0, WHOLE, "N", "200", 0, 1e6, false, "length of a sample" },
    { DRAW_GROUP, GENERATE, "prompt", 'p', TEXT, "TEXT", NULL, 0, 0, true, "beginning of the text" },
    { DRAW_GROUP, GENERATE, "prompt-file", 0, TEXT, "FILE", NULL, 0, 0, true, "a file with the beginning of the text" },
    { DRAW_GROUP, GENERATE, "tokens", 'n', WHOLE, "N", "200", 0, MANY, true, "number of tokens to generate" },
    { DRAW_GROUP, TRAIN_GPT | GENERATE, "temperature", 't', NUMBER, "X", "0.8", 1e-6, 1e6, false,
      "lower values choose likely tokens more often" },
    { DRAW_GROUP, TRAIN_GPT | GENERATE, "top-k", 'k', WHOLE, "N", "40", 0, 1e9, false,
      "sample from the N most likely tokens; 0: from all" },
    { DRAW_GROUP, GENERATE, "top-p", 0, NUMBER, "P", "0", 0, 1, true,
      "sample from the most likely tokens whose probabilities sum to P; 0: from all" },
    { DRAW_GROUP, GENERATE, "greedy", 0, FLAG, NULL, NULL, 0, 0, true, "always choose the most likely token" },
    { "Table", RUNS, "sort", 0, CHOICE, "device|loss|time|date|model", "device", 0, 0, true,
      "order of the lines; of one device or model: by loss" },
    { "Arrays", RUN, "input", 'i', LIST, "[NAME=]FILE.npy...", NULL, 0, 0, true,
      "an input of the model; without a name, the next one" },
    { "Arrays", RUN, "output", 'o', LIST, "[NAME=]FILE.npy...", NULL, 0, 0, WRITES,
      "where a result is written; without it, results are described" },
    { "File", CONVERT, "opset", 0, WHOLE, "N", "20", 13, 24, true, "the operator set of ONNX to write for" },
    { "Benchmark", BENCH, "list", 0, FLAG, NULL, NULL, 0, 0, true, "list the workloads" },
    { "Benchmark", BENCH, "only", 0, TEXT, "NAME,...", NULL, 0, 0, true, "run only these workloads" },
    { "Benchmark", BENCH, "extra", 0, FLAG, NULL, NULL, 0, 0, true,
      "run the workloads with other sizes, types and operators" },
    { "Benchmark", BENCH, "compare", 0, TEXT, "DEVICE,...", NULL, 0, 0, true,
      "one table of the workloads on these devices, and from which size of a matrix product (matmul-sizes) and of a "
      "batch (batch-sizes) on they are faster than the first: cpu,gpu" },
    { "Benchmark", BENCH, "seconds", 0, NUMBER, "S", NULL, 0.01, 3600, true,
      "time for each workload (default: 4; with --compare 0.5)" },
    { "Program", BUNDLE, "out", 'o', TEXT, "FILE", NULL, 0, 0, WRITES, "the program to write" },
    { "Program", BUNDLE, "program", 0, TEXT, "FILE", NULL, 0, 0, true,
      "a cairn program to copy, such as one for another system (default: this one)" },
    { "Examination", DOCTOR, "only", 0, TEXT, "PART", NULL, 0, 0, true,
      "test only what has PART in its name; writes no verdict" },
    { "Examination", DOCTOR, "large", 0, FLAG, NULL, NULL, 0, 0, true,
      "test large sizes on a software GPU as well; other GPUs always test them" },
    { ALL_GROUP, TRAIN, "seed", 's', WHOLE, "N", "1", 0, 9e15, false,
      "of all random numbers: the same seed gives the same run" },
    { ALL_GROUP, GENERATE, "seed", 's', WHOLE, "N", NULL, 0, 9e15, true,
      "the same seed gives the same text (default: random)" },
    { ALL_GROUP, COMPUTES, "device", 0, CHOICE, "auto|cpu|gpu|gpu:N", NULL, 0, 0, true,
      "device to compute on; auto: a hardware GPU if there is one, else the CPU; gpu: the first GPU; N: a number of "
      "`cairn devices` (default: the value of CAIRN_DEVICE, or cpu)" },
    { ALL_GROUP, DOCTOR, "device", 0, CHOICE, "gpu|gpu:N", "gpu", 0, 0, true, "device to test" },
    { ALL_GROUP, COMPUTES, "threads", 'j', WHOLE, "N", "0", 0, 1024, true, "number of threads; 0: one per core" },
    { ALL_GROUP, TRAIN | GENERATE | EVAL, "profile", 0, MAYBE, "[FILE.json]", NULL, 0, 0, WRITES,
      "print where the time went; FILE.json receives a trace for chrome://tracing" },
    { ALL_GROUP, TRAIN | GENERATE | EVAL | BUNDLE | CONVERT, "force", 0, FLAG, NULL, NULL, 0, 0, WRITES,
      "overwrite files that cairn did not write" },
    { ALL_GROUP, EVERY, "config", 'c', TEXT, "FILE", NULL, 0, 0, true,
      "config file: lines key = value, sections [train.gpt]; ~/.config/cairn/cairn.conf and ./cairn.conf are always "
      "read" },
    { ALL_GROUP, (COMPUTES & ~BENCH) | BUNDLE | CONVERT, "quiet", 'q', FLAG, NULL, NULL, 0, 0, true,
      "print only errors and results" },
    { ALL_GROUP, COMPUTES & ~BENCH, "verbose", 'v', FLAG, NULL, NULL, 0, 0, true, "print more" },
};
const int n_options = sizeof options / sizeof *options;
_Static_assert(sizeof options / sizeof *options <= MOST_OPTIONS, "settings must have room for every option");

/* ---- look up ---- */

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
    fprintf(stderr, "cairn: '%s' has no option '%s': this is a bug of the program\n", s->command->name, name);
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

/* "16,32": whole numbers above 0. Returns their number, or -1. */
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
        snprintf(error, size, "must be a %snumber, got '%s'", o->kind == WHOLE ? "whole " : "", value);
        return false;
    }
    if (v >= o->low && v <= o->high) return true;
    snprintf(error, size, "must be between %.15g and %.15g, got %s", o->low, o->high, value);
    return false;
}

static const char *yes_or_no(const char *value)
{
    static const char *const names[] = { "yes", "true", "on", "1", "no", "false", "off", "0" };
    for (int i = 0; i < 8; i++)
        if (!strcmp(value, names[i])) return i < 4 ? "yes" : "no";
    return NULL;
}

/* Whether value is one of the choices between bars; N at the end of a choice is a number. */
static bool is_choice(const char *choices, const char *value)
{
    const size_t n = strlen(value), digits = n - strcspn(value, "0123456789");
    for (const char *at = choices; at; at = strchr(at, '|'), at = at ? at + 1 : NULL) {
        const size_t word = strcspn(at, "|"), same = at[word - 1] == 'N' ? word - 1 : word;
        const bool numbered =
            same < word && digits && digits < 4 && n - digits == same && strspn(value + same, "0123456789") == digits;
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
        snprintf(error, size, "must be a list of sizes such as %s, got '%s'", o->initial, *value);
        return false;
    case FLAG: {
        const char *word = yes_or_no(*value);
        if (!word) snprintf(error, size, "must be yes or no, got '%s'", *value);
        else *value = word;
        return word;
    }
    case LIST:
    case TEXT:
        if (**value) return true;
        if (!strcmp(o->name, "prompt")) return true;
        snprintf(error, size, "must not be empty");
        return false;
    case CHOICE:
        if (is_choice(o->value, *value)) return true;
        snprintf(error, size, "must be one of %s, got '%s'", o->value, *value);
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
    bool only_arguments; /* after -- */
} reader;

static bool is_argument(const char *arg) { return arg[0] != '-' || !arg[1]; }

static int set_value(reader *r, const option *o, const char *value)
{
    char error[300];
    if (set_option(r->s, o, value, BY_COMMAND, error, sizeof error)) return DONE;
    return usage("--%s: %s", o->name, error);
}

/* Reads the values of an option: as many as its kind has. */
static int read_values(reader *r, const option *o)
{
    if (o->kind == FLAG) return set_value(r, o, "yes");
    if (o->kind == MAYBE) {
        const char *next = r->at < r->argc ? r->argv[r->at] : "";
        const size_t n = strlen(next);
        const bool file = n > 5 && !strcmp(next + n - 5, ".json");
        return set_value(r, o, file ? r->argv[r->at++] : "");
    }
    if (r->at == r->argc) return usage("--%s needs a value: %s", o->name, o->value);
    int code = set_value(r, o, r->argv[r->at++]);
    while (o->kind == LIST && code == DONE && r->at < r->argc && is_argument(r->argv[r->at]))
        code = set_value(r, o, r->argv[r->at++]);
    return code;
}

static int unknown_option(const settings *s, const char *arg)
{
    const char *near = nearest(arg + strspn(arg, "-"), s->command->bit);
    if (near) return usage("'%s' has no option '%s': did you mean --%s?", s->command->name, arg, near);
    return usage("'%s' has no option '%s': see cairn %s --help", s->command->name, arg, s->command->name);
}

static int read_argument(reader *r, const char *word)
{
    const command *c = r->s->command;
    if (!c->argument) return usage("'%s' has no argument, got '%s': see cairn %s --help", c->name, word, c->name);
    const bool two = strchr(c->argument, ' ');
    if (!r->s->argument) return r->s->argument = word, DONE;
    if (two && !r->s->second) return r->s->second = word, DONE;
    return usage("'%s' has %s %s, got '%s' as well", c->name, two ? "the arguments" : "one argument", c->argument,
                 word);
}

static int read_next(reader *r)
{
    const char *arg = r->argv[r->at++];
    const unsigned bit = r->s->command->bit;
    if (r->only_arguments || is_argument(arg)) return read_argument(r, arg);
    if (!strcmp(arg, "--")) return r->only_arguments = true, DONE;
    if (arg[1] != '-') {
        const option *o = arg[2] ? NULL : find_letter(bit, arg[1]);
        return o ? read_values(r, o) : unknown_option(r->s, arg);
    }
    const size_t n = strcspn(arg + 2, "=");
    const option *o = find_option(bit, arg + 2, n);
    if (!o) return unknown_option(r->s, arg);
    return arg[2 + n] ? set_value(r, o, arg + 2 + n + 1) : read_values(r, o);
}

int parse_options(settings *s, int argc, char **argv)
{
    set_defaults(s);
    reader r = { .s = s, .argc = argc, .argv = argv };
    while (r.at < argc) {
        const int code = read_next(&r);
        if (code != DONE) return code;
    }
    if (s->command->argument && !s->command->argument_optional && !s->argument)
        return usage("'%s' needs the argument %s: see cairn %s --help", s->command->name, s->command->argument,
                     s->command->name);
    if (s->command->argument && strchr(s->command->argument, ' ') && !s->second)
        return usage("'%s' needs the arguments %s: see cairn %s --help", s->command->name, s->command->argument,
                     s->command->name);
    return DONE;
}
