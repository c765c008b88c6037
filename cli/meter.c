/* Where the time of a training goes: a profile of some steps, added up to a few lines. A profiled step is a little
   slower than others (docs/performance.md has the numbers), so only every n-th step is. */
#include <string.h>
#include <time.h>

#include "cli.h"

/* On the CPU a profile reads the clock for each kernel. On a GPU it also waits for each step, and each kernel becomes a
   pass of its own. The first two steps build plans and compile shaders: they are like no others. */
enum { FIRST = 3, EVERY_ON_CPU = 16, EVERY_ON_GPU = 100 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool meter_due(const meter *m, const cn_ctx *cn)
{
    const int64_t every = cn_gpu_current(cn) >= 0 ? EVERY_ON_GPU : EVERY_ON_CPU, next = m->steps + 1;
    return next >= FIRST && (next - FIRST) % every == 0;
}

void meter_begin(meter *m, cn_ctx *cn, bool profile)
{
    m->steps++;
    m->began = now();
    if (profile) m->profile = cn_profile_begin(cn, &(cn_profile_desc){ .events = -1 });
}

static struct meter_device *part_of(meter *m, const char *name)
{
    int i = 0;
    while (i < m->devices && strcmp(m->device[i].name, name)) i++;
    if (i == METER_DEVICES) return &m->device[i - 1];
    if (i == m->devices) snprintf(m->device[m->devices++].name, sizeof m->device->name, "%s", name);
    return &m->device[i];
}

static void add_profile(meter *m, const cn_profile *p)
{
    cn_profile_row row;
    for (int i = 0; cn_profile_row_at(p, i, &row); i++) {
        struct meter_device *d = part_of(m, row.device);
        if (row.kind == CN_PROFILE_TRANSFER) d->transfers += row.seconds;
        else if (row.kind == CN_PROFILE_MATMUL) d->matmul += row.seconds, d->flops += row.flops;
        else d->others += row.seconds;
        d->untimed |= !strncmp(row.device, "gpu", 3) && !cn_profile_gpu_timed(p);
    }
    m->measured += cn_profile_seconds(p);
}

void meter_end(meter *m)
{
    m->seconds += now() - m->began;
    if (!m->profile) return;
    cn_profile_end(m->profile);
    add_profile(m, m->profile);
    m->profiled_steps++;
    cn_profile_free(m->profile);
    m->profile = NULL;
}

/* A share of the profiled steps, as a time of all steps. */
static void print_share(const job *j, const meter *m, const char *what, const char *device, double seconds,
                        const char *note)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", what, *device ? ", " : "", device);
    const double share = m->measured > 0 ? seconds / m->measured : 0;
    print_line(j, "  %-24s %9.3f s %6.1f %%%s", name, share * m->seconds, 100 * share, note);
}

void print_meter(const job *j, const meter *m)
{
    if (!m->steps || !(m->measured > 0)) return;
    print_line(j, "\n%" PRId64 " steps in %.3f s, %.3f ms each; of the time in steps:", m->steps, m->seconds,
               1e3 * m->seconds / (double)m->steps);
    double rest = m->measured;
    for (int i = 0; i < m->devices; i++) {
        const struct meter_device *d = &m->device[i];
        char rate[48] = "";
        if (d->flops > 0 && d->matmul > 0) snprintf(rate, sizeof rate, "   %.1f GFLOP/s", d->flops / d->matmul * 1e-9);
        if (d->untimed) snprintf(rate, sizeof rate, "   to record; this GPU has no clock");
        if (d->matmul > 0) print_share(j, m, "matrix products", d->name, d->matmul, rate);
        if (d->others > 0) print_share(j, m, "other kernels", d->name, d->others, "");
        if (d->transfers > 0) print_share(j, m, "transfers", d->name, d->transfers, "");
        rest -= d->matmul + d->others + d->transfers;
    }
    print_share(j, m, "outside of kernels", "", rest > 0 ? rest : 0, "   data, recording, planning");
    if (m->profiled_steps)
        print_line(j, "  (measured in %" PRId64 " of the steps; --profile lists every kernel)", m->profiled_steps);
}
