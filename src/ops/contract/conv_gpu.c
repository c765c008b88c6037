/* Convolution and its two gradients on the GPU: chooses how the work is cut and launches conv.wgsl. All three are the
   same product:

       out[row, column] = sum over k of a[row, k] · b[k, column]

                            a        b    row   column      k
       conv                 weight   x    o     (n, p)      (c, t)
       conv_input_grad      weight   y    c     (n, p)      (o, t)
       conv_weight_grad     y        x    o     (c, t)      (n, p)

   In conv_input_grad with stride s at most every s-th tap reaches a pixel. Therefore its pixels are sorted by the taps
   that reach them, into s problems for each axis (phases), each of stride 1 with fewer taps. If there are few results
   and long sums, the sums are cut into parts, and a second launch adds the parts in order. */
#include "gpu/shaders.h"
#include "ops/contract/conv_gpu.h"

/* ---- a problem as numbers ---- */

/* In the order in which conv.wgsl reads them. f, m: radices of the digits of a column and of k; fs, ms: their scales;
   b, a, o: strides in b, in a, in the result of a row, a group or a digit. Digit 0 is the image or channel, the others
   are the axes. */
typedef struct problem {
    int64_t rows, columns, depth;
    int64_t f[3], m[3], fs[3], ms[3], base[3], lim[3];
    int64_t bg, bf, bm, b[3];
    int64_t ag, arow, abase, am0, am[3];
    int64_t og, orow, obase, of0, of[3];
} problem;
enum { COUNT = sizeof(problem) / sizeof(int64_t), HEAD = 5 };
_Static_assert(COUNT == 41, "conv.wgsl reads 41 numbers");

static void set3(int64_t *v, int64_t a, int64_t b, int64_t c) { v[0] = a, v[1] = b, v[2] = c; }
static void copy3(int64_t *v, const int64_t *from) { set3(v, from[0], from[1], from[2]); }

static int64_t volume(const int64_t *v) { return v[0] * v[1] * v[2]; }
static int64_t at_least_one(int64_t v) { return v > 1 ? v : 1; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static problem forward_problem(const cn__conv_sizes *s, const cn__conv_attrs *a)
{
    const int64_t taps = volume(s->kernel), places = volume(s->out), pixels = volume(s->in);
    problem p = { .rows = s->o, .columns = s->n * places, .depth = s->c * taps };
    copy3(p.f, s->out);
    copy3(p.m, s->kernel);
    copy3(p.fs, a->stride);
    copy3(p.ms, a->dilation);
    set3(p.base, -a->padding[0], -a->padding[1], -a->padding[2]);
    copy3(p.lim, s->in);
    p.bg = s->c * pixels, p.bf = s->groups * s->c * pixels, p.bm = pixels;
    set3(p.b, s->in[1] * s->in[2], s->in[2], 1);
    p.ag = s->o * p.depth, p.arow = p.depth, p.am0 = taps;
    set3(p.am, s->kernel[1] * s->kernel[2], s->kernel[2], 1);
    p.og = s->o * places, p.orow = places, p.of0 = s->groups * s->o * places;
    set3(p.of, s->out[1] * s->out[2], s->out[2], 1);
    return p;
}

/* The forward problem with the digits of k and of the columns exchanged, and the weight exchanged with y. */
static problem weight_problem(const cn__conv_sizes *s, const cn__conv_attrs *a)
{
    const problem y = forward_problem(s, a);
    problem p = y;
    p.columns = y.depth, p.depth = y.columns;
    copy3(p.f, y.m), copy3(p.m, y.f);
    copy3(p.fs, y.ms), copy3(p.ms, y.fs);
    p.bf = y.bm, p.bm = y.bf;
    p.ag = y.og, p.arow = y.orow, p.am0 = y.of0, copy3(p.am, y.of);
    p.og = y.ag, p.orow = y.arow, p.of0 = y.am0, copy3(p.of, y.am);
    return p;
}

/* The pixels p = phase + i·stride of an axis. Tap t connects p with position (p + padding - t·dilation) / stride of y.
   Only taps t = first + j·step divide evenly; their position is base + i - j·scale. */
typedef struct phase_axis {
    int64_t pixels, taps, first, step, base, scale;
} phase_axis;

static phase_axis phase_of(int64_t stride, int64_t dilation, int64_t padding, int64_t in, int64_t kernel, int64_t phase)
{
    phase_axis f = { .pixels = ceil_div(in - phase, stride), .step = 1 };
    while (f.step * dilation % stride) f.step++;
    while (f.first < f.step && (phase + padding - f.first * dilation) % stride) f.first++;
    if (f.first == f.step || f.first >= kernel) return (phase_axis){ .pixels = f.pixels, .step = 1 };
    f.taps = ceil_div(kernel - f.first, f.step);
    f.base = (phase + padding - f.first * dilation) / stride;
    f.scale = f.step * dilation / stride;
    return f;
}

static problem input_problem(const cn__conv_sizes *s, const cn__conv_attrs *a, const int64_t *phase)
{
    const int64_t taps = volume(s->kernel), places = volume(s->out), pixels = volume(s->in);
    const int64_t tap[3] = { s->kernel[1] * s->kernel[2], s->kernel[2], 1 },
                  pixel[3] = { s->in[1] * s->in[2], s->in[2], 1 };
    problem p = { .rows = s->c, .columns = s->n, .depth = s->o };
    for (int d = 0; d < 3; d++) {
        const phase_axis f = phase_of(a->stride[d], a->dilation[d], a->padding[d], s->in[d], s->kernel[d], phase[d]);
        p.columns *= f.pixels, p.depth *= f.taps;
        p.f[d] = f.pixels, p.fs[d] = 1, p.of[d] = pixel[d] * a->stride[d];
        p.m[d] = f.taps, p.ms[d] = -f.scale, p.am[d] = tap[d] * f.step;
        p.base[d] = f.base, p.lim[d] = s->out[d];
        p.abase += f.first * tap[d], p.obase += phase[d] * pixel[d];
    }
    p.bg = s->o * places, p.bf = s->groups * s->o * places, p.bm = places;
    set3(p.b, s->out[1] * s->out[2], s->out[2], 1);
    p.ag = s->o * s->c * taps, p.arow = taps, p.am0 = s->c * taps;
    p.og = s->c * pixels, p.orow = pixels, p.of0 = s->groups * s->c * pixels;
    return p;
}

/* ---- how it is cut ---- */

typedef struct form {
    int a, b;            /* the numbers of the operands */
    bool checked;        /* b may lie outside of the image */
    int axes;            /* how many of the last axes have more than one place */
    bool tiled;          /* tiles in workgroup memory; false: each invocation alone */
    int vector, vectors; /* rows of an invocation: vectors of `vector` rows */
    int columns, lanes;  /* columns of an invocation; invocations of a workgroup along the columns */
    int row_lanes;       /* tiled: invocations of a workgroup along the rows */
    int64_t groups, parts, numel;
} form;

enum { TILE_COLUMNS = 64, TILE_DEPTH = 16 };

static int rows_at_once(const form *f) { return f->vector * f->vectors * f->row_lanes; }
static int columns_at_once(const form *f) { return f->columns * f->lanes; }

/* Each invocation alone; all invocations of a workgroup have the same rows and so read the same elements of a. A
   software device cannot share b either. There an invocation has more rows and columns, so that it uses each element
   more often, if the work is worth the longer compilation. */
static void choose_alone(form *f, const problem *p, bool software)
{
    const double work = (double)p->rows * (double)p->columns * (double)p->depth * (double)f->groups;
    const int64_t most_rows = software ? 8 : 16, most_columns = software && work > 1 << 21 ? 8 : 2;
    const int64_t row_blocks = ceil_div(p->rows, most_rows), rows = ceil_div(p->rows, row_blocks);
    f->vector = rows > 1 ? 4 : 1;
    f->vectors = (int)ceil_div(rows, f->vector);
    f->row_lanes = 1;
    f->columns = (int)(p->columns > 32 * most_columns ? most_columns : 1);
    const int64_t blocks = ceil_div(p->columns, 64 * f->columns), lanes = ceil_div(p->columns, blocks * f->columns);
    f->lanes = (int)(blocks > 4 ? 64 : software ? ceil_div(lanes, 8) * 8 : ceil_div(lanes, 32) * 32);
}

/* A workgroup computes 64 x 64 or 32 x 64 results, an invocation 4 x 4. */
static void choose_tiles(form *f, const problem *p)
{
    f->tiled = true;
    f->vector = f->columns = 4;
    f->vectors = 1;
    f->lanes = TILE_COLUMNS / 4;
    f->row_lanes = p->rows > 32 ? 16 : 8;
}

/* Cuts the sums into parts if there would be few workgroups; no part is short. */
static void choose_parts(form *f, const problem *p, int64_t groups, bool software)
{
    enum { SHORTEST = 128, SCRATCH = 1 << 22 };
    const int64_t wanted = software ? 32 : 512;
    f->parts = groups < wanted ? wanted / at_least_one(groups) : 1;
    if (f->parts > p->depth / SHORTEST) f->parts = p->depth / SHORTEST;
    if (f->parts > SCRATCH / at_least_one(f->numel)) f->parts = SCRATCH / at_least_one(f->numel);
    f->parts = at_least_one(f->parts);
}

/* ---- launches ---- */

static void add_problem(cn_gpu_call *c, problem p)
{
    for (int d = 0; d < 3; d++) { /* the kernel divides by these even if there is nothing to compute */
        p.f[d] = at_least_one(p.f[d]);
        p.m[d] = at_least_one(p.m[d]);
    }
    int64_t words[COUNT];
    memcpy(words, &p, sizeof p);
    for (int i = 0; i < COUNT; i++) cn_gpu_param(c, words[i]);
}

/* Launches problems that differ only in their parameters. The first must have the most columns. */
static bool launch(cn_gpu_call *c, const form *f, const problem *p, int64_t problems)
{
    const int64_t row_blocks = ceil_div(p->rows, rows_at_once(f)),
                  column_blocks = ceil_div(p->columns, columns_at_once(f));
    const int64_t head[HEAD] = { row_blocks, column_blocks, f->groups, f->parts, f->numel };
    cn_gpu_params_clear(c);
    for (int i = 0; i < HEAD; i++) cn_gpu_param(c, head[i]);
    for (int64_t i = 0; i < problems; i++) add_problem(c, p[i]);
    const int bytes = f->tiled ? TILE_DEPTH * (rows_at_once(f) + 1 + TILE_COLUMNS) * 4 : 0;
    return cn_gpu_run(
        c, &(cn_gpu_launch){ .shader = cn__wgsl_conv,
                             .kernel = "conv",
                             .holes = CN_GPU_HOLES(CN_GPU_NUMBER("a", f->a), CN_GPU_NUMBER("b", f->b),
                                                   CN_GPU_FLAG("checked", f->checked), CN_GPU_NUMBER("axes", f->axes),
                                                   CN_GPU_FLAG("tiled", f->tiled), CN_GPU_FLAG("parts", f->parts > 1),
                                                   CN_GPU_NUMBER("vector", f->vector),
                                                   CN_GPU_NUMBER("vectors", f->vectors),
                                                   CN_GPU_NUMBER("columns", f->columns),
                                                   CN_GPU_NUMBER("lanes", f->lanes),
                                                   CN_GPU_NUMBER("row_lanes", f->row_lanes),
                                                   CN_GPU_NUMBER("bytes", bytes)),
                             .groups = row_blocks * column_blocks * f->groups * f->parts * problems,
                             .size = f->lanes * f->row_lanes });
}

static bool add_up(cn_gpu_call *c, const form *f)
{
    if (f->parts == 1) return true;
    cn_gpu_params_clear(c);
    cn_gpu_param(c, f->parts);
    cn_gpu_param(c, f->numel);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_conv, .kernel = "add_parts", .each = f->numel });
}

/* p: the largest of the problems */
static void choose(cn_gpu_call *c, form *f, const problem *p, int64_t problems)
{
    const bool software = strcmp(c->limits->kind, "software") == 0;
    if (software || p->rows <= 16) choose_alone(f, p, software);
    else choose_tiles(f, p);
    const int64_t blocks = ceil_div(p->rows, rows_at_once(f)) * ceil_div(p->columns, columns_at_once(f));
    choose_parts(f, p, blocks * f->groups * problems, software);
    if (f->parts > 1) cn_gpu_scratch(c, f->parts * f->numel);
}

/* ---- the operators ---- */

/* If every pixel is seen once by one tap, the three axes are joined into one. */
static bool flatten(cn__conv_sizes *s, cn__conv_attrs *a)
{
    for (int d = 0; d < 3; d++)
        if (s->kernel[d] != 1 || a->stride[d] != 1 || a->padding[d] != 0) return false;
    s->in[2] = s->out[2] = volume(s->in);
    s->in[0] = s->in[1] = s->out[0] = s->out[1] = 1;
    return true;
}

static int axes_of(const cn__conv_sizes *s, const cn__conv_attrs *a)
{
    int d = 0;
    while (d < 2 && s->in[d] == 1 && s->kernel[d] == 1 && a->padding[d] == 0) d++;
    return 3 - d;
}

static bool is_padded(const cn__conv_attrs *a) { return a->padding[0] || a->padding[1] || a->padding[2]; }

bool cn__conv_gpu(cn_gpu_call *c)
{
    cn__conv_attrs a = *(const cn__conv_attrs *)c->attrs;
    cn__conv_sizes s;
    if (!cn__conv_measure(c->ctx, c->op->name, &a, c->in[0].shape, c->in[1].shape, &s)) return false;
    flatten(&s, &a);
    form f = { .a = 1, .b = 0, .checked = is_padded(&a), .axes = axes_of(&s, &a), .groups = s.groups };
    f.numel = c->out[0].numel;
    if (!f.numel) return true;
    const problem p = forward_problem(&s, &a);
    choose(c, &f, &p, 1);
    return launch(c, &f, &p, 1) && add_up(c, &f);
}

bool cn__conv_weight_gpu(cn_gpu_call *c)
{
    cn__conv_attrs a = *(const cn__conv_attrs *)c->attrs;
    cn__conv_sizes s;
    if (!cn__conv_measure(c->ctx, c->op->name, &a, c->in[1].shape, c->out[0].shape, &s)) return false;
    flatten(&s, &a);
    form f = { .a = 0, .b = 1, .checked = is_padded(&a), .axes = axes_of(&s, &a), .groups = s.groups };
    f.numel = c->out[0].numel;
    if (!f.numel) return true;
    const problem p = weight_problem(&s, &a);
    choose(c, &f, &p, 1);
    return launch(c, &f, &p, 1) && add_up(c, &f);
}

bool cn__conv_input_gpu(cn_gpu_call *c)
{
    enum { AT_ONCE = 64 };
    cn__conv_attrs a = *(const cn__conv_attrs *)c->attrs;
    cn__conv_sizes s;
    if (!cn__conv_measure(c->ctx, c->op->name, &a, c->out[0].shape, c->in[1].shape, &s)) return false;
    form f = { .a = 1, .b = 0, .checked = !flatten(&s, &a), .axes = axes_of(&s, &a), .groups = s.groups };
    f.numel = c->out[0].numel;
    if (!f.numel) return true;
    int64_t phases[3];
    for (int d = 0; d < 3; d++) phases[d] = a.stride[d] < s.in[d] ? a.stride[d] : s.in[d];
    problem largest = input_problem(&s, &a, (const int64_t[3]){ 0, 0, 0 }), p[AT_ONCE];
    largest.depth = s.o * ceil_div(volume(s.kernel), volume(phases));
    choose(c, &f, &largest, volume(phases));
    for (int64_t i = 0, n; i < volume(phases); i += n) {
        for (n = 0; n < AT_ONCE && i + n < volume(phases); n++) {
            const int64_t k = i + n, plane = phases[1] * phases[2];
            p[n] = input_problem(&s, &a, (const int64_t[3]){ k / plane, k / phases[2] % phases[1], k % phases[2] });
        }
        if (!launch(c, &f, p, n)) return false;
    }
    return add_up(c, &f);
}
