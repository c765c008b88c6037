/* cli/cli.h: what the files of the cairn command share. The command uses Cairn's public headers only.

   main.c      the table of commands; each command has its own file
   bundle.c    programs with a model in them: makes them, and is their main
   options.c   the table of options, from which parsing, defaults, help and config keys come
   help.c      help texts, and suggestions for misspelled names
   config.c    config files, and settings in checkpoints
   files.c     texts, folders and tokenizers
   models.c    MLPs and CNNs, new or from a file; losses
   loop.c      the training loop for all models
   epochs.c    what MLPs and CNNs share
   meter.c     where the time of a training goes
   runs.c      runs.csv, a line for each training
   report.c    curves of the loss */
#ifndef CAIRN_CLI_H
#define CAIRN_CLI_H

#include <inttypes.h>
#include <stdio.h>

#include "cairn/cairn.h"

#define LIKE_PRINTF(text, first) __attribute__((format(printf, text, first)))

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
    RUNS = 1 << 10,
    BUNDLE = 1 << 11,
    RUN = 1 << 12,
    CONVERT = 1 << 13,
    EVERY = (1 << 14) - 1,
};

typedef struct command {
    const char *name; /* "train gpt" */
    unsigned bit;
    const char *argument; /* its name in the usage line, or two names with a space between; NULL: there is none */
    bool argument_optional;
    const char *help;     /* what it does */
    const char *examples; /* lines of text */
    int (*run)(settings *s);
} command;
extern const command commands[];
extern const int n_commands;
extern const char *program; /* the name it was called by, for suggestions */

int train_gpt(settings *s);
int train_mlp(settings *s);
int train_cnn(settings *s);
int generate(settings *s);
int evaluate(settings *s);
int info(settings *s);
int run_model(settings *s);
int convert(settings *s);
int bench(settings *s);
int list_ops(settings *s);
int list_devices(settings *s);
int doctor(settings *s);
int list_runs(settings *s);
int make_bundle(settings *s);

enum { DONE = 0, FAILED = 1, USAGE = 2 };
int fail(const char *format, ...) LIKE_PRINTF(1, 2);  /* prints a line to stderr; returns FAILED */
int usage(const char *format, ...) LIKE_PRINTF(1, 2); /* the same; returns USAGE */
int fail_in(cn_ctx *cn);                              /* prints the error of the context; returns FAILED */
void *need(size_t bytes);                             /* zeroed memory; ends the program if there is none */
void *grow(void *p, size_t bytes);
char *copy_text(const char *text);

/* ---- options.c ---- */

typedef enum option_kind {
    FLAG,
    WHOLE,
    NUMBER,
    TEXT,
    LIST,   /* one or more values; the option may be repeated */
    MAYBE,  /* a flag with an optional value */
    SIZES,  /* 16,32 */
    CHOICE, /* one of the values in .value: a|b */
} option_kind;

/* What an option concerns. WRITES: it names what is written; a config file that lies in the working folder, which may
   be anybody's, must not set it. */
typedef enum scope { SAVED, HERE, WRITES } scope;

typedef struct option {
    const char *group; /* title in the help text */
    unsigned commands; /* the commands that have it */
    const char *name;  /* --name, and the key in config files */
    char letter;       /* -v; 0: none */
    option_kind kind;
    const char *value;   /* its name in the help text: "N" */
    const char *initial; /* default; NULL: none */
    double low, high;    /* limits of WHOLE and NUMBER; SIZES: limits of the count */
    scope here;          /* true: concerns this invocation only: checkpoints do not save it */
    const char *help;
} option;
extern const option options[];
extern const int n_options;

/* Where a setting comes from; a later source overrides an earlier one. */
typedef enum source { BY_DEFAULT, BY_CONFIG_USER, BY_CONFIG_HERE, BY_CONFIG, BY_CHECKPOINT, BY_COMMAND } source;

enum { MOST_OPTIONS = 96 };
struct settings {
    const command *command;
    const char *argument; /* MODEL or FILE; NULL: none */
    const char *second;   /* a second one; NULL: none */
    struct setting {
        char **item; /* LIST: several; all others: one */
        int n;
        source by;
    } of[MOST_OPTIONS];
};

const option *find_option(unsigned commands, const char *name, size_t n);
/* False: the value is not valid; error has the reason. A weaker source changes nothing. */
bool set_option(settings *s, const option *o, const char *value, source by, char *error, size_t size);
int parse_options(settings *s, int argc, char **argv); /* DONE or USAGE */
void free_settings(settings *s);

/* Values by name. It is a bug of the program to ask for an option that the command does not have. */
bool given(const settings *s, const char *name); /* set by any source, or by default */
const char *text_of(const settings *s, const char *name);
int64_t whole_of(const settings *s, const char *name);
double number_of(const settings *s, const char *name);
bool flag_of(const settings *s, const char *name);
int items_of(const settings *s, const char *name, char ***items);
int sizes_of(const settings *s, const char *name, int64_t *out, int most);

/* ---- help.c ---- */

void print_help(void);
void print_command_help(const char *name, unsigned commands); /* of several commands: "train" */
void print_bundle_help(void);
/* The option of these commands with the most similar name; 0: the command. NULL: none is similar. */
const char *nearest(const char *name, unsigned among_options_of);

/* ---- config.c ---- */

int read_config(settings *s, const char *path, source by); /* DONE or FAILED */
int read_configs(settings *s);                             /* the user's, ./cairn.conf and --config */
bool is_config_of_run(const char *path);                   /* write_config wrote it */
void print_settings(const settings *s, FILE *f);           /* key = value lines */
int write_config(const settings *s, const char *path);
bool save_settings(const settings *s, cn_dict *d); /* as texts "option/name" */
int load_settings(settings *s, const cn_dict *d);  /* the command line overrides them */

/* ---- files.c ---- */

typedef struct text {
    char *bytes;
    size_t n;
    int64_t files;
} text;
int read_file(const char *path, text *t);   /* appends to t */
int read_texts(const settings *s, text *t); /* the files of --data and --include */
bool is_folder(const char *path);
bool is_file(const char *path);
int make_folder(const char *path);                     /* and the folders above it */
bool begins_with(const char *path, const char *bytes); /* whether the file exists and begins so */
/* FAILED if the file exists and `own` is false, unless --force is given. */
int may_write(const settings *s, const char *path, bool own);
char *join_path(const char *folder, const char *name);
char *folder_of(const char *path); /* the path up to the last /, or "." */

char *find_model(const char *path); /* the file itself, or the newest in a folder; NULL: failed */
cn_tokenizer *find_tokenizer(cn_ctx *cn, const settings *s, const char *model, const cn_dict *file);
int64_t heads_beside(const char *model); /* n_head in the config.json beside the model; 0: unknown */
bool encode_text(cn_ctx *cn, cn_tokenizer *t, const char *bytes, size_t n, int32_t **ids, int64_t *count);
/* A copy without control characters, except line ends and tabs. */
char *clean_text(const char *bytes, size_t n);
void print_clean(FILE *out, const char *bytes, size_t n);

/* ---- bundle.c ---- */

bool is_bundle(void); /* this program has a model in it */
int run_bundle(int argc, char **argv);
char *own_path(void); /* of this program's file; NULL: failed */
int open_bundle(cn_ctx *cn, char **path, cn_dict **weights, cn_tokenizer **tokenizer); /* the path also after a failure */

/* ---- generate.c ---- */

/* A language model of a file that was loaded from the path. */
int open_gpt(cn_ctx *cn, const settings *s, const char *path, cn_dict *file, cn_module **model);
/* A language model and its tokenizer; path NULL: those in this program. */
int open_writer(cn_ctx *cn, const settings *s, const char *path, cn_module **model, cn_tokenizer **tokenizer);

/* ---- models.c ---- */

/* Functions that return NULL have printed the error. */
cn_ctx *open_context(const settings *s);
/* The lines about a context's GPU: why `auto` chose it or the CPU; its name, kind and backend. Nothing on the CPU. */
void print_device(cn_ctx *cn, const char *device, FILE *out);
settings *settings_in(const cn_dict *model, const char *command); /* the settings of its training */
const char *model_kind(const cn_dict *file); /* "gpt", "mlp", "cnn" or another text; NULL: unknown */

cn_dataset *csv_dataset(cn_ctx *cn, const settings *s, const char *path); /* s: settings of train mlp */
cn_module *new_mlp(cn_ctx *cn, const settings *s, int64_t inputs, int64_t outputs);
cn_module *new_cnn(cn_ctx *cn, const settings *s, cn_dims image, int64_t classes); /* image: (channels,height,width) */
cn_module *mlp_in(cn_ctx *cn, const cn_dict *file, const settings *s);
cn_module *cnn_in(cn_ctx *cn, const cn_dict *file, const settings *s);
/* Buffers "mean" and "std" of the columns of a table. The first layer of an MLP normalises its input with them; the
   last layer scales its output back. */
cn_tensor *mlp_buffer(cn_module *mlp, bool last, const char *name);

/* The loss of a batch. right (may be NULL) receives the number of correct answers of a classifier. */
typedef cn_tensor *(*loss_fn)(cn_module *m, const cn_batch *b, cn_tensor **right);
cn_tensor *text_loss(cn_module *m, const cn_batch *b, cn_tensor **right);
cn_tensor *class_loss(cn_module *m, const cn_batch *b, cn_tensor **right);
cn_tensor *value_loss(cn_module *m, const cn_batch *b,
                      cn_tensor **right); /* the unexplained fraction of the variance */

/* Measured over one epoch of a loader; an interruption ends it early. */
typedef struct score {
    double loss, accuracy; /* accuracy: NaN if the model does not classify */
    int64_t count;
} score;
bool score_all(cn_module *m, cn_loader *l, loss_fn loss, score *out);

/* Statistics of a training set: the count of each class, mean and standard deviation of each column. */
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

/* A training run, as the loop sees it. */
typedef struct job {
    settings *s;
    cn_ctx *cn;
    cn_dict *resumed; /* the checkpoint; NULL: a fresh run */
    char name[160];   /* of the model file, without folder and ending; made from the settings */
    cn_module *model;
    cn_loader *train, *held_out;
    int64_t steps;    /* of the whole run */
    double amount;    /* units in a step */
    const char *unit; /* "tokens" */
    double baseline;  /* loss of a model that knows only frequencies; 0: none */
    const char *baseline_label;
    int64_t eval_every, sample_every;
    int64_t epoch_steps; /* 0: there are no epochs */
    void *user;
    loss_fn loss;
    bool (*measure)(struct job *j, metric *m, int *n); /* the first metric is the loss; may be NULL */
    void (*sample)(struct job *j, const char *title);  /* may be NULL */
    bool (*describe)(struct job *j, cn_dict *d);       /* saves what is needed to build the model again */
    const char *next;                                  /* a command to suggest; its first %s is the folder */
    /* set by the loop */
    cn_progress *bar;
    cn_logbook *log;
    struct meter *meter;
    char *out, *file;
    int64_t done;              /* steps, of this run and of those that it continues */
    double last_loss;          /* of the last step */
    metric last[MOST_METRICS]; /* the last measurement */
    int n_last;
} job;
int begin_job(job *j, settings *s); /* opens a context, and the checkpoint of --resume */
/* After j->name and j->model are set: adds the device to the name, sets j->out and j->file, writes config.conf. */
int open_folder(job *j);
const char *device_of(const job *j); /* "cpu", "gpu", "gpu:1" */
int run_job(job *j);
void end_job(job *j);
void print_line(const job *j, const char *format, ...) LIKE_PRINTF(2, 3); /* above the bar, if there is one */
int check_trace(const settings *s); /* before the work: whether the file of --profile may be written */
/* Prints the table, and writes the trace that --profile names. */
int end_profile(cn_ctx *cn, const settings *s, cn_profile *p, FILE *out);
int interrupted(void); /* the signal that was received, or 0 */

/* ---- meter.c ---- */

/* The time in all steps, and what it was spent on in the steps that were profiled. */
enum { METER_DEVICES = 3 };
typedef struct meter {
    int64_t steps, profiled_steps;
    double seconds, measured; /* of all steps; of the profiled ones */
    int devices;
    struct meter_device {
        char name[16];
        double matmul, others, transfers, flops;
        bool untimed; /* the times are of recording commands */
    } device[METER_DEVICES];
    double began;
    cn_profile *profile;
} meter;
bool meter_due(const meter *m, const cn_ctx *cn); /* the next step is one to profile; a GPU must have no work left */
void meter_begin(meter *m, cn_ctx *cn, bool profile); /* before a step */
void meter_end(meter *m);
void print_meter(const job *j, const meter *m);

/* ---- runs.c ---- */

char *runs_file(const job *j); /* --runs, or runs.csv beside the folder of the run */
int check_runs(const job *j);  /* before the work: whether the file is a log of runs, or new */
int append_run(const job *j);  /* a line of it */

/* ---- epochs.c ---- */

/* Splits off a part for validation: parts[1], NULL if --val is 0. */
int hold_out(const job *j, cn_dataset *all, const char *path, cn_dataset *parts[2]);
int lay_out_epochs(job *j, cn_dataset *parts[2]); /* loaders, steps, measurements */

/* ---- report.c ---- */

int draw_losses(const job *j, bool show); /* loss.svg and loss.png from log.csv */

#endif
