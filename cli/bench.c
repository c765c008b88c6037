/* cairn bench: bench/workloads.c, which is compiled into this program under another name. */
#include <stdlib.h>

#include "cli.h"

int cairn_bench_main(int argc, char **argv);

int bench(settings *s)
{
    char *args[16] = { "cairn bench" };
    char threads[24];
    int n = 1;
    if (flag_of(s, "list")) args[n++] = "--list";
    if (flag_of(s, "extra")) args[n++] = "--extra";
    if (given(s, "only")) args[n++] = "--only", args[n++] = (char *)text_of(s, "only");
    snprintf(threads, sizeof threads, "%" PRId64, whole_of(s, "threads"));
    args[n++] = "--device", args[n++] = (char *)text_of(s, "device");
    args[n++] = "--threads", args[n++] = threads;
    args[n++] = "--seconds", args[n++] = (char *)text_of(s, "seconds");
    return cairn_bench_main(n, args);
}
