/* cairn: the table of commands, errors of the command, and main. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

const command commands[] = {
    { "train gpt", TRAIN_GPT, NULL, false, "trains a language model on texts",
      "cairn train gpt --data my-texts --include '*.md' --tokenizer bpe --out run\n"
      "cairn train gpt --resume run/gpt-l4-h4-w128-c128-cpu.safetensors",
      train_gpt },
    { "train mlp", TRAIN_MLP, NULL, false, "trains a network on a table of numbers",
      "cairn train mlp --data iris.csv --target species --classes --epochs 50", train_mlp },
    { "train cnn", TRAIN_CNN, NULL, false, "trains a network on images with labels",
      "cairn train cnn --images train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz", train_cnn },
    { "generate", GENERATE, "MODEL", false, "writes text with a model: a file, or its folder (GPT-2 as well)",
      "cairn generate run --prompt \"static \" --tokens 300\n"
      "cairn generate gpt2 --prompt-file question.txt --temperature 0.7 --seed 1",
      generate },
    { "eval", EVAL, "MODEL", false, "measures a model: loss and perplexity, or accuracy",
      "cairn eval run --data other-texts\ncairn eval run/mlp-h64-64-cpu.safetensors --data more.csv", evaluate },
    { "info", INFO, "FILE", false, "lists the content of a file: safetensors, onnx, pt, npz, npy, tokenizer.json",
      "cairn info run/gpt-l4-h4-w128-c128-cpu.safetensors", info },
    { "run", RUN, "MODEL.onnx", false, "runs an ONNX model on arrays of NumPy, and writes or describes its results",
      "cairn run model.onnx --input x.npy --output y.npy\ncairn run model.onnx --input ids=ids.npy mask=mask.npy",
      run_model },
    { "convert", CONVERT, "IN OUT", false,
      "makes an ONNX file of a model (what `train` wrote, or GPT-2), or a model file of an ONNX file",
      "cairn convert run model.onnx\ncairn convert model.onnx model.safetensors", convert },
    { "bench", BENCH, NULL, false,
      "times the reference workloads, one line each: name, milliseconds per step, megabytes; on a GPU also "
      "milliseconds of the first step (which compiles shaders), and per step: dispatches, submissions, new pipelines, fallbacks",
      "cairn bench --only mlp,gpt-mini --threads 2\ncairn bench --only mlp --device gpu\ncairn bench --compare cpu,gpu",
      bench },
    { "ops", OPS, "WORD", true,
      "lists all operators, or those with WORD in name, kind or text; the name of an operator shows its signature",
      "cairn ops loss\ncairn ops softmax", list_ops },
    { "devices", DEVICES, NULL, false, "lists the CPU and the GPUs of this machine", "cairn devices", list_devices },
    { "runs", RUNS, "FILE", true, "compares trainings: a table of runs.csv (a file, or its folder)",
      "cairn runs\ncairn runs my-runs.csv --sort time", list_runs },
    { "bundle", BUNDLE, "MODEL", false, "binds a language model into one program that runs with nothing beside it",
      "cairn bundle run --out chat\n./chat", make_bundle },
    { "doctor", DOCTOR, NULL, false,
      "compares every operator on a GPU with the CPU, and tests all forms of its kernels",
      "cairn doctor\ncairn doctor --device gpu:1 --only matmul", doctor },
};
const int n_commands = sizeof commands / sizeof *commands;

const char *program = "cairn";

/* ---- errors and memory ---- */

static void print_error(const char *format, va_list list)
{
    fflush(stdout);
    fputs("cairn: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
}

int fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_error(format, list);
    va_end(list);
    return FAILED;
}

int usage(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_error(format, list);
    va_end(list);
    return USAGE;
}

int fail_in(cn_ctx *cn) { return fail("%s", cn_failed(cn) ? cn_error(cn) : "unknown error"); }

void *grow(void *p, size_t bytes)
{
    p = realloc(p, bytes ? bytes : 1);
    if (p) return p;
    fprintf(stderr, "cairn: out of memory: %zu bytes\n", bytes);
    exit(FAILED);
}

void *need(size_t bytes) { return memset(grow(NULL, bytes), 0, bytes); }

char *copy_text(const char *format)
{
    const size_t n = strlen(format) + 1;
    return memcpy(grow(NULL, n), format, n);
}

/* ---- find the command ---- */

static bool is_help(const char *arg) { return !strcmp(arg, "--help") || !strcmp(arg, "-h"); }

static const command *find_command(const char *name)
{
    for (int i = 0; i < n_commands; i++)
        if (!strcmp(commands[i].name, name)) return &commands[i];
    return NULL;
}

static int unknown_command(const char *word)
{
    const char *near = nearest(word, 0);
    if (near) return usage("no command '%s': did you mean '%s'?", word, near);
    return usage("no command '%s': see cairn --help", word);
}

static int run_command(const command *c, int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--"); i++)
        if (is_help(argv[i])) return print_command_help(c->name, c->bit), DONE;
    settings *s = need(sizeof *s);
    s->command = c;
    int code = parse_options(s, argc, argv);
    if (code == DONE) code = read_configs(s);
    if (code == DONE && find_option(c->bit, "profile", strlen("profile"))) code = check_trace(s);
    if (code == DONE) code = c->run(s);
    free_settings(s);
    free(s);
    if (fflush(stdout) && code == DONE) code = fail("cannot write to the standard output");
    return code;
}

int main(int argc, char **argv)
{
    if (argc > 0) program = argv[0];
    if (is_bundle()) return run_bundle(argc, argv);
    if (argc < 2 || is_help(argv[1]) || !strcmp(argv[1], "help")) {
        print_help();
        return argc < 2 ? USAGE : DONE;
    }
    if (!strcmp(argv[1], "--version")) return printf("cairn %s\n", cn_version()) < 0;
    char name[64];
    snprintf(name, sizeof name, "%s", argv[1]);
    if (strcmp(name, "train")) {
        const command *c = find_command(name);
        return c ? run_command(c, argc - 2, argv + 2) : unknown_command(argv[1]);
    }
    if (argc > 2 && is_help(argv[2])) return print_command_help("train", TRAIN), DONE;
    snprintf(name, sizeof name, "train %s", argc > 2 ? argv[2] : "");
    const command *c = find_command(name);
    if (c) return run_command(c, argc - 3, argv + 3);
    return argc > 2 ? unknown_command(name)
                    : usage("a kind of model is needed: gpt, mlp or cnn; see cairn train --help");
}
