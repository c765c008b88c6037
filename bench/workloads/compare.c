/* compare.c: the workloads on several devices in one table, and from which size on a device is faster than the first.
   Two workloads grow: a matrix product, and the batch of a training step. */
#include <stdio.h>
#include <string.h>

#include "bench/workloads/model.h"
#include "bench/workloads/workloads.h"

enum { MOST_DEVICES = 6, MOST_SIZES = 8 };

/* ---- workloads with a size: set before the process of the workload is made ---- */

static int64_t the_size;
static pair the_pair;

static void *new_product(cn_ctx *cn)
{
    const cn_dims n = CN_DIMS(the_size, the_size);
    the_pair = (pair){ cn_keep(cn_randn(cn, CN_F32, n)), cn_keep(cn_randn(cn, CN_F32, n)), NULL };
    return &the_pair;
}

static void product_step(void *user)
{
    pair *p = user;
    cn_eval(cn_matmul(p->a, p->b));
}

static void *new_batch(cn_ctx *cn) { return mlp_new(cn, false, the_size, 2, (const int64_t[]){ 784, 128, 10 }); }

typedef struct sweep {
    workload work;
    const char *unit;
    int64_t sizes[MOST_SIZES];
} sweep;
static const sweep sweeps[] = {
    { { "matmul-sizes", "", new_product, product_step }, "matrices of n x n", { 16, 32, 64, 128, 256, 512, 1024 } },
    { { "batch-sizes", "", new_batch, mlp_step },
      "batches of n, training 784-128-10",
      { 1, 4, 16, 64, 256, 1024, 4096 } },
};
enum { SWEEPS = sizeof sweeps / sizeof *sweeps };

/* ---- the table ---- */

typedef struct devices {
    int n;
    char name[MOST_DEVICES][16];
    int lines; /* of the table, so far */
} devices;

static bool read_devices(const char *list, devices *d)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        const size_t n = strcspn(at, ",");
        if (d->n == MOST_DEVICES || n == 0 || n >= sizeof d->name[0]) return false;
        snprintf(d->name[d->n++], sizeof d->name[0], "%.*s", (int)n, at);
    }
    return d->n > 1;
}

static void print_head(const devices *d)
{
    printf("%-26s", "milliseconds per step");
    for (int i = 0; i < d->n; i++) printf(" %10s", d->name[i]);
    for (int i = 1; i < d->n; i++) printf("  %6s/%s", d->name[i], d->name[0]);
    printf("\n");
}

/* One line; times[i] is the time on device i. The first line comes after the head and the names of the devices. False: a
   device cannot be opened, or the workload failed. */
static bool compare_one(const workload *w, const char *label, devices *d, const bench_options *o, double *times)
{
    bench_options on = *o;
    if (d->lines) on.opened = NULL;
    for (int i = 0; i < d->n; i++) {
        on.device = d->name[i];
        if (bench_time(w, &on, &times[i])) return false;
    }
    if (!d->lines++) print_head(d);
    printf("%-26s", label);
    for (int i = 0; i < d->n; i++) printf(" %10.4f", times[i] * 1e3);
    for (int i = 1; i < d->n; i++) printf("  %*.2f", (int)strlen(d->name[0]) + 7, times[i] / times[0]);
    printf("\n");
    fflush(stdout);
    return true;
}

/* The smallest size from which on a device is faster than the first one. */
static void print_crossing(const sweep *s, const devices *d, double times[][MOST_DEVICES], int n)
{
    for (int i = 1; i < d->n; i++) {
        int from = n;
        while (from > 0 && times[from - 1][i] < times[from - 1][0]) from--;
        printf("  %s: %s is faster than %s ", s->unit, d->name[i], d->name[0]);
        if (from == n) printf("never here (n up to %lld)\n", (long long)s->sizes[n - 1]);
        else printf("from n = %lld on\n", (long long)s->sizes[from]);
    }
}

static bool compare_sizes(const sweep *s, devices *d, const bench_options *o, double times[][MOST_DEVICES])
{
    char label[64];
    for (int k = 0; k < MOST_SIZES && s->sizes[k]; k++) {
        the_size = s->sizes[k];
        snprintf(label, sizeof label, "%s %lld", s->work.name, (long long)the_size);
        if (!compare_one(&s->work, label, d, o, times[k])) return false;
    }
    return true;
}

int bench_compare(const bench_options *o, const char *list)
{
    devices d = { 0 };
    double times[SWEEPS][MOST_SIZES][MOST_DEVICES], one[MOST_DEVICES];
    if (!read_devices(list, &d)) {
        fprintf(stderr, "cairn: --compare must be two to %d devices, such as cpu,gpu; got '%s'\n", MOST_DEVICES, list);
        return 2;
    }
    for (int k = 0; k < n_reference_workloads; k++)
        if (bench_chosen(reference_workloads[k].name, o->only, !o->extra) &&
            !compare_one(&reference_workloads[k], reference_workloads[k].name, &d, o, one))
            return 1;
    for (int k = 0; k < n_extra_workloads; k++)
        if (bench_chosen(extra_workloads[k].name, o->only, o->extra) &&
            !compare_one(&extra_workloads[k], extra_workloads[k].name, &d, o, one))
            return 1;
    for (int i = 0; i < SWEEPS; i++)
        if (bench_chosen(sweeps[i].work.name, o->only, true) && !compare_sizes(&sweeps[i], &d, o, times[i])) return 1;
    printf("\nwhere another device begins to pay:\n");
    for (int i = 0; i < SWEEPS; i++) {
        int n = 0;
        while (n < MOST_SIZES && sweeps[i].sizes[n]) n++;
        if (bench_chosen(sweeps[i].work.name, o->only, true)) print_crossing(&sweeps[i], &d, times[i], n);
    }
    return 0;
}
