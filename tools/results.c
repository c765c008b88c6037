/* Results of every operator's cases in one file, and what another machine makes of the same cases:

       build/cairn_results --write FILE       computes all cases on this machine
       build/cairn_results --compare FILE     computes them again, and compares with the file

   Each case is computed in f32 and f64, with a loss and the gradients of its operands, and in i64. The comparison lists
   the operators whose bits differ, with the largest difference relative to the largest number of the result, and fails
   where that is above the limit of docs/platforms.md. The last line is "N passed, M failed". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trials/versus.h"

/* What a difference may be: rounding in the last places, which a case's own arithmetic may enlarge. */
static const double most[CN_DTYPES] = { [CN_F32] = 2e-6, [CN_F64] = 1e-14 };

typedef struct reader {
    FILE *file;
    bool writes;
    int64_t same, close, failed; /* results */
    int differing, operators;    /* operators */
    double worst[CN_DTYPES];
} reader;

typedef struct stored {
    char name[48]; /* of the operator */
    int32_t number, part, dtype, unused;
    int64_t numel;
} stored;

static void stop(const char *why)
{
    fprintf(stderr, "cairn_results: %s\n", why);
    exit(2);
}

static stored describe(const trial *t, const output *o, int part)
{
    stored s = { .number = t->number, .part = part, .dtype = (int32_t)o->dtype, .numel = o->numel };
    snprintf(s.name, sizeof s.name, "%s", t->op->name);
    return s;
}

/* |expected - got|, relative to the largest number of the result or to 1; infinite where only one is a number. */
static double difference_of(const output *expected, const output *got)
{
    double worst = 0, scale = 1;
    for (int64_t i = 0; i < expected->numel; i++)
        if (isfinite(output_at(expected, i))) scale = fmax(scale, fabs(output_at(expected, i)));
    for (int64_t i = 0; i < expected->numel; i++) {
        const double e = output_at(expected, i), g = output_at(got, i);
        if (e == g || (isnan(e) && isnan(g))) continue;
        const double d = fabs(e - g) / scale;
        worst = isfinite(d) ? fmax(worst, d) : INFINITY;
    }
    return worst;
}

/* Returns the difference, 0 where the bits are the same. */
static double compare(reader *r, const trial *t, const output *got, int part)
{
    const stored now = describe(t, got, part);
    stored then;
    if (fread(&then, sizeof then, 1, r->file) != 1 || memcmp(&now, &then, sizeof now))
        stop("the file holds results of other cases: write it again");
    output expected = *got;
    const size_t bytes = (size_t)got->numel * cn_dtype_size(got->dtype);
    expected.data = trial_memory(bytes, 1);
    if (fread(expected.data, 1, bytes, r->file) != bytes) stop("the file is too short");
    difference d;
    const bool same = same_bits(&expected, got, &d);
    const double apart = same ? 0 : difference_of(&expected, got);
    const bool ok = same || apart <= most[got->dtype];
    r->same += same, r->close += ok && !same, r->failed += !ok;
    r->worst[got->dtype] = fmax(r->worst[got->dtype], apart);
    char name[32];
    name_traced(name, sizeof name, part);
    if (!ok) printf("FAILED %s case %d %s, %s: %s\n", t->op->name, t->number, cn_dtype_name(got->dtype), name, d.words);
    free(expected.data);
    return same ? 0 : fmax(apart, 1e-300); /* the zeros may differ in their sign */
}

static void store(reader *r, const trial *t, const output *o, int part)
{
    const stored s = describe(t, o, part);
    const size_t bytes = (size_t)o->numel * cn_dtype_size(o->dtype);
    if (fwrite(&s, sizeof s, 1, r->file) != 1 || fwrite(o->data, 1, bytes, r->file) != bytes) stop("cannot write");
}

static double run_case(reader *r, cn_ctx *cn, const trial *t, cn_dtype dtype)
{
    inputs x;
    double worst = 0;
    if ((t->n_in && !takes(t, dtype)) || !draw(t, dtype, LAYOUT_CONTIGUOUS, &x)) return 0;
    output traced[TRACED] = { 0 };
    int n = t->op->n_out;
    const bool ok = trace_case(cn, t, &x, LAYOUT_CONTIGUOUS, cn_dtype_is_float(dtype) && has_grad(t->op), &n, traced);
    for (int i = 0; i < TRACED && ok; i++) {
        if (!traced[i].data) continue;
        if (r->writes) store(r, t, &traced[i], i);
        else worst = fmax(worst, compare(r, t, &traced[i], i));
    }
    cn_error_clear(cn);
    free_outputs(traced, TRACED);
    free_inputs(&x);
    return worst;
}

/* Calls a library of the system, which may be another one elsewhere. */
static bool needs_lapack(const cn_op *op)
{
    return strncmp(op->name, "linalg_", 7) == 0 || !strcmp(op->name, "cofactor") || !strcmp(op->name, "thin_svd");
}

static void run_operator(reader *r, cn_ctx *cn, const cn_op *op)
{
    static const cn_dtype dtypes[] = { CN_F32, CN_F64, CN_I64 };
    double worst[3] = { 0 };
    for (int c = 0; c < op->n_cases; c++) {
        const trial t = { op, &op->cases[c], c, count_operands(&op->cases[c]) };
        for (int d = 0; d < (t.n_in ? 3 : 1); d++) worst[d] = fmax(worst[d], run_case(r, cn, &t, dtypes[d]));
    }
    const bool differs = worst[0] > 0 || worst[1] > 0 || worst[2] > 0;
    r->operators++, r->differing += differs;
    if (differs) printf("%-32s f32 %-8.1g f64 %.1g\n", op->name, worst[0], worst[1]);
}

int main(int argc, char **argv)
{
    const bool writes = argc == 3 && !strcmp(argv[1], "--write");
    if (!writes && (argc != 3 || strcmp(argv[1], "--compare")))
        return fputs("usage: cairn_results --write FILE | --compare FILE\n", stderr), 2;
    reader r = { .file = fopen(argv[2], writes ? "wb" : "rb"), .writes = writes };
    cn_ctx *cn = cn_open(&(cn_desc){ .device = "cpu", .seed = 7, .threads = 1 });
    if (!r.file || !cn || cn_failed(cn)) stop(r.file ? cn_error(cn) : "cannot open the file");
    int n;
    const cn_op *const *ops = cn_ops(&n);
    for (int i = 0; i < n; i++)
        if (!needs_callbacks(ops[i]) && !needs_lapack(ops[i])) run_operator(&r, cn, ops[i]);
    cn_close(cn);
    if (!writes && fgetc(r.file) != EOF) stop("the file holds results of other cases: write it again");
    if (fclose(r.file) && writes) stop("cannot write");
    if (writes) return 0;
    printf(
        "%d operators, %d with other bits; %lld results with the same bits, %lld others, f32 within %.1g, f64 %.1g\n",
        r.operators, r.differing, (long long)r.same, (long long)r.close, r.worst[CN_F32], r.worst[CN_F64]);
    printf("%lld passed, %lld failed\n", (long long)(r.same + r.close), (long long)r.failed);
    return r.failed > 0;
}
