/* Linear algebra on the GPU: the same promises as on the CPU (test_linalg.c), for small matrices in f32.
   Skipped where there is no GPU. */
#include <stdio.h>

#include "support/check.h"
#include "support/linalg_checks.h"

int main(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .device = "gpu", .seed = 5 });
    if (!cn) return 1;
    if (cn_gpu_available(cn)) {
        check_factors(cn, CN_F32, 0x1p-22, test_is_quick() ? 6 : 12);
        check_faults(cn);
        check(cn_gpu_counted(cn).fallbacks == 0, "steps ran on the CPU");
    } else {
        printf("no GPU: %s\n", cn_gpu_why_not(cn));
        skip();
    }
    cn_close(cn);
    return finish();
}
