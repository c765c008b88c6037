/* Dtypes, numbers and refusals as in PyTorch, on the CPU. test_gpu_edges.c computes the same tables on the GPU. */
#include "support/check.h"
#include "support/numbers.h"

int main(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .device = "cpu" });
    if (!cn) return 1;
    check_numbers(cn);
    cn_close(cn);
    return finish();
}
