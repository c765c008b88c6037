/* Kernels of a user's own on the GPU: holes, conditional and repeated lines, absent operands; and what is wrong with a shader
   is said. Skipped where there is no GPU. */
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

static cn_ctx *gpu;

/* What the operator below launches. */
static cn_gpu_launch launched;

static bool infer(cn_infer *i)
{
    i->out[0] = *i->in[0];
    return true;
}

static bool launch(cn_gpu_call *c)
{
    cn_gpu_param(c, 5);
    cn_gpu_launch l = launched;
    if (!l.groups) l.each = c->out[0].numel;
    return cn_gpu_run(c, &l);
}

static void cpu(const cn_kernel *k) { memset(k->out[0].data, 0, (size_t)k->out[0].numel * sizeof(float)); }

#define OPERATOR(name_)                                                                              \
    {                                                                                                \
        .name = name_, .doc = "For tests.", .kind = CN_BLOCK, .n_in = 2, .n_out = 1, .optional = 2,  \
        .dtypes = CN_BIT(CN_F32), .infer = infer, .no_grad = "for tests", .cpu = cpu, .gpu = launch, \
    }

/* Every call is a plan of its own, because the plan of an operator keeps its kernels. */
static const cn_op operators[] = {
    OPERATOR("own_0"), OPERATOR("own_1"), OPERATOR("own_2"), OPERATOR("own_3"), OPERATOR("own_4"),
    OPERATOR("own_5"), OPERATOR("own_6"), OPERATOR("own_7"), OPERATOR("own_8"), OPERATOR("own_9"),
};
static int next;

/* The second element of the result for x = 1, 2, 3. */
static double run(cn_gpu_launch l, bool with_second)
{
    const cn_scope s = cn_scope_begin(gpu);
    cn_tensor *x = cn_from(gpu, CN_F32, CN_DIMS(3), (float[]){ 1, 2, 3 });
    cn_tensor *in[2] = { x, with_second ? cn_from(gpu, CN_F32, CN_DIMS(3), (float[]){ 10, 20, 30 }) : NULL };
    float y[3] = { 0 };
    launched = l;
    cn_read(cn_apply(&operators[next++], in, 2, NULL, NULL), y, sizeof y);
    cn_scope_end(gpu, s);
    return y[1];
}

static void expect(cn_gpu_launch l, bool with_second, double value)
{
    const double got = run(l, with_second);
    check(!cn_failed(gpu), "%s", cn_error(gpu));
    check(got == value, "expected %g, got %g", value, got);
    cn_error_clear(gpu);
}

static void refuse(cn_gpu_launch l, const char *words)
{
    run(l, false);
    check(cn_failed(gpu) && strstr(cn_error(gpu), words), "expected an error with \"%s\", got \"%s\"", words,
          cn_error(gpu));
    cn_error_clear(gpu);
}

static void test_forms(void)
{
    static const char shader[] = "//! hole add = true | false\n"
                                 "//! hole times = any\n"
                                 "//! part twice\n"
                                 "fn twice(x: f32) -> f32 { return 2.0 * x; }\n"
                                 "//! kernel first\n"
                                 "//! uses in0 in1=7.0 out0 twice\n"
                                 "fn each(i: u32) {\n"
                                 "    var v = twice(in0(i));\n"
                                 "//! if add\n"
                                 "    v += in1(i);\n"
                                 "//! else\n"
                                 "    v -= in1(i);\n"
                                 "//! end\n"
                                 "//! repeat k times\n"
                                 "    v += {{k}}.0;\n"
                                 "//! end\n"
                                 "    out0(i, v);\n"
                                 "}\n"
                                 "//! kernel second\n"
                                 "//! uses out0 par\n"
                                 "fn kernel(group: u32, local: u32) { out0(local, f32(par(0u))); }\n";
    check_group("forms");
    const cn_gpu_hole *add = CN_GPU_HOLES(CN_GPU_FLAG("add", true), CN_GPU_NUMBER("times", 0));
    const cn_gpu_hole *less = CN_GPU_HOLES(CN_GPU_FLAG("add", false), CN_GPU_NUMBER("times", 3));
    expect((cn_gpu_launch){ .shader = shader, .holes = add }, true, 4 + 20);
    expect((cn_gpu_launch){ .shader = shader, .holes = add }, false, 4 + 7);
    expect((cn_gpu_launch){ .shader = shader, .holes = less }, true, 4 - 20 + 3);
    expect((cn_gpu_launch){ .shader = shader, .kernel = "second", .groups = 1, .size = 3 }, true, 5);
}

static void test_errors(void)
{
    static const char holes[] =
        "//! hole a = 1 | 2\n//! kernel k\n//! uses out0\nfn each(i: u32) { out0(i, {{a}}.0); }\n";
    static const char uses[] = "//! kernel k\n//! uses out0 somethng\nfn each(i: u32) { out0(i, 1.0); }\n";
    static const char absent[] = "//! kernel k\n//! uses in1 out0\nfn each(i: u32) { out0(i, in1(i)); }\n";
    static const char open[] =
        "//! hole a = any\n//! kernel k\n//! uses out0\n//! if a\nfn each(i: u32) { out0(i, 1.0); }\n";
    check_group("errors");
    refuse((cn_gpu_launch){ .shader = holes }, "{{a}}");
    refuse((cn_gpu_launch){ .shader = holes, .holes = CN_GPU_HOLES(CN_GPU_NUMBER("a", 3)) }, "must be 1 | 2, got 3");
    refuse((cn_gpu_launch){ .shader = holes, .kernel = "other", .holes = CN_GPU_HOLES(CN_GPU_NUMBER("a", 1)) },
           "no kernel other");
    refuse((cn_gpu_launch){ .shader = uses }, "\"somethng\"");
    refuse((cn_gpu_launch){ .shader = absent }, "operand 1, which is absent");
    refuse((cn_gpu_launch){ .shader = open, .holes = CN_GPU_HOLES(CN_GPU_NUMBER("a", 1)) }, "has no //! end");
}

int main(void)
{
    gpu = cn_open(&(cn_desc){ .device = "gpu" });
    if (!gpu) return 1;
    if (cn_gpu_available(gpu)) {
        cn_error_clear(gpu);
        test_forms();
        test_errors();
    } else {
        printf("no GPU: %s\n", cn_gpu_why_not(gpu));
        skip();
    }
    cn_close(gpu);
    return finish();
}
