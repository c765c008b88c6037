/* test_signature.c: the parser of signatures, and what the operators' records say against their signatures. */
#include "cairn/signature.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

#define CHECK(condition) check(condition, "%s", #condition)

static void test_parts(void)
{
    cn_signature s;
    bool ok = cn_signature_parse("pool(Tensor input, Tensor? mask=None, Tensor[] rest) -> Tensor", &s);
    CHECK(!ok && strstr(s.error, "rest needs a default"));
    ok = cn_signature_parse("pool(Tensor input, Tensor[] rest, int[2] kernel, Tensor? mask=None, *, int[] dim=None, "
                            "float low=-inf, float eps=1e-05, bool on=True, mean|sum|none how=sum, "
                            "dtype dtype=f32, str rule='a, b', int k) -> (Tensor values, Tensor indices)", &s);
    CHECK(ok && !s.error[0] && !strcmp(s.name, "pool") && !s.internal && s.n_in == 12 && s.n_out == 2);
    CHECK(!strcmp(s.in[0].name, "input") && s.in[0].kind == CN_PARAMETER_TENSOR);
    CHECK(!s.in[0].optional && !s.in[0].has_default);
    CHECK(s.in[1].kind == CN_PARAMETER_TENSORS && s.in[2].kind == CN_PARAMETER_INTS && s.in[2].count == 2);
    CHECK(s.in[3].optional && s.in[3].has_default && !strcmp(s.in[3].text, "None") && isnan(s.in[3].number));
    CHECK(!s.in[3].by_name && s.in[4].by_name && s.in[4].kind == CN_PARAMETER_INTS && s.in[4].count == 0);
    CHECK(s.in[5].number == -INFINITY && s.in[6].number == 1e-05 && s.in[7].number == 1);
    CHECK(s.in[8].kind == CN_PARAMETER_ENUM && !strcmp(s.in[8].kind_text, "mean|sum|none") && s.in[8].number == 1);
    CHECK(s.in[9].kind == CN_PARAMETER_DTYPE && !strcmp(s.in[9].text, "f32") && !strcmp(s.in[10].text, "a, b"));
    CHECK(!s.in[11].has_default && !strcmp(s.out[0], "values") && !strcmp(s.out[1], "indices"));
    CHECK(cn_signature_parse("_f() -> Tensor[]", &s) && s.internal && !strcmp(s.name, "f"));
    CHECK(s.out_list && s.n_in == 0 && s.n_out == 1);
}

static void test_refusals(void)
{
    static const char *const bad[] = {
        "", "f", "f(", "f()", "f() ->", "f() -> int", "f() -> Tensor x", "f() -> ()", "f() -> (Tensor)",
        "1f() -> Tensor",
        "f(Tensor) -> Tensor", "f(tensor x) -> Tensor", "f(Tensor x,) -> Tensor", "f(Tensor x Tensor y) -> Tensor",
        "f(Tensor x, Tensor x) -> Tensor", "f(float[] x) -> Tensor", "f(int[0] x) -> Tensor", "f(int[12] x) -> Tensor",
        "f(Tensor[2] x) -> Tensor", "f(int x=) -> Tensor", "f(int x=1.5) -> Tensor", "f(int x=inf) -> Tensor",
        "f(int x=None) -> Tensor", "f(bool x=1) -> Tensor", "f(float x=1x) -> Tensor", "f(float x=--1) -> Tensor",
        "f(a|b x=c) -> Tensor", "f(a| x) -> Tensor", "f(a||b x) -> Tensor", "f(str x=a) -> Tensor",
        "f(str x='a) -> Tensor",
        "f(dtype x=f31) -> Tensor", "f(*) -> Tensor", "f(Tensor x, *) -> Tensor", "f(*, int a, *, int b) -> Tensor",
        "f(int x=1, int y) -> Tensor", "f(Tensor x=1) -> Tensor", "f(Tensor x=None) -> Tensor", "f() -> Tensor\n",
        "f() -> (Tensor a, Tensor b, Tensor c, Tensor d, Tensor e)",
        "a_name_that_is_longer_than_any_name_of_an_operator_may_be() -> Tensor",
        "f(int a_name_that_is_longer_than_any_may_be) -> Tensor",
        "f(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k, int l, int m, int n, int o, "
        "int p, int q) -> Tensor",
    };
    cn_signature s;
    CHECK(!cn_signature_parse(NULL, &s) && s.error[0]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const bool refused = !cn_signature_parse(bad[i], &s) && s.error[0];
        check(refused, "accepted: %s", bad[i]);
    }
}

/* Every beginning of a signature is refused. A changed one is refused with words or accepted; under a sanitizer this also
   shows that none is read past its end. */
static void test_damage(const char *call)
{
    cn_signature s;
    size_t n = strlen(call);
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        char *part = malloc(i + 1);
        if (!part) abort();
        memcpy(part, call, i);
        part[i] = 0;
        all = all && !cn_signature_parse(part, &s) && s.error[0];
        free(part);
    }
    check(all, "a part of '%s' was accepted", call);
    char *text = malloc(n + 1);
    if (!text) abort();
    for (size_t i = 0; i < n; i++) {
        static const char other[] = "(),=*|?[]' _a9-\x80";
        for (size_t k = 0; k < sizeof other - 1; k++) {
            memcpy(text, call, n + 1);
            text[i] = other[k];
            all = all && cn_signature_parse(text, &s) == !s.error[0];
        }
    }
    check(all, "'%s' changed: accepted with an error, or refused without one", call);
    free(text);
}

static int count(const cn_signature *s, cn_parameter_kind kind, bool only_optional)
{
    int n = 0;
    for (int i = 0; i < s->n_in; i++) n += s->in[i].kind == kind && (s->in[i].optional || !only_optional);
    return n;
}

static int bits(uint32_t set)
{
    int n = 0;
    for (; set; set &= set - 1) n++;
    return n;
}

static void expect(const cn_op *op, bool ok, const char *words)
{
    check(ok, "%s: %s", op->name, words);
}

static void test_record(const cn_op *op)
{
    cn_signature s;
    bool ok = cn_signature_parse(op->call, &s);
    expect(op, ok, ok ? "" : s.error);
    if (!ok) return;
    int tensors = count(&s, CN_PARAMETER_TENSOR, false), optional = count(&s, CN_PARAMETER_TENSOR, true);
    bool list = count(&s, CN_PARAMETER_TENSORS, false);
    expect(op, !strcmp(s.name, op->name), "the signature has another name");
    expect(op, list == op->variadic, "Tensor[] and .variadic disagree");
    expect(op, s.n_out <= op->n_out, "more results than the record has");
    if (list) return;
    /* A public function may take more than its operator: batch_norm also takes the running statistics. */
    expect(op, s.internal ? tensors == op->n_in : tensors >= op->n_in, "another number of operands");
    expect(op, s.internal ? optional == bits(op->optional) : optional >= bits(op->optional), "other optional operands");
    for (int i = 0; i < op->n_in && s.internal; i++)
        expect(op, s.in[i].kind == CN_PARAMETER_TENSOR && s.in[i].optional == (op->optional >> i & 1),
               "operands do not come first, in the order of the record");
}

static bool is_operator(const cn_op *const *ops, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(ops[i]->name, name)) return true;
    return false;
}

int main(void)
{
    int n, routines;
    const cn_op *const *ops = cn_ops(&n);
    const cn_routine *routine = cn_routines(&routines);
    test_parts();
    test_refusals();
    for (int i = 0; i < n; i++) {
        test_record(ops[i]);
        if (ops[i]->call) test_damage(ops[i]->call);
    }
    for (int i = 0; i < routines; i++) {
        cn_signature s;
        bool ok = cn_signature_parse(routine[i].call, &s);
        check(ok, "%s: %s", routine[i].call, s.error);
        check(!s.internal && !is_operator(ops, n, s.name), "%s: not a function beside the operators", routine[i].call);
        check(routine[i].doc[strlen(routine[i].doc) - 1] == '.', "%s: doc is not a sentence", routine[i].call);
    }
    return finish();
}
