/* CTC loss: the operator ctc_loss, with reductions, and for operands without a batch axis. */
#include "nn/loss.h"
#include "ops/block/block.h"

/* CN_MEAN is the mean of the losses per label. */
static cn_tensor *per_label(cn_tensor *each, cn_tensor *lengths)
{
    return cn_div(each, cn_cast(cn_clamp(lengths, 1, INT32_MAX), cn_type(each)));
}

cn_tensor *cn_ctc_loss(cn_tensor *log_probs, cn_tensor *targets, cn_tensor *input_lengths, cn_tensor *target_lengths,
                       const cn_ctc_desc *desc)
{
    cn__loss l;
    cn_tensor *in[4] = { log_probs, targets, input_lengths, target_lengths };
    const cn__ctc_attrs a = { desc ? desc->blank : 0, desc && desc->zero_infinity };
    static const char *const names[4] = { "log_probs", "targets", "input_lengths", "target_lengths" };
    if (!cn__loss_begin(&l, "ctc_loss", log_probs, targets, desc ? desc->reduction : CN_MEAN)) return NULL;
    for (int i = 1; i < 4; i++)
        if (!cn__of_context(l.ctx, in[i], l.who, names[i])) return cn__loss_end(&l, NULL);
    const bool single = cn_ndim(log_probs) == 2 && cn_ndim(targets) == 1;
    if (single) {
        in[0] = cn_unsqueeze(log_probs, 1);
        for (int i = 2; i < 4; i++)
            if (cn_ndim(in[i]) == 0) in[i] = cn_unsqueeze(in[i], 0);
    }
    cn_tensor *each = cn_apply(&cn__op_ctc_loss, in, 4, &a, NULL);
    if (each && l.reduction == CN_MEAN) each = per_label(each, in[3]);
    if (single) each = cn_squeeze(each, CN_DIMS(0));
    return cn__loss_end(&l, each);
}
