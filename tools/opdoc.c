/* Writes docs/operators.md from the operators' own records:  cairn_opdoc > docs/operators.md */
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"

static const struct kind {
    cn_kind kind;
    const char *name, *words;
} kinds[] = {
    { CN_MAP, "MAP", "elementwise; operands broadcast; fused into groups" },
    { CN_RANDOM, "RANDOM", "elementwise from a counter; fused like a MAP" },
    { CN_VIEW, "VIEW", "a new layout over the same memory" },
    { CN_REDUCE, "REDUCE", "over neighbouring axes; elementwise work is fused into its front" },
    { CN_CONTRACT, "CONTRACT", "products and convolutions" },
    { CN_INDEX, "INDEX", "gather, scatter, joining, windows that move data" },
    { CN_SCAN, "SCAN", "running results along an axis" },
    { CN_SORT, "SORT", "order along an axis" },
    { CN_BLOCK, "BLOCK", "one kernel for what could be composed of simpler operators" },
    { CN_COMPOSITE, "COMPOSITE", "other operators put together; nothing of its own in a plan" },
};

static void print_dtypes(const cn_op *op)
{
    uint32_t can = op->dtypes ? op->dtypes : CN_FLOATS;
    if (op->kind == CN_COMPOSITE) {
        printf("its parts'");
        return;
    }
    if (can == CN_ANY) {
        printf("all");
        return;
    }
    const char *gap = "";
    for (int t = 0; t < CN_DTYPES; t++) {
        if (!(can & CN_BIT(t))) continue;
        printf("%s%s", gap, cn_dtype_name((cn_dtype)t));
        gap = " ";
    }
    bool halves = can & CN_BIT(CN_F32) && !(can & CN_BIT(CN_F16));
    if (halves) printf(" (halves by f32%s)", op->ints_to_float ? ", integers become f32" : "");
}

static void print_row(const cn_op *op)
{
    printf("| `%s` | ", op->name);
    for (const char *c = op->doc; *c; c++) printf(*c == '|' ? "\\|" : "%c", *c);
    printf(" | ");
    print_dtypes(op);
    printf(" | %s | cpu | %s |\n",
           op->grad                                   ? "yes"
           : op->kind == CN_COMPOSITE && !op->no_grad ? "its parts'"
           : op->no_grad                              ? op->no_grad
                                                      : "none",
           op->onnx ? op->onnx : "");
}

int main(void)
{
    int n;
    const cn_op *const *ops = cn_ops(&n);
    printf(
        "# Operators\n\nMade from the operators' records by `make docs`; a test fails when it is stale. %d operators.\n",
        n);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        printf(
            "\n## %s: %s\n\n| operator | what it gives | dtypes | gradient | devices | ONNX |\n|---|---|---|---|---|---|\n",
            kinds[k].name, kinds[k].words);
        for (int i = 0; i < n; i++)
            if (ops[i]->kind == kinds[k].kind) print_row(ops[i]);
    }
    return 0;
}
