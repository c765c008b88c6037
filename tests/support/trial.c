/* trial.c: calling operators and counting what was tried. */
#include "support/trial.h"

#include <stdio.h>
#include <string.h>

static const char *const property_names[PROPERTIES] = { "records",   "forward",      "layouts",
                                                        "gradients", "second order", "eager=planned",
                                                        "threads",   "refusals",     "tidy" };
static int counts[PROPERTIES];

bool expect(const trial *t, property p, bool ok, const char *what, const char *words)
{
    counts[p]++;
    return check(ok, "%s, case %d, %s%s%s: %s", t->op->name, t->number, property_names[p], what[0] ? ", " : "", what,
                 words);
}

static void print_number(const char *before, int n)
{
    if (n < 1000) printf("%s%d", before, n);
    else printf("%s%d,%03d", before, n / 1000, n % 1000);
}

void print_counts(int operators, int cases)
{
    print_number("", operators);
    print_number(" operators, ", cases);
    for (int p = 0; p < PROPERTIES; p++) {
        printf(p ? ", %s" : " cases: %s", property_names[p]);
        print_number(" ", counts[p]);
    }
    printf("\n");
}

bool is_thin(const trial *t) { return test_is_quick() && t->number >= 2; }

/* What has no operands says its dtype itself. */
bool takes(const trial *t, cn_dtype dtype)
{
    uint32_t can = t->op->dtypes ? t->op->dtypes : CN_FLOATS;
    if (t->n_in == 0 || can & CN_BIT(dtype)) return true;
    if (dtype == CN_F16 || dtype == CN_BF16) return can & CN_BIT(CN_F32);
    return dtype == CN_I64 && t->op->ints_to_float;
}

bool has_grad(const cn_op *op) { return (op->grad || op->kind == CN_COMPOSITE) && !op->no_grad; }

bool is_differentiable(const trial *t, const inputs *x, int operand)
{
    const ref_tensor *o = &x->in[operand];
    return o->present && cn_dtype_is_float(o->dtype) && !(t->op->not_differentiable >> operand & 1);
}

bool draw(const trial *t, cn_dtype dtype, test_layout layout, inputs *x)
{
    char name[96];
    snprintf(name, sizeof name, "%s %d", t->op->name, t->number);
    /* users' indices may be i32: seen beside one of the dtypes. What a backward gets is always i64 */
    cn_dtype index = dtype == CN_BF16 && !strstr(t->op->name, "_backward") ? CN_I32 : CN_I64;
    return make_inputs(x, name, t->op, t->c, dtype, index, layout);
}

void make_tensors(cn_ctx *ctx, const inputs *x, test_layout layout, cn_tensor **in)
{
    for (int k = 0; k < x->n; k++) in[k] = make_tensor(ctx, &x->in[k], layout);
}

bool call(cn_ctx *ctx, const trial *t, cn_tensor *const *in, cn_tensor **out)
{
    cn_arg args[CN_MAX_ARGS];
    cn_case_args(t->c, args);
    if (t->n_in) return cn_apply_n(t->op, in, t->n_in, t->c->attrs, args, out);
    out[0] = cn_apply_in(ctx, t->op, t->c->attrs, args);
    return out[0] != NULL;
}
