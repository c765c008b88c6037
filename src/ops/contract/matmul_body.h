/* matmul_body.h: rows of an integer matrix product, modulo the size of T. Included by matmul.c once for each T.

       T        unsigned element type: signed integers have the same low bits
       NAME(x)  x with a suffix of its own

   No include guard, and the parameters are undefined at the end: both on purpose. */
static void NAME(rows)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__gemm *g = user;
    for (int64_t r = begin; r < end; r++) {
        int64_t i = r % g->m, a_at, b_at, c_at;
        batch_offsets(g, r / g->m, &a_at, &b_at, &c_at);
        const T *a = (const T *)k->in[0].data + a_at + i * g->a_row;
        T *c = (T *)k->out[0].data + c_at + i * g->c_row;
        for (int64_t j = 0; j < g->n; j++) {
            const T *b = (const T *)k->in[1].data + b_at + j * g->b_col;
            uint64_t sum = 0;
            for (int64_t p = 0; p < g->k; p++) sum += (uint64_t)a[p * g->a_col] * b[p * g->b_row];
            c[j * g->c_col] = (T)sum;
        }
    }
}

#undef T
#undef NAME
