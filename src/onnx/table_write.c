/* The table of rules for writing: rows of write.def, and the operators whose records name an ONNX operator. */
#include "cairn/ops.h"
#include "onnx/put.h"
#include "onnx/run.h"
#include "ops/contract/contract.h"

/* ---- which calls a row is for ---- */

static const cn_meta *operand(const onnx_step *s, int i)
{
    return i < s->n_in && s->in[i].node ? cn__res(s->in[i])->meta : NULL;
}
static cn_dtype type_of(const onnx_step *s)
{
    const cn_meta *x = operand(s, 0);
    return x ? x->dtype : CN_F32;
}

static bool bool_type(const onnx_step *s, int opset) { return (void)opset, type_of(s) == CN_BOOL; }
static bool f32_type(const onnx_step *s, int opset) { return (void)opset, type_of(s) == CN_F32; }
static bool whole_type(const onnx_step *s, int opset) { return (void)opset, !cn_dtype_is_float(type_of(s)); }
static bool unsigned_type(const onnx_step *s, int opset)
{
    return (void)opset, type_of(s) == CN_U8 || type_of(s) == CN_BOOL;
}
static bool image(const onnx_step *s, int opset) { return (void)opset, operand(s, 0)->layout.ndim == 4; }
/* Convolutions without a batch are those of a batch of 1. */
static bool batched(const onnx_step *s, int opset)
{
    const int axes = s->op->name[strlen(s->op->name) - 2] - '0';
    return (void)opset, operand(s, 0)->layout.ndim == axes + 2;
}
/* Runtimes want an output_padding below the stride. */
static bool plain_transposed(const onnx_step *s, int opset)
{
    const cn_conv_desc *a = s->attrs;
    for (int i = 0; i < 3; i++)
        if (a->output_padding[i] && a->output_padding[i] >= a->stride[i]) return false;
    return batched(s, opset) && cn__res(s->result)->numel;
}
/* PyTorch's ... broadcasts, ONNX's does not. */
static bool without_dots(const onnx_step *s, int opset)
{
    return (void)opset, !strchr(((const cn__einsum_attrs *)s->attrs)->text, '.');
}
static bool complete_norm(const onnx_step *s, int opset)
{
    return (void)opset, operand(s, 1) && operand(s, 2) && operand(s, 0)->layout.ndim >= 3;
}
/* Without dropout, and with heads. */
static bool plain_attention(const onnx_step *s, int opset)
{
    return (void)opset, s->args[1].f == 0 && operand(s, 0)->layout.ndim == 4;
}
/* One head of keys for each head of queries. */
static bool single_attention(const onnx_step *s, int opset)
{
    const cn_layout *q = &operand(s, 0)->layout, *k = &operand(s, 1)->layout;
    if (s->args[1].f != 0 || q->ndim != k->ndim) return false;
    return (void)opset, q->ndim < 3 || q->shape[q->ndim - 3] == k->shape[k->ndim - 3];
}
static bool many_samples(const onnx_step *s, int opset) { return (void)opset, operand(s, 0)->layout.ndim >= 2; }
static bool plain_loss(const onnx_step *s, int opset) { return many_samples(s, opset) && s->args[0].f == 0; }
static bool one_sequence(const onnx_step *s, int opset) { return (void)opset, operand(s, 0)->layout.ndim == 1; }

/* ---- the table ---- */

#define EXPRESSION(op_, since_, fits_, text) { .op = #op_, .expression = text, .since = since_, .fits = fits_ },
#define RULE(op_, rule_, since_, sizes_, fits_) \
    { .op = #op_, .rule = cn__write_##rule_, .since = since_, .sizes = sizes_, .fits = fits_ },
static const onnx_writing rows[] = {
#include "onnx/write.def"
};
#undef EXPRESSION
#undef RULE

/* An elementwise operator whose record names an operator of ONNX. */
static bool by_record(onnx_put *c)
{
    onnx_val *in[CN_MAX_IN], *out;
    const int n = c->step->n_in < CN_MAX_IN ? c->step->n_in : CN_MAX_IN;
    for (int i = 0; i < n; i++) in[i] = OF(i);
    return cn__put_nodes(c, c->step->op->onnx, in, n, &out, 1) && GIVE(out);
}
static const onnx_writing record_row = { .rule = by_record };

static bool built_in(const cn_op *op)
{
    int n;
    const cn_op *const *all = cn_ops(&n);
    for (int i = 0; i < n; i++)
        if (all[i] == op) return true;
    return false;
}

/* Operators of a program are written if their records say how. */
const onnx_writing *cn__onnx_writing(const onnx_step *s, int opset)
{
    const cn_op *op = s->op;
    const bool ours = built_in(op);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && ours; i++)
        if (!strcmp(rows[i].op, op->name) && opset >= rows[i].since && (!rows[i].fits || rows[i].fits(s, opset)))
            return &rows[i];
    if (op->kind != CN_MAP || !op->onnx || op->attr_size || op->n_out != 1) return NULL;
    return !ours || (cn__onnx_record("", op->onnx) == op && !cn__onnx_row("", op->onnx)) ? &record_row : NULL;
}
