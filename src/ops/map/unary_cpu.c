/* The loops of the elementwise operators of one operand (unary.def). */
#include "ops/map/unary_cpu.h"

#include "cpu/isa.h"
#include "ops/map/classes.h"
#include "ops/map/elementary.h"
#include "ops/map/special.h"
#include "ops/map/whole.h"

#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_ALPHA 1.6732632423543772848170429916717

#define sin_loop_f32 sin_near_f32
#define cos_loop_f32 cos_near_f32
#define TEMPLATE     "ops/map/unary_body.h"
#define TYPES        MAP_TYPES
#include "cpu/each_type.h"
#undef sin_loop_f32
#undef cos_loop_f32

/* The vector code returns arguments that are too far from 0 unchanged (cn__f32_sine). This pass computes them. */
static void finish_far(const cn_loop *l, float (*function)(float))
{
    float *y = l->out;
    int far = 0;
    for (int64_t i = 0; i < l->n; i++) far |= fabsf(y[i]) > 1;
    for (int64_t i = 0; i < l->n && far; i++)
        if (fabsf(y[i]) > 1) y[i] = function(y[i]);
}

static void sin_loop_f32(const cn_loop *l)
{
    sin_near_f32(l);
    finish_far(l, sinf);
}

static void cos_loop_f32(const cn_loop *l)
{
    cos_near_f32(l);
    finish_far(l, cosf);
}

#define UNARY(name, class, cost, ...) CN__FILL(cn__loops, unary, name, LOOPS_##cost(class, name))
CN__TABLE(unary)
#include "ops/map/unary.def"
CN__TABLE_END
#undef UNARY
