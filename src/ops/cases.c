/* cases.c: converts the compact test cases of operators to structs. */
#include "cairn/op_cases.h"

#include <string.h>

/* Reads one operand from the list at p. Returns the position of the next one. */
static const float *read_operand(const float *p, const float *range, cn_spec *s)
{
    int head = (int)*p++;
    *s = (cn_spec){ .fill = (cn_fill)(head % 16), .shape.n = head / 16 };
    if (s->fill == CN_FILL_UNIFORM) {
        s->fill = CN_FILL_RANGE;
        s->low = range ? range[0] : -2;
        s->high = range ? range[1] : 2;
    } else if (s->fill == CN_FILL_RANGE || s->fill == CN_FILL_INDEX) {
        s->low = *p++;
        s->high = *p++;
    }
    for (int d = 0; d < s->shape.n; d++) s->shape.v[d] = (int64_t)*p++;
    return p;
}

int cn_case_operands(const cn_op *op, const cn_case *c, cn_spec out[CN_MAX_IN])
{
    int n = 0;
    const float *ranges = op ? op->ranges : NULL;
    for (const float *p = c && out ? c->in : NULL; p && n < CN_MAX_IN && *p != CN_FILL_NONE; n++)
        p = read_operand(p, ranges ? ranges + 2 * n : NULL, &out[n]);
    return n;
}

void cn_case_args(const cn_case *c, cn_arg out[CN_MAX_ARGS])
{
    if (!out) return;
    memset(out, 0, CN_MAX_ARGS * sizeof *out);
    if (c && c->args) memcpy(out, c->args, c->n_args * sizeof *out);
}
