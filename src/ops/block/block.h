/* block.h: the attributes of the block operators, and the functions that their files share. */
#ifndef CN_OPS_BLOCK_H
#define CN_OPS_BLOCK_H

#include "ops/shared.h"

typedef struct cn__softmax_attrs {
    int64_t axis;
} cn__softmax_attrs;

typedef struct cn__norm_attrs {
    int64_t axes; /* the number of last axes that are normalised */
} cn__norm_attrs;

typedef struct cn__norm_backward_attrs {
    int64_t axes;         /* as above; 0 for batch_norm */
    int64_t weight, bias; /* whether their gradients are wanted; the result of an unwanted one has no elements */
} cn__norm_backward_attrs;

typedef struct cn__group_attrs {
    int64_t groups;
} cn__group_attrs;

typedef struct cn__attention_attrs {
    int64_t causal;
} cn__attention_attrs;

typedef struct cn__loss_attrs {
    int64_t reduction; /* cn_reduction */
    int64_t has_ignore, ignore_index;
} cn__loss_attrs;

typedef struct cn__ctc_attrs {
    int64_t blank, zero_infinity;
} cn__ctc_attrs;

extern const cn_op cn__op_softmax_backward, cn__op_log_softmax_backward, cn__op_layer_norm_backward,
    cn__op_rms_norm_backward, cn__op_batch_norm_backward, cn__op_attention_backward, cn__op_cross_entropy_backward,
    cn__op_cross_entropy_soft, cn__op_ctc_loss, cn__op_ctc_loss_backward, cn__op_dropout_mask;

/* Computes all results of an operator from its operands with simpler operators. After an error a result is NULL. */
typedef void (*cn__definition)(cn_ctx *ctx, cn_tensor *const *in, const void *attrs, const cn_arg *args,
                               cn_tensor **out);

/* Computes the gradient of an operator by differentiating its definition. Serves second orders, and operators for
   which a kernel of their own does not pay. */
void cn__grad_by_definition(cn_grad_call *g, cn__definition define);

/* True if m has the wanted shape; otherwise sets the error "`what` must have shape .., got ..". m may be NULL. */
bool cn__expect_shape(cn_infer *i, const char *what, const cn_meta *m, const cn_layout *wanted);

/* The definitions that all norms share. weight and bias broadcast against x; both may be NULL. */
typedef struct cn__norm {
    cn_dims axes, others; /* the axes normalised over, and those that parameter gradients are summed over */
    bool centred;         /* true: layer_norm, batch_norm; false: rms_norm, which subtracts no mean */
    double eps;
} cn__norm;
/* Applies a norm to in[0], x; the other operands are parameters, which may be NULL. As in PyTorch, halves may have
   parameters of f32, and with `any` all floating types mix: the widest is computed in, the result has the type of x. */
cn_tensor *cn__norm_apply(const cn_op *op, cn_tensor *const *in, const void *attrs, double eps, bool any);
cn_tensor *cn__norm_define(const cn__norm *n, cn_tensor *x, cn_tensor *weight, cn_tensor *bias);
void cn__norm_backward_define(const cn__norm *n, cn_tensor *g, cn_tensor *x, cn_tensor *weight, cn_tensor **out);

/* Reshapes a parameter (C) to (C, 1, ...), which broadcasts against x (N, C, ...). NULL stays NULL; any other shape is
   an error. */
cn_tensor *cn__per_channel(const char *who, cn_tensor *p, cn_tensor *x);
static inline cn_tensor *cn__as(cn_tensor *x, cn_dtype t) { return x && cn__dtype(x) != t ? cn_cast(x, t) : x; }

/* ---- losses over classes: x (N, C, d...) or (C) */

static inline int cn__class_axis(int ndim) { return ndim > 1 ? 1 : 0; }
bool cn__loss_fits(cn_ctx *ctx, const char *who, const cn__loss_attrs *a, const cn_meta *x, const cn_meta *target,
                   const cn_meta *weight);                          /* weight may be NULL */
cn_tensor *cn__ignored(cn_tensor *target, const cn__loss_attrs *a); /* a bool mask; NULL: all targets count */
cn_tensor *cn__zero_where(cn_tensor *x, cn_tensor *mask);           /* mask may be NULL */
cn_tensor *cn__target_weights(cn_tensor *x, cn_tensor *target, cn_tensor *weight, cn_tensor *skip);
cn_tensor *cn__class_weights(cn_tensor *weight, cn_tensor *x); /* reshapes (C) to broadcast against x */
cn_tensor *cn__nll(cn_tensor *logp, cn_tensor *target, cn_tensor *weight, const cn__loss_attrs *a, double smoothing);

/* A dropout mask: an element is 0 with probability p, else 1 / (1 - p). It depends on seed, stream and position only,
   not on the dtype. */
typedef struct cn__dropout {
    double p;
    uint64_t seed, stream;
} cn__dropout;
/* args: those of dropout and dropout_mask */
static inline cn__dropout cn__dropout_of_args(const cn_arg *args)
{
    return (cn__dropout){ args[0].f, args[1].u, args[2].u };
}
cn_tensor *cn__dropout_mask(cn_ctx *ctx, cn_dtype dtype, cn_dims shape, const cn__dropout *d); /* f32 or f64 */
/* Draws a stream for one call. Returns false and sets an error if p is out of range. */
bool cn__dropout_begin(cn_ctx *ctx, const char *who, double p, cn__dropout *d);

enum {
    CN__LANES = 8,    /* partial sums of a row */
    CN__COLUMNS = 64, /* columns that are processed at a time */
};

/* A tensor seen along one axis of n elements: (outer, n, inner), cut into `blocks` blocks of columns. With inner 1 a
   column is a row. */
typedef struct cn__columns {
    int64_t outer, n, inner, blocks;
} cn__columns;
static inline cn__columns cn__columns_of(int ndim, const int64_t *shape, int64_t axis)
{
    cn__columns c = { .outer = 1, .n = ndim ? shape[axis] : 1, .inner = 1 };
    for (int d = 0; d < ndim; d++) {
        if (d < axis) c.outer *= shape[d];
        if (d > axis) c.inner *= shape[d];
    }
    c.blocks = (c.inner + CN__COLUMNS - 1) / CN__COLUMNS;
    return c;
}
/* Returns where block number `part` of outer * blocks begins; width: how many columns it has. */
static inline int64_t cn__columns_at(const cn__columns *c, int64_t part, int *width)
{
    int64_t first = part % c->blocks * CN__COLUMNS, rest = c->inner - first;
    *width = (int)(rest < CN__COLUMNS ? rest : CN__COLUMNS);
    return part / c->blocks * c->n * c->inner + first;
}

/* How many rows a chunk needs to be worth a thread; work: elements a row. */
static inline int64_t cn__grain_of(double work) { return work > 1 ? (int64_t)(16384 / work) + (work > 16384) : 16384; }

#endif
