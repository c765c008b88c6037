/* The cairn command: what its files share. It uses Cairn's public headers only.

   options.c   one table of options: parsing, defaults, help and config keys come from it
   config.c    config files, and the settings that a checkpoint keeps
   files.c     texts, folders and tokenizers       models.c  MLPs and CNNs, new or out of a file
   loop.c      the training loop of every kind     report.c  its curves
   epochs.c    what MLPs and CNNs share
   main.c      the commands; each has a file of its own */
#ifndef CAIRN_CLI_H
#define CAIRN_CLI_H

#include <inttypes.h>
#include <stdio.h>

#include "cairn/cairn.h"

#define LIKE_PRINTF(words, first) __attribute__((format(printf, words, first)))

/* ---- main.c: commands and errors ---- */

typedef struct settings settings;

enum {
    TRAIN_GPT = 1 << 0,
    TRAIN_MLP = 1 << 1,
    TRAIN_CNN = 1 << 2,
    GENERATE = 1 << 3,
    EVAL = 1 << 4,
    INFO = 1 << 5,
    BENCH = 1 << 6,
    OPS = 1 << 7,
    DEVICES = 1 << 8,
    TRAIN = TRAIN_GPT | TRAIN_MLP | TRAIN_CNN,
    DOCTOR = 1 << 9,
    EVERY = (1 << 10) - 1,
};

typedef struct command {
    const char *name; /* "train gpt" */
    unsigned bit;
    const char *argument; /* in the usage line; NULL: takes none */
    bool argument_optional;
    const char *words;    /* what it does, in a line */
    const char *examples; /* lines */
    int (*run)(settings *s);
} command;
extern const command commands[];
extern const int n_commands;
extern const char *program; /* as it was called: for commands to try */

int train_gpt(settings *s);
int train_mlp(settings *s);
int train_cnn(settings *s);
int generate(settings *s);
int evaluate(settings *s);
int info(settings *s);
int bench(settings *s);
int list_ops(settings *s);
int list_devices(settings *s);
int doctor(settings *s);

enum { DONE = 0, FAILED = 1, USAGE = 2 };
int fail(const char *words, ...) LIKE_PRINTF(1, 2);  /* one line to stderr; gives FAILED */
int usage(const char *words, ...) LIKE_PRINTF(1, 2); /* the same; gives USAGE */
int fail_in(cn_ctx *cn);                             /* the context's error as such a line */
void *need(size_t bytes);                            /* memory, zeroed; ends the program if there is none */
void *grow(void *p, size_t bytes);
char *copy_text(const char *text);

/* ---- options.c ---- */

typedef enum option_kind {
    FLAG,
    WHOLE,
    NUMBER,
    TEXT,
    LIST,   /* one or more words, and given repeatedly */
    MAYBE,  /* a flag that may have a value */
    SIZES,  /* 16,32 */
    CHOICE, /* one of what .value lists: a|b */
} option_kind;

typedef struct option {
    const char *group; /* title in the help text */
    unsigned commands; /* that have it */
    const char *name;  /* --name, and the key in config files */
    char letter;       /* -v; 0: none */
    option_kind kind;
    const char *value;   /* what the help calls it: "N" */
    const char *initial; /* default; NULL: none */
    double low, high;    /* limits of WHOLE and NUMBER; of SIZES: how many */
    bool here;           /* about this invocation, not about the run: checkpoints do not keep it */
    const char *words;
} option;
extern const option options[];
extern const int n_options;

/* Who says it; the later overrides the earlier. */
typedef enum source { BY_DEFAULT, BY_CONFIG_HERE, BY_CONFIG, BY_CHECKPOINT, BY_COMMAND } source;

enum { MOST_OPTIONS = 96 };
struct settings {
    const command *command;
    const char *argument; /* MODEL, FILE; NULL: none was given */
    struct setting {
        char **item; /* LIST has several, all others one */
        int n;
        source by;
    } of[MOST_OPTIONS];
};

const option *find_option(unsigned commands, const char *name, size_t n);
/* False, with words in error: not a value for it. A weaker source changes nothing. */
bool set_option(settings *s, const option *o, const char *value, source by, char *error, size_t size);
int parse_options(settings *s, int argc, char **argv); /* DONE or USAGE */
void free_settings(settings *s);

/* By name; asking for what the command has not is a fault of the program. */
bool given(const settings *s, const char *name); /* by someone, or as a default */
const char *text_of(const settings *s, const char *name);
int64_t whole_of(const settings *s, const char *name);
double number_of(const settings *s, const char *name);
bool flag_of(const settings *s, const char *name);
int items_of(const settings *s, const char *name, char ***items);
int sizes_of(const settings *s, const char *name, int64_t *out, int most);

/* ---- help.c ---- */

void print_help(void);
void print_command_help(const char *name, unsigned commands);     /* several: "train" */
const char *nearest(const char *word, unsigned among_options_of); /* of 0: among commands; NULL: nothing is near */

/* ---- config.c ---- */

int read_config(settings *s, const char *path, source by); /* DONE or FAILED */
int read_configs(settings *s);                             /* ./cairn.conf and --config */
void print_settings(const settings *s, FILE *f);           /* key = value lines */
int write_config(const settings *s, const char *path);
bool keep_settings(const settings *s, cn_dict *d); /* as texts "option/name" */
int take_settings(settings *s, const cn_dict *d);  /* those, below the command line */

/* ---- files.c ---- */

typedef struct text {
    char *bytes;
    size_t n;
    int64_t files;
} text;
int read_file(const char *path, text *t);   /* adds to t */
int read_texts(const settings *s, text *t); /* --data, searched by --include */
bool is_folder(const char *path);
bool is_file(const char *path);
int make_folder(const char *path); /* and those above it */
char *join_path(const char *folder, const char *name);
char *folder_of(const char *path); /* of a file: all before the last /, or "." */

char *find_model(const char *path); /* the file itself, or the newest in a folder; NULL: none, said why */
cn_tokenizer *find_tokenizer(cn_ctx *cn, const settings *s, const char *model);
int64_t heads_beside(const char *model); /* n_head of a config.json there; 0: unknown */
bool encode_text(cn_ctx *cn, cn_tokenizer *t, const char *bytes, size_t n, int32_t **ids, int64_t *count);
char *clean_text(const char *words, size_t n);            /* a copy without control characters but line ends and tabs */
void print_clean(FILE *out, const char *words, size_t n); /* the same, printed */

/* ---- models.c ---- */

cn_ctx *open_context(const settings *s);                          /* NULL: said why */
settings *settings_in(const cn_dict *model, const char *command); /* what it was trained with; NULL: said why */

cn_dataset *csv_dataset(cn_ctx *cn, const settings *s, const char *path); /* s: of train mlp */
cn_module *new_mlp(cn_ctx *cn, const settings *s, int64_t inputs, int64_t outputs);
cn_module *new_cnn(cn_ctx *cn, const settings *s, cn_dims image, int64_t classes); /* image: (channels,height,width) */
cn_module *mlp_in(cn_ctx *cn, const cn_dict *file, const settings *s);             /* NULL: said why */
cn_module *cnn_in(cn_ctx *cn, const cn_dict *file, const settings *s);
/* Buffers "mean" and "std" of a table's columns: the first layer of an MLP takes them away, the last puts them back. */
cn_tensor *mlp_buffer(cn_module *mlp, bool last, const char *name);

/* The loss of a batch; right: where the number of hits goes, of models that classify; may be NULL. */
typedef cn_tensor *(*loss_fn)(cn_module *m, const cn_batch *b, cn_tensor **right);
cn_tensor *text_loss(cn_module *m, const cn_batch *b, cn_tensor **right);
cn_tensor *class_loss(cn_module *m, const cn_batch *b, cn_tensor **right);
cn_tensor *value_loss(cn_module *m, const cn_batch *b, cn_tensor **right); /* the share of the variance that is left */

/* Over one epoch of a loader; ends early when interrupted. */
typedef struct score {
    double loss, accuracy; /* accuracy: NaN if there is none */
    int64_t count;
} score;
bool score_all(cn_module *m, cn_loader *l, loss_fn loss, score *out);

/* What a training set is like: how often each class comes, mean and deviation of each column. */
typedef struct survey {
    int64_t count, classes, columns;
    int64_t *of_class;
    double *mean, *std; /* (columns) of x */
    double y_mean, y_std;
} survey;
bool survey_items(cn_ctx *cn, cn_dataset *d, bool classes, bool columns, survey *out);
double class_entropy(const survey *v);
void free_survey(survey *v);

/* ---- loop.c ---- */

typedef struct metric {
    const char *name;
    double value;
} metric;
enum { MOST_METRICS = 4 };

/* A kind of model, as the loop sees it. */
typedef struct job {
    settings *s;
    cn_ctx *cn;
    cn_dict *resumed; /* the checkpoint; NULL: a fresh run */
    char name[160];   /* of the model file, without folder and ending: made of the settings */
    cn_module *model;
    cn_loader *train, *held_out;
    int64_t steps;    /* of the whole run */
    double amount;    /* of units in a step */
    const char *unit; /* "tokens" */
    double baseline;  /* loss of who knows only how frequent everything is; 0: none */
    const char *baseline_words;
    int64_t eval_every, sample_every;
    void *user;
    loss_fn loss;
    bool (*measure)(struct job *j, metric *m, int *n); /* the first metric is the loss; may be NULL */
    void (*sample)(struct job *j, const char *title);  /* may be NULL */
    bool (*describe)(struct job *j, cn_dict *d);       /* what is needed to make the model again */
    const char *next;                                  /* a command to try, after "cairn": its first %s is the folder */
    /* the loop's own */
    cn_progress *bar;
    cn_logbook *log;
    char *out, *file;
} job;
int begin_job(job *j, settings *s); /* opens a context and the checkpoint to go on from */
int open_folder(job *j);            /* once j->name is there: j->out, j->file, config.conf */
int run_job(job *j);
void end_job(job *j);
void say(const job *j, const char *words, ...) LIKE_PRINTF(2, 3); /* a line; above the bar if there is one */
int end_profile(cn_ctx *cn, const settings *s, cn_profile *p,
                FILE *out); /* the table, and the trace that --profile asks for */
int interrupted(void);      /* the signal that came, or 0 */

/* ---- epochs.c ---- */

int hold_out(const job *j, cn_dataset *all, const char *path,
             cn_dataset *parts[2]);               /* parts[1]: NULL if there is none */
int lay_out_epochs(job *j, cn_dataset *parts[2]); /* loaders, steps, measurements */

/* ---- report.c ---- */

int draw_losses(const job *j, bool show); /* loss.svg and loss.png out of log.csv */

#endif
