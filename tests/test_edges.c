/* Values and gradients at the edges of functions, on the CPU. test_gpu_edges.c computes the same table on the GPU. */
#include "support/check.h"
#include "support/edges.h"

int main(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .device = "cpu" });
    if (!cn) return 1;
    check_edges(cn, CN_F32);
    check_edges(cn, CN_F64);
    cn_close(cn);
    return finish();
}
