/* bench_onnx: milliseconds of one forward of ONNX models.

       bench_onnx THREADS [--profile] FOLDER...

   A folder has model.onnx and input_0.pb, .., as tests/onnx/make_models.py writes them; bench/peers/onnx_peer.py times
   onnxruntime on the same folders. Prints the name, and the fastest and the median of as many forwards as fit into a
   second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cairn/cairn.h"
#include "onnx/weights.h"

enum { MOST = 32, RUNS = 2000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static cn_tensor *read_input(cn_ctx *cn, cn__bump *memory, const char *folder, int i)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/input_%d.pb", folder, i);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fclose(f);
    onnx_weights w = { .reader = { cn, memory, path }, .content = cn__content_open(cn, path) };
    onnx_tensor t;
    cn_tensor *x = NULL;
    if (w.content && cn__onnx_parse_tensor(&w.reader, cn__wire_of(w.content->data, w.content->bytes), &t))
        x = cn_keep(cn__onnx_tensor(&w, &t, cn));
    cn__content_release(w.content);
    return x;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool forward(cn_ctx *cn, cn_module *m, const cn_onnx_value *in, int n_in, int n_out)
{
    cn_onnx_value out[MOST] = { 0 };
    cn_scope s = cn_scope_begin(cn);
    bool ok = cn_onnx_run(m, in, n_in, out, n_out);
    for (int i = 0; i < n_out && ok; i++) ok = !out[i].tensor || cn_eval(out[i].tensor);
    cn_scope_end(cn, s);
    return ok;
}

static bool time_model(int threads, bool profiled, const char *folder)
{
    static double seconds[RUNS];
    char path[1024];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = threads });
    cn__bump memory = { 0 };
    cn_module *m = cn_onnx_load(cn, path);
    cn_onnx_port ports[MOST];
    cn_onnx_value in[MOST] = { 0 };
    int n_in = 0, runs = 0;
    for (int i = 0; m && i < cn_onnx_inputs(m, ports, MOST); i++) {
        in[n_in].name = ports[i].name;
        if ((in[n_in].tensor = read_input(cn, &memory, folder, i))) n_in++;
    }
    const int n_out = m ? cn_onnx_outputs(m, NULL, 0) : 0;
    cn_no_grad_begin(cn);
    bool ok = m && n_out <= MOST;
    for (int i = 0; i < 3 && ok; i++) ok = forward(cn, m, in, n_in, n_out);
    cn_profile *profile = profiled ? cn_profile_begin(cn, NULL) : NULL;
    for (const double start = now(); ok && runs < RUNS && (runs < 5 || now() - start < 1); runs++) {
        const double begin = now();
        ok = forward(cn, m, in, n_in, n_out);
        seconds[runs] = now() - begin;
    }
    if (profile && cn_profile_end(profile)) cn_profile_show(profile, stdout);
    cn_no_grad_end(cn);
    qsort(seconds, (size_t)runs, sizeof *seconds, by_size);
    const char *name = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
    if (ok) printf("%-34s %9.3f %9.3f\n", name, seconds[0] * 1e3, seconds[runs / 2] * 1e3);
    else fprintf(stderr, "%s: %s\n", folder, cn_error(cn));
    cn__bump_free(&cn->memory, &memory);
    cn_close(cn);
    return ok;
}

int main(int n, char **words)
{
    const bool profiled = n > 2 && !strcmp(words[2], "--profile");
    bool ok = n > 2 + profiled;
    if (!ok) fprintf(stderr, "usage: bench_onnx THREADS [--profile] FOLDER...\n");
    for (int i = 2 + profiled; i < n; i++) ok &= time_model(atoi(words[1]), profiled, words[i]);
    return !ok;
}
