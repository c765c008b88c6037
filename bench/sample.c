/* Times sampling with caches, one sequence of the gpt-small shape. Prints `cairn best median`, in tokens per second.

       bench_sample [--threads 2] [--tokens 200] [--rounds 5]

   bench/peers/sample_torch.py is the same model in PyTorch; scripts/bench_sample.py runs both in turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cairn/cairn.h"

enum { MOST_ROUNDS = 100 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool sample(cn_sampler *s, int tokens)
{
    cn_sampler_reset(s);
    bool ok = cn_sampler_feed(s, (const int32_t[]){ 1 }, 1);
    for (int i = 0; i < tokens && ok; i++) ok = cn_sampler_next(s) >= 0;
    return ok;
}

int main(int argc, char **argv)
{
    int threads = 2, tokens = 200, rounds = 5;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0) threads = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--tokens") == 0) tokens = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
    }
    if (rounds < 1 || rounds > MOST_ROUNDS || tokens < 1) return 2;
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = threads });
    cn_module *gpt = cn_nn_gpt(
        cn, &(cn_gpt_desc){ .vocab = 512, .context = 256, .layers = 6, .heads = 6, .width = 384, .untied = true });
    cn_sampler *s = cn_sampler_new(gpt, &(cn_sampler_desc){ .top_k = 40 });
    double rate[MOST_ROUNDS];
    bool ok = sample(s, 20);
    const int64_t misses = cn_count(cn).plan_misses;
    for (int i = 0; i < rounds && ok; i++) {
        const double start = now();
        ok = sample(s, tokens);
        rate[i] = tokens / (now() - start);
    }
    if (!ok) return fprintf(stderr, "%s\n", cn_error(cn)), 1;
    qsort(rate, (size_t)rounds, sizeof *rate, rising);
    printf("cairn %.0f %.0f\n", rate[rounds - 1], rate[rounds / 2]);
    fprintf(stderr, "plans built after the first 20 tokens: %lld\n", (long long)(cn_count(cn).plan_misses - misses));
    cn_close(cn);
    return 0;
}
