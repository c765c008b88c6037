/* cairn/look.h: watching a training: a progress bar, a log of numbers, curves.

       cn_progress *bar = cn_progress_new(cn, &(cn_progress_desc){ .total = steps, .label = "train" });
       cn_logbook *log = cn_logbook_new(cn, "runs/first", NULL);                       log.csv and TensorBoard files
       for (int64_t i = 0; i < steps; i++) {
           double loss = train_step();
           cn_logbook_scalar(log, i, "loss/train", loss);
           cn_progress_step(bar, 1, "loss %.3f", loss);
       }
       cn_progress_finish(bar);
       cn_curve_png(cn, "loss.png", CN_LIST(cn_series, { .name = "train", .y = losses, .n = steps }),
                     &(cn_curve_desc){ .title = "Loss", .smooth = 0.9 });

   Ownership  Bars and logs belong to their context, until cn_progress_free or cn_logbook_free. Texts are copied. The
              stream of a bar must stay open until the bar is finished or freed.
   Errors     Functions return NULL or false and set the error of the context. With a NULL bar or log they do nothing.
   Printing   A bar is drawn to .out if that is a terminal. Elsewhere it is silent, unless .lines or .lines_seconds is
              set. */
#ifndef CAIRN_LOOK_H
#define CAIRN_LOOK_H

#include <stdio.h>

#include "base.h"

#ifdef __GNUC__
#define CN_LIKE_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CN_LIKE_PRINTF(text, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Returns seconds since any moment. Tests use it to set the time. */
typedef struct cn_clock {
    double (*now)(void *user);
    void *user;
} cn_clock;

/* ---- progress ----

   train  63% ████████████▌        630/1000  12.3 it/s  0:51<0:30  loss 0.123

   Elapsed time comes before <, the time left after it. Rate and time left are measured over the last half of the run,
   without its fastest and slowest eighth: a slow first step or a single pause does not change them much. The bar is
   drawn at most ten times a second. */
typedef struct cn_progress cn_progress;

typedef struct cn_progress_desc {
    int64_t total;        /* 0: not known; there is no percentage, bar or time left then */
    int64_t done;         /* at the beginning, if the run is resumed */
    const char *label;
    const char *unit;     /* NULL: "it" */
    FILE *out;            /* NULL: stderr */
    double lines;         /* without a terminal: a plain line every so many percent ... */
    double lines_seconds; /* ... or every so many seconds, whichever comes first; both 0: silent */
    int tty, utf8, color; /* 1: yes; -1: no; 0: detected. NO_COLOR turns colors off */
    int width;            /* columns; 0: that of the terminal, else COLUMNS, else 80 */
    cn_clock clock;       /* default: the monotonic clock */
} cn_progress_desc;

CN_API cn_progress *cn_progress_new(cn_ctx *ctx, const cn_progress_desc *desc);
/* n more steps are done. format: the text at the end of the line; NULL: the previous text stays. */
CN_API bool cn_progress_step(cn_progress *p, int64_t n, const char *format, ...) CN_LIKE_PRINTF(3, 4);
/* Prints a line above the bar. */
CN_API bool cn_progress_note(cn_progress *p, const char *format, ...) CN_LIKE_PRINTF(2, 3);
CN_API bool cn_progress_finish(cn_progress *p);       /* draws the line once more, with the whole time */
CN_API double cn_progress_rate(const cn_progress *p); /* steps per second; 0: not known yet */
CN_API void cn_progress_free(cn_progress *p);         /* the last line stays on the screen */

/* ---- log ----

   The CSV file has one line for each number: step,time,name,value. time is in seconds since 1970. New names may appear
   at any time. A run that is killed loses at most its last line, and a resumed run appends. In pandas:
   read_csv(..).pivot_table(index="step", columns="name", values="value").
   Unless no_events is set, there is a TensorBoard event file as well: tensorboard --logdir FOLDER. Each opening begins
   a new event file. */
typedef struct cn_logbook cn_logbook; /* cn_log is the logarithm */

typedef struct cn_logbook_desc {
    bool no_csv, no_events;
    bool fresh;           /* an existing CSV file is overwritten; else the log is appended to it */
    int64_t resume_step;  /* > 0: numbers of this step and later are removed: the run repeats these steps */
    double flush_seconds; /* numbers are written at least so often; 0: 1 s; negative: only by cn_logbook_flush */
    cn_clock clock;       /* default: time of day */
} cn_logbook_desc;

/* path: a folder for log.csv and events.out.tfevents.*, which is created; or the path of a CSV file, ending in .csv. */
CN_API cn_logbook *cn_logbook_new(cn_ctx *ctx, const char *path, const cn_logbook_desc *desc);
CN_API bool cn_logbook_scalar(cn_logbook *log, int64_t step, const char *name, double value);
CN_API bool cn_logbook_flush(cn_logbook *log);
CN_API void cn_logbook_free(cn_logbook *log); /* flushes */

/* ---- curves ----

   NaN and infinity are gaps. It is an error if no point is finite. */
typedef struct cn_series {
    const char *name;     /* in the legend; may be NULL */
    const double *x, *y;  /* x NULL: 0, 1, 2, ... */
    int64_t n;
    unsigned color;       /* 0xRRGGBB; 0: the next color of a palette */
    bool exact;           /* never smoothed: for few exact points, as of a validation */
} cn_series;

typedef struct cn_curve_line {
    double y;             /* of a horizontal line */
    const char *label;
} cn_curve_line;

typedef struct cn_curve_desc {
    const char *title, *x_label, *y_label;
    const cn_curve_line *lines;
    int n_lines;
    double smooth;        /* 0 to below 1: weight of the past in a moving average, over the faint raw curve */
    bool log_x, log_y;    /* numbers that are not positive are gaps */
    double y_low, y_high; /* both 0: from the data */
    int width, height;    /* pixels; 0: 960 by 540. Text: characters; 0: 60 by 12, without labels */
    bool ascii;           /* text: no Unicode */
    bool color;           /* text: ANSI colors; without them, each of several series has its own character */
} cn_curve_desc;

CN_API bool cn_curve_svg(cn_ctx *ctx, const char *path, const cn_series *series, int n, const cn_curve_desc *desc);
CN_API bool cn_curve_png(cn_ctx *ctx, const char *path, const cn_series *series, int n, const cn_curve_desc *desc);
/* For terminals. Returns the length of the whole text, 0 after an error; writes at most size bytes, ended by 0. */
CN_API size_t cn_curve_text(cn_ctx *ctx, const cn_series *series, int n, const cn_curve_desc *desc, char *out,
                            size_t size);

#ifdef __cplusplus
}
#endif
#endif
