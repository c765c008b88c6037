/* Quantised ONNX models: products of whole numbers are exact, at the first forward and when forwards are repeated. */
#include <stdio.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/onnx_write.h"

#define SIZES(...) \
    (const int[]) { __VA_ARGS__, -2 }

/* MatMulInteger: y = (a - 3)·(w - zero), exactly. The weight without its zero point fits into a byte, or does not. */
static void test_whole(cn_ctx *cn, int zero)
{
    enum { ROWS = 3, INNER = 301, COLUMNS = 37 };
    static unsigned char w[INNER * COLUMNS], a[ROWS * INNER];
    static int32_t got[ROWS * COLUMNS];
    onnx_bytes g = { 0 }, tensor = { 0 };
    for (int i = 0; i < INNER * COLUMNS; i++) w[i] = (unsigned char)((i * 37) % 256);
    for (int i = 0; i < ROWS * INNER; i++) a[i] = (unsigned char)((i * 29) % 256);
    onnx_node_text(&g, 1, "MatMulInteger a w a_zero w_zero -> y", NULL);
    const struct {
        const char *name;
        int rows;
        const void *data;
    } weights[] = { { "w", INNER, w },
                    { "a_zero", 0, &(unsigned char){ 3 } },
                    { "w_zero", 0, &(unsigned char){ (unsigned char)zero } } };
    for (int i = 0; i < 3; i++) {
        if (weights[i].rows) onnx_number(&tensor, 1, INNER), onnx_number(&tensor, 1, COLUMNS);
        onnx_number(&tensor, 2, 2); /* UINT8 */
        onnx_text_field(&tensor, 8, weights[i].name);
        onnx_data(&tensor, 9, weights[i].data, weights[i].rows ? sizeof w : 1);
        onnx_message(&g, 5, &tensor);
    }
    onnx_value_info(&g, 11, "a", 2, SIZES(-1, INNER));
    onnx_value_info(&g, 12, "y", 6, SIZES(-1, COLUMNS));
    onnx_bytes b = onnx_model_of(&g, 13);
    cn_module *m = cn_onnx_load_memory(cn, b.v, b.n);
    onnx_free(&b);
    bool ok = m != NULL;
    cn_no_grad_begin(cn);
    for (int again = 0; again < 5 && ok; again++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *y = cn_forward(m, cn_from(cn, CN_U8, CN_DIMS(ROWS, INNER), a));
        ok = y && cn_read(y, got, sizeof got);
        for (int i = 0; i < ROWS * COLUMNS && ok; i++) {
            int32_t sum = 0;
            for (int k = 0; k < INNER; k++)
                sum += (a[i / COLUMNS * INNER + k] - 3) * (w[k * COLUMNS + i % COLUMNS] - zero);
            ok = got[i] == sum;
        }
        cn_scope_end(cn, s);
    }
    cn_no_grad_end(cn);
    check(ok, "products with the zero point %d: %s", zero, cn_error(cn));
    cn_module_free(m);
}

int main(void)
{
    for (int threads = 1; threads < 4; threads += 2) {
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = threads });
        if (!check(cn != NULL, "a context")) return finish();
        check_group("whole numbers");
        test_whole(cn, 128);
        test_whole(cn, 7);
        check(!cn_failed(cn), "no error is left: %s", cn_error(cn));
        cn_close(cn);
    }
    return finish();
}
