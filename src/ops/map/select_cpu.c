/* The loops of where: one for each element size, because elements are only moved. */
#include "ops/map/select_cpu.h"

#include "cpu/isa.h"

static void where_4(const cn_loop *l)
{
    const uint8_t *c = l->in[0];
    const uint32_t *x = l->in[1], *y = l->in[2];
    uint32_t *out = l->out;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) out[i] = c[i] ? x[i] : y[i];
}

#if !CN__ONLY_F32
static void where_1(const cn_loop *l)
{
    const uint8_t *c = l->in[0], *x = l->in[1], *y = l->in[2];
    uint8_t *out = l->out;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) out[i] = c[i] ? x[i] : y[i];
}

static void where_2(const cn_loop *l)
{
    const uint8_t *c = l->in[0];
    const uint16_t *x = l->in[1], *y = l->in[2];
    uint16_t *out = l->out;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) out[i] = c[i] ? x[i] : y[i];
}

static void where_8(const cn_loop *l)
{
    const uint8_t *c = l->in[0];
    const uint64_t *x = l->in[1], *y = l->in[2];
    uint64_t *out = l->out;
    CN__INDEPENDENT
    for (int64_t i = 0, n = l->n; i < n; i++) out[i] = c[i] ? x[i] : y[i];
}
#endif

#if CN__ONLY_F32
#define WHERE_LOOPS [CN_F32] = where_4, [CN_I32] = where_4
#else
#define WHERE_LOOPS                                                                                              \
    [CN_BOOL] = where_1, [CN_U8] = where_1, [CN_I8] = where_1, [CN_I16] = where_2, [CN_F16] = where_2,           \
    [CN_BF16] = where_2, [CN_I32] = where_4, [CN_F32] = where_4, [CN_I64] = where_8, [CN_F64] = where_8
#endif

CN__TABLE(select)
CN__FILL(cn__loops, select, where, WHERE_LOOPS)
CN__TABLE_END
