/* cairn bench: times the workloads of bench/workloads/ with the command's options. */
#include "bench/workloads/workloads.h"
#include "cli.h"

/* The standard output has the times alone. */
static void opened(cn_ctx *cn, const char *device) { print_device(cn, device, stderr); }

int bench(settings *s)
{
    if (flag_of(s, "list")) {
        bench_list();
        return DONE;
    }
    const bench_options o = {
        .only = text_of(s, "only"),
        .device = text_of(s, "device"),
        .threads = (int)whole_of(s, "threads"),
        .seconds = given(s, "seconds")   ? number_of(s, "seconds")
                   : given(s, "compare") ? 0.5
                                         : 4,
        .extra = flag_of(s, "extra"),
        .opened = opened,
    };
    return given(s, "compare") ? bench_compare(&o, text_of(s, "compare")) : bench_run(&o);
}
