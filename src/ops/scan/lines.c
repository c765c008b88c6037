/* What operators along one axis share. */
#include "ops/scan/scan.h"

cn__lines cn__lines_of(const cn_array *x, int64_t axis)
{
    cn__lines l = {1, 1, 1};
    for (int d = 0; d < x->ndim; d++) *(d < axis ? &l.outer : d == axis ? &l.n : &l.inner) *= x->shape[d];
    return l;
}

int64_t cn__grain(int64_t work) { return work >= 16384 ? 1 : 16384 / (work > 0 ? work : 1); }

bool cn__scan_axis(const char *who, const cn_tensor *x, int64_t *axis)
{
    int ndim = cn__layout(x)->ndim;
    int d = cn__axis(*axis, ndim ? ndim : 1); /* a single number has axis 0, as in PyTorch */
    if (d < 0)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: axis %lld is out of range for %d dimensions", who,
                        (long long)*axis, ndim);
    *axis = d;
    return true;
}

bool cn__infer_scan(cn_infer *i)
{
    int64_t axis = *(const int64_t *)i->attrs;
    const cn_meta *x = i->in[0];
    if (axis < 0 || axis >= (x->layout.ndim ? x->layout.ndim : 1))
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "axis %lld is out of range for %d dimensions", (long long)axis,
                             x->layout.ndim);
    for (int k = 0; k < i->n_out; k++) {
        i->out[k].layout = x->layout;
        i->out[k].dtype = k == 0 ? x->dtype : CN_I64;
    }
    return true;
}

cn_tensor *cn__scatter_back(cn_grad_call *g, int64_t axis)
{
    if (!g->out_grad[0] || cn__layout(g->in[0])->ndim == 0) return g->out_grad[0];
    return cn_scatter_add(cn_zeros_like(g->in[0]), axis, g->out[1], g->out_grad[0]);
}

/* ---- on the GPU ---- */

const char *cn__gpu_key(cn_dtype t)
{
    if (!cn_dtype_is_float(t)) return "fn key_of(w: u32) -> u32 { return w ^ 0x80000000u; }\n";
    return "fn key_of(w: u32) -> u32 {\n"
           "    let a = w & 0x7fffffffu;\n"
           "    if (a > 0x7f800000u) { return 0xffffffffu; }\n"
           "    if (a == 0u) { return 0x80000000u; }\n"
           "    return select(w | 0x80000000u, ~w, a != w);\n}\n";
}

/* An invocation for each line. */
static bool gpu_side_by_side(cn__gpu_call *c, cn__lines l, const char *common, const char *state)
{
    return cn__gpu_each(c, l.outer * l.inner,
                        cn__gpu_text(c,
                                     "%sfn each(line: u32) {\n    var s: %s;\n"
                                     "    for (var i = 0u; i < par(1u); i++) {\n"
                                     "        let at = place(line, i); let x = load(at, i);\n"
                                     "        if (i == 0u) { s = x; } else { s = merge(s, x); }\n"
                                     "        store(at, i, s);\n    }\n}\n",
                                     common, state));
}

/* A workgroup for each line, 1024 elements at a time: each invocation scans 4, the first 16 invocations scan 16 of the
   ends each, and then all know what came before their own. */
static bool gpu_tiles(cn__gpu_call *c, cn__lines l, const char *common, const char *state)
{
    static const char body[] =
        "fn kernel(line: u32, local: u32) {\n"
        "    let n = par(1u); var before: STATE;\n"
        "    for (var begin = 0u; begin < n; begin += 1024u) {\n"
        "        let count = min(1024u, n - begin); let first = local * 4u; let stop = min(first + 4u, count);\n"
        "        for (var e = local; e < count; e += 256u) { items[e] = load(place(line, begin + e), begin + e); }\n"
        "        workgroupBarrier();\n"
        "        for (var e = first + 1u; e < stop; e++) { items[e] = merge(items[e - 1u], items[e]); }\n"
        "        if (first < count) { ends[local] = items[stop - 1u]; }\n"
        "        workgroupBarrier();\n"
        "        if (local < 16u) {\n"
        "            let last = min(local * 16u + 16u, (count + 3u) / 4u);\n"
        "            for (var e = local * 16u + 1u; e < last; e++) { ends[e] = merge(ends[e - 1u], ends[e]); }\n"
        "        }\n"
        "        workgroupBarrier();\n"
        "        if (first < count) {\n"
        "            var some = begin > 0u;\n"
        "            for (var e = 15u; e < local - local % 16u; e += 16u) {\n"
        "                if (some) { before = merge(before, ends[e]); } else { before = ends[e]; }\n"
        "                some = true;\n"
        "            }\n"
        "            if (local % 16u != 0u) {\n"
        "                if (some) { before = merge(before, ends[local - 1u]); } else { before = ends[local - 1u]; }\n"
        "                some = true;\n"
        "            }\n"
        "            if (some) { for (var e = first; e < stop; e++) { items[e] = merge(before, items[e]); } }\n"
        "        }\n"
        "        workgroupBarrier();\n"
        "        for (var e = local; e < count; e += 256u) { store(place(line, begin + e), begin + e, items[e]); }\n"
        "        before = items[count - 1u];\n"
        "        workgroupBarrier();\n"
        "    }\n"
        "}\n";
    const char *code = cn__gpu_text(c,
                                    "alias STATE = %s;\nvar<workgroup> items: array<STATE, 1024>;\n"
                                    "var<workgroup> ends: array<STATE, 256>;\n%s%s",
                                    state, common, body);
    return cn__gpu_run_groups(
        c,
        &(cn__gpu_launch){ .code = code, .groups = l.outer * l.inner, .size = 256, .group_bytes = (1024 + 256) * 8 });
}

bool cn__gpu_scan_lines(cn__gpu_call *c, cn__lines l, const cn__gpu_scan *s)
{
    enum { SHORT = 32, MANY = 2048 };
    if (l.n == 0) return true;
    cn__gpu_param(c, (uint32_t)l.inner);
    cn__gpu_param(c, (uint32_t)l.n);
    cn__gpu_param(c, s->reverse);
    const char *common = cn__gpu_piece(cn__gpu_text(
        c,
        "%s%s%sfn place(line: u32, i: u32) -> u32 {\n"
        "    let inner = par(0u); let n = par(1u);\n"
        "    return (line / inner * n + select(i, n - 1u - i, par(2u) != 0u)) * inner + line %% inner;\n}\n",
        s->load, s->merge, s->store));
    bool side_by_side = l.n <= SHORT || (l.inner > 1 && l.outer * l.inner >= MANY);
    return (side_by_side ? gpu_side_by_side : gpu_tiles)(c, l, common, s->state);
}
