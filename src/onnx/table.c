/* The table of operators: rows of table.def, and the operators whose records name an ONNX operator. */
#include "onnx/rules.h"

#define ROW(op_, domain_, rule_, needs_, known_, state_, flags_) \
    { .op = #op_,                                                \
      .domain = domain_,                                         \
      .rule = cn__onnx_##rule_,                                  \
      .needs = needs_,                                           \
      .known = known_,                                           \
      .state = state_,                                           \
      .flags = flags_ },
static const onnx_row rows[] = {
#include "onnx/table.def"
};
#undef ROW

static int by_name(const char *domain, const char *op, const onnx_row *r)
{
    const int order = strcmp(op, r->op);
    return order ? order : strcmp(domain, r->domain);
}

const onnx_row *cn__onnx_row(const char *domain, const char *op)
{
    size_t low = 0, high = sizeof rows / sizeof *rows;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = by_name(domain, op, &rows[middle]);
        if (order == 0) return &rows[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

const cn_op *cn__onnx_record(const char *domain, const char *op)
{
    int n;
    const cn_op *const *all = cn_ops(&n);
    for (int i = 0; i < n && !*domain; i++)
        if (all[i]->kind == CN_MAP && all[i]->onnx && !all[i]->attr_size && !strcmp(all[i]->onnx, op)) return all[i];
    return NULL;
}
