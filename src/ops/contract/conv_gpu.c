/* Convolutions on the GPU. All three are the same product, with different numbers:

       out[row, column] = sum over k of a[row, k] · b[k, column]

                            a        b    row   column      k
       conv                 weight   x    o     (n, p)      (c, t)
       conv_input_grad      weight   y    c     (n, p)      (o, t)
       conv_weight_grad     y        x    o     (c, t)      (n, p)

   Columns and k are numbers of four digits: an image or channel, and a place on three axes. b is never written down: its
   element is an image's at `base + scale · digit of the column + scale · digit of k` of each axis, or 0 where that lies
   outside. A transposed convolution of stride s meets a pixel with every s-th tap at most: its pixels are sorted by which
   taps they meet into s problems an axis (phases), each one of stride 1 with fewer taps.

   Where there are few outputs and long sums, the sums are cut into parts and added up, in order, by a second launch. */
#include <stdarg.h>
#include <stdio.h>

#include "ops/contract/conv_gpu.h"

/* ---- a problem as numbers ---- */

/* f: radices of a column's digits, m: of k's; s: scale; b, a, o: how far the next row, group or digit lies in b, in a, in
   the result. Digit 0 is the image's or channel's, the others those of the axes. */
/* clang-format off */
#define NUMBERS(ONE, AXES)                            \
    ONE(rows) ONE(columns) ONE(depth) AXES(f) AXES(m) \
    AXES(fs) AXES(ms) AXES(base) AXES(lim)            \
    ONE(bg) ONE(bf) ONE(bm) AXES(b)                   \
    ONE(ag) ONE(arow) ONE(abase) ONE(am0) AXES(am)    \
    ONE(og) ONE(orow) ONE(obase) ONE(of0) AXES(of)
/* clang-format on */
#define FIELD(name)  int64_t name;
#define FIELDS(name) int64_t name[3];
#define NAME(name)   #name,
#define NAMES(name)  #name "1", #name "2", #name "3",

typedef struct problem {
    NUMBERS(FIELD, FIELDS)
} problem;
static const char *const names[] = { NUMBERS(NAME, NAMES) };
enum { COUNT = sizeof names / sizeof *names, HEAD = 5 };

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

/* The forward problem with the digits of k and of the columns exchanged, and the weight and y. */
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

/* Pixels phase, phase + stride, .. of an axis: p = phase + i·stride meets y at (p + padding - t·dilation) / stride, so
   only taps t = first + j·step, and there y's place is base + i - j·scale. */
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
    int a, b;            /* operands */
    bool checked;        /* b may lie outside of the image */
    int axes;            /* the last ones, that are there */
    bool tiled;          /* tiles in workgroup memory; or each invocation on its own */
    int vector, vectors; /* rows of an invocation */
    int columns, lanes;  /* of an invocation, of a group side by side */
    int row_lanes;       /* tiled: invocations above each other */
    int64_t groups, parts, numel;
} form;

enum { TILE_COLUMNS = 64, TILE_DEPTH = 16 };

static int rows_at_once(const form *f) { return f->vector * f->vectors * f->row_lanes; }
static int columns_at_once(const form *f) { return f->columns * f->lanes; }

/* Each invocation on its own; all of a group have the same rows, so that elements of a are the same for all. A processor
   that plays the GPU has no fast way to share b either: there it helps to do much with what was read, if that is worth the
   time it takes to compile. */
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

/* 64 x 64 or 32 x 64 results by a group, 4 x 4 by an invocation. */
static void choose_tiles(form *f, const problem *p)
{
    f->tiled = true;
    f->vector = f->columns = 4;
    f->vectors = 1;
    f->lanes = TILE_COLUMNS / 4;
    f->row_lanes = p->rows > 32 ? 16 : 8;
}

/* Sums are cut where there would be few groups, into parts that are worth it. */
static void choose_parts(form *f, const problem *p, int64_t groups, bool software)
{
    enum { SHORTEST = 128, SCRATCH = 1 << 22 };
    const int64_t wanted = software ? 32 : 512;
    f->parts = groups < wanted ? wanted / at_least_one(groups) : 1;
    if (f->parts > p->depth / SHORTEST) f->parts = p->depth / SHORTEST;
    if (f->parts > SCRATCH / at_least_one(f->numel)) f->parts = SCRATCH / at_least_one(f->numel);
    f->parts = at_least_one(f->parts);
}

/* ---- the text ---- */

typedef struct text {
    char v[16384];
    size_t n;
    bool failed;
} text;

static void say(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(t->v + t->n, sizeof t->v - t->n, format, list);
    va_end(list);
    if (n < 0 || (size_t)n >= sizeof t->v - t->n) t->failed = true;
    else t->n += (size_t)n;
}

static const char digit_of[4] = { 'x', 'y', 'z', 'w' };

/* Axes that are not there have the digit 0. */
static void say_digits(text *t, const form *f)
{
    const int first = 4 - f->axes;
    say(t, "fn digits(k: i32, radix: vec4<i32>) -> vec4<i32> {\n    var d = vec4<i32>(); var rest = k;\n");
    for (int d = 3; d >= first; d--)
        say(t, "    { let q = rest / radix.%c; d.%c = rest - q * radix.%c; rest = q; }\n", digit_of[d], digit_of[d],
            digit_of[d]);
    say(t, "    d.x = rest;\n    return d;\n}\n"
           "fn advance(m: vec4<i32>, step: vec4<i32>, radix: vec4<i32>) -> vec4<i32> {\n    var n = m + step;\n");
    for (int d = 3; d >= first; d--)
        say(t, "    if (n.%c >= radix.%c) { n.%c -= radix.%c; n.%c++; }\n", digit_of[d], digit_of[d], digit_of[d],
            digit_of[d], digit_of[d > first ? d - 1 : 0]);
    say(t, "    return n;\n}\n");
}

static void say_functions(text *t, const form *f)
{
    say(t, "fn a(i: i32) -> f32 { return in%d(u32(i)); }\nfn b(i: i32) -> f32 { return in%d(u32(i)); }\n", f->a, f->b);
    say(t, "fn store(part: i32, i: i32, v: f32) { ");
    if (f->parts > 1) say(t, "set_tmp(u32(part) * par(4u) + u32(i), bitcast<u32>(v)); }\n");
    else say(t, "put(u32(i), v); }\n");
    say_digits(t, f);
}

/* Which rows, columns, group, part and problem a group has, and the problem's numbers. */
static void say_head(text *t, const form *f)
{
    say(t,
        "fn kernel(group: u32, local: u32) {\n    var rest = group;\n"
        "    let row = i32(rest %% par(0u)) * %d; rest /= par(0u);\n"
        "    let first = i32(rest %% par(1u)) * %d; rest /= par(1u);\n"
        "    let g = i32(rest %% par(2u)); rest /= par(2u);\n"
        "    let parts = i32(par(3u)); let part = i32(rest) %% parts;\n"
        "    let problem = %du + rest / par(3u) * %du;\n",
        rows_at_once(f), columns_at_once(f), HEAD, COUNT);
    for (int i = 0; i < COUNT; i++) say(t, "    let %s = pari(problem + %du);\n", names[i], i);
    say(t, "    if (first >= columns) { return; }\n"
           "    let each = (depth + parts - 1) / parts; let begin = part * each; let end = min(depth, begin + each);\n"
           "    let radix = vec4<i32>(0, m1, m2, m3);\n    let group_b = g * bg; let group_a = g * ag + abase;\n");
}

/* Where a column's image begins: names end in j. */
static void say_column(text *t, const form *f, int j, const char *column)
{
    say(t, "    let d%d = digits(min(%s, columns - 1), vec4<i32>(0, f1, f2, f3));\n", j, column);
    for (int d = 4 - f->axes; d < 4; d++)
        say(t, "    let q%d_%d = d%d.%c * fs%d + base%d;\n", d, j, j, digit_of[d], d, d);
    say(t, "    let from%d = group_b + d%d.x * bf", j, j);
    for (int d = 4 - f->axes; d < 4; d++) say(t, " + q%d_%d * b%d", d, j, d);
    say(t, ";\n");
}

/* What k (its digits in m) adds to places in b and a. */
static void say_k(text *t, const form *f, const char *m, bool of_a, bool of_b)
{
    if (of_b) {
        for (int d = 4 - f->axes; d < 4; d++) say(t, "        let k%d = %s.%c * ms%d;\n", d, m, digit_of[d], d);
        say(t, "        let shift = %s.x * bm", m);
        for (int d = 4 - f->axes; d < 4; d++) say(t, " + k%d * b%d", d, d);
        say(t, ";\n");
    }
    if (!of_a) return;
    say(t, "        let w = group_a + %s.x * am0", m);
    for (int d = 4 - f->axes; d < 4; d++) say(t, " + %s.%c * am%d", m, digit_of[d], d);
    say(t, ";\n");
}

/* An element of b as xj; within: what must be true besides, or NULL. */
static void say_fetch(text *t, const form *f, int j, const char *within)
{
    if (!f->checked && !within) {
        say(t, "        let x%d = b(from%d + shift);\n", j, j);
        return;
    }
    say(t, "        let ok%d = %s", j, within ? within : "");
    for (int d = 4 - f->axes; d < 4 && f->checked; d++)
        say(t, "%su32(q%d_%d + k%d) < u32(lim%d)", within || d > 4 - f->axes ? " && " : "", d, j, d, d);
    say(t, ";\n        let x%d = select(0.0, b(select(0, from%d + shift, ok%d)), ok%d);\n", j, j, j, j);
}

static const char *sum_type(const form *f) { return f->vector == 1 ? "f32" : "vec4<f32>"; }

static void say_sums(text *t, const form *f)
{
    for (int j = 0; j < f->columns; j++)
        for (int v = 0; v < f->vectors; v++) say(t, "    var s%d_%d = %s();\n", v, j, sum_type(f));
}

/* own_row, own_column: an invocation's first; between: rows from one to its next. What is done with a result stands in the
   text once: it may be long, and compilers would repeat it for each of them. */
static void say_stores(text *t, const form *f, const char *own_row, int between, const char *own_column)
{
    const int rows = f->vector * f->vectors;
    say(t, "    var sums: array<f32, %d>; var to: array<i32, %d>;\n", rows * f->columns, f->columns);
    for (int j = 0; j < f->columns; j++) {
        if (f->tiled) say(t, "    let e%d = digits(%s + %d, vec4<i32>(0, f1, f2, f3));\n", j, own_column, j * f->lanes);
        else say(t, "    let e%d = d%d;\n", j, j);
        say(t, "    to[%d] = e%d.x * of0 + e%d.y * of1 + e%d.z * of2 + e%d.w * of3;\n", j, j, j, j, j);
        for (int r = 0; r < rows; r++) {
            const char part[3] = { '.', digit_of[r % f->vector], 0 };
            say(t, "    sums[%d] = s%d_%d%s;\n", j * rows + r, r / f->vector, j, f->vector > 1 ? part : "");
        }
    }
    say(t,
        "    for (var j = 0; j < min(%d, (columns - %s + %d) / %d); j++) {\n"
        "        let first_row = to[j] + g * og + obase + %s * orow;\n"
        "        for (var r = 0; r < min(%d, (rows - %s + %d) / %d); r++) {\n"
        "            store(part, first_row + r * %d * orow, sums[j * %d + r]);\n        }\n    }\n}\n",
        f->columns, own_column, f->lanes - 1, f->lanes, own_row, rows, own_row, between - 1, between, between, rows);
}

static void say_alone(text *t, const form *f)
{
    say_functions(t, f);
    say_head(t, f);
    for (int j = 0; j < f->columns; j++) {
        char column[64];
        snprintf(column, sizeof column, "first + i32(local) + %d", j * f->lanes);
        say_column(t, f, j, column);
    }
    for (int r = 0; r < f->vector * f->vectors; r++) say(t, "    let r%d = min(row + %d, rows - 1) * arow;\n", r, r);
    say_sums(t, f);
    say(t, "    var m = digits(begin, radix);\n    for (var k = begin; k < end; k++) {\n");
    say_k(t, f, "m", true, true);
    for (int j = 0; j < f->columns; j++) say_fetch(t, f, j, NULL);
    for (int v = 0; v < f->vectors; v++) {
        if (f->vector == 1) say(t, "        let w%d = a(w + r%d);\n", v, v);
        else
            say(t, "        let w%d = vec4<f32>(a(w + r%d), a(w + r%d), a(w + r%d), a(w + r%d));\n", v, 4 * v,
                4 * v + 1, 4 * v + 2, 4 * v + 3);
        for (int j = 0; j < f->columns; j++)
            say(t, "        s%d_%d = fma(w%d, %s(x%d), s%d_%d);\n", v, j, v, sum_type(f), j, v, j);
    }
    say(t, "        m = advance(m, vec4<i32>(0, 0, 0, 1), radix);\n    }\n");
    say_stores(t, f, "row", 1, "(first + i32(local))");
}

/* A group brings 16 k of its rows and columns into workgroup memory at a time: a's with neighbours in k, b's with
   neighbours among the columns read side by side. */
static void say_tiled(text *t, const form *f)
{
    const int rows = rows_at_once(f), size = f->row_lanes * f->lanes, every = size / TILE_COLUMNS;
    say(t, "var<workgroup> tile_a: array<f32, %d>;\nvar<workgroup> tile_b: array<f32, %d>;\n", TILE_DEPTH * (rows + 1),
        TILE_DEPTH * TILE_COLUMNS);
    say_functions(t, f);
    say_head(t, f);
    say(t,
        "    let x = i32(local) %% %d; let y = i32(local) / %d;\n"
        "    let column = i32(local) %% %d; let line = i32(local) / %d;\n",
        f->lanes, f->lanes, TILE_COLUMNS, TILE_COLUMNS);
    say_column(t, f, 0, "first + column");
    for (int r = 0; r < 4; r++) say(t, "    let r%d = min(row + y + %d, rows - 1) * arow;\n", r, r * f->row_lanes);
    say_sums(t, f);
    say(t,
        "    var m = digits(begin + x, radix); let m_step = digits(%d, radix);\n"
        "    var n = digits(begin + line, radix); let n_step = digits(%d, radix);\n"
        "    for (var k = begin; k < end; k += %d) {\n",
        TILE_DEPTH, every, TILE_DEPTH);
    say_k(t, f, "m", true, false);
    say(t, "        let some = k + x < end;\n");
    for (int r = 0; r < 4; r++)
        say(t, "        tile_a[x * %d + y + %d] = select(0.0, a(select(0, w + r%d, some)), some);\n", rows + 1,
            r * f->row_lanes, r);
    say(t, "        m = advance(m, m_step, radix);\n        for (var i = line; i < %d; i += %d) {\n", TILE_DEPTH,
        every);
    say_k(t, f, "n", false, true);
    say_fetch(t, f, 0, "k + i < end");
    say(t,
        "        tile_b[i * %d + column] = x0;\n        n = advance(n, n_step, radix);\n        }\n"
        "        workgroupBarrier();\n        for (var i = 0; i < %d; i++) {\n"
        "        let at = i * %d + y;\n"
        "        let w0 = vec4<f32>(tile_a[at], tile_a[at + %d], tile_a[at + %d], tile_a[at + %d]);\n",
        TILE_COLUMNS, TILE_DEPTH, rows + 1, f->row_lanes, 2 * f->row_lanes, 3 * f->row_lanes);
    for (int j = 0; j < f->columns; j++)
        say(t, "        s0_%d = fma(w0, vec4<f32>(tile_b[i * %d + x + %d]), s0_%d);\n", j, TILE_COLUMNS, j * f->lanes,
            j);
    say(t, "        }\n        workgroupBarrier();\n    }\n");
    say_stores(t, f, "(row + y)", f->row_lanes, "(first + x)");
}

/* ---- launches ---- */

static void add_problem(cn__gpu_call *c, problem p)
{
    for (int d = 0; d < 3; d++) { /* divided by, even where there is nothing to divide */
        p.f[d] = at_least_one(p.f[d]);
        p.m[d] = at_least_one(p.m[d]);
    }
    int64_t words[COUNT];
    _Static_assert(sizeof words == sizeof p, "a name for every number");
    memcpy(words, &p, sizeof p);
    for (int i = 0; i < COUNT; i++) cn__gpu_param(c, (uint32_t)words[i]);
}

/* Problems that differ in numbers alone, the first of which has the most columns. */
static bool launch(cn__gpu_call *c, const form *f, const problem *p, int64_t problems)
{
    text t = { .n = 0 };
    (f->tiled ? say_tiled : say_alone)(&t, f);
    if (t.failed) return cn__fail(c->ctx, CN_UNSUPPORTED, "%s: the kernel's text is too long", c->op->name);
    const int64_t row_blocks = ceil_div(p->rows, rows_at_once(f)),
                  column_blocks = ceil_div(p->columns, columns_at_once(f));
    const int64_t head[HEAD] = { row_blocks, column_blocks, f->groups, f->parts, f->numel };
    cn__gpu_params_clear(c);
    for (int i = 0; i < HEAD; i++) cn__gpu_param(c, (uint32_t)head[i]);
    for (int64_t i = 0; i < problems; i++) add_problem(c, p[i]);
    return cn__gpu_run_groups(
        c, &(cn__gpu_launch){ .code = cn__gpu_text(c, "%s", t.v),
                              .groups = row_blocks * column_blocks * f->groups * f->parts * problems,
                              .size = f->lanes * f->row_lanes,
                              .group_bytes = f->tiled ? TILE_DEPTH * (rows_at_once(f) + 1 + TILE_COLUMNS) * 4 : 0 });
}

static bool add_up(cn__gpu_call *c, const form *f)
{
    if (f->parts == 1) return true;
    cn__gpu_params_clear(c);
    cn__gpu_param(c, (uint32_t)f->parts);
    cn__gpu_param(c, (uint32_t)f->numel);
    return cn__gpu_each(c, f->numel,
                        cn__gpu_text(c,
                                     "fn each(i: u32) {\n    var sum = 0.0;\n    for (var p = 0u; p < par(0u); p++) { "
                                     "sum += bitcast<f32>(tmp(p * par(1u) + i)); }\n    put(i, sum);\n}\n"));
}

/* p: the largest problem of so many. */
static void choose(cn__gpu_call *c, form *f, const problem *p, int64_t problems)
{
    const bool software = strcmp(c->limits->kind, "software") == 0;
    if (software || p->rows <= 16) choose_alone(f, p, software);
    else choose_tiles(f, p);
    const int64_t blocks = ceil_div(p->rows, rows_at_once(f)) * ceil_div(p->columns, columns_at_once(f));
    choose_parts(f, p, blocks * f->groups * problems, software);
    if (f->parts > 1) cn__gpu_scratch(c, f->parts * f->numel);
}

/* ---- the operators ---- */

/* Where every pixel is seen once by one tap, places are a single axis. */
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

bool cn__conv_gpu(cn__gpu_call *c)
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

bool cn__conv_weight_gpu(cn__gpu_call *c)
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

bool cn__conv_input_gpu(cn__gpu_call *c)
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
