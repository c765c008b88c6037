/* cairn/metric.h: measures of a model, averaged over batches, as torchmetrics has them.

       cn_metric *accuracy = cn_metric_accuracy(cn, &(cn_metric_desc){ .classes = 10 });
       for (cn_scope s = cn_scope_begin(cn); cn_loader_next(loader, &b); cn_scope_end(cn, s))
           cn_metric_update(accuracy, cn_forward(model, b.x), b.y);
       printf("%g\n", cn_metric_value(accuracy));
       cn_metric_reset(accuracy);                          before the next epoch

   Averages   A metric keeps sums over all that it has seen, so batches of unequal sizes count by their items.
   Laziness   An update computes nothing and reads nothing back: its sums are pending, and the next evaluation computes
              them, at the latest that of the next update. cn_metric_value reads them. An error in the values, such as
              a class that does not exist, therefore appears late. On a GPU a mean reads its two sums every 64 updates,
              because it adds in f32.
   Classes    Predictions of N items are scores (N, classes, ...) or the numbers of classes (N, ...); targets are whole
              numbers (N, ...). Without `classes` a metric is binary: predictions (N, ...) are scores that `threshold`
              divides, or 0 and 1; targets are 0 and 1; precision, recall and F1 are those of class 1.
   Ownership  A metric belongs to its context until cn_metric_free. No gradient flows through it.
   Errors     False or NaN, and an error in the context. An update that fails leaves the metric as it was. */
#ifndef CAIRN_METRIC_H
#define CAIRN_METRIC_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_metric cn_metric;

/* How the values of classes become one value. A class that is neither predicted nor a target does not count. */
typedef enum cn_metric_average {
    CN_MICRO,     /* counts of all classes are added first */
    CN_MACRO,     /* every class counts the same */
    CN_WEIGHTED,  /* every class counts by its targets */
    CN_PER_CLASS, /* no average: cn_metric_values returns one value for each class */
} cn_metric_average;

typedef struct cn_metric_desc {
    int64_t classes;           /* 0: binary */
    cn_metric_average average; /* of classes; cn_metric_auc: CN_MICRO means CN_MACRO */
    int64_t top_k;             /* cn_metric_accuracy of scores: the target is among the k highest; 0: 1 */
    double threshold;          /* of binary scores; a score above it is class 1; 0: 0.5 */
    int64_t ignore_index;      /* targets of this class do not count; without has_ignore it is -100 */
    bool has_ignore;
} cn_metric_desc;

/* The share of items whose class is right. Of a class: the share of its targets. */
CN_API cn_metric *cn_metric_accuracy(cn_ctx *ctx, const cn_metric_desc *desc);
/* Of the predictions of a class, the share that is right; 0 if there is none. */
CN_API cn_metric *cn_metric_precision(cn_ctx *ctx, const cn_metric_desc *desc);
/* Of the targets of a class, the share that is found; 0 if there is none. */
CN_API cn_metric *cn_metric_recall(cn_ctx *ctx, const cn_metric_desc *desc);
/* The harmonic mean of precision and recall. */
CN_API cn_metric *cn_metric_f1(cn_ctx *ctx, const cn_metric_desc *desc);
/* Counts (classes, classes): row: target, column: prediction; binary (2, 2). cn_metric_values returns them. */
CN_API cn_metric *cn_metric_confusion(cn_ctx *ctx, const cn_metric_desc *desc);
/* The area under the ROC curve: the chance that an item of a class has a higher score than one of another class. With
   classes: each class against the rest. A class without items, or without others, has NaN and does not count. The curve
   is exact: the metric keeps all scores, in their dtype, and targets on the device until cn_metric_reset. */
CN_API cn_metric *cn_metric_auc(cn_ctx *ctx, const cn_metric_desc *desc);
/* exp(mean cross entropy) of logits (..., classes) and targets (...). Of the descriptor only ignore_index counts. */
CN_API cn_metric *cn_metric_perplexity(cn_ctx *ctx, const cn_metric_desc *desc);

/* Mean of values: update(m, values, weights); weights of the same shape, or NULL for 1 each. */
CN_API cn_metric *cn_metric_mean(cn_ctx *ctx);
CN_API cn_metric *cn_metric_mse(cn_ctx *ctx); /* mean squared difference of predictions and targets */
CN_API cn_metric *cn_metric_mae(cn_ctx *ctx); /* mean absolute difference */

CN_API bool cn_metric_update(cn_metric *m, cn_tensor *predictions, cn_tensor *targets);
CN_API double cn_metric_value(cn_metric *m); /* NaN and an error: nothing was seen, or there are several values */
CN_API int64_t cn_metric_count(const cn_metric *m);                    /* of values */
CN_API bool cn_metric_values(cn_metric *m, double *out, int64_t count); /* count must be cn_metric_count */
CN_API bool cn_metric_reset(cn_metric *m);                              /* as if nothing had been seen */
CN_API void cn_metric_free(cn_metric *m);                               /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
