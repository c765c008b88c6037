/* Any bytes as an ONNX file: an error in words, or a module that runs on ones, or says why not. */
#include "cairn/cairn.h"
#include "fuzz.h"

enum { MOST = 4 };

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .memory_limit = 1 << 28 });
    cn_module *m = cn_onnx_load_memory(cn, data, bytes);
    fuzz_require((m != NULL) == !cn_failed(cn), "a module or an error");
    cn_onnx_port ports[MOST];
    cn_onnx_value in[MOST] = { 0 }, out[MOST] = { 0 };
    const int n_in = m ? cn_onnx_inputs(m, ports, MOST) : 0;
    if (m && n_in <= MOST) {
        for (int i = 0; i < n_in; i++) in[i].tensor = input_of(cn, &ports[i]);
        cn_error_clear(cn);
        const int n_out = cn_onnx_outputs(m, NULL, 0) > MOST ? MOST : cn_onnx_outputs(m, NULL, 0);
        const bool ok = cn_onnx_run(m, in, n_in, out, n_out);
        fuzz_require(ok == !cn_failed(cn), "results or an error");
        for (int i = 0; i < n_out && ok; i++)
            if (out[i].tensor && cn_numel(out[i].tensor) < 1 << 20) (void)cn_eval(out[i].tensor);
    }
    cn_close(cn);
    return 0;
}
