/* Rows shared by the lanes of a workgroup. */
#include "ops/block/rows_gpu.h"

#include <stdio.h>
#include <string.h>

/* Up to sixteen elements a lane; more lanes where there are few rows. */
cn__gpu_rows cn__gpu_rows_of(int64_t rows, int64_t n, int64_t inner)
{
    enum { EACH = 16, ENOUGH = 1 << 14 };
    cn__gpu_rows r = { .rows = rows, .lanes = 1, .beside = inner > 1 };
    while (r.lanes < CN__GPU_ROWS_SIZE && n > EACH * r.lanes && (!r.beside || rows * r.lanes < ENOUGH)) r.lanes *= 4;
    while (r.lanes < CN__GPU_ROWS_SIZE && n > r.lanes && rows * r.lanes < ENOUGH / 4) r.lanes *= 4;
    return r;
}

typedef struct reducer {
    const char *name, *type, *merge;
    int bytes; /* of a state */
    bool group;
} reducer;

static const reducer reducers[] = {
    { "row_sum", "f32", "s + t", 4, false },
    { "row_sum2", "vec2<f32>", "s + t", 8, false },
    { "row_max", "f32", "select(s, t, t > s)", 4, false },
    { "group_sum2", "vec2<f32>", "s + t", 8, true },
};

enum { REDUCERS = sizeof reducers / sizeof *reducers };

static int side_of(int lanes)
{
    int side = 1;
    while (side * side < lanes) side *= 2;
    return side;
}

/* In two rounds of side values each, lanes = side²: two barriers, whatever the number of lanes. */
static const char *reducer_text(cn__gpu_call *c, const reducer *r, int lanes)
{
    if (lanes == 1) return cn__gpu_text(c, "fn %s(local: u32, x: %s) -> %s { return x; }\n", r->name, r->type, r->type);
    return cn__gpu_text(c,
                        "var<workgroup> %s_a: array<%s, 256>;\n"
                        "var<workgroup> %s_b: array<%s, 256>;\n"
                        "fn %s(local: u32, x: %s) -> %s {\n"
                        "    let lane = %s;\n"
                        "    %s_a[local] = x;\n"
                        "    workgroupBarrier();\n"
                        "    if (lane < %du) {\n"
                        "        var s = %s_a[local];\n"
                        "        for (var k = 1u; k < %du; k++) {\n"
                        "            let t = %s_a[%s(local, lane + k * %du)];\n"
                        "            s = %s;\n"
                        "        }\n"
                        "        %s_b[local] = s;\n"
                        "    }\n"
                        "    workgroupBarrier();\n"
                        "    var s = %s_b[%s(local, 0u)];\n"
                        "    for (var k = 1u; k < %du; k++) {\n"
                        "        let t = %s_b[%s(local, k)];\n"
                        "        s = %s;\n"
                        "    }\n"
                        "    return s;\n"
                        "}\n",
                        r->name, r->type, r->name, r->type, r->name, r->type, r->type,
                        r->group ? "local" : "lane_of(local)", r->name, side_of(lanes), r->name, side_of(lanes),
                        r->name, r->group ? "anywhere" : "in_row", side_of(lanes), r->merge, r->name, r->name,
                        r->group ? "anywhere" : "in_row", side_of(lanes), r->name, r->group ? "anywhere" : "in_row",
                        r->merge);
}

/* in_row: which invocation is lane k of local's row */
static const char *rows_text(cn__gpu_call *c, const cn__gpu_rows *r)
{
    static const char *const side_by_side =
        "fn lane_of(local: u32) -> u32 { return local / ROWS; }\n"
        "fn row_of(group: u32, local: u32) -> u32 { return group * ROWS + local % ROWS; }\n"
        "fn in_row(local: u32, k: u32) -> u32 { return k * ROWS + local % ROWS; }\n";
    static const char *const one_by_one =
        "fn lane_of(local: u32) -> u32 { return local % LANES; }\n"
        "fn row_of(group: u32, local: u32) -> u32 { return group * ROWS + local / LANES; }\n"
        "fn in_row(local: u32, k: u32) -> u32 { return local / LANES * LANES + k; }\n";
    return cn__gpu_text(
        c, "const LANES = %du;\nconst ROWS = %du;\n%sfn anywhere(local: u32, k: u32) -> u32 { return k; }\n", r->lanes,
        CN__GPU_ROWS_SIZE / r->lanes, r->beside ? side_by_side : one_by_one);
}

bool cn__gpu_run_rows(cn__gpu_call *c, const cn__gpu_rows *r, int64_t groups, int bytes, const char *code)
{
    const char *text = rows_text(c, r);
    for (int i = 0; i < REDUCERS && text && code; i++) {
        char call[24];
        snprintf(call, sizeof call, "%s(", reducers[i].name);
        if (!strstr(code, call)) continue;
        const int lanes = reducers[i].group ? CN__GPU_ROWS_SIZE : r->lanes;
        const char *more = reducer_text(c, &reducers[i], lanes);
        text = more ? cn__gpu_text(c, "%s%s", text, more) : NULL;
        if (lanes > 1) bytes += 2 * CN__GPU_ROWS_SIZE * reducers[i].bytes;
    }
    text = text && code ? cn__gpu_text(c, "%s%s", text, code) : NULL;
    return cn__gpu_run_groups(
        c, &(cn__gpu_launch){ .code = text, .groups = groups, .size = CN__GPU_ROWS_SIZE, .group_bytes = bytes });
}
