/* detach: the same value, cut off from gradients. */
#include "ops/view/view.h"

bool cn__infer_same(cn_infer *i)
{
    i->out[0] = *i->in[0];
    return true;
}

const cn_op cn__op_detach = {
    .call = "detach(Tensor input) -> Tensor",
    .name = "detach",
    .doc = "The same value, cut off from gradients.",
    .kind = CN_VIEW,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .infer = cn__infer_same,
    .no_grad = "cutting it off is its purpose",
    .not_differentiable = 1,
    .onnx = "Identity",
    CN_CASES({ CN_IN(CN_S(2, 3)) }, { CN_IN(CN_S0) }, { CN_IN(CN_S(0, 4)) }),
};

cn_tensor *cn_detach(cn_tensor *t) { return cn_apply(&cn__op_detach, &t, 1, NULL, NULL); }
