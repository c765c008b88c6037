/* graph_ops.c: the instructions a program can be made of, one row each, and how a row is called. */
#include <string.h>

#include "support/graph.h"

#define CALL(name) static cn_tensor *call_##name(graph_runner *r, const graph_instr *i, cn_tensor *const *in)
#define UNUSED (void)r, (void)i, (void)in

/* ---- leaves and creation ---- */

CALL(from)
{
    UNUSED;
    return graph_leaf_tensor(r->ctx, i);
}
CALL(param)
{
    UNUSED;
    if (r->inputs) return r->inputs[r->next_input++];
    return cn_param(graph_leaf_tensor(r->ctx, i));
}
CALL(full) { UNUSED; return cn_full(r->ctx, i->dtype, i->dims, i->x[0]); }
CALL(rand) { UNUSED; return cn_rand(r->ctx, i->dtype, i->dims); }
CALL(randn) { UNUSED; return cn_randn(r->ctx, i->dtype, i->dims); }

/* ---- elementwise ---- */

CALL(unary) { UNUSED; return i->op->unary(in[0]); }
CALL(binary) { UNUSED; return i->op->binary(in[0], in[1]); }
CALL(number) { UNUSED; return i->op->number(in[0], i->x[0]); }
CALL(where) { UNUSED; return cn_where(in[0], in[1], in[2]); }
CALL(clamp_t) { UNUSED; return cn_clamp_t(in[0], in[1], in[2]); }
CALL(lerp) { UNUSED; return cn_lerp(in[0], in[1], in[2]); }
CALL(addcmul) { UNUSED; return cn_addcmul(in[0], in[1], in[2], i->x[0]); }
CALL(addcdiv) { UNUSED; return cn_addcdiv(in[0], in[1], in[2], i->x[0]); }
CALL(clamp) { UNUSED; return cn_clamp(in[0], i->x[0], i->x[1]); }
CALL(softplus) { UNUSED; return cn_softplus(in[0], 1, 20); }
CALL(elu) { UNUSED; return cn_elu(in[0], 1.5); }
CALL(cast) { UNUSED; return cn_cast(in[0], i->dtype); }
CALL(masked_fill) { UNUSED; return cn_masked_fill(in[0], in[1], i->x[0]); }

/* ---- views ---- */

CALL(transpose) { UNUSED; return cn_transpose(in[0], i->a[0], i->a[1]); }
CALL(permute) { UNUSED; return cn_permute(in[0], i->dims); }
CALL(reshape) { UNUSED; return cn_reshape(in[0], i->dims); }
CALL(slice) { UNUSED; return cn_slice(in[0], i->a[0], i->a[1], i->a[2], i->a[3]); }
CALL(narrow) { UNUSED; return cn_narrow(in[0], i->a[0], i->a[1], i->a[2]); }
CALL(select) { UNUSED; return cn_select(in[0], i->a[0], i->a[1]); }
CALL(expand) { UNUSED; return cn_expand(in[0], i->dims); }
CALL(squeeze) { UNUSED; return cn_squeeze(in[0], i->dims); }
CALL(flip) { UNUSED; return cn_flip(in[0], i->dims); }
CALL(diagonal) { UNUSED; return cn_diagonal(in[0], i->a[0], i->a[1], i->a[2]); }
CALL(unfold) { UNUSED; return cn_unfold(in[0], i->a[0], i->a[1], i->a[2]); }
CALL(along) { UNUSED; return i->op->along(in[0], i->a[0]); }

/* ---- the others ---- */

CALL(reduce) { UNUSED; return i->op->reduce(in[0], i->dims, i->flag); }
CALL(var) { UNUSED; return cn_var(in[0], i->dims, i->x[0], i->flag); }
CALL(std) { UNUSED; return cn_std(in[0], i->dims, i->x[0], i->flag); }
CALL(layer_norm) { UNUSED; return cn_layer_norm(in[0], i->a[0], in[1], in[2], i->x[0]); }
CALL(rms_norm) { UNUSED; return cn_rms_norm(in[0], i->a[0], in[1], i->x[0]); }
CALL(dropout) { UNUSED; return cn_dropout(in[0], i->x[0], true); }
CALL(sort) { UNUSED; return cn_sort(in[0], i->a[0], i->flag, &r->second[i - r->p->code]); }
CALL(cummax) { UNUSED; return cn_cummax(in[0], i->a[0], &r->second[i - r->p->code]); }
CALL(topk) { UNUSED; return cn_topk(in[0], i->a[0], i->a[1], i->flag, &r->second[i - r->p->code]); }
CALL(second) { UNUSED; return r->second[i->in[0]]; }
CALL(linear) { UNUSED; return cn_linear(in[0], in[1], in[2]); }
CALL(gather) { UNUSED; return cn_gather(in[0], i->a[0], in[1]); }
CALL(index_select) { UNUSED; return cn_index_select(in[0], i->a[0], in[1]); }
CALL(scatter_add) { UNUSED; return cn_scatter_add(in[0], i->a[0], in[1], in[2]); }
CALL(index_add) { UNUSED; return cn_index_add(in[0], i->a[0], in[1], in[2]); }
CALL(cat) { UNUSED; return cn_cat(in, i->n_in, i->a[0]); }
CALL(stack) { UNUSED; return cn_stack(in, i->n_in, i->a[0]); }
CALL(pad) { UNUSED; return cn_pad(in[0], i->dims, (cn_pad_mode)i->a[0], i->x[0]); }
CALL(repeat) { UNUSED; return cn_repeat(in[0], i->dims); }
CALL(roll) { UNUSED; return cn_roll(in[0], i->dims, i->more); }
CALL(cross_entropy) { UNUSED; return cn_cross_entropy(in[0], in[1], NULL); }

static cn_conv_desc conv_desc(const graph_instr *i)
{
    cn_conv_desc d = {.groups = i->a[3]};
    for (int k = 0; k < 3; k++) d.stride[k] = i->a[0], d.padding[k] = i->a[1], d.dilation[k] = i->a[2];
    return d;
}
CALL(conv1d) { UNUSED; cn_conv_desc d = conv_desc(i); return cn_conv1d(in[0], in[1], NULL, &d); }
CALL(conv2d) { UNUSED; cn_conv_desc d = conv_desc(i); return cn_conv2d(in[0], in[1], NULL, &d); }

static cn_pool_desc pool_desc(const graph_instr *i)
{
    return (cn_pool_desc){.kernel_size = {i->a[0], i->a[0]}, .stride = {i->a[1], i->a[1]}, .padding = {i->a[2], i->a[2]}};
}
CALL(max_pool) { UNUSED; cn_pool_desc d = pool_desc(i); return cn_max_pool2d(in[0], &d); }
CALL(avg_pool) { UNUSED; cn_pool_desc d = pool_desc(i); return cn_avg_pool2d(in[0], &d); }

/* ---- the table ---- */

#define VALUE(name_, form_, group_, traits_, n, draw_name, rule_name, call_name) \
    {.name = name_, .form = form_, .group = group_, .traits = traits_, .n_in = n, .draw = draw_##draw_name, .rule = rule_##rule_name, .call = call_##call_name}
#define MAPPED(name_, form_, group_, class_, traits_, n, draw_name, rule_name, call_name) \
    {.name = name_, .form = form_, .group = group_, .class = class_, .traits = traits_, .n_in = n, .draw = draw_##draw_name, .rule = rule_##rule_name, .call = call_##call_name}
#define ACTION(name_, form_, group_, act_, n, draw_name, rule_name) \
    {.name = name_, .form = form_, .group = group_, .traits = OP_ACTION, .act = act_, .n_in = n, .draw = draw_##draw_name, .rule = rule_##rule_name}
#define REDUCED(name_, rule_name, traits_) \
    {.name = #name_, .form = "0Df", .group = G_REDUCE, .traits = traits_, .n_in = 1, .draw = draw_reduce, .rule = rule_##rule_name, .call = call_reduce, .reduce = cn_##name_}
#define ALONG(name_, group_, draw_name, rule_name, traits_) \
    {.name = #name_, .form = "0a", .group = group_, .traits = traits_, .n_in = 1, .draw = draw_##draw_name, .rule = rule_##rule_name, .call = call_along, .along = cn_##name_}
#define PLAIN2(name_, group_, draw_name, rule_name, traits_) \
    {.name = #name_, .form = "01", .group = group_, .traits = traits_, .n_in = 2, .draw = draw_##draw_name, .rule = rule_##rule_name, .call = call_binary, .binary = cn_##name_}

static graph_op table[] = {
    {.name = "from", .form = "tDs", .group = G_LEAF, .traits = OP_SMOOTH, .draw = draw_leaf, .rule = rule_created, .call = call_from},
    {.name = "param", .form = "tDs", .group = G_LEAF, .traits = OP_SMOOTH, .act = ACT_PARAM, .draw = draw_param, .rule = rule_created, .call = call_param},
    {.name = "index", .form = "tDas", .group = G_LEAF, .draw = draw_index_leaf, .rule = rule_index_leaf, .call = call_from},
    VALUE("full", "tDx", G_CREATE, 0, 0, created, created, full),
    VALUE("rand", "tD", G_CREATE, 0, 0, created, created, rand),
    VALUE("randn", "tD", G_CREATE, 0, 0, created, created, randn),

#define UNARY(name_, class_, ...) \
    {.name = #name_, .form = "0", .group = G_UNARY, .class = CLASS_##class_, .n_in = 1, .draw = draw_unary, .rule = rule_map, .call = call_unary, .unary = cn_##name_}, \
    {.name = #name_ "_", .form = "0", .group = G_IN_PLACE, .class = CLASS_##class_, .traits = OP_ACTION, .act = ACT_IN_PLACE, .n_in = 1, .draw = draw_unary_in_place, .rule = rule_in_place, .unary_ = cn_##name_##_},
#include "ops/map/unary.def"
#undef UNARY
#define BINARY(name_, class_, ...) \
    {.name = #name_, .form = "01", .group = G_BINARY, .class = CLASS_##class_, .n_in = 2, .draw = draw_binary, .rule = rule_map, .call = call_binary, .binary = cn_##name_}, \
    {.name = #name_ "_s", .form = "0x", .group = G_NUMBER, .class = CLASS_##class_, .n_in = 1, .draw = draw_number, .rule = rule_number, .call = call_number, .number = cn_##name_##_s}, \
    {.name = #name_ "_", .form = "01", .group = G_IN_PLACE, .class = CLASS_##class_, .traits = OP_ACTION, .act = ACT_IN_PLACE, .n_in = 2, .draw = draw_binary_in_place, .rule = rule_in_place, .binary_ = cn_##name_##_}, \
    {.name = #name_ "_s_", .form = "0x", .group = G_IN_PLACE, .class = CLASS_##class_, .traits = OP_ACTION, .act = ACT_IN_PLACE, .n_in = 1, .draw = draw_number_in_place, .rule = rule_in_place_number, .number_ = cn_##name_##_s_},
#include "ops/map/binary.def"
#undef BINARY
    {.name = "rsub_s", .form = "0x", .group = G_NUMBER, .class = CLASS_NUMBER, .n_in = 1, .draw = draw_number, .rule = rule_number, .call = call_number, .number = cn_rsub_s},
    {.name = "rdiv_s", .form = "0x", .group = G_NUMBER, .class = CLASS_REAL, .n_in = 1, .draw = draw_number, .rule = rule_number, .call = call_number, .number = cn_rdiv_s},
    MAPPED("where", "012", G_TERNARY, CLASS_ANY, OP_NO_FIRST, 3, where, where, where),
    MAPPED("clamp_t", "012", G_TERNARY, CLASS_NUMBER, 0, 3, ternary, map, clamp_t),
    MAPPED("lerp", "012", G_TERNARY, CLASS_FLOAT, OP_SMOOTH, 3, ternary, map, lerp),
    MAPPED("addcmul", "012x", G_TERNARY, CLASS_NUMBER, OP_SMOOTH, 3, ternary, map, addcmul),
    MAPPED("addcdiv", "012x", G_TERNARY, CLASS_FLOAT, 0, 3, ternary, map, addcdiv),
    MAPPED("clamp", "0xy", G_TERNARY, CLASS_NUMBER, 0, 1, clamp, map, clamp),
    MAPPED("softplus", "0", G_UNARY, CLASS_REAL, OP_SMOOTH, 1, unary, map, softplus),
    MAPPED("elu", "0", G_UNARY, CLASS_REAL, 0, 1, unary, map, elu),
    VALUE("masked_fill", "01x", G_TERNARY, OP_FIRST_ONLY, 2, masked_fill, masked_fill, masked_fill),
    VALUE("cast", "0t", G_CAST, 0, 1, cast, cast, cast),

    VALUE("transpose", "0ab", G_VIEW, OP_VIEW | OP_SMOOTH, 1, transpose, transpose, transpose),
    VALUE("permute", "0D", G_VIEW, OP_VIEW | OP_SMOOTH, 1, permute, permute, permute),
    VALUE("reshape", "0D", G_VIEW, OP_VIEW | OP_SMOOTH, 1, reshape, reshape, reshape),
    VALUE("slice", "0abcd", G_VIEW, OP_VIEW | OP_SMOOTH, 1, slice, slice, slice),
    VALUE("narrow", "0abc", G_VIEW, OP_VIEW | OP_SMOOTH, 1, narrow, narrow, narrow),
    VALUE("select", "0ab", G_VIEW, OP_VIEW | OP_SMOOTH, 1, select, select, select),
    VALUE("expand", "0D", G_VIEW, OP_VIEW | OP_SMOOTH, 1, expand, expand, expand),
    VALUE("squeeze", "0D", G_VIEW, OP_VIEW | OP_SMOOTH, 1, squeeze, squeeze, squeeze),
    ALONG(unsqueeze, G_VIEW, unsqueeze, unsqueeze, OP_VIEW | OP_SMOOTH),
    VALUE("flip", "0D", G_VIEW, OP_VIEW | OP_SMOOTH, 1, flip, flip, flip),
    VALUE("diagonal", "0abc", G_VIEW, OP_VIEW | OP_SMOOTH, 1, diagonal, diagonal, diagonal),
    VALUE("unfold", "0abc", G_VIEW, OP_VIEW | OP_SMOOTH, 1, unfold, unfold, unfold),
    {.name = "detach", .form = "0", .group = G_VIEW, .traits = OP_VIEW | OP_CUT, .n_in = 1, .draw = draw_any, .rule = rule_same, .call = call_unary, .unary = cn_detach},
    {.name = "clone", .form = "0", .group = G_VIEW, .traits = OP_SMOOTH, .n_in = 1, .draw = draw_any, .rule = rule_same, .call = call_unary, .unary = cn_clone},
    ALONG(tril, G_VIEW, triangle, triangle, OP_SMOOTH),
    ALONG(triu, G_VIEW, triangle, triangle, OP_SMOOTH),

    REDUCED(sum, sum, OP_SMOOTH), REDUCED(prod, sum, OP_SMOOTH), REDUCED(mean, mean, OP_SMOOTH), REDUCED(max, max, 0),
    REDUCED(min, max, 0), REDUCED(argmax, arg, 0), REDUCED(argmin, arg, 0), REDUCED(any, truth, 0), REDUCED(all, truth, 0),
    REDUCED(logsumexp, logsumexp, OP_SMOOTH),
    VALUE("var", "0Dxf", G_REDUCE, 0, 1, reduce, mean, var),
    VALUE("std", "0Dxf", G_REDUCE, 0, 1, reduce, mean, std),

    ALONG(softmax, G_BLOCK, along, softmax, OP_SMOOTH), ALONG(log_softmax, G_BLOCK, along, softmax, OP_SMOOTH),
    VALUE("layer_norm", "0a12x", G_BLOCK, OP_SMOOTH, 3, norm, norm, layer_norm),
    VALUE("rms_norm", "0a1x", G_BLOCK, OP_SMOOTH, 2, norm, norm, rms_norm),
    VALUE("dropout", "0x", G_BLOCK, OP_SMOOTH, 1, dropout, dropout, dropout),
    VALUE("cross_entropy", "01", G_BLOCK, OP_SMOOTH | OP_FIRST_ONLY, 2, cross_entropy, cross_entropy, cross_entropy),

    PLAIN2(matmul, G_CONTRACT, matmul, matmul, OP_SMOOTH),
    VALUE("linear", "012", G_CONTRACT, OP_SMOOTH, 3, linear, linear, linear),
    VALUE("conv1d", "01abcd", G_CONTRACT, OP_SMOOTH, 2, conv1d, conv1d, conv1d),
    VALUE("conv2d", "01abcd", G_CONTRACT, OP_SMOOTH, 2, conv2d, conv2d, conv2d),
    VALUE("max_pool2d", "0abc", G_CONTRACT, 0, 1, pool, pool, max_pool),
    VALUE("avg_pool2d", "0abc", G_CONTRACT, 0, 1, pool, pool, avg_pool),

    VALUE("gather", "0a1", G_INDEX, OP_SMOOTH | OP_FIRST_ONLY, 2, gather, gather, gather),
    VALUE("index_select", "0a1", G_INDEX, OP_SMOOTH | OP_FIRST_ONLY, 2, index_select, index_select, index_select),
    PLAIN2(embedding, G_INDEX, embedding, embedding, OP_SMOOTH | OP_FIRST_ONLY),
    VALUE("scatter_add", "0a12", G_INDEX, OP_SMOOTH, 3, scatter_add, scatter_add, scatter_add),
    VALUE("index_add", "0a12", G_INDEX, OP_SMOOTH, 3, index_add, index_add, index_add),

    ALONG(cumsum, G_SCAN, along, scan, OP_SMOOTH), ALONG(cumprod, G_SCAN, along, scan, OP_SMOOTH),
    VALUE("sort", "0af", G_SCAN, 0, 1, sort, sort, sort),
    VALUE("cummax", "0a", G_SCAN, 0, 1, sort, sort, cummax),
    VALUE("topk", "0abf", G_SCAN, 0, 1, topk, topk, topk),
    {.name = "indices", .form = "0", .group = GRAPH_GROUPS, .act = ACT_SECOND, .n_in = 1, .draw = draw_second, .rule = rule_second, .call = call_second},

    VALUE("cat", "012a", G_JOIN, OP_SMOOTH, 3, join, cat, cat),
    VALUE("stack", "012a", G_JOIN, OP_SMOOTH, 3, join, stack, stack),
    VALUE("pad", "0Dax", G_JOIN, OP_SMOOTH, 1, pad, pad, pad),
    VALUE("repeat", "0D", G_JOIN, OP_VIEW | OP_SMOOTH, 1, repeat, repeat, repeat),
    VALUE("roll", "0DE", G_JOIN, OP_SMOOTH, 1, roll, roll, roll),

    ACTION("assign", "01", G_ASSIGN, ACT_ASSIGN, 2, assign, assign),
    ACTION("write", "0s", G_ASSIGN, ACT_WRITE, 1, assign, none),
    ACTION("set", "0Dx", G_ASSIGN, ACT_SET, 1, set, set),
    ACTION("read", "0", G_READ, ACT_READ, 1, any, none),
    ACTION("item", "0", G_READ, ACT_READ, 1, item, item),
    ACTION("eval", "0", G_READ, ACT_READ, 1, any, none),
    ACTION("eval_all", "", G_READ, ACT_EVAL_ALL, 0, none, none),
    ACTION("scope_begin", "", G_SCOPE, ACT_BEGIN, 0, none, none),
    ACTION("scope_end", "", G_SCOPE, ACT_END, 0, none, none),
    ACTION("keep", "0", G_KEEP, ACT_KEEP, 1, keep, none),
    ACTION("release", "0", G_KEEP, ACT_RELEASE, 1, release, none),
    ACTION("backward", "012af", G_GRAD, ACT_BACKWARD, 3, backward, backward),
    ACTION("backward", "012af", G_GRAD, ACT_BACKWARD, 3, backward, backward), /* twice as often */
    ACTION("read_grad", "0", G_GRAD, ACT_READ_GRAD, 1, of_param, none),
    ACTION("zero_grad", "0", G_GRAD, ACT_ZERO_GRAD, 1, of_param, none),
    ACTION("step", "0x", G_GRAD, ACT_STEP, 1, of_param, none),
    ACTION("no_grad_begin", "", G_GRAD, ACT_NO_GRAD, 0, none, none),
    ACTION("no_grad_end", "", G_GRAD, ACT_WITH_GRAD, 0, none, none),
};

/* Elementwise operators without a corner, a pole or a steep place near 0. */
static const char smooth_maps[] = " neg square sin cos atan tanh erf gelu gelu_tanh silu sigmoid log_sigmoid softsign mish add sub mul add_s sub_s mul_s div_s rsub_s ";

static bool is_smooth(const char *name)
{
    size_t n = strlen(name);
    for (const char *at = smooth_maps; (at = strstr(at, name)); at++)
        if (at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

const graph_op *graph_ops(int *count)
{
    static bool ready;
    *count = (int)(sizeof table / sizeof *table);
    for (int k = 0; k < *count && !ready; k++)
        if (!(table[k].traits & OP_ACTION) && is_smooth(table[k].name)) table[k].traits |= OP_SMOOTH;
    ready = true;
    return table;
}

const graph_op *graph_op_named(const char *name)
{
    int count;
    const graph_op *ops = graph_ops(&count);
    for (int k = 0; k < count; k++)
        if (!strcmp(ops[k].name, name)) return &ops[k];
    return NULL;
}
