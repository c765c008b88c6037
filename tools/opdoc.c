/* Writes the list of operators from their own records: cairn_opdoc > docs/operators.md, or cairn_opdoc --json. */
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"

static const struct kind {
    cn_kind kind;
    const char *name, *text;
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
enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct prototype {
    const char *name, *text;
} prototypes[] = {
#define PROTOTYPE(name, text) { name, text },
#include "prototypes.inc"
#undef PROTOTYPE
};
enum { PROTOTYPES = sizeof prototypes / sizeof *prototypes };

static uint32_t dtypes_of(const cn_op *op) { return op->dtypes ? op->dtypes : CN_FLOATS; }

static const char *gradient_of(const cn_op *op)
{
    if (op->grad) return "yes";
    if (op->no_grad) return op->no_grad;
    return op->kind == CN_COMPOSITE ? "its parts'" : "none";
}

/* ---- docs/operators.md ---- */

static void print_cell(const char *text)
{
    for (; *text; text++) printf(*text == '|' ? "\\|" : "%c", *text);
}

static void print_dtypes(const cn_op *op)
{
    const uint32_t can = dtypes_of(op);
    if (op->kind == CN_COMPOSITE || can == CN_ANY) {
        printf(op->kind == CN_COMPOSITE ? "its parts'" : "all");
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
    printf("| `");
    print_cell(op->call);
    printf("` | ");
    print_cell(op->doc);
    printf(" | ");
    print_dtypes(op);
    printf(" | %s | %s | %s |\n", gradient_of(op), cn_op_has_gpu(op) ? "cpu, gpu" : "cpu", op->onnx ? op->onnx : "");
}

static void print_document(void)
{
    int n, routines;
    const cn_op *const *ops = cn_ops(&n);
    const cn_routine *routine = cn_routines(&routines);
    printf("# Operators\n\n"
           "Made from the operators' records by `make docs`; a test fails when it is stale. %d operators.\n\n"
           "The first column is the signature: `include/cairn/signature.h` says how to read it, and how it becomes a\n"
           "prototype in C. A name that begins with `_` is of an operator that other operators call. In the second\n"
           "column x, y, z stand for the operands in their order. `build/operators.json` has the same as data:\n"
           "[operators-json.md](operators-json.md).\n",
           n);
    for (int k = 0; k < KINDS; k++) {
        printf("\n## %s: %s\n\n| call | what it gives | dtypes | gradient | devices | ONNX |\n", kinds[k].name,
               kinds[k].text);
        printf("|---|---|---|---|---|---|\n");
        for (int i = 0; i < n; i++)
            if (ops[i]->kind == kinds[k].kind) print_row(ops[i]);
    }
    printf("\n## Functions that call several operators\n\n| call | what it gives |\n|---|---|\n");
    for (int i = 0; i < routines; i++) {
        printf("| `");
        print_cell(routine[i].call);
        printf("` | ");
        print_cell(routine[i].doc);
        printf(" |\n");
    }
}

/* ---- operators.json ---- */

static void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

static void print_member(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    if (text) print_text(text);
    else printf("null");
}

static void print_choices(const char *names)
{
    printf(", \"choices\": [");
    for (const char *gap = ""; *names; gap = ", ") {
        int n = (int)strcspn(names, "|");
        printf("%s\"%.*s\"", gap, n, names);
        names += n + (names[n] == '|');
    }
    printf("]");
}

static void print_parameter(const cn_parameter *p)
{
    printf("{\"name\": \"%s\", \"kind\": \"%s\"", p->name, cn_parameter_kind_name(p->kind));
    if (p->count) printf(", \"count\": %d", p->count);
    if (p->kind == CN_PARAMETER_ENUM) print_choices(p->kind_text);
    printf(", \"optional\": %s, \"by_name\": %s", p->optional ? "true" : "false", p->by_name ? "true" : "false");
    print_member("default", p->has_default ? p->text : NULL);
    printf("}");
}

static const char *prototype_of(const char *name)
{
    for (int i = 0; i < PROTOTYPES; i++)
        if (!strncmp(prototypes[i].name, "cn_", 3) && !strcmp(prototypes[i].name + 3, name)) return prototypes[i].text;
    return NULL;
}

static bool print_signature(const char *call, const char *doc)
{
    cn_signature s;
    if (!cn_signature_parse(call, &s)) {
        fprintf(stderr, "%s: %s\n", call ? call : "(no signature)", s.error);
        return false;
    }
    printf("{\"name\": \"%s\"", s.name);
    print_member("call", call);
    print_member("doc", doc);
    printf(", \"internal\": %s, \"parameters\": [", s.internal ? "true" : "false");
    for (int i = 0; i < s.n_in; i++) {
        printf(i ? ",\n   " : "\n   ");
        print_parameter(&s.in[i]);
    }
    printf("],\n  \"results\": [");
    for (int i = 0; i < s.n_out; i++) printf("%s\"%s\"", i ? ", " : "", s.out[i]);
    printf("], \"result_list\": %s", s.out_list ? "true" : "false");
    print_member("prototype", s.internal ? NULL : prototype_of(s.name));
    return true;
}

static bool print_operator(const cn_op *op)
{
    if (!print_signature(op->call, op->doc)) return false;
    for (int k = 0; k < KINDS; k++)
        if (kinds[k].kind == op->kind) print_member("kind", kinds[k].name);
    printf(",\n  \"operands\": %d, \"variadic\": %s, \"dtypes\": [", op->n_in, op->variadic ? "true" : "false");
    const char *gap = "";
    for (int t = 0; t < CN_DTYPES && op->kind != CN_COMPOSITE; t++) {
        if (!(dtypes_of(op) & CN_BIT(t))) continue;
        printf("%s\"%s\"", gap, cn_dtype_name((cn_dtype)t));
        gap = ", ";
    }
    printf("], \"gradient\": %s", op->no_grad ? "false" : "true");
    printf(", \"devices\": [\"cpu\"%s]", cn_op_has_gpu(op) ? ", \"gpu\"" : "");
    print_member("onnx", op->onnx);
    printf("}");
    return true;
}

static bool print_json(void)
{
    int n, routines;
    const cn_op *const *ops = cn_ops(&n);
    const cn_routine *routine = cn_routines(&routines);
    bool ok = true;
    printf("{\"version\": 1, \"operators\": [\n");
    for (int i = 0; i < n; i++) {
        printf(i ? ",\n " : " ");
        ok = print_operator(ops[i]) && ok;
    }
    printf("],\n\"functions\": [\n");
    for (int i = 0; i < routines; i++) {
        printf(i ? ",\n " : " ");
        ok = print_signature(routine[i].call, routine[i].doc) && ok;
        printf("}");
    }
    printf("]}\n");
    return ok;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--json")) return print_json() ? 0 : 1;
    if (argc > 1) {
        fprintf(stderr, "usage: cairn_opdoc [--json]\n");
        return 2;
    }
    print_document();
    return 0;
}
