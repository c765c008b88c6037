/* Products and attention, permuted, joined, copied and read by all kinds of operators. */
#include "support/destination_cases.h"

#include "cairn/op.h"

cn_tensor *ready(cn_tensor *x)
{
    x = cn_keep(x);
    cn_eval(x);
    return x;
}

given given_new(cn_ctx *cn)
{
    static const float signs[24] = { -0.f, 1, -0.f, -2, 0, -0.f, -0.f, 3, 0, 0, -0.f, -1, -0.f, 2, 5, -0.f };
    given g = { .cn = cn };
    g.qkv = ready(cn_randn(cn, CN_F32, CN_DIMS(B, T, 3, H, D)));
    g.w = ready(cn_randn(cn, CN_F32, CN_DIMS(H * D, 20)));
    g.a = ready(cn_randn(cn, CN_F32, CN_DIMS(2, 3, 5, 4)));
    g.b = ready(cn_randn(cn, CN_F32, CN_DIMS(4, 7)));
    g.c = ready(cn_randn(cn, CN_F32, CN_DIMS(5, 7)));
    g.d = ready(cn_randn(cn, CN_F32, CN_DIMS(7, 4)));
    g.ints[0] = ready(cn_randint(cn, CN_I32, -9, 9, CN_DIMS(3, 5, 4)));
    g.ints[1] = ready(cn_randint(cn, CN_I32, -9, 9, CN_DIMS(4, 6)));
    g.signs = ready(cn_from(cn, CN_F32, CN_DIMS(2, 3, 4), signs));
    g.p = cn_param(ready(cn_clone(g.qkv)));
    g.pa = cn_param(ready(cn_clone(g.a)));
    return g;
}

/* q, k or v as (B, H, T, D) */
static cn_tensor *part(cn_tensor *qkv, int i) { return cn_transpose(cn_select(qkv, 2, i), 1, 2); }

cn_tensor *attend(cn_tensor *qkv, bool causal)
{
    return cn_scaled_dot_product_attention(part(qkv, 0), part(qkv, 1), part(qkv, 2),
                                           &(cn_attention_desc){ .is_causal = causal });
}

/* (B, H, T, D) → (B, T, H·D) */
cn_tensor *side_by_side(cn_tensor *heads) { return cn_reshape(cn_transpose(heads, 1, 2), CN_DIMS(B, T, H * D)); }

cn_tensor *gradient(cn_tensor *loss, cn_tensor *of)
{
    cn_tensor *g = NULL;
    loss = cn_sum(loss, CN_ALL, false);
    return cn_grad(&loss, 1, &of, 1, &g, NULL) ? g : NULL;
}

/* ---- copies ---- */

static cn_tensor *attention(const given *g) { return cn_matmul(side_by_side(attend(g->qkv, true)), g->w); }

static cn_tensor *attention_read_twice(const given *g)
{
    cn_tensor *y = attend(g->qkv, true);
    cn_tensor *sums = cn_sum(cn_transpose(y, 1, 2), CN_DIMS(-1), false),
              *turned = cn_sum(cn_transpose(y, -2, -1), CN_DIMS(0), false);
    y = cn_matmul(side_by_side(y), g->w);
    return cn_add(cn_add(y, cn_sum(sums, CN_ALL, false)), cn_sum(cn_exp(turned), CN_ALL, false));
}

/* A part of the result could not be found in another layout. */
static cn_tensor *attention_sliced(const given *g)
{
    cn_tensor *y = attend(g->qkv, false);
    return cn_add(cn_matmul(side_by_side(y), g->w), cn_sum(cn_slice(y, 2, 1, 4, 1), CN_ALL, false));
}

/* The result has a handle that outlives the plan, and lies as it says. */
static cn_tensor *attention_kept(const given *g)
{
    return cn_matmul(side_by_side(cn_keep(attend(g->qkv, false))), g->w);
}

static cn_tensor *attention_let_go(const given *g)
{
    cn_tensor *y = cn_keep(attend(g->qkv, false)), *z = cn_matmul(side_by_side(y), g->w);
    cn_release(y);
    return z;
}

static cn_tensor *product_turned(const given *g)
{
    return cn_matmul(cn_clone(cn_transpose(cn_matmul(g->a, g->b), -2, -1)), g->c);
}

static cn_tensor *product_permuted(const given *g)
{
    cn_tensor *y = cn_permute(cn_matmul(g->a, g->b), CN_DIMS(2, 3, 0, 1)); /* (5, 7, 2, 3) */
    return cn_cumsum(cn_reshape(y, CN_DIMS(35, 6)), 0);
}

static cn_tensor *product_of_whole_numbers(const given *g)
{
    cn_tensor *y = cn_permute(cn_matmul(g->ints[0], g->ints[1]), CN_DIMS(2, 0, 1)); /* (6, 3, 5) */
    return cn_matmul(cn_clone(y), cn_select(g->ints[0], 0, 1));
}

/* A copy that shows elements more than once. */
static cn_tensor *product_repeated(const given *g)
{
    cn_tensor *y = cn_unsqueeze(cn_transpose(cn_matmul(g->c, g->d), 0, 1), 1); /* (4, 1, 5) */
    return cn_cumsum(cn_clone(cn_expand(y, CN_DIMS(4, 3, 5))), 0);
}

/* What follows reads the copy in order, but the product does not finish it in that order. */
static cn_tensor *product_turned_and_on(const given *g)
{
    cn_tensor *y = cn_clone(cn_transpose(cn_matmul(g->a, g->b), -2, -1)), *z = cn_cumsum(cn_relu(cn_mul_s(y, 3)), 0);
    return cn_add(cn_matmul(y, g->c), cn_sum(z, CN_ALL, false));
}

/* softmax takes rows that are contiguous: the product writes its columns so. */
static cn_tensor *product_for_a_kernel(const given *g)
{
    return cn_softmax(cn_transpose(cn_matmul(g->a, g->b), -2, -1), -1);
}

/* What runs inside the product stays there, and the copy stays a copy. */
static cn_tensor *product_with_an_epilogue(const given *g)
{
    cn_tensor *y = cn_matmul(g->a, g->b), *z = cn_matmul(cn_relu(cn_add_s(y, 1)), g->d);
    return cn_add(cn_matmul(cn_clone(cn_transpose(y, -2, -1)), g->c), cn_sum(z, CN_ALL, false));
}

/* An axis that the copy cuts in two cannot be written by strides. */
static cn_tensor *product_cut(const given *g)
{
    cn_tensor *y = cn_reshape(cn_matmul(g->c, g->d), CN_DIMS(5, 2, 2)); /* (5, 4) */
    return cn_cumsum(cn_reshape(cn_transpose(y, 0, 1), CN_DIMS(10, 2)), 0);
}

/* ---- joining ---- */

static cn_tensor *joined_along(const given *g, int axis)
{
    cn_tensor *x = cn_matmul(g->a, g->b), *y = cn_matmul(cn_exp(g->a), g->b);
    return cn_cumsum(cn_cat(CN_TENSORS(x, y, cn_matmul(cn_neg(g->a), g->b)), axis), 1);
}

static cn_tensor *joined_0(const given *g) { return joined_along(g, 0); }
static cn_tensor *joined_2(const given *g) { return joined_along(g, 2); }
static cn_tensor *joined_3(const given *g) { return joined_along(g, 3); }

/* A kernel of the CPU alone, which a GPU gets operands from and gives results back to. */
static void halve(const cn_kernel *k)
{
    const float *x = k->in[0].data;
    float *y = k->out[0].data;
    for (int64_t i = 0; i < k->out[0].numel; i++) {
        int64_t at = 0, rest = i;
        for (int d = k->out[0].ndim - 1; d >= 0; rest /= k->out[0].shape[d--])
            at += rest % k->out[0].shape[d] * k->out[0].stride[d];
        y[at] = x[i] / 2;
    }
}

static const cn_op halved = { .name = "halved",
                              .doc = "x/2",
                              .kind = CN_BLOCK,
                              .n_in = 1,
                              .n_out = 1,
                              .dtypes = CN_BIT(CN_F32),
                              .strided_out = 1,
                              .infer = cn_infer_map,
                              .no_grad = "nobody asks for it",
                              .cpu = halve };

/* The second reads the first, which is another part of the tensor that it writes to. */
static cn_tensor *joined_by_the_cpu(const given *g)
{
    cn_tensor *x = cn_matmul(g->a, g->b), *y = cn_apply(&halved, &x, 1, NULL, NULL);
    cn_tensor *z = cn_apply(&halved, &y, 1, NULL, NULL);
    return cn_cumsum(cn_cat(CN_TENSORS(x, z, cn_matmul(cn_exp(g->a), g->b), y), 0), 1);
}

/* It writes a part of what it does not read. */
static cn_tensor *added_by_the_cpu(const given *g)
{
    cn_tensor *x = cn_matmul(g->c, g->d), *y = cn_select(cn_select(g->a, 0, 1), 0, 2); /* (5, 4) */
    return cn_cumsum(cn_cat(CN_TENSORS(x, cn_apply(&halved, &y, 1, NULL, NULL)), 1), 0);
}

static cn_tensor *turned_by_the_cpu(const given *g)
{
    cn_tensor *x = cn_matmul(g->a, g->b), *y = cn_apply(&halved, &x, 1, NULL, NULL);
    return cn_cumsum(cn_cat(CN_TENSORS(cn_transpose(x, 0, 3), cn_transpose(y, 0, 3)), 1), 1);
}

/* Each part is read element by element too, inside the kernel that writes it; and the first one after the second. */
static cn_tensor *joined_with_epilogues(const given *g)
{
    cn_tensor *x = cn_matmul(g->a, g->b), *u = cn_cumsum(cn_add_s(x, 1), 0);
    cn_tensor *y = cn_matmul(cn_exp(g->a), g->b), *v = cn_cumsum(cn_mul(y, cn_exp(x)), 0);
    return cn_add(cn_cumsum(cn_cat(CN_TENSORS(x, y), 0), 1), cn_sum(cn_mul(u, v), CN_ALL, false));
}

/* A group that reads one part follows a product that writes another. */
static cn_tensor *joined_beside(const given *g)
{
    cn_tensor *x = attend(g->qkv, false), *y = cn_matmul(part(g->qkv, 0), cn_slice(g->w, 0, 0, D, 1));
    y = cn_matmul(y, cn_slice(cn_transpose(g->w, 0, 1), 1, 0, D, 1));
    cn_tensor *z = cn_cumsum(cn_relu(x), 1);
    return cn_add(cn_cumsum(cn_cat(CN_TENSORS(x, y), 0), 1), cn_sum(z, CN_ALL, false));
}

static cn_tensor *joined_turned(const given *g)
{
    cn_tensor *x = cn_matmul(g->a, g->b), *y = cn_matmul(cn_exp(g->a), g->b);
    cn_tensor *in[3] = { cn_transpose(x, 1, 3), cn_zeros(g->cn, CN_F32, CN_DIMS(0)), cn_transpose(y, 1, 3) };
    return cn_cumsum(cn_cat(in, 3, 2), 1);
}

/* Each product reads what the one before it wrote into the same tensor. */
static cn_tensor *joined_chain(const given *g)
{
    cn_tensor *x = cn_matmul(g->c, g->d), *y = cn_matmul(cn_transpose(x, 0, 1), g->c), *z; /* (5, 4), (4, 7) */
    y = cn_matmul(y, g->d);                                                                /* (4, 4) */
    z = cn_matmul(cn_slice(g->c, 0, 0, 4, 1), g->d);
    return cn_cumsum(cn_cat(CN_TENSORS(y, z, cn_matmul(z, y)), 1), 0);
}

static cn_tensor *joined_with_itself(const given *g)
{
    cn_tensor *x = cn_matmul(g->a, g->b);
    return cn_cumsum(cn_cat(CN_TENSORS(x, cn_matmul(cn_exp(g->a), g->b), x), 1), 0);
}

static cn_tensor *joined_with_a_leaf(const given *g)
{
    return cn_cumsum(cn_cat(CN_TENSORS(cn_matmul(g->c, g->d), cn_transpose(g->b, 0, 1)), 0), 0);
}

/* The joined tensor is itself asked for. */
static cn_tensor *joined_last(const given *g)
{
    return cn_stack(CN_TENSORS(cn_matmul(g->a, g->b), cn_matmul(cn_exp(g->a), g->b)), 2);
}

/* ---- gradients of slices ---- */

static cn_tensor *attention_gradient(const given *g)
{
    return cn_matmul(cn_reshape(gradient(cn_square(attend(g->p, true)), g->p), CN_DIMS(B, T, 3 * H * D)),
                     cn_ones(g->cn, CN_F32, CN_DIMS(3 * H * D, 2)));
}

/* The slices of what a layer computed, as transformers have them: the layer's own gradients come from products. */
static cn_tensor *attention_in_a_layer(const given *g)
{
    cn_tensor *x = cn_reshape(g->qkv, CN_DIMS(B, T, 3 * H * D)),
              *w = cn_ones(g->cn, CN_F32, CN_DIMS(3 * H * D, 3 * H * D));
    w = cn_param(ready(cn_mul_s(cn_cumsum(w, 0), 0.001)));
    cn_tensor *qkv = cn_reshape(cn_matmul(cn_tanh(x), w), CN_DIMS(B, T, 3, H, D));
    cn_tensor *dw = gradient(cn_square(cn_matmul(side_by_side(attend(qkv, true)), g->w)), w);
    cn_release(w);
    return dw;
}

static cn_tensor *two_of_three(const given *g)
{
    return gradient(cn_matmul(part(g->p, 0), cn_transpose(part(g->p, 1), -2, -1)), g->p);
}

static cn_tensor *overlapping(const given *g)
{
    cn_tensor *x = cn_slice(g->p, 1, 0, 6, 1), *y = cn_slice(g->p, 1, 3, 9, 1);
    return gradient(cn_mul(x, cn_exp(y)), g->p);
}

/* What was made last arrives first: the halves, or the whole. */
static cn_tensor *halves_and_all(const given *g)
{
    cn_tensor *half[2], *all = cn_sum(cn_square(g->pa), CN_DIMS(0), true);
    if (cn_chunk(g->pa, 2, 0, half, 2) != 2) return NULL;
    return gradient(cn_mul(cn_mul(half[0], cn_exp(half[1])), all), g->pa);
}

static cn_tensor *all_and_halves(const given *g)
{
    cn_tensor *half[2];
    if (cn_chunk(g->pa, 2, 0, half, 2) != 2) return NULL;
    return gradient(cn_mul(cn_mul(half[0], cn_exp(half[1])), cn_sum(cn_square(g->pa), CN_DIMS(0), true)), g->pa);
}

static cn_tensor *whole_slice(const given *g) { return gradient(cn_square(cn_slice(g->pa, 1, 0, 3, 1)), g->pa); }

/* Gradients that are -0, in all orders: what is put into zeros keeps its sign, joined or one after the other. */
static cn_tensor *minus_zeros(const given *g)
{
    static const int order[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    cn_tensor *all[6];
    for (int o = 0; o < 6; o++) {
        cn_tensor *x = cn_param(cn_ones(g->cn, CN_F32, CN_DIMS(2, 3, 4))), *y = NULL;
        for (int k = 0; k < 3; k++) {
            cn_tensor *p = cn_mul(cn_select(x, 1, order[o][k]), cn_select(g->signs, 1, order[o][k]));
            y = y ? cn_add(y, p) : p;
        }
        all[o] = gradient(y, x);
    }
    return cn_stack(all, 6, 0);
}

/* ---- all of them ---- */

const home_case destination_cases[] = {
    { "attention", attention, NULL, "copy" },
    { "attention read twice", attention_read_twice, NULL, "copy" },
    { "attention and a slice of it", attention_sliced, "copy", NULL },
    { "attention let go", attention_let_go, NULL, "copy" },
    { "attention kept", attention_kept, "copy", NULL },
    { "product turned", product_turned, NULL, "copy" },
    { "product permuted", product_permuted, NULL, "copy" },
    { "product of whole numbers", product_of_whole_numbers, NULL, "copy" },
    { "product repeated", product_repeated, "copy", NULL },
    { "product turned, and on", product_turned_and_on, "matmul mul+relu", "copy" },
    { "product for a kernel", product_for_a_kernel, NULL, "copy" },
    { "product with an epilogue", product_with_an_epilogue, "matmul+add+relu copy", NULL },
    { "product cut", product_cut, "copy", NULL },
    { "joined along axis 0", joined_0, NULL, "cat" },
    { "joined along axis 2", joined_2, NULL, "cat" },
    { "joined along axis 3", joined_3, NULL, "cat" },
    { "joined with epilogues", joined_with_epilogues, "matmul+add cat", NULL },
    { "joined beside", joined_beside, "cat", NULL },
    { "joined by the CPU", joined_by_the_cpu, "halved", "cat" },
    { "added by the CPU", added_by_the_cpu, "halved", "cat" },
    { "turned by the CPU", turned_by_the_cpu, "halved", NULL },
    { "joined turned", joined_turned, NULL, "cat" },
    { "joined chain", joined_chain, NULL, "cat" },
    { "joined with itself", joined_with_itself, "cat", NULL },
    { "joined with a leaf", joined_with_a_leaf, "cat", NULL },
    { "joined last", joined_last, NULL, "cat" },
    { "gradient of attention", attention_gradient, NULL, "slice_backward slice_add cat copy" },
    { "gradient of a layer", attention_in_a_layer, NULL, "slice_backward slice_add cat copy" },
    { "gradient of two of three", two_of_three, "slice_backward slice_add", "cat" },
    { "gradient of overlapping slices", overlapping, "slice_backward slice_add", "cat" },
    { "gradient of halves and all", halves_and_all, "cat", "slice_backward slice_add" },
    { "gradient of all and halves", all_and_halves, "slice_add", "cat slice_backward" },
    { "gradient of a whole slice", whole_slice, NULL, "slice_backward slice_add cat copy" },
    { "gradients of -0", minus_zeros, "cat slice_add", NULL },
};
const int n_destination_cases = sizeof destination_cases / sizeof *destination_cases;

/* ---- random programs: products, permuted, joined, copied, and read by all kinds of operators ---- */

typedef struct dice {
    uint64_t state;
} dice;

static int draw(dice *d, int n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((d->state >> 33) % (uint64_t)n);
}

static cn_tensor *random_value(dice *d, cn_tensor *const *x, int n)
{
    cn_tensor *a = x[draw(d, n)], *b = x[draw(d, n)]; /* (3, 4, 4) each */
    return draw(d, 4) ? cn_matmul(draw(d, 2) ? cn_transpose(a, 1, 2) : a, b) : cn_tanh(cn_add(a, b));
}

static cn_tensor *random_view(dice *d, cn_tensor *x)
{
    switch (draw(d, 5)) {
    case 0: return cn_transpose(x, 1, 2);
    case 1: return cn_permute(cn_unsqueeze(cn_transpose(x, 0, 1), 1), CN_DIMS(2, 0, 1, 3)); /* (3, 4, 1, 4) */
    case 2: return cn_permute(x, CN_DIMS(2, 0, 1));
    case 3: return cn_transpose(cn_reshape(x, CN_DIMS(12, 4)), 0, 1);
    }
    return x;
}

static cn_tensor *as_before(cn_tensor *x) { return cn_reshape(x, CN_DIMS(3, 4, 4)); }

static cn_tensor *random_use(dice *d, cn_tensor *const *x, int n)
{
    cn_tensor *v = random_view(d, x[draw(d, n)]), *w = x[draw(d, n)];
    switch (draw(d, 7)) {
    case 0: return as_before(cn_clone(v));
    case 1: return as_before(cn_softmax(v, -1));
    case 2: return as_before(cn_cumsum(v, 0));
    case 3: return cn_add(w, cn_mean(cn_max(v, CN_DIMS(-1), false), CN_ALL, false));
    case 4: {
        int axis = draw(d, 3);
        cn_tensor *all = cn_cat(CN_TENSORS(w, cn_transpose(x[draw(d, n)], 1, 2), x[draw(d, n)]), axis);
        return cn_slice(all, axis, cn_size(w, axis), 2 * cn_size(w, axis), 1);
    }
    case 5: return cn_matmul(cn_relu(w), as_before(v));
    }
    return cn_mul(w, cn_transpose(w, 1, 2));
}

cn_tensor *random_program(uint64_t seed, cn_tensor *p)
{
    dice d = { seed };
    cn_tensor *x[24];
    int n = 3;
    for (int k = 0; k < 3; k++) x[k] = cn_select(p, 2, k);
    while (n < 12 + (int)(seed % 12)) {
        x[n] = draw(&d, 2) ? random_value(&d, x, n) : random_use(&d, x, n);
        x[n] = x[n] ? cn_tanh(x[n]) : NULL;
        if (x[n] && draw(&d, 2)) x[n] = random_value(&d, x, n + 1);
        if (!x[n]) return NULL;
        n++;
    }
    cn_tensor *y = cn_cat(x + n - 3, 3, 1);
    return seed % 3 ? gradient(cn_square(y), p) : y;
}
