/* routines.c: the signatures of public functions that call several operators and have no record of their own. */
#include "cairn/signature.h"

#define REDUCTION "mean|sum|none reduction=mean"

static const cn_routine all[] = {
    /* ops/create, ops/map */
    { "zeros(int[] size, *, dtype dtype=f32) -> Tensor", "Every element 0." },
    { "ones(int[] size, *, dtype dtype=f32) -> Tensor", "Every element 1." },
    { "zeros_like(Tensor input) -> Tensor", "Zeros of the operand's shape and dtype." },
    { "ones_like(Tensor input) -> Tensor", "Ones of the operand's shape and dtype." },
    { "full_like(Tensor input, float fill_value) -> Tensor",
      "Every element the same number, of the operand's shape and dtype." },
    { "rand_like(Tensor input) -> Tensor", "Random numbers, uniform in [0, 1), of the operand's shape and dtype." },
    { "randn_like(Tensor input) -> Tensor",
      "Random numbers, normal with mean 0 and standard deviation 1, of the operand's shape and dtype." },
    { "rsub_s(Tensor input, float other) -> Tensor", "A number minus x." },
    { "rdiv_s(Tensor input, float other) -> Tensor", "A number divided by x." },

    /* ops/reduce, ops/view */
    { "max_dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
      "The largest element along an axis, and its index." },
    { "min_dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
      "The smallest element along an axis, and its index." },
    { "split(Tensor input, int split_size, int dim=0) -> Tensor[]",
      "Views of split_size elements each along an axis; the last may have fewer." },
    { "chunk(Tensor input, int chunks, int dim=0) -> Tensor[]",
      "At most `chunks` views of about equal size along an axis." },
    { "contiguous(Tensor input) -> Tensor", "The tensor itself if its elements lie in row-major order, else a copy." },
    { "clone(Tensor input) -> Tensor", "A copy with memory of its own." },

    /* ops/fft */
    { "fftn(Tensor input, int[] dim=None, backward|forward|ortho norm=backward) -> Tensor",
      "fft along each of the axes." },
    { "ifftn(Tensor input, int[] dim=None, backward|forward|ortho norm=backward) -> Tensor",
      "ifft along each of the axes." },
    { "rfftn(Tensor input, int[] dim=None, backward|forward|ortho norm=backward) -> Tensor",
      "rfft along the last of the axes, then fft along the others." },
    { "fftfreq(int n, float d=1, *, dtype dtype=f32) -> Tensor",
      "The frequencies of the elements of a spectrum of n samples that are d apart: 0, 1, .., -2, -1 over n·d." },
    { "rfftfreq(int n, float d=1, *, dtype dtype=f32) -> Tensor",
      "The frequencies of the first half of a spectrum: 0, 1, .., n/2 over n·d." },
    { "fftshift(Tensor input, int[] dim=None) -> Tensor", "Moves frequency 0 to the middle of the axes." },
    { "ifftshift(Tensor input, int[] dim=None) -> Tensor", "The inverse of fftshift." },

    /* nn: losses */
    { "mse_loss(Tensor input, Tensor target, " REDUCTION ") -> Tensor", "The squared difference." },
    { "l1_loss(Tensor input, Tensor target, " REDUCTION ") -> Tensor", "The absolute difference." },
    { "smooth_l1_loss(Tensor input, Tensor target, " REDUCTION ", float beta=1) -> Tensor",
      "d²/2β where the difference d is below β, else |d| - β/2." },
    { "huber_loss(Tensor input, Tensor target, " REDUCTION ", float delta=1) -> Tensor",
      "d²/2 where the difference d is at most δ, else δ(|d| - δ/2)." },
    { "bce_loss(Tensor input, Tensor target, Tensor? weight=None, " REDUCTION ") -> Tensor",
      "The cross-entropy of two classes, from probabilities." },
    { "bce_with_logits_loss(Tensor input, Tensor target, Tensor? weight=None, " REDUCTION
      ", Tensor? pos_weight=None) -> Tensor", "The cross-entropy of two classes, from logits." },
    { "kl_div(Tensor input, Tensor target, mean|sum|none|batchmean reduction=mean, bool log_target=False) -> Tensor",
      "The Kullback-Leibler divergence of probabilities from the logarithms of others." },
    { "gaussian_nll_loss(Tensor input, Tensor target, Tensor var, bool full=False, float eps=1e-06, " REDUCTION
      ") -> Tensor", "-log of the probability of the target under a normal distribution." },
    { "poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, float eps=1e-08, " REDUCTION
      ") -> Tensor", "-log of the probability of the target under a Poisson distribution." },
    { "hinge_embedding_loss(Tensor input, Tensor target, float margin=1, " REDUCTION ") -> Tensor",
      "x where the target is 1, max(0, margin - x) where it is -1." },
    { "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, " REDUCTION ") -> Tensor",
      "max(0, -target (x1 - x2) + margin)." },
    { "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, " REDUCTION ") -> Tensor",
      "1 - cos where the target is 1, max(0, cos - margin) where it is -1." },
    { "soft_margin_loss(Tensor input, Tensor target, " REDUCTION ") -> Tensor", "log(1 + exp(-target x))." },
    { "multi_margin_loss(Tensor input, Tensor target, float p=1, float margin=1, Tensor? weight=None, " REDUCTION
      ") -> Tensor", "How far every other class comes within a margin of the right one." },
    { "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1, float p=2, "
      "float eps=1e-06, bool swap=False, " REDUCTION ") -> Tensor",
      "max(0, |anchor - positive| - |anchor - negative| + margin)." },
    { "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
      "The cosine of the angle between two vectors along an axis." },
    { "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
      "The p-norm of the difference over the last axis." },
};

const cn_routine *cn_routines(int *count)
{
    if (count) *count = (int)(sizeof all / sizeof *all);
    return all;
}
