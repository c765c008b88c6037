/* cairn ops: lists operators, or describes one. */
#include <ctype.h>
#include <string.h>

#include "cli.h"

static const struct prototype {
    const char *name, *text;
} prototypes[] = {
#define PROTOTYPE(name, text) { name, text },
#include "prototypes.inc"
#undef PROTOTYPE
};

static const char *kind_name(cn_kind kind)
{
    switch (kind) {
    case CN_MAP: return "map";
    case CN_VIEW: return "view";
    case CN_REDUCE: return "reduce";
    case CN_CONTRACT: return "contract";
    case CN_INDEX: return "index";
    case CN_SCAN: return "scan";
    case CN_SORT: return "sort";
    case CN_RANDOM: return "random";
    case CN_BLOCK: return "block";
    case CN_COMPOSITE: return "composite";
    }
    return "";
}

/* Whether the text has the word; case does not matter. */
static bool contains(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (; *text; text++) {
        size_t k = 0;
        while (k < n && text[k] && tolower((unsigned char)text[k]) == tolower((unsigned char)word[k])) k++;
        if (k == n) return true;
    }
    return !n;
}

/* ---- one operator ---- */

static void print_dtypes(const cn_op *op)
{
    const uint32_t can = op->dtypes ? op->dtypes : CN_FLOATS;
    printf("dtypes     ");
    for (int t = 0; t < CN_DTYPES; t++)
        if (can & CN_BIT(t)) printf(" %s", cn_dtype_name((cn_dtype)t));
    if (can & CN_BIT(CN_F32) && !(can & CN_BIT(CN_F16))) printf("; f16 and bf16 are computed in f32");
    if (op->ints_to_float) printf("; integers become f32");
    printf("\n");
}

/* cn_NAME, and its forms with a number (_s) and in place (_). */
static void print_prototypes(const char *name)
{
    static const char *const forms[] = { "", "_s", "_", "_s_" };
    const char *label = "C";
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        char function[80];
        snprintf(function, sizeof function, "cn_%s%s", name, forms[f]);
        for (size_t i = 0; i < sizeof prototypes / sizeof *prototypes; i++) {
            if (strcmp(prototypes[i].name, function)) continue;
            printf("%-11s %s;\n", label, prototypes[i].text);
            label = "";
        }
    }
    if (*label) printf("%-11s none: other operators call it\n", label);
}

static void describe(const cn_op *op)
{
    printf("%s\n\n%s\n\n", op->call ? op->call : op->name, op->doc ? op->doc : "");
    printf("%-11s %s\n", "kind", kind_name(op->kind));
    if (op->kind == CN_COMPOSITE) printf("%-11s those of its parts\n", "dtypes");
    else print_dtypes(op);
    printf("%-11s %s%s\n", "gradient", op->no_grad ? "no: " : "yes", op->no_grad ? op->no_grad : "");
    printf("%-11s %s\n", "devices", cn_op_has_gpu(op) ? "cpu, gpu" : "cpu");
    if (op->onnx) printf("%-11s %s\n", "ONNX", op->onnx);
    print_prototypes(op->name);
}

/* A function that calls several operators. */
static bool describe_routine(const char *name)
{
    int n;
    const cn_routine *routine = cn_routines(&n);
    for (int i = 0; i < n; i++) {
        const size_t length = strcspn(routine[i].call, "(");
        if (length != strlen(name) || memcmp(routine[i].call, name, length) != 0) continue;
        printf("%s\n\n%s\n\n%-11s composed of other operators\n", routine[i].call, routine[i].doc, "kind");
        print_prototypes(name);
        return true;
    }
    return false;
}

/* ---- the list ---- */

int list_ops(settings *s)
{
    int n, shown = 0;
    const cn_op *const *ops = cn_ops(&n);
    for (int i = 0; i < n && s->argument; i++) {
        if (strcmp(ops[i]->name, s->argument)) continue;
        describe(ops[i]);
        return DONE;
    }
    if (s->argument && describe_routine(s->argument)) return DONE;
    for (int i = 0; i < n; i++) {
        const cn_op *op = ops[i];
        const char *doc = op->doc ? op->doc : "", *kind = kind_name(op->kind), *word = s->argument;
        if (word && !contains(op->name, word) && !contains(kind, word) && !contains(doc, word)) continue;
        printf("%-24s %-10s %s\n", op->name, kind, doc);
        shown++;
    }
    if (!shown) return fail("no operator has '%s' in its name, kind or text; `cairn ops` lists all", s->argument);
    printf("%d of %d operators\n", shown, n);
    return DONE;
}
