/* ctc_loss: -log of the probability of all paths that spell a target (Graves et al., 2006), and its backward operator.
   log_probs (T, N, C); targets (N, S), or flat, (sum of lengths), one after another; lengths (N). A target a, b, .. has
   the states blank, a, blank, b, .., blank. In a step a path stays in its state, goes on by one, or skips a blank
   between two different labels. The backward operator computes the forward probabilities again: storing them would take
   T (2S + 1) elements a sample. */
#include <math.h>

#include "ops/block/block.h"
#include "ops/block/block_gpu.h"
#include "ops/kernels.h"

static int64_t whole_at(const cn_array *a, int64_t i)
{
    return a->dtype == CN_I64 ? ((const int64_t *)a->data)[i] : ((const int32_t *)a->data)[i];
}

/* in[0..4): log_probs, targets, input lengths, target lengths */
typedef struct operands {
    const cn_array *in;
    const cn_kernel *k;
    bool forward; /* indices out of range are reported; the backward operator leaves that to the forward operator */
} operands;

static bool is_in_range(const operands *o, int64_t index, int64_t size)
{
    if (index >= 0 && index < size) return true;
    if (o->forward) cn_kernel_fault(o->k, index, size);
    return false;
}

/* Fills s with sample n, whose labels begin at `start` of the targets. Returns false if an index is out of range. */
static bool fill_sample(const operands *o, const cn__ctc_attrs *a, int64_t n, int64_t start, int64_t length,
                        int64_t *label, cn__ctc_sample *s)
{
    const int64_t steps = o->in[0].shape[0], classes = o->in[0].shape[2], frames = whole_at(&o->in[2], n);
    *s = (cn__ctc_sample){ .label = label, .states = 1, .width = 3 };
    label[0] = a->blank;
    if (!is_in_range(o, frames, steps + 1)) return false;
    for (int64_t i = 0; i < length; i++) {
        label[2 * i + 1] = whole_at(&o->in[1], start + i);
        label[2 * i + 2] = a->blank;
        if (!is_in_range(o, label[2 * i + 1], classes)) return false;
    }
    s->states = 2 * length + 1;
    s->width = s->states + 2;
    s->frames = frames;
    return true;
}

/* The elements of one row of every sample: 2S + 3 a sample, S the length of its target. */
static int64_t places(const cn_array *in) { return 2 * in[1].numel + 3 * in[0].shape[1]; }

/* A sample with an index out of range gets 0 frames. */
static cn__ctc ctc_of(const operands *o)
{
    const cn__ctc_attrs *a = o->k->attrs;
    const int64_t samples = o->in[0].shape[1], classes = o->in[0].shape[2], total = o->in[1].numel;
    const bool flat = o->in[1].ndim == 1;
    const int64_t most = flat ? total : o->in[1].shape[1];
    cn__ctc c = { o->in[0].shape[0], classes, samples * classes, a->zero_infinity, o->k->scratch, NULL, NULL };
    int64_t *label = (int64_t *)(void *)(c.samples + samples), start = 0, place = 0;
    c.levels = (double *)(void *)(label + places(o->in));
    c.rows = o->forward ? c.levels : c.levels + samples * c.steps;
    for (int64_t n = 0; n < samples; n++) {
        if (!flat) start = n * most;
        int64_t length = whole_at(&o->in[3], n), room = flat ? total - start : most;
        if (!is_in_range(o, length, room + 1)) length = 0;
        cn__ctc_sample *s = &c.samples[n];
        if (!fill_sample(o, a, n, start, length, label + place, s)) s->frames = 0;
        s->place = place;
        place += 2 * length + 3;
        start += length;
    }
    if (flat && start < total) is_in_range(o, start, start); /* reports labels that belong to no sample */
    return c;
}

static int64_t grain_of(const cn__ctc *c, const cn_array *in)
{
    const int64_t samples = in[0].shape[1] > 0 ? in[0].shape[1] : 1;
    return cn__grain_of(8 * (double)c->steps * (double)(places(in) / samples));
}

static size_t scratch_of(const cn_array *in, int64_t rows, int64_t levels)
{
    const int64_t place = (int64_t)sizeof(int64_t) + rows * (int64_t)cn_dtype_size(in[0].dtype);
    const int64_t sample = (int64_t)(sizeof(cn__ctc_sample) + (size_t)levels * sizeof(double));
    return (size_t)(in[0].shape[1] * sample + places(in) * place);
}

static void cpu(const cn_kernel *k)
{
    cn__ctc c = ctc_of(&(operands){ k->in, k, true });
    cn_parallel(k, k->in[0].shape[1], grain_of(&c, k->in), k->kernels->ctc.forward[cn__f64_entry(k->in[0].dtype)], &c);
}
static size_t scratch(const cn_kernel *k, int threads)
{
    (void)threads;
    return scratch_of(k->in, 3, 0);
}

static void backward_cpu(const cn_kernel *k)
{
    cn__ctc c = ctc_of(&(operands){ k->in + 1, k, false });
    const cn_body body = k->kernels->ctc.backward[cn__f64_entry(k->in[1].dtype)];
    cn_parallel(k, k->in[1].shape[1], grain_of(&c, k->in + 1), body, &c);
}
static size_t backward_scratch(const cn_kernel *k, int threads)
{
    (void)threads;
    const int64_t steps = k->in[1].shape[0];
    return scratch_of(k->in + 1, steps + 3, steps);
}

/* ---- shapes; first: the number of log_probs among the operands */

static bool fits(cn_infer *i, int first)
{
    static const char *const names[4] = { "", "targets", "input_lengths", "target_lengths" };
    char s[96], t[96];
    const cn_layout *x = &i->in[first]->layout, *targets = &i->in[first + 1]->layout;
    const int64_t blank = ((const cn__ctc_attrs *)i->attrs)->blank;
    if (x->ndim != 3)
        return cn_infer_fail(i, CN_BAD_SHAPE, "log_probs must be (T, N, C), got %s", cn__shape_text(x, s, sizeof s));
    cn__shape_text(x, s, sizeof s);
    for (int j = 1; j < 4; j++) {
        const cn_meta *m = i->in[first + j];
        if (m->dtype != CN_I32 && m->dtype != CN_I64)
            return cn_infer_fail(i, CN_BAD_DTYPE, "%s must be i32 or i64, got %s", names[j], cn_dtype_name(m->dtype));
        if (j > 1 && (m->layout.ndim != 1 || m->layout.shape[0] != x->shape[1]))
            return cn_infer_fail(i, CN_BAD_SHAPE, "%s must have shape [%lld] for log_probs %s, got %s", names[j],
                                 (long long)x->shape[1], s, cn__shape_text(&m->layout, t, sizeof t));
    }
    if (targets->ndim != 1 && (targets->ndim != 2 || targets->shape[0] != x->shape[1]))
        return cn_infer_fail(i, CN_BAD_SHAPE,
                             "targets must be (N, S) or have one axis with all labels, got %s for log_probs %s",
                             cn__shape_text(targets, t, sizeof t), s);
    if (blank < 0 || blank >= x->shape[2])
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "blank must be ≥ 0 and < %lld, the number of classes, got %lld",
                             (long long)x->shape[2], (long long)blank);
    return true;
}

static bool infer(cn_infer *i)
{
    if (!fits(i, 0)) return false;
    i->out[0] = (cn_meta){ i->in[0]->dtype, { .ndim = 1, .shape = { i->in[0]->layout.shape[1] } } };
    return true;
}

static bool backward_infer(cn_infer *i)
{
    char s[96];
    if (!fits(i, 1)) return false;
    const cn_layout *g = &i->in[0]->layout;
    if (g->ndim != 1 || g->shape[0] != i->in[1]->layout.shape[1])
        return cn_infer_fail(i, CN_BAD_SHAPE, "the gradient must have shape [%lld], got %s",
                             (long long)i->in[1]->layout.shape[1], cn__shape_text(g, s, sizeof s));
    i->out[0] = *i->in[1];
    return true;
}

static void grad(cn_grad_call *g)
{
    cn_tensor *in[5] = { g->out_grad[0], g->in[0], g->in[1], g->in[2], g->in[3] };
    g->in_grad[0] = cn_apply(&cn__op_ctc_loss_backward, in, 5, g->attrs, g->args);
}

/* ---- records */

#define CTC(...)           .attrs = &(const cn__ctc_attrs){ __VA_ARGS__ }
#define FROM_TO(a, b, ...) CN_IDX_FROM(a, (b) + 1, __VA_ARGS__)
#define LOG_PROBS(...)     CN_RANGE(-3, -0.5, __VA_ARGS__)

const cn_op cn__op_ctc_loss = {
    .call = "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, "
            "mean|sum|none reduction=mean, bool zero_infinity=False) -> Tensor",
    .name = "ctc_loss",
    .doc = "-log of the probability of all alignments of log_probs (T, N, C) with the targets, (N).",
    .kind = CN_BLOCK,
    .n_in = 4,
    .n_out = 1,
    .free_dtype = 14,
    .not_differentiable = 14,
    .checks_index = true,
    .attr_size = sizeof(cn__ctc_attrs),
    .infer = infer,
    .grad = grad,
    .cpu = cpu,
    .gpu = cn__gpu_ctc_loss,
    .scratch = scratch,
    CN_CASES(
        { CN_IN(LOG_PROBS(5, 2, 3), FROM_TO(1, 2, 2, 2), FROM_TO(4, 5, 2), FROM_TO(1, 2, 2)), CTC(0, 0) },
        { CN_IN(LOG_PROBS(7, 3, 4), FROM_TO(0, 2, 6), FROM_TO(5, 7, 3), FROM_TO(2, 2, 3)), CTC(3, 0) },
        { CN_IN(LOG_PROBS(6, 1, 2), FROM_TO(1, 1, 1, 3), FROM_TO(6, 6, 1), FROM_TO(3, 3, 1)), CTC(0, 1) },
        { CN_IN(LOG_PROBS(4, 2, 3), CN_IDX(3, 2, 0), FROM_TO(1, 4, 2), FROM_TO(0, 0, 2)), CTC(1, 0) },
        { CN_IN(LOG_PROBS(4, 0, 3), CN_IDX(3, 0, 2), CN_IDX(4, 0), CN_IDX(3, 0)), CTC(0, 0) },
        { CN_IN(LOG_PROBS(3, 2, 4), FROM_TO(1, 3, 2, 5), FROM_TO(2, 3, 2), FROM_TO(4, 5, 2)), CTC(0, 1) },
        { CN_IN(LOG_PROBS(12, 9, 11), FROM_TO(1, 10, 9, 4), FROM_TO(9, 12, 9), FROM_TO(0, 4, 9)), CTC(0, 0) },
        { CN_IN(LOG_PROBS(23, 17, 6), FROM_TO(1, 5, 17, 8), FROM_TO(17, 23, 17), FROM_TO(3, 8, 17)), CTC(0, 1) }),
};

const cn_op cn__op_ctc_loss_backward = {
    .call = "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, "
            "Tensor target_lengths, int blank, bool zero_infinity) -> Tensor",
    .name = "ctc_loss_backward",
    .doc = "Gradient of ctc_loss to log_probs, from g (N) and ctc_loss's operands.",
    .kind = CN_BLOCK,
    .n_in = 5,
    .n_out = 1,
    .free_dtype = 28,
    .not_differentiable = 28,
    .attr_size = sizeof(cn__ctc_attrs),
    .infer = backward_infer,
    .no_grad = "a second derivative would need another pass over all alignments",
    .cpu = backward_cpu,
    .gpu = cn__gpu_ctc_loss_backward,
    .scratch = backward_scratch,
    CN_CASES(
        { CN_IN(CN_S(2), LOG_PROBS(5, 2, 3), FROM_TO(1, 2, 2, 2), FROM_TO(4, 5, 2), FROM_TO(1, 2, 2)), CTC(0, 0) },
        { CN_IN(CN_S(3), LOG_PROBS(7, 3, 4), FROM_TO(0, 2, 6), FROM_TO(5, 7, 3), FROM_TO(2, 2, 3)), CTC(3, 0) },
        { CN_IN(CN_S(2), LOG_PROBS(4, 2, 3), CN_IDX(3, 2, 0), FROM_TO(1, 4, 2), FROM_TO(0, 0, 2)), CTC(1, 0) },
        { CN_IN(CN_S(0), LOG_PROBS(4, 0, 3), CN_IDX(3, 0, 2), CN_IDX(4, 0), CN_IDX(3, 0)), CTC(0, 0) },
        { CN_IN(CN_S(2), LOG_PROBS(3, 2, 4), FROM_TO(1, 3, 2, 5), FROM_TO(2, 3, 2), FROM_TO(4, 5, 2)), CTC(0, 1) },
        { CN_IN(CN_S(9), LOG_PROBS(12, 9, 11), FROM_TO(1, 10, 9, 4), FROM_TO(9, 12, 9), FROM_TO(0, 4, 9)),
          CTC(0, 0) }),
};
