/* cairn/look.h: looking at training: a progress bar, a log of numbers, curves.

       cn_progress *bar = cn_progress_new(cn, &(cn_progress_desc){ .total = steps, .label = "train" });
       cn_logbook *log = cn_logbook_new(cn, "runs/first", NULL);                       log.csv, and event files for TensorBoard
       for (int64_t i = 0; i < steps; i++) {
           double loss = train_step();
           cn_logbook_scalar(log, i, "loss/train", loss);
           cn_progress_step(bar, 1, "loss %.3f", loss);
       }
       cn_progress_finish(bar);
       cn_curve_png(cn, "loss.png", (cn_series[]){ { .name = "train", .y = losses, .n = steps } }, 1,
                     &(cn_curve_desc){ .title = "Loss", .smooth = 0.9 });

   Ownership  Bars and logs belong to their context, or until their cn_..._free. Texts are copied. A stream that a bar was given
              must stay open until the bar is finished or freed.
   Errors     NULL or false, and an error in the context. A NULL bar or log takes every call and does nothing.
   Printing   Only where asked: a bar is drawn to .out if that is a terminal; elsewhere it is silent unless lines are asked for. */
#ifndef CAIRN_LOOK_H
#define CAIRN_LOOK_H

#include <stdio.h>

#include "base.h"

#ifdef __GNUC__
#define CN_LIKE_PRINTF(words, first) __attribute__((format(printf, words, first)))
#else
#define CN_LIKE_PRINTF(words, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds since any moment; for tests and for time that does not pass by itself. */
typedef struct cn_clock {
    double (*now)(void *user);
    void *user;
} cn_clock;

/* ---- progress ----

   train  63% ████████████▌        630/1000  12.3 it/s  0:51<0:30  loss 0.123

   Elapsed time stands before <, time left after it. Rate and time left come from the last half of the run, without its
   fastest and slowest eighths: neither a slow first step nor one long pause decides them. Drawn at most ten times a second. */
typedef struct cn_progress cn_progress;

typedef struct cn_progress_desc {
    int64_t total;        /* 0: not known; no percentage, bar or time left then */
    int64_t done;         /* at the beginning: of a run that is resumed */
    const char *label;
    const char *unit;     /* "it" */
    FILE *out;            /* stderr */
    double lines;         /* no terminal: a plain line every so many percent ... */
    double lines_seconds; /* ... or seconds, whatever comes first; both 0: silent */
    int tty, utf8, color; /* 1: yes; -1: no; 0: found out. Color also needs NO_COLOR not to be set */
    int width;            /* columns; 0: found out: of the terminal, else COLUMNS, else 80 */
    cn_clock clock;       /* default: the monotonic clock */
} cn_progress_desc;

CN_API cn_progress *cn_progress_new(cn_ctx *ctx, const cn_progress_desc *desc);
/* n more are done. words: what to show at the end of the line, NULL: as it was. */
CN_API bool cn_progress_step(cn_progress *p, int64_t n, const char *words, ...) CN_LIKE_PRINTF(3, 4);
CN_API bool cn_progress_note(cn_progress *p, const char *words, ...) CN_LIKE_PRINTF(2, 3); /* a line of its own, above the bar */
CN_API bool cn_progress_finish(cn_progress *p);   /* leaves the line as it is in the end, with the whole time */
CN_API double cn_progress_rate(const cn_progress *p); /* a second; 0: not known yet */
CN_API void cn_progress_free(cn_progress *p);     /* an unfinished bar leaves its last line */

/* ---- log ----

   The CSV file has one line a number: step,time,name,value. Names may appear at any time without changing what stands there, a
   run that stops in the middle of a line spoils that line alone, and a resumed run appends. (In pandas:
   read_csv(..).pivot_table(index="step", columns="name", values="value").) time is in seconds since 1970.
   Beside it, unless not wanted, a TensorBoard event file: tensorboard --logdir FOLDER. Each opening begins a new one. */
typedef struct cn_logbook cn_logbook; /* cn_log is the logarithm */

typedef struct cn_logbook_desc {
    bool no_csv, no_events;
    bool fresh;           /* an existing CSV file is begun anew instead of appended to */
    int64_t resume_step;  /* > 0: numbers of this step and later, which a run left that is now done again from here, are dropped */
    double flush_seconds; /* at most this long until a number is in the file; 0: 1 s; negative: only when asked */
    cn_clock clock;       /* default: time of day */
} cn_logbook_desc;

/* path: a folder, made if need be, for log.csv and events.out.tfevents.*; or a file name ending in .csv, for that alone. */
CN_API cn_logbook *cn_logbook_new(cn_ctx *ctx, const char *path, const cn_logbook_desc *desc);
CN_API bool cn_logbook_scalar(cn_logbook *log, int64_t step, const char *name, double value);
CN_API bool cn_logbook_flush(cn_logbook *log);
CN_API void cn_logbook_free(cn_logbook *log); /* flushes */

/* ---- curves ----

   NaN and infinity are gaps. No finite point at all is an error. */
typedef struct cn_series {
    const char *name;     /* in the legend; may be NULL */
    const double *x, *y;  /* x NULL: 0, 1, 2, .. */
    int64_t n;
    unsigned color;       /* 0xRRGGBB; 0: the next of a palette */
    bool exact;           /* not smoothed, whatever the curve asks for: few points that mean what they say, as of validation */
} cn_series;

typedef struct cn_curve_line {
    double y;             /* a horizontal line, to compare with */
    const char *label;
} cn_curve_line;

typedef struct cn_curve_desc {
    const char *title, *x_label, *y_label;
    const cn_curve_line *lines;
    int n_lines;
    double smooth;        /* 0..1, exclusive: weight of the past in a running mean; what was is drawn faintly. 0: none */
    bool log_x, log_y;    /* numbers that are not positive are gaps then */
    double y_low, y_high; /* both 0: from the data */
    int width, height;    /* pixels; 0: 960 by 540. Text: characters; 0: 60 by 12, without labels */
    bool ascii;           /* text: no Unicode */
    bool color;           /* text: ANSI colors. Without them, several series are drawn with a character each */
} cn_curve_desc;

CN_API bool cn_curve_svg(cn_ctx *ctx, const char *path, const cn_series *series, int n, const cn_curve_desc *desc);
CN_API bool cn_curve_png(cn_ctx *ctx, const char *path, const cn_series *series, int n, const cn_curve_desc *desc);
/* For terminals. Returns the length of the whole text, 0 on error; writes at most size bytes, always ended by 0. */
CN_API size_t cn_curve_text(cn_ctx *ctx, const cn_series *series, int n, const cn_curve_desc *desc, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
