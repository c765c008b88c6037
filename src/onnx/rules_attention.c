/* Rules of attention and of rotary embeddings. */
#include "onnx/rules.h"

/* (B, T, heads · width) as (B, heads, T, width) */
static cn_tensor *heads_apart(onnx_call *c, cn_tensor *x, int64_t heads)
{
    if (!x) return NULL;
    if (cn_ndim(x) != 3 || heads < 1 || cn_size(x, 2) % heads)
        return FAIL(CN_BAD_SHAPE, "a width must be a multiple of %lld heads", (long long)heads), NULL;
    const cn_dims shape = CN_DIMS(cn_size(x, 0), cn_size(x, 1), heads, cn_size(x, 2) / heads);
    return cn_transpose(cn_reshape(x, shape), 1, 2);
}

static cn_tensor *heads_together(cn_tensor *x)
{
    cn_tensor *t = cn_transpose(x, 1, 2);
    return t ? cn_reshape(t, CN_DIMS(cn_size(t, 0), cn_size(t, 1), cn_size(t, 2) * cn_size(t, 3))) : NULL;
}

static cn_tensor *joined(cn_tensor *past, cn_tensor *now, int axis)
{
    cn_tensor *part[] = { past, now };
    return past ? cn_cat(part, 2, axis) : now;
}

/* Each head of keys and values serves several heads of queries. */
static cn_tensor *repeated(cn_tensor *x, int64_t heads)
{
    return x && cn_size(x, 1) != heads && cn_size(x, 1) > 0 ? cn_repeat_interleave(x, heads / cn_size(x, 1), 1) : x;
}

/* Which keys a query sees by its place: bool, (Tq, Tk), or with lengths (B, 1, Tq, Tk); NULL: all. */
static cn_tensor *seen_by_place(onnx_call *c, int64_t queries, int64_t keys, int64_t past, cn_tensor *lengths)
{
    const bool causal = INT("is_causal", 0) != 0;
    const int64_t left = INT("left_window_size", -1), right = INT("right_window_size", -1);
    if (!causal && left < 0 && right < 0) return NULL;
    cn_tensor *i = cn_reshape(cn_arange(c->ctx, CN_I64, 0, (double)queries, 1), CN_DIMS(queries, 1));
    cn_tensor *j = cn_arange(c->ctx, CN_I64, 0, (double)keys, 1);
    if (lengths) i = cn_add(i, cn_reshape(cn_sub_s(lengths, (double)queries), CN_DIMS(-1, 1, 1, 1)));
    else i = cn_add_s(i, (double)past);
    cn_tensor *ahead = cn_sub(j, i), *seen = NULL;
    if (causal) seen = cn_le_s(ahead, 0);
    if (left >= 0) {
        cn_tensor *near = cn_ge_s(ahead, (double)-left);
        seen = seen ? cn_logical_and(seen, near) : near;
    }
    if (right >= 0) {
        cn_tensor *near = cn_le_s(ahead, (double)right);
        seen = seen ? cn_logical_and(seen, near) : near;
    }
    return seen;
}

static cn_tensor *both(cn_tensor *a, cn_tensor *b) { return !a ? b : !b ? a : cn_logical_and(a, b); }

/* A mask for fewer keys does not see the others. */
static cn_tensor *widened(onnx_call *c, cn_tensor *mask, int64_t keys)
{
    if (!mask || cn_size(mask, -1) >= keys) return mask;
    cn_dims shape = cn_shape(mask);
    shape.v[shape.n - 1] = keys - shape.v[shape.n - 1];
    cn_tensor *part[] = { mask, cn_type(mask) == CN_BOOL ? cn_zeros(c->ctx, CN_BOOL, shape)
                                                         : cn_full(c->ctx, cn_type(mask), shape, -INFINITY) };
    return cn_cat(part, 2, -1);
}

/* What is added to scores: 0, -inf where nothing is seen, and a mask of floats; NULL: nothing. */
static cn_tensor *bias_of(onnx_call *c, cn_tensor *mask, cn_tensor *seen, cn_dtype t)
{
    if (mask && cn_type(mask) == CN_BOOL) seen = both(seen, mask), mask = NULL;
    if (!seen) return mask;
    cn_tensor *bias = cn_where(seen, cn_zeros(c->ctx, t, CN_SCALAR), cn_full(c->ctx, t, CN_SCALAR, -INFINITY));
    return mask ? cn_add(bias, mask) : bias;
}

/* softmax over keys; a query that sees none gets zeros. */
static cn_tensor *attend(cn_tensor *scores, cn_tensor *bias)
{
    if (!bias) return cn_softmax(scores, -1);
    cn_tensor *none = cn_isneginf(cn_max(bias, CN_DIMS(-1), true)), *zeros = cn_zeros_like(scores);
    return cn_where(none, zeros, cn_softmax(cn_where(none, zeros, scores), -1)); /* no NaN, in gradients neither */
}

bool cn__onnx_attention(onnx_call *c)
{
    cn_tensor *q = IN(0), *k = IN(1), *v = IN(2), *mask = IN(3), *lengths = HAS(6) ? cn_cast(IN(6), CN_I64) : NULL;
    if (!q || !k || !v) return false;
    const bool flat = cn_ndim(q) == 3;
    const cn_dtype t = cn_type(q);
    if (flat) {
        q = heads_apart(c, q, INT("q_num_heads", 0));
        k = heads_apart(c, k, INT("kv_num_heads", 0));
        v = heads_apart(c, v, INT("kv_num_heads", 0));
    }
    if (!q || !k || !v) return false;
    if (cn_ndim(q) != 4 || cn_ndim(k) != 4 || cn_ndim(v) != 4)
        return FAIL(CN_BAD_SHAPE, "Q, K and V must have 3 or 4 axes");
    const int64_t past = HAS(4) ? cn_size(IN(4), 2) : 0, heads = cn_size(q, 1);
    k = joined(IN(4), k, 2);
    v = joined(IN(5), v, 2);
    if (!GIVE_AT(1, k) || !GIVE_AT(2, v)) return false;
    const int64_t queries = cn_size(q, 2), keys = cn_size(k, 2);
    if (cn_size(k, 1) < 1 || heads % cn_size(k, 1))
        return FAIL(CN_BAD_SHAPE, "the heads of Q must be a multiple of K's");
    cn_tensor *seen = seen_by_place(c, queries, keys, past, lengths);
    if (lengths) {
        cn_tensor *filled =
            cn_lt(cn_arange(c->ctx, CN_I64, 0, (double)keys, 1), cn_reshape(lengths, CN_DIMS(-1, 1, 1, 1)));
        seen = both(seen, filled);
    }
    const double width = (double)cn_size(q, 3), scale = FLOAT("scale", 0), cap = FLOAT("softcap", 0);
    const double factor = scale != 0 ? scale : 1 / sqrt(width);
    mask = widened(c, mask, keys);
    cn_tensor *bias = bias_of(c, mask, seen, t);
    cn_tensor *y;
    const bool added = mask && cn_type(mask) != CN_BOOL;
    if (cap <= 0 && !cn__onnx_wanted(c, 3) && !(added && seen)) {
        cn_tensor *only = added ? mask : both(seen, mask);
        y = cn_scaled_dot_product_attention(q, k, v, &(cn_attention_desc){ .attn_mask = only, .scale = factor });
        return GIVE(flat ? heads_together(y) : y);
    }
    cn_tensor *scores =
        cn_matmul(cn_mul_s(q, sqrt(factor)), cn_transpose(cn_mul_s(repeated(k, heads), sqrt(factor)), 2, 3));
    const int64_t mode = INT("qk_matmul_output_mode", 0);
    cn_tensor *shown = scores;
    if (cap > 0) scores = cn_mul_s(cn_tanh(cn_div_s(scores, cap)), cap);
    if (mode == 1 || (mode != 0 && cap > 0)) shown = scores;
    if (mode == 0 && cap > 0) shown = scores; /* the captured product has its cap */
    if (bias) scores = cn_add(scores, bias);
    if (mode == 2) shown = scores;
    cn_dtype precise = t;
    if (cn__onnx_attr(c, "softmax_precision") && !cn__onnx_cast_to(c, INT("softmax_precision", 1), &precise))
        return false;
    cn_tensor *p = attend(cn_cast(scores, precise), bias);
    if (mode == 3) shown = p;
    y = cn_matmul(cn_cast(p, t), repeated(v, heads));
    return GIVE(flat ? heads_together(y) : y) && GIVE_AT(3, cn_cast(shown, t));
}

/* ---- with functions of scores and probabilities ---- */

static bool modified(onnx_call *c, const char *name, cn_tensor **x)
{
    const onnx_attr *a = cn__onnx_attr(c, name);
    if (!a || !a->g) return true;
    onnx_value in = { .kind = ONNX_TENSOR, .data = *x }, out;
    if (!cn__onnx_body(c, a->g, &in, 1, &out, 1)) return false;
    *x = out.kind == ONNX_TENSOR ? cn__onnx_data(c->run->model, &out) : NULL;
    return *x != NULL || FAIL(CN_BAD_ARGUMENT, "%s must give a tensor", name);
}

bool cn__onnx_flex_attention(onnx_call *c)
{
    cn_tensor *q = IN(0), *k = IN(1), *v = IN(2);
    if (!q || !k || !v) return false;
    if (cn_ndim(q) != 4 || cn_ndim(k) != 4 || cn_ndim(v) != 4) return FAIL(CN_BAD_SHAPE, "Q, K and V must have 4 axes");
    const int64_t heads = cn_size(q, 1);
    if (cn_size(k, 1) < 1 || heads % cn_size(k, 1))
        return FAIL(CN_BAD_SHAPE, "the heads of Q must be a multiple of K's");
    const double scale = sqrt(FLOAT("scale", 1 / sqrt((double)cn_size(q, 3))));
    cn_dtype precise = cn_type(q) == CN_F64 ? CN_F64 : CN_F32;
    if (cn__onnx_attr(c, "softmax_precision") && !cn__onnx_cast_to(c, INT("softmax_precision", 1), &precise))
        return false;
    cn_tensor *scores = cn_matmul(cn_mul_s(q, scale), cn_transpose(cn_mul_s(repeated(k, heads), scale), 2, 3));
    scores = cn_cast(scores, precise);
    if (!scores || !modified(c, "score_mod", &scores)) return false;
    cn_tensor *p = cn_softmax(cn_cast(scores, precise), -1);
    if (!p || !modified(c, "prob_mod", &p)) return false;
    return GIVE(cn_cast(cn_matmul(cn_cast(p, precise), cn_cast(repeated(v, heads), precise)), cn_type(v)));
}

/* ---- with a state in place of keys and values ---- */

/* (B, T, heads or heads · width) as (B, heads, T, 1 or width), in f32 or f64 */
static cn_tensor *gate(onnx_call *c, cn_tensor *x, int64_t heads)
{
    if (!x) return NULL;
    return cn__onnx_wide(heads_apart(c, x, cn_ndim(x) == 3 && cn_size(x, 2) == 1 ? 1 : heads));
}

bool cn__onnx_linear_attention(onnx_call *c)
{
    const int64_t q_heads = INT("q_num_heads", 0), heads = INT("kv_num_heads", 0);
    cn_tensor *query = IN(0), *past = IN(3);
    if (!query || q_heads < 1 || heads < 1 || q_heads % heads)
        return FAIL(CN_BAD_ARGUMENT, "q_num_heads must be a multiple of kv_num_heads");
    const char *rule = TEXT("update_rule", "gated_delta");
    const bool gated = !strncmp(rule, "gated", 5), delta = strstr(rule, "delta") != NULL;
    cn_tensor *q = cn__onnx_wide(heads_apart(c, query, q_heads)), *k = cn__onnx_wide(heads_apart(c, IN(1), heads)),
              *v = cn__onnx_wide(heads_apart(c, IN(2), heads));
    cn_tensor *decay = gated ? gate(c, IN(4), heads) : NULL, *beta = delta ? gate(c, IN(5), heads) : NULL;
    if (!q || !k || !v || (gated && !decay) || (delta && !beta))
        return FAIL(CN_BAD_ARGUMENT, "an input of its update rule is absent");
    const int64_t steps = cn_size(q, 2), batch = cn_size(q, 0);
    const double scale = FLOAT("scale", 0) != 0 ? FLOAT("scale", 0) : 1 / sqrt((double)cn_size(k, 3));
    cn_tensor *state =
        past ? cn__onnx_wide(past) : cn_zeros(c->ctx, cn_type(k), CN_DIMS(batch, heads, cn_size(k, 3), cn_size(v, 3)));
    cn_tensor **out = cn__onnx_run_new(c->run, (size_t)steps + 1, sizeof *out);
    for (int64_t t = 0; t < steps && out; t++) {
        if (!cn__onnx_work(c->run, 1)) return false;
        cn_tensor *kt = cn_unsqueeze(cn_select(k, 2, t), 3),
                  *vt = cn_unsqueeze(cn_select(v, 2, t), 2); /* columns, rows */
        if (gated) state = cn_mul(state, cn_unsqueeze(cn_exp(cn_select(decay, 2, t)), 3));
        if (delta) {
            cn_tensor *stored = cn_matmul(cn_transpose(kt, 2, 3), state);
            vt = cn_mul(cn_unsqueeze(cn_select(beta, 2, t), 3), cn_sub(vt, stored));
        }
        state = cn_add(state, cn_mul(kt, vt));
        cn_tensor *read = cn_matmul(cn_unsqueeze(cn_select(q, 2, t), 2), repeated(state, q_heads));
        if (!(out[t] = cn_mul_s(read, scale))) return false;
    }
    if (!out || !steps) return out && FAIL(CN_BAD_SHAPE, "the sequence has no steps");
    cn_tensor *y = heads_together(cn_cat(out, (int)steps, 2));
    return GIVE(cn_cast(y, cn_type(query))) && GIVE_AT(1, cn_cast(state, past ? cn_type(past) : cn_type(query)));
}

/* ---- rotary embeddings ---- */

bool cn__onnx_rotary_embedding(onnx_call *c)
{
    cn_tensor *x = IN(0), *cosine = IN(1), *sine = IN(2);
    if (!x || !cosine || !sine) return false;
    const bool flat = cn_ndim(x) == 3, pairs = INT("interleaved", 0) != 0;
    if (flat) x = heads_apart(c, x, INT("num_heads", 0));
    if (!x || cn_ndim(x) != 4) return FAIL(CN_BAD_SHAPE, "the input must have 3 or 4 axes");
    const int64_t width = INT("rotary_embedding_dim", 0) > 0 ? INT("rotary_embedding_dim", 0) : cn_size(x, 3),
                  half = width / 2;
    if (HAS(3)) {
        cosine = cn_embedding(cosine, cn_cast(IN(3), CN_I64));
        sine = cn_embedding(sine, cn_cast(IN(3), CN_I64));
    }
    cosine = cn_unsqueeze(cosine, 1); /* (B, 1, T, half) */
    sine = cn_unsqueeze(sine, 1);
    cn_tensor *turned = cn_narrow(x, 3, 0, width);
    cn_tensor *a = pairs ? cn_slice(turned, 3, 0, INT64_MAX, 2) : cn_narrow(turned, 3, 0, half);
    cn_tensor *b = pairs ? cn_slice(turned, 3, 1, INT64_MAX, 2) : cn_narrow(turned, 3, half, half);
    cn_tensor *part[] = { cn_sub(cn_mul(cosine, a), cn_mul(sine, b)), cn_add(cn_mul(sine, a), cn_mul(cosine, b)) };
    cn_tensor *y = pairs ? cn_reshape(cn_stack(part, 2, 4), cn_shape(turned)) : cn_cat(part, 2, 3);
    if (width < cn_size(x, 3)) {
        cn_tensor *whole[] = { y, cn_narrow(x, 3, width, cn_size(x, 3) - width) };
        y = cn_cat(whole, 2, 3);
    }
    return GIVE(flat ? heads_together(y) : y);
}
