/* bench_workloads: times the workloads of bench/workloads/, one line each; workloads.h says what the line has.

       bench_workloads [--list] [--extra] [--only gpt-mini,mlp] [--device gpu] [--threads 2] [--seconds 4] [--plan] [--work]
                       [--turns] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/workloads/workloads.h"

static int usage(int code)
{
    printf("usage: bench_workloads [--list] [--extra] [--only NAME,NAME] [--device gpu] [--threads N] [--seconds S] "
           "[--plan] [--work] [--turns]\n");
    return code;
}

int main(int argc, char **argv)
{
    bench_options o = { .threads = 2, .seconds = 4 };
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--list")) return bench_list(), 0;
        if (!strcmp(argv[i], "--plan")) o.plan = true;
        else if (!strcmp(argv[i], "--work")) o.work = true;
        else if (!strcmp(argv[i], "--turns")) o.turns = true;
        else if (!strcmp(argv[i], "--extra")) o.extra = true;
        else if (i + 1 < argc && !strcmp(argv[i], "--only")) o.only = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "--device")) o.device = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "--threads")) o.threads = atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--seconds")) o.seconds = atof(argv[++i]);
        else return usage(strcmp(argv[i], "--help") != 0);
    }
    return bench_run(&o);
}
