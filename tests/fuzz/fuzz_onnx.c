/* Any bytes as an ONNX file: an error in words, or a module that runs on ones, or says why not; with gradients, and so often
   without that forwards are repeated. Then it is written again. */
#include <stdio.h>
#include <unistd.h>

#include "cairn/cairn.h"
#include "fuzz.h"

enum { MOST = 4, REPEATS = 5 };

/* A small input of the type and axes that the file asks for. */
static cn_tensor *input_of(cn_ctx *cn, const cn_onnx_port *p)
{
    cn_dims shape = { .n = p->ndim < 0 ? 1 : p->ndim > CN_MAX_DIMS ? CN_MAX_DIMS : p->ndim };
    for (int i = 0; i < shape.n; i++)
        shape.v[i] = p->ndim >= 0 && p->shape[i] >= 0 && p->shape[i] < 8 ? p->shape[i] : 2;
    const bool whole = p->type[0] == 'i';
    return whole ? cn_ones(cn, p->type[3] == '3' ? CN_I32 : CN_I64, shape)
                 : cn_ones(cn, p->type[0] == 'b' ? CN_BOOL : CN_F32, shape);
}

static void run(cn_ctx *cn, cn_module *m, const cn_onnx_value *in, int n_in, int n_out)
{
    cn_onnx_value out[MOST] = { 0 };
    cn_scope s = cn_scope_begin(cn);
    const bool ok = cn_onnx_run(m, in, n_in, out, n_out);
    fuzz_require(ok == !cn_failed(cn), "results or an error");
    for (int i = 0; i < n_out && ok; i++)
        if (out[i].tensor && cn_numel(out[i].tensor) < 1 << 20) (void)cn_eval(out[i].tensor);
    cn_scope_end(cn, s);
    cn_error_clear(cn);
}

static void write_again(cn_ctx *cn, cn_module *m)
{
    char path[64];
    snprintf(path, sizeof path, "build/fuzz/onnx.%ld.tmp", (long)getpid());
    const bool ok = cn_onnx_save(m, NULL, 0, path, NULL);
    fuzz_require(ok == !cn_failed(cn), "a file or an error");
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .memory_limit = 1 << 28 });
    cn_module *m = cn_onnx_load_memory(cn, data, bytes);
    fuzz_require((m != NULL) == !cn_failed(cn), "a module or an error");
    cn_onnx_port ports[MOST];
    cn_onnx_value in[MOST] = { 0 };
    const int n_in = m ? cn_onnx_inputs(m, ports, MOST) : 0;
    if (m && n_in <= MOST) {
        for (int i = 0; i < n_in; i++) {
            in[i].tensor = input_of(cn, &ports[i]);
            (void)cn_eval(in[i].tensor);
        }
        cn_error_clear(cn);
        const int n_out = cn_onnx_outputs(m, NULL, 0) > MOST ? MOST : cn_onnx_outputs(m, NULL, 0);
        run(cn, m, in, n_in, n_out);
        cn_no_grad_begin(cn);
        for (int i = 0; i < REPEATS; i++) run(cn, m, in, n_in, n_out);
        cn_no_grad_end(cn);
        write_again(cn, m);
    }
    cn_close(cn);
    return 0;
}
