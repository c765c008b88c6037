/* Tensors from data and back, scopes, printing, DLPack, dtypes; bad input, which must set an error. */
#include <math.h>
#include <stdlib.h>

#include "cpu/processor.h"
#include "ops/contract/contract.h"
#include "support/check.h"

static cn_ctx *cn;

static bool text_is(cn_tensor *t, const char *expected)
{
    char text[1024];
    cn_print(t, text, sizeof text);
    return check(!strcmp(text, expected), "printed %s\ninstead of %s", text, expected);
}

/* An error stands, of this kind, with these words; afterwards none does. */
static void refused(bool refused_it, cn_code code, const char *words)
{
    check(refused_it && cn_error_code(cn) == code && strstr(cn_error(cn), words), "wanted %s with \"%s\", got %s: %s",
          cn_code_name(code), words, cn_code_name(cn_error_code(cn)), cn_error(cn));
    cn_error_clear(cn);
}

static void data_in_and_out(void)
{
    float v[6] = { 1, 2, 3, 4, 5, 6 }, out[6];
    cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(2, 3), v);
    check(cn_ndim(x) == 2 && cn_size(x, 0) == 2 && cn_size(x, -1) == 3 && cn_numel(x) == 6 && cn_type(x) == CN_F32,
          "shape and type");
    check(cn_strides(x).v[0] == 3 && cn_strides(x).v[1] == 1 && cn_is_contiguous(x) && !strcmp(cn_device(x), "cpu"),
          "strides and device");
    check(cn_read(cn_transpose(x, 0, 1), out, sizeof out) && out[1] == 4 && out[2] == 2,
          "a strided view is read row-major");
    check(cn_get(x, CN_DIMS(1, -1)) == 6 && cn_set(x, CN_DIMS(0, 1), 20) && cn_get(x, CN_DIMS(0, 1)) == 20, "elements");
    check(cn_write(x, v, sizeof v) && cn_get(x, CN_DIMS(0, 1)) == 2, "write");
    cn_tensor *column = cn_select(x, 1, 0);
    cn_set(x, CN_DIMS(0, 0), -7);
    check(cn_get(column, CN_DIMS(0)) == 1, "a view keeps the value it was taken of");
    check(cn_item(cn_scalar(cn, CN_F32, 2.5)) == 2.5 && cn_item_i64(cn_scalar(cn, CN_I64, -9)) == -9, "numbers");
    cn_tensor *half = cn_cast(x, CN_F16);
    double d[6];
    check(cn_read_f64(half, d, 6) && d[5] == 6, "conversion while reading");
    text_is(cn_from(cn, CN_F32, CN_DIMS(2, 2), v), "tensor([[1., 2.],\n        [3., 4.]])");
    text_is(cn_zeros(cn, CN_I64, CN_DIMS(0, 3)), "tensor([], size=(0, 3), dtype=i64)");
    text_is(cn_scalar(cn, CN_BOOL, 1), "tensor(True)");
    refused(!cn_read(x, out, 5), CN_BAD_ARGUMENT, "bytes");
    refused(!cn_write(x, v, 4), CN_BAD_ARGUMENT, "write");
    refused(isnan(cn_get(x, CN_DIMS(2, 0))), CN_BAD_INDEX, "index 2 of axis 0");
    refused(isnan(cn_get(x, CN_DIMS(0))), CN_BAD_ARGUMENT, "2 dimensions, got 1 indices");
    refused(isnan(cn_item(x)), CN_BAD_SHAPE, "6 elements");
    refused(!cn_data(cn_transpose(x, 0, 1)), CN_BAD_ARGUMENT, "contiguous");
    refused(!cn_from(cn, CN_F32, CN_DIMS(3), NULL), CN_BAD_ARGUMENT, "data must not be NULL for shape [3]");
    refused(!cn_from(cn, (cn_dtype)77, CN_DIMS(3), v), CN_BAD_DTYPE, "77");
}

static void any_byte_is_a_bool(void)
{
    unsigned char v[3000], out[3000];
    for (int i = 0; i < 3000; i++) v[i] = (unsigned char)(i % 7 ? i : 0);
    cn_tensor *x = cn_from(cn, CN_BOOL, CN_DIMS(3000), v);
    bool from = cn_read(x, out, sizeof out);
    for (int i = 0; i < 3000; i++) from &= out[i] == (v[i] != 0);
    check(from, "from: bytes other than 0 are stored as 1");
    v[0] = 255;
    v[1] = 0;
    v[2999] = 128;
    check(cn_write(x, v, sizeof v) && cn_read(x, out, sizeof out) && out[0] == 1 && out[1] == 0 && out[2999] == 1,
          "write: too");
    check(cn_item_i64(cn_sum(cn_slice(x, 0, 0, 3, 1), CN_ALL, false)) == 2, "and are counted as 1");
}

static void count_call(void *user) { ++*(int *)user; }

static void borrowed_memory(void)
{
    int freed = 0;
    float v[4] = { 1, 2, 3, 4 };
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_borrow(cn, CN_F32, CN_DIMS(4), v, count_call, &freed), *y = cn_keep(cn_slice(x, 0, 1, 4, 2));
    v[3] = 40;
    check(cn_data(x) == v && cn_get(y, CN_DIMS(1)) == 40, "borrowed memory is used as it is");
    cn_add_s_(x, 1);
    check(v[0] == 1 && cn_get(x, CN_DIMS(0)) == 2, "and never written to");
    cn_scope_end(cn, s);
    check(freed == 0, "a view holds it");
    cn_release(y);
    check(freed == 1, "given back once");
    refused(!cn_borrow(cn, CN_F32, CN_DIMS(1), (char *)v + 1, NULL, NULL), CN_BAD_ARGUMENT, "aligned");
}

static void scopes(void)
{
    int64_t before = cn_count(cn).handles;
    cn_scope a = cn_scope_begin(cn);
    cn_tensor *kept = cn_keep(cn_ones(cn, CN_F32, CN_DIMS(3)));
    cn_scope_begin(cn);
    check(cn_ones(cn, CN_F32, CN_DIMS(3)) != NULL, "a tensor of the inner scope");
    cn_scope inner = cn_scope_begin(cn);
    cn_tensor *up = cn_scope_return(cn, inner, cn_mul_s(kept, 3));
    check(cn_get(up, CN_DIMS(2)) == 3, "a tensor handed up lives on");
    cn_scope_end(cn, a);
    check(cn_count(cn).handles == before + 1, "ending a scope ends those inside: %lld handles left",
          (long long)(cn_count(cn).handles - before));
    check(cn_get(kept, CN_DIMS(0)) == 1, "what is kept stays");
    cn_release(kept);
    check(cn_count(cn).handles == before && cn_count(cn).pending == 0, "and goes when released");
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(3));
    cn_release(x);
    refused(cn_failed(cn), CN_RELEASED, "not kept");
}

static void use_after_release(void)
{
#ifdef CAIRN_DEBUG
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_name(cn_ones(cn, CN_F32, CN_DIMS(3)), "gone");
    cn_scope_end(cn, s);
    refused(!cn_relu(x), CN_RELEASED, "relu: this tensor was released");
    refused(!cn_keep(x), CN_RELEASED, "was released");
    refused(isnan(cn_item(x)), CN_RELEASED, "was released");
#endif
}

static void dlpack(void)
{
    float v[6] = { 1, 2, 3, 4, 5, 6 };
    cn_ctx *other = cn_open(NULL);
    cn_tensor *x = cn_transpose(cn_from(cn, CN_F32, CN_DIMS(2, 3), v), 0, 1);
    DLManagedTensor *m = cn_to_dlpack(x);
    check(m && m->dl_tensor.ndim == 2 && m->dl_tensor.shape[0] == 3 && m->dl_tensor.strides[0] == 1 &&
              m->dl_tensor.dtype.bits == 32,
          "as DLPack describes it");
    cn_tensor *y = cn_from_dlpack(other, m);
    check(cn_get(y, CN_DIMS(2, 1)) == 6 && cn_item(cn_sum(y, CN_ALL, false)) == 21,
          "from one context to another without a copy");
    cn_close(other);
    m = cn_to_dlpack(cn_mul_s(x, 2));
    check(m && ((float *)m->dl_tensor.data)[m->dl_tensor.strides[1]] == 8, "a pending value is computed first: %g",
          m ? (double)((float *)m->dl_tensor.data)[1] : 0);
    m->dl_tensor.dtype.lanes = 2;
    refused(!cn_from_dlpack(cn, m), CN_BAD_DTYPE, "from_dlpack");
    m->dl_tensor.dtype.lanes = 1;
    m->dl_tensor.ndim = 9;
    refused(!cn_from_dlpack(cn, m), CN_BAD_SHAPE, "9 dimensions");
    m->dl_tensor.ndim = 2;
    m->dl_tensor.device.device_type = 2;
    refused(!cn_from_dlpack(cn, m), CN_BAD_DEVICE, "device type must be 1 (CPU), got 2");
    m->deleter(m);
}

/* The first element of a part of a tensor is not at the beginning of its memory. */
static void dlpack_offsets(void)
{
    static double v[12]; /* what is borrowed, and its description, outlive this function */
    for (int i = 0; i < 12; i++) v[i] = i;
    cn_tensor *x = cn_from(cn, CN_F64, CN_DIMS(3, 4), v), *part = cn_slice(cn_slice(x, 0, 1, 3, 1), 1, 2, 4, 1);
    DLManagedTensor *m = cn_to_dlpack(part);
    const DLTensor *d = &m->dl_tensor;
    check(d->byte_offset == 6 * sizeof *v && d->strides[0] == 4 && d->strides[1] == 1 &&
              *(const double *)((const char *)d->data + d->byte_offset) == 6,
          "a part begins at byte %llu", (unsigned long long)d->byte_offset);
    cn_tensor *back = cn_from_dlpack(cn, m);
    check(cn_get(back, CN_DIMS(0, 0)) == 6 && cn_get(back, CN_DIMS(1, 1)) == 11, "a part comes back as itself: %g, %g",
          cn_get(back, CN_DIMS(0, 0)), cn_get(back, CN_DIMS(1, 1)));
    static int64_t shape[] = { 3 }, strides[] = { 2 };
    static DLManagedTensor given = { .dl_tensor = { .data = v,
                                                    .device = { 1, 0 },
                                                    .ndim = 1,
                                                    .dtype = { 2, 64, 1 },
                                                    .shape = shape,
                                                    .strides = strides,
                                                    .byte_offset = 5 * sizeof *v } };
    check(cn_get(cn_from_dlpack(cn, &given), CN_DIMS(2)) == 9, "another library's part: %s", cn_error(cn));
}

static void promotion(void)
{
    static const struct {
        cn_dtype a, b, sum;
    } rows[] = { { CN_BOOL, CN_I8, CN_I8 },   { CN_U8, CN_I64, CN_I64 },   { CN_I64, CN_F16, CN_F16 },
                 { CN_U8, CN_I8, CN_I16 },    { CN_I16, CN_U8, CN_I16 },   { CN_I16, CN_I32, CN_I32 },
                 { CN_F16, CN_BF16, CN_F32 }, { CN_BF16, CN_F32, CN_F32 }, { CN_F32, CN_F64, CN_F64 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cn_tensor *s = cn_add(cn_ones(cn, rows[i].a, CN_DIMS(2)), cn_ones(cn, rows[i].b, CN_DIMS(2)));
        check(cn_type(s) == rows[i].sum && cn_get(s, CN_DIMS(0)) == 2, "%s + %s gives %s", cn_dtype_name(rows[i].a),
              cn_dtype_name(rows[i].b), cn_dtype_name(cn_type(s)));
    }
    cn_tensor *f = cn_ones(cn, CN_F16, CN_DIMS(2)), *i = cn_ones(cn, CN_I32, CN_DIMS(2)),
              *zero_d = cn_ones(cn, CN_F64, CN_SCALAR);
    check(cn_type(cn_add(f, zero_d)) == CN_F16 && cn_type(cn_add(i, zero_d)) == CN_F64,
          "a 0-d tensor decides only by category");
    check(cn_type(cn_mul_s(i, 2)) == CN_I32 && cn_type(cn_mul_s(i, 0.5)) == CN_F32 && cn_type(cn_mul_s(f, 2)) == CN_F16,
          "plain numbers too");
    check(cn_type(cn_div(i, i)) == CN_F32 && cn_type(cn_eq(f, i)) == CN_BOOL &&
              cn_type(cn_sum(cn_gt_s(f, 0), CN_ALL, false)) == CN_I64,
          "division, comparison, counting");
    refused(!cn_matmul(cn_ones(cn, CN_F32, CN_DIMS(2, 2)), cn_ones(cn, CN_F64, CN_DIMS(2, 2))), CN_BAD_DTYPE,
            "matmul: operands must have one dtype, got f64 and f32; convert one with cn_cast");
    refused(!cn_shift_left(f, f), CN_BAD_DTYPE, "operands of f16 are not allowed; allowed are u8, i8, i16, i32, i64");
    refused(!cn_add_(i, cn_full(cn, CN_F32, CN_DIMS(2), 0.5)), CN_BAD_DTYPE, "add_: the result");
}

static void bad_shapes(void)
{
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(2, 3));
    int64_t huge = (int64_t)1 << 62;
    refused(!cn_zeros(cn, CN_F32, CN_DIMS(-1, 3)), CN_BAD_SHAPE, "must be ≥ 0, got -1");
    refused(!cn_zeros(cn, CN_F32, CN_DIMS(huge, huge)), CN_BAD_SHAPE, "too large");
    refused(!cn_zeros(cn, CN_F32, CN_DIMS(huge, 0, huge)), CN_BAD_SHAPE, "too large");
    refused(!cn_zeros(cn, CN_F32, ((cn_dims){ 9, { 1 } })), CN_BAD_SHAPE, "9 dimensions");
    refused(!cn_expand(x, CN_DIMS(huge, 2, 3)), CN_BAD_SHAPE, "too large");
    refused(!cn_repeat(x, CN_DIMS(huge, huge)), CN_BAD_SHAPE, "");
    refused(!cn_reshape(x, CN_DIMS(4, 2)), CN_BAD_SHAPE, "[2,3]");
    refused(!cn_reshape(x, CN_DIMS(-1, -1)), CN_BAD_SHAPE, "");
    refused(!cn_view(cn_transpose(x, 0, 1), CN_DIMS(6)), CN_BAD_SHAPE, "view");
    refused(!cn_permute(x, CN_DIMS(0, 0)), CN_BAD_ARGUMENT, "permute");
    refused(!cn_transpose(x, 0, 2), CN_BAD_ARGUMENT, "transpose");
    refused(!cn_narrow(x, 1, 2, 2), CN_BAD_ARGUMENT, "narrow");
    refused(!cn_select(x, 0, 2), CN_BAD_ARGUMENT, "select");
    refused(!cn_slice(x, 0, 0, 2, 0), CN_BAD_ARGUMENT, "slice");
    refused(!cn_sum(x, CN_DIMS(0, 0), false), CN_BAD_ARGUMENT, "sum");
    refused(!cn_max(cn_zeros(cn, CN_F32, CN_DIMS(2, 0)), CN_DIMS(1), false), CN_BAD_SHAPE, "max");
    refused(!cn_cat(CN_TENSORS(x, cn_ones(cn, CN_F32, CN_DIMS(2, 2))), 0), CN_BAD_SHAPE, "cat");
    refused(!cn_arange(cn, CN_F32, 0, 10, 0), CN_BAD_ARGUMENT, "arange");
    refused(!cn_arange(cn, CN_F32, 0, NAN, 1), CN_BAD_ARGUMENT, "arange");
    refused(!cn_linspace(cn, CN_F32, 0, 1, -3), CN_BAD_ARGUMENT, "linspace");
    refused(!cn_conv2d(cn_ones(cn, CN_F32, CN_DIMS(1, 3, 8, 8)), cn_ones(cn, CN_F32, CN_DIMS(4, 2, 3, 3)), NULL, NULL),
            CN_BAD_SHAPE, "conv2d");
    refused(!cn_einsum("ij,ij->iq", CN_TENSORS(x, x)), CN_BAD_ARGUMENT, "einsum");
    refused(!cn_einsum("ij,jk,kl", CN_TENSORS(x, x)), CN_BAD_ARGUMENT, "\"ij,jk,kl\" needs 3 operands, got 2");
    refused(!cn_apply(&cn__op_einsum, &x, 1, &(cn__einsum_attrs){ .text = "ij,jk" }, NULL), CN_BAD_ARGUMENT,
            "\"ij,jk\" needs 2 operands, got 1");
    refused(!cn_softmax(x, 5), CN_BAD_ARGUMENT, "softmax");
    refused(!cn_layer_norm(x, 1, cn_ones(cn, CN_F32, CN_DIMS(2)), NULL, 1e-5), CN_BAD_SHAPE, "layer_norm");
    refused(!cn_topk(x, 9, 1, true, NULL), CN_BAD_ARGUMENT, "topk");
    refused(!cn_add_(x, cn_ones(cn, CN_F32, CN_DIMS(4, 2, 3))), CN_BAD_SHAPE, "add_: the result");
    refused(!cn_assign(x, cn_ones(cn, CN_F32, CN_DIMS(3, 2))), CN_BAD_SHAPE, "assign");
    check(cn_item(cn_sum(x, CN_ALL, false)) == 6, "after all that the context works");
}

static void bad_indices_in_data(void)
{
    int64_t bad[2] = { 1, 7 };
    cn_tensor *x = cn_arange(cn, CN_F32, 0, 6, 1), *i = cn_from(cn, CN_I64, CN_DIMS(2), bad);
    refused(!cn_eval(cn_gather(x, 0, i)), CN_BAD_INDEX, "gather: index 7");
    refused(!cn_eval(cn_index_select(x, 0, i)), CN_BAD_INDEX, "7");
    refused(!cn_eval(cn_embedding(cn_reshape(x, CN_DIMS(3, 2)), i)), CN_BAD_INDEX, "size 3");
    refused(!cn_eval(cn_cross_entropy(cn_ones(cn, CN_F32, CN_DIMS(2, 3)), i, NULL)), CN_BAD_INDEX, "7");
    refused(!cn_eval(cn_scatter(x, 0, i, cn_ones(cn, CN_F32, CN_DIMS(2)))), CN_BAD_INDEX, "scatter");
    for (double outside = 6; outside >= -7; outside -= 13) /* just behind the end, just before the beginning */
        refused(!cn_eval(cn_take(cn_reshape(cn_arange(cn, CN_F32, 0, 6, 1), CN_DIMS(2, 3)),
                                 cn_full(cn, CN_I64, CN_DIMS(2), outside))),
                CN_BAD_INDEX, "out of range for size 6");
    for (double outside = 3; outside >= -4; outside -= 7) { /* column 3 of row 0 would be column 0 of row 1 */
        cn_tensor *at[] = { cn_zeros(cn, CN_I64, CN_DIMS(1)), cn_full(cn, CN_I64, CN_DIMS(1), outside) };
        cn_tensor *put =
            cn_index_put(cn_zeros(cn, CN_F32, CN_DIMS(2, 3)), at, 2, cn_ones(cn, CN_F32, CN_DIMS(1)), false);
        refused(!cn_eval(put), CN_BAD_INDEX, "out of range for size 3");
    }
    cn_tensor *y = cn_mul_s(cn_gather(x, 0, i), 2);
    refused(!cn_eval(y), CN_BAD_INDEX, "gather");
    refused(!cn_eval(y), CN_LET_GO, "failed");
    check(cn_item(cn_sum(x, CN_ALL, false)) == 15, "its operands are unharmed");
}

/* An error begins with what the program called, not with what that calls, and shows the names that tensors have. */
static void errors_name_the_call(void)
{
    cn_tensor *x = cn_name(cn_ones(cn, CN_F32, CN_DIMS(3, 4)), "logits"),
              *w = cn_name(cn_ones(cn, CN_F32, CN_DIMS(5, 6)), "w2");
    refused(!cn_matmul(x, w), CN_BAD_SHAPE,
            "matmul: inner sizes differ: [3,4] @ [5,6]; logits is f32 [3,4], w2 is f32 [5,6]");
    refused(!cn_linear(cn_ones(cn, CN_F32, CN_DIMS(3)), w, NULL), CN_BAD_SHAPE, "; w2 is f32 [5,6]");
    refused(!cn_mse_loss(x, w, NULL), CN_BAD_SHAPE, "mse_loss: ");
    refused(!cn_zeros(cn, (cn_dtype)99, CN_DIMS(2)), CN_BAD_DTYPE, "zeros: ");
    refused(!cn_mean(x, CN_DIMS(7), false), CN_BAD_ARGUMENT, "mean: ");
    refused(!cn_add_(x, w), CN_BAD_SHAPE, "add_: ");
    refused(!cn_sum(x, (cn_dims){ .n = -5 }, false), CN_BAD_ARGUMENT, "sum: expects CN_ALL");
    cn_tensor *index = cn_full(cn, CN_I64, CN_DIMS(2), 9);
    refused(!cn_eval(cn_index_select(x, 0, index)), CN_BAD_INDEX, "index_select");
    refused(!cn_apply(NULL, &x, 1, NULL, NULL), CN_BAD_ARGUMENT, "apply: the operator must not be NULL");
    cn_no_grad_end(cn);
    refused(true, CN_BAD_ARGUMENT, "no_grad_end: ");
}

static void memory_limit(void)
{
    cn_ctx *small = cn_open(&(cn_desc){ .memory_limit = 1 << 20, .threads = 1 });
    cn_tensor *x = cn_ones(small, CN_F32, CN_DIMS(1 << 20));
    check(!cn_eval(x) && cn_error_code(small) == CN_NO_MEMORY && strstr(cn_error(small), "limit"), "the limit: %s",
          cn_error(small));
    cn_error_clear(small);
    check(cn_item(cn_sum(x, CN_ALL, false)) == 1 << 20, "what needs no memory works: %s", cn_error(small));
    cn_error_clear(small);
    cn_tensor *y = cn_matmul(cn_randn(small, CN_F32, CN_DIMS(192, 192)), cn_randn(small, CN_F32, CN_DIMS(192, 192)));
    check(!isnan(cn_item(cn_sum(y, CN_ALL, false))), "three matrices fit into the arena: %s", cn_error(small));
    int64_t arena = cn_count(small).arena_bytes, left = (1 << 20) - arena;
    check(arena >= 256 << 10 && left >= 64 << 10, "they take %lld bytes of it", (long long)arena);
    cn_tensor *over = cn_randn(small, CN_F32, CN_DIMS(left / 4 + 1024));
    check(!cn_eval(over) && cn_error_code(small) == CN_NO_MEMORY && strstr(cn_error(small), "limit"),
          "the arena counts: %s", cn_error(small));
    cn_error_clear(small);
    cn_tensor *under = cn_randn(small, CN_F32, CN_DIMS(left / 4 - 1024));
    check(cn_eval(under), "what is left can be used: %s", cn_error(small));
    check(cn_count(small).live_bytes + cn_count(small).arena_bytes <= 1 << 20, "and no more is in use");
    cn_ctx *none = cn_open(&(cn_desc){ .device = "toaster" });
    check(cn_error_code(none) == CN_BAD_DEVICE && strstr(cn_error(none), "got \"toaster\""), "an unknown device: %s",
          cn_error(none));
    cn_error_clear(none);
    check(cn_item(cn_ones(none, CN_F32, CN_SCALAR)) == 1, "its context computes on the CPU: %s", cn_error(none));
    cn_close(none);
    cn_close(small);
    cn_close(NULL);
    check(!cn_add(NULL, NULL) && !cn_relu(NULL) && !cn_eval(NULL) && !cn_keep(NULL), "NULL everywhere is harmless");
    cn_release(NULL);
}

/* Memory that is freed is used again, however often. */
static void memory_is_reused(void)
{
    cn_ctx *small = cn_open(&(cn_desc){ .threads = 1 });
    int64_t before = 0;
    for (int i = 0; i < 200; i++) { /* 200 MiB in all */
        cn_scope s = cn_scope_begin(small);
        cn_eval(cn_full(small, CN_F32, CN_DIMS(1 << 18), i));
        cn_scope_end(small, s);
        if (i == 4) before = cn_count(small).allocations;
    }
    check(cn_count(small).allocations == before, "%lld allocations after the first rounds",
          (long long)(cn_count(small).allocations - before));
    cn_close(small);
}

static void lengths_of_arange(void)
{
    static const struct {
        double start, end, step;
        int64_t n;
    } rows[] = {
        { 0, 1, 0.3, 4 }, { 1, 0, -0.4, 3 }, { 0, 7, 3, 3 }, { 0, 6, 3, 2 }, { 0, 6.5, 3, 3 }, { 2, 2, 1, 0 }
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cn_tensor *x = cn_arange(cn, CN_F64, rows[i].start, rows[i].end, rows[i].step);
        check(cn_numel(x) == rows[i].n, "arange from %g to %g by %g has %lld numbers", rows[i].start, rows[i].end,
              rows[i].step, (long long)cn_numel(x));
    }
    check(cn_numel(cn_arange(cn, CN_I32, 0, 7, 3)) == 3, "the same for whole numbers");
}

static void range_of_randint(void)
{
    static const struct {
        cn_dtype dtype;
        int64_t low, high; /* the most that the dtype holds */
    } rows[] = { { CN_BOOL, 0, 2 },
                 { CN_U8, 0, 256 },
                 { CN_I8, -128, 128 },
                 { CN_I16, -32768, 32768 },
                 { CN_I32, INT32_MIN, (int64_t)INT32_MAX + 1 },
                 { CN_F16, -2048, 2049 },
                 { CN_F32, -(1 << 24), (1 << 24) + 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t low = rows[i].low, high = rows[i].high;
        cn_tensor *x = cn_cast(cn_randint(cn, rows[i].dtype, low, high, CN_DIMS(4000)), CN_F64);
        const double least = cn_item(cn_min(x, CN_ALL, false)), most = cn_item(cn_max(x, CN_ALL, false));
        check(least >= (double)low && most < (double)high && most - least > 0.98 * (double)(high - 1 - low),
              "the whole range of %s: %g to %g; %s", cn_dtype_name(rows[i].dtype), least, most, cn_error(cn));
        cn_error_clear(cn);
        refused(!cn_randint(cn, rows[i].dtype, low, high + 1, CN_DIMS(2)), CN_BAD_ARGUMENT, "outside the range");
        refused(!cn_randint(cn, rows[i].dtype, low - 1, high, CN_DIMS(2)), CN_BAD_ARGUMENT, "outside the range");
    }
}

static void a_seed_is_a_seed(void)
{
    float a[1000], b[1000], c[1000];
    for (int threads = 1; threads <= 3; threads++) {
        cn_ctx *r = cn_open(&(cn_desc){ .seed = 9, .threads = threads, .eager = threads == 2 });
        cn_read(cn_randn(r, CN_F32, CN_DIMS(1000)), threads == 1 ? a : b, sizeof a);
        if (threads > 1) check(!memcmp(a, b, sizeof a), "the same numbers with %d threads", threads);
        cn_read(cn_randn(r, CN_F32, CN_DIMS(1000)), c, sizeof c);
        check(memcmp(a, c, sizeof a), "and others the next time");
        cn_seed(r, 9);
        cn_read(cn_randn(r, CN_F32, CN_DIMS(1000)), c, sizeof c);
        check(!memcmp(a, c, sizeof a), "seeding starts over");
        cn_close(r);
    }
    double mean = 0, square = 0;
    for (int i = 0; i < 1000; i++) mean += a[i] / 1000, square += a[i] * a[i] / 1000;
    check(fabs(mean) < 0.1 && fabs(square - 1) < 0.15, "normal enough: mean %g, square %g", mean, square);
}

static void remember(void *user, const char *line)
{
    char *text = user;
    strncat(text, line, 4000 - strlen(text));
    strncat(text, "\n", 4000 - strlen(text));
}

static void environment(void)
{
    char text[4096] = "";
    setenv("CAIRN_TRACE", "plan", 1);
    cn_ctx *traced = cn_open(&(cn_desc){ .threads = 1, .logger = remember, .logger_user = text });
    unsetenv("CAIRN_TRACE");
    for (int i = 0; i < 2; i++) cn_item(cn_sum(cn_relu(cn_ones(traced, CN_F32, CN_DIMS(6))), CN_ALL, false));
    check(strstr(text, "plan:") == text && strstr(text, "full+relu+sum"), "a new plan is traced: %s", text);
    check(!strstr(text + 1, "plan:"), "one that is found is not: %s", text);
    cn_close(traced);
    setenv("CAIRN_EAGER", "1", 1);
    cn_ctx *eager = cn_open(&(cn_desc){ .threads = 1 });
    unsetenv("CAIRN_EAGER");
    cn_tensor *x = cn_relu(cn_ones(eager, CN_F32, CN_DIMS(6)));
    check(cn_count(eager).kernels == 2 && cn_count(eager).pending == 0 && x,
          "CAIRN_EAGER=1 evaluates each operation at once");
    cn_close(eager);
}

/* CAIRN_ISA limits the kernels; a name that does not exist is an error, and the context has the baseline's kernels. */
static void instruction_set(void)
{
    const char *before = getenv("CAIRN_ISA");
    char kept[32];
    snprintf(kept, sizeof kept, "%s", before ? before : "");
    setenv("CAIRN_ISA", "baseline", 1);
    const char *least = cn__isa_name(CN__BASELINE);
    check(!strcmp(cn_instruction_set(), least), "limited to baseline, but it is %s", cn_instruction_set());
    setenv("CAIRN_ISA", "avx3", 1);
    cn_ctx *other = cn_open(NULL);
    check(cn_error_code(other) == CN_BAD_ARGUMENT && strstr(cn_error(other), "got avx3"), "avx3: %s", cn_error(other));
    check(!strcmp(cn_instruction_set(), least), "a wrong name gives %s", cn_instruction_set());
    cn_close(other);
    setenv("CAIRN_ISA", kept, 1);
}

int main(void)
{
    cn = cn_open(&(cn_desc){ .seed = 1, .threads = 2 });
    void (*const all[])(void) = { data_in_and_out,      any_byte_is_a_bool,
                                  borrowed_memory,      scopes,
                                  use_after_release,    dlpack,
                                  dlpack_offsets,       promotion,
                                  bad_shapes,           bad_indices_in_data,
                                  errors_name_the_call, memory_limit,
                                  memory_is_reused,     lengths_of_arange,
                                  range_of_randint,     a_seed_is_a_seed,
                                  environment,          instruction_set };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cn_scope s = cn_scope_begin(cn);
        int64_t handles = cn_count(cn).handles, bytes = cn_count(cn).live_bytes;
        all[i]();
        cn_scope_end(cn, s);
        check(!cn_failed(cn), "group %zu leaves no error: %s", i, cn_error(cn));
        cn_error_clear(cn);
        check(cn_count(cn).handles == handles && cn_count(cn).live_bytes == bytes && cn_count(cn).pending == 0,
              "group %zu leaves nothing behind: %lld handles, %lld bytes, %lld pending", i,
              (long long)(cn_count(cn).handles - handles), (long long)(cn_count(cn).live_bytes - bytes),
              (long long)cn_count(cn).pending);
    }
    cn_close(cn);
    return finish();
}
