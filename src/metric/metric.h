/* metric/metric.h: what the kinds of metrics share. A kind adds to the state in an update, and turns the state, read
   back, into values. */
#ifndef CN_METRIC_METRIC_H
#define CN_METRIC_METRIC_H

#include "cairn/cairn.h"
#include "core/errors.h"
#include "core/handle.h"
#include "core/object.h"

typedef struct cn__metric_kind {
    const char *name; /* for errors: "metric_accuracy" */
    /* The state after an update; NULL: an error stands. A kind without a state adds to the metric's `seen`. */
    cn_tensor *(*update)(cn_metric *m, cn_tensor *predictions, cn_tensor *targets);
    /* Values from the state; false: nothing counts, or an error stands. */
    bool (*values)(cn_metric *m, const double *state, double *out);
    double (*of_class)(double hits, double predicted, double wanted); /* classes.c */
    bool optional_targets;
} cn__metric_kind;

struct cn_metric {
    cn__object object;
    const cn__metric_kind *kind;
    cn_metric_desc desc;
    int64_t count;     /* of values */
    cn_dims shape;     /* of the state */
    cn_dtype dtype;    /* of the state */
    cn_tensor *state;  /* kept; NULL: nothing was seen */
    double carried[2]; /* sums.c: what was added up before the present state began */
    int64_t updates;   /* of the present state */
    cn__vec seen;      /* of cn_tensor *, kept: scores and targets in turn (auc.c) */
};

/* desc may be NULL. Checks what all kinds allow. */
cn_metric *cn__metric_new(cn_ctx *ctx, const cn__metric_kind *kind, const cn_metric_desc *desc);
bool cn__metric_is_ignored(const cn_metric *m, double target);
/* Whether a target counts; targets (...). */
cn_tensor *cn__metric_counts(const cn_metric *m, cn_tensor *targets);
/* Scores (n, classes) of predictions (N, classes, ...), or NULL with an error that names the shape. */
cn_tensor *cn__metric_scores(const cn_metric *m, cn_tensor *predictions, cn_tensor *targets);
bool cn__metric_same_shape(const cn_metric *m, cn_tensor *predictions, cn_tensor *targets);
bool cn__metric_whole(const cn_metric *m, cn_tensor *targets); /* targets are whole numbers, or an error stands */

#endif
