/* cairn/nn.h: modules: layers and models that hold named parameters. PyTorch's torch.nn.

       cn_module *mlp = cn_nn_sequential(cn, cn_nn_linear(cn, 784, 128, NULL), cn_nn_function(cn, cn_relu),
                                         cn_nn_linear(cn, 128, 10, NULL));
       cn_tensor *logits = cn_forward(mlp, x);                       (64,784) -> (64,10)
       cn_optim *opt = cn_adamw(cn, cn_parameters(mlp), NULL);       optim.h
       char table[4096];
       cn_summary(mlp, x, table, sizeof table);                      layers, shapes, parameters

   A module of your own is a type, and the data and children it holds:

       typedef struct block { cn_module *up, *down; } block;
       static cn_tensor *block_forward(cn_module *m, cn_tensor *x)
       {
           block *b = cn_module_data(m);
           return cn_add(x, cn_forward(b->down, cn_gelu(cn_forward(b->up, x))));
       }
       static const cn_module_type block_type = {
           .name = "Block", .forward = block_forward, .data_bytes = sizeof(block)
       };

       cn_module *m = cn_module_new(cn, &block_type);
       block *b = cn_module_data(m);
       b->up = cn_module_child(m, "up", cn_nn_linear(cn, 64, 256, NULL));
       b->down = cn_module_child(m, "down", cn_nn_linear(cn, 256, 64, NULL));

   Names      cn_nn_NAME makes a module, as torch.nn.Name does. The function has the same name without nn_ (cn_linear).
              Parameters and buffers have PyTorch's names ("0.weight", "layers.2.self_attn.in_proj_bias"), so
              PyTorch's checkpoints load.
   Defaults   Layers, initial values and options are PyTorch's. New parameters are f32, unless cn_set_default_dtype has
              set another type.
   Ownership  A module belongs to its context until cn_module_free. A child belongs to its parent. A module keeps its
              parameters and buffers; their handles stay the same as long as the module lives.
   Errors     A maker returns NULL after an error. A NULL child makes its parent NULL, so checking the whole model is
              enough; cn_error says which layer failed, and why. */
#ifndef CAIRN_NN_H
#define CAIRN_NN_H

#include "dict.h"
#include "grad.h"
#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_module cn_module;

/* ---- using modules ---- */
CN_API cn_tensor *cn_forward(cn_module *m, cn_tensor *x);
/* For modules with several operands or results. An element of out that the module does not set is NULL. */
CN_API bool cn_forward_all(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out);
CN_API void cn_module_free(cn_module *m); /* with all its children; NULL is allowed */

CN_API cn_params cn_parameters(cn_module *m);       /* each once, in order; valid until the next call for m */
typedef struct cn_named {
    const char *name; /* "0.weight" */
    cn_tensor *tensor;
    bool buffer;      /* state that is not trained, such as running statistics */
} cn_named;
typedef struct cn_named_list {
    const cn_named *v;
    int n;
} cn_named_list;
CN_API cn_named_list cn_module_named(cn_module *m);  /* PyTorch's state_dict; valid until the next call for m */
CN_API cn_tensor *cn_module_get(cn_module *m, const char *name);  /* parameter or buffer of this full name, or NULL */
CN_API cn_module *cn_module_find(cn_module *m, const char *name); /* child of this full name, as "layers.0", or NULL */
CN_API int64_t cn_module_count(cn_module *m);                     /* elements of all parameters, each parameter once */

CN_API void cn_module_train(cn_module *m, bool on);  /* training mode: dropout, batch statistics; on at the start */
CN_API bool cn_module_training(const cn_module *m);
CN_API bool cn_module_freeze(cn_module *m, bool on); /* on: its parameters require no gradients */
CN_API void cn_module_zero_grad(cn_module *m);
/* Calls fn for every module of the tree, children before their parents. */
typedef void (*cn_apply_fn)(void *user, cn_module *m);
CN_API void cn_module_apply(cn_module *m, cn_apply_fn fn, void *user);
/* Converts all parameters and buffers of floating types. Their handles stay; gradients are cleared. Make the optimizer
   afterwards: its states keep their dtype. */
CN_API bool cn_module_cast(cn_module *m, cn_dtype dtype);
CN_API bool cn_module_to(cn_module *m, const char *device); /* a check: an error if its context is on another device */
CN_API bool cn_set_default_dtype(cn_ctx *ctx, cn_dtype t);  /* of parameters made later: f32 (default), f64 or a half */
CN_API cn_dtype cn_default_dtype(const cn_ctx *ctx);

/* Prints a table of layers: names, shapes of their results for x, numbers of parameters. It computes no values. Returns
   the length of the whole text, 0 after an error. Writes at most size bytes, always ended by 0. */
CN_API size_t cn_summary(cn_module *m, cn_tensor *x, char *out, size_t size);

/* Saves all parameters and buffers to a dict, and loads them. After an error cn_module_load has assigned nothing. */
CN_API bool cn_module_save(cn_module *m, cn_dict *d, const char *prefix);
typedef struct cn_module_load_desc {
    const char *prefix;     /* of the names in the dict; NULL: none */
    bool lenient;           /* names that only one side has are ignored (PyTorch's strict=False) */
    /* Writes a parameter's name in the dict to out; false: the dict has none. NULL: the names are the same. */
    bool (*rename)(void *user, const char *name, char *out, size_t size);
    void *user;
} cn_module_load_desc;
CN_API bool cn_module_load(cn_module *m, const cn_dict *d, const cn_module_load_desc *desc);

/* ---- hooks: functions that are called around a module's forward and backward ----

   cn_forward and cn_forward_all call them, in the order in which they were added. Each function that adds a hook returns
   its number, > 0, for cn_module_remove_hook; 0 after an error. */

/* Before forward. It may replace the operands. False: forward fails. */
typedef bool (*cn_forward_pre_hook)(void *user, cn_module *m, cn_tensor **in, int n_in);
CN_API int cn_module_forward_pre_hook(cn_module *m, cn_forward_pre_hook hook, void *user);
/* After forward. It may replace the results. False: forward fails. */
typedef bool (*cn_forward_hook)(void *user, cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out);
CN_API int cn_module_forward_hook(cn_module *m, cn_forward_hook hook, void *user);
/* In backward: with the gradient of the module's first result, before its own backward (pre), or with the gradient of its
   first operand, after it. The hook returns the gradient, or another tensor of the same shape. */
typedef cn_tensor *(*cn_backward_hook)(void *user, cn_module *m, cn_tensor *grad);
CN_API int cn_module_backward_pre_hook(cn_module *m, cn_backward_hook hook, void *user);
CN_API int cn_module_backward_hook(cn_module *m, cn_backward_hook hook, void *user);
CN_API bool cn_module_remove_hook(cn_module *m, int number);

/* ---- parametrisation: a parameter is computed from others before each forward ---- */

typedef struct cn_weight_norm_desc {
    int64_t dim;              /* the axis that keeps lengths of its own */
    bool whole;               /* one length for the whole tensor: PyTorch's dim=None */
} cn_weight_norm_desc;
/* weight = weight_g · weight_v / |weight_v|: the parameter `name` becomes name_g and name_v. */
CN_API bool cn_weight_norm(cn_module *m, const char *name, const cn_weight_norm_desc *desc);

typedef struct cn_spectral_norm_desc {
    int n_power_iterations;   /* in each forward of training; 0: 1 */
    double eps;               /* 0: 1e-12 */
    int64_t dim;              /* the axis of rows; 0: the first, of transposed convolutions the second */
} cn_spectral_norm_desc;
/* weight = weight_orig / its largest singular value, which buffers name_u and name_v follow. */
CN_API bool cn_spectral_norm(cn_module *m, const char *name, const cn_spectral_norm_desc *desc);

/* ---- modules of your own ---- */
typedef struct cn_module_type {
    const char *name;
    cn_tensor *(*forward)(cn_module *m, cn_tensor *x);   /* set this, or forward_all */
    bool (*forward_all)(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out);
    size_t data_bytes;                                   /* of cn_module_data, which starts as zeros */
    /* Prints the options for summaries and errors: "3, 8, kernel 3x3". May be NULL. */
    void (*describe)(const cn_module *m, char *out, size_t size);
    void (*destroy)(cn_module *m); /* frees what data owns, but not children and tensors; may be NULL */
} cn_module_type;
CN_API cn_module *cn_module_new(cn_ctx *ctx, const cn_module_type *type);
CN_API void *cn_module_data(const cn_module *m);
CN_API const cn_module_type *cn_module_type_of(const cn_module *m);
CN_API cn_ctx *cn_module_context(const cn_module *m);
/* Each adds its last argument to the module and returns it (a parameter: a new handle). NULL adds nothing and returns
   NULL; this is no error, so a bias can be optional. */
CN_API cn_tensor *cn_module_param(cn_module *m, const char *name, cn_tensor *initial);
CN_API cn_tensor *cn_module_share(cn_module *m, const char *name, cn_tensor *param); /* another's parameter: tied */
CN_API cn_tensor *cn_module_buffer(cn_module *m, const char *name, cn_tensor *initial);
CN_API cn_module *cn_module_child(cn_module *m, const char *name, cn_module *child);
/* The last line of a maker: returns m or, if the context has an error, frees m and returns NULL. */
CN_API cn_module *cn_module_made(cn_module *m);

/* ---- containers ---- */
/* Sequential calls one module after the other; ModuleList holds modules and has no forward. Children "0", "1", ...
       cn_nn_sequential(cn, a, b, c)                    the compiler counts
       cn_nn_sequential_of(cn, modules, n)              from an array; n may be 0 */
#define cn_nn_sequential(ctx, ...) cn_nn_sequential_of(ctx, CN_LIST(cn_module *, __VA_ARGS__))
#define cn_nn_list(ctx, ...) cn_nn_list_of(ctx, CN_LIST(cn_module *, __VA_ARGS__))
CN_API cn_module *cn_nn_sequential_of(cn_ctx *ctx, cn_module *const *modules, int n);
CN_API cn_module *cn_nn_list_of(cn_ctx *ctx, cn_module *const *modules, int n);
/* ModuleDict: modules by names of your own, without a forward; add with cn_module_child, find with cn_module_find.
   ParameterList and ParameterDict: parameters "0", "1", .., or of your own names, each a new leaf. Add with
   cn_module_param, find with cn_module_get. */
CN_API cn_module *cn_nn_dict(cn_ctx *ctx, const char *const *names, cn_module *const *modules, int n);
CN_API cn_module *cn_nn_parameter_list(cn_ctx *ctx, cn_tensor *const *values, int n);
CN_API cn_module *cn_nn_parameter_dict(cn_ctx *ctx, const char *const *names, cn_tensor *const *values, int n);
CN_API bool cn_module_append(cn_module *list, cn_module *child);        /* to either; the child's name is its number */
CN_API int cn_module_children(const cn_module *m);
CN_API cn_module *cn_module_at(const cn_module *m, int i);
CN_API cn_module *cn_nn_residual(cn_ctx *ctx, cn_module *inner);        /* x + inner(x); child "inner" */
CN_API cn_module *cn_nn_function(cn_ctx *ctx, cn_tensor *(*fn)(cn_tensor *x)); /* cn_relu, cn_tanh, or your own */
CN_API cn_module *cn_nn_flatten(cn_ctx *ctx, int64_t from, int64_t to); /* PyTorch's defaults are 1, -1 */

/* ---- layers: an option of 0 in a descriptor means PyTorch's default; other arguments have no defaults ---- */
typedef struct cn_linear_desc {
    bool no_bias;
} cn_linear_desc;
/* weight (out,in), bias (out) */
CN_API cn_module *cn_nn_linear(cn_ctx *ctx, int64_t in, int64_t out, const cn_linear_desc *desc);
/* Called by cn_forward_all with two tensors: y_o = x1 · W_o · x2 + b_o; weight (out,in1,in2), bias (out). */
CN_API cn_module *cn_nn_bilinear(cn_ctx *ctx, int64_t in1, int64_t in2, int64_t out, const cn_linear_desc *desc);

typedef struct cn_nn_embedding_desc {
    bool has_padding;
    int64_t padding_idx; /* if has_padding: this row starts as 0 and has no gradient; negative: counts from the end */
    double max_norm;     /* 0: none; rows that are looked up and longer than this are first scaled down, in place */
    double norm_type;    /* which p-norm that is; 0: 2 */
} cn_nn_embedding_desc;
/* weight (rows,width) */
CN_API cn_module *cn_nn_embedding(cn_ctx *ctx, int64_t rows, int64_t width, const cn_nn_embedding_desc *desc);

typedef struct cn_nn_embedding_bag_desc {
    cn_bag_mode mode;
    bool include_last_offset;
    bool has_padding;
    int64_t padding_idx;
    double max_norm, norm_type;
} cn_nn_embedding_bag_desc;
/* weight (rows,width). Called with indices (bags,n), or by cn_forward_all with indices (n), offsets (bags) and, for sums,
   weights of the indices: see cn_embedding_bag. */
CN_API cn_module *cn_nn_embedding_bag(cn_ctx *ctx, int64_t rows, int64_t width, const cn_nn_embedding_bag_desc *desc);

/* ---- convolutions: weight (out,in/groups,kernel...), transposed (in,out/groups,kernel...); bias (out) ---- */
typedef struct cn_nn_conv_desc {
    int64_t stride, padding, dilation; /* of every axis; 0: 1, 0, 1 */
    int64_t output_padding;            /* transposed only */
    int64_t groups;                    /* 0: 1 */
    bool no_bias;
    bool same;                         /* PyTorch's padding='same': the result has x's size; stride 1, not transposed */
    cn_pad_mode padding_mode;          /* CN_PAD_CONSTANT: zeros; the other modes are not for transposed ones */
    cn_dims kernels, strides, paddings, dilations, output_paddings; /* numbers for each axis, in place of one for all */
} cn_nn_conv_desc;
CN_API cn_module *cn_nn_conv1d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc);
CN_API cn_module *cn_nn_conv2d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc);
CN_API cn_module *cn_nn_conv3d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel, const cn_nn_conv_desc *desc);
CN_API cn_module *cn_nn_conv_transpose1d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel,
                                         const cn_nn_conv_desc *desc);
CN_API cn_module *cn_nn_conv_transpose2d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel,
                                         const cn_nn_conv_desc *desc);
CN_API cn_module *cn_nn_conv_transpose3d(cn_ctx *ctx, int64_t in, int64_t out, int64_t kernel,
                                         const cn_nn_conv_desc *desc);

/* ---- pooling and resizing ---- */
typedef struct cn_nn_pool_desc {
    int64_t stride, padding;                       /* 0: the kernel's size, 0 */
    int64_t dilation;                              /* 0: 1; max only */
    bool ceil_mode, exclude_padding;               /* exclude_padding: count_include_pad=False; average only */
    int64_t divisor_override;                      /* average over two or three axes only; 0: none */
    cn_dims kernels, strides, paddings, dilations; /* numbers for each axis, in place of one for all */
} cn_nn_pool_desc;
/* Max pooling also has a second result: cn_forward_all with two results returns the indices of the maxima as well. */
CN_API cn_module *cn_nn_max_pool1d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_max_pool2d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_max_pool3d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_avg_pool1d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_avg_pool2d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_avg_pool3d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_adaptive_avg_pool1d(cn_ctx *ctx, int64_t size);
CN_API cn_module *cn_nn_adaptive_avg_pool2d(cn_ctx *ctx, int64_t height, int64_t width);
CN_API cn_module *cn_nn_adaptive_avg_pool3d(cn_ctx *ctx, int64_t depth, int64_t height, int64_t width);
CN_API cn_module *cn_nn_adaptive_max_pool1d(cn_ctx *ctx, int64_t size);
CN_API cn_module *cn_nn_adaptive_max_pool2d(cn_ctx *ctx, int64_t height, int64_t width);
CN_API cn_module *cn_nn_adaptive_max_pool3d(cn_ctx *ctx, int64_t depth, int64_t height, int64_t width);
/* The norm (Σ x^p)^(1/p) of each window; of the options, stride, ceil_mode, kernels and strides. */
CN_API cn_module *cn_nn_lp_pool1d(cn_ctx *ctx, double norm_type, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_lp_pool2d(cn_ctx *ctx, double norm_type, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_lp_pool3d(cn_ctx *ctx, double norm_type, int64_t kernel, const cn_nn_pool_desc *desc);
/* Called by cn_forward_all with the results of max pooling, (x, indices); options of that pooling: stride, padding,
   kernels, strides and paddings. For PyTorch's output_size there is cn_max_unpool1d. */
CN_API cn_module *cn_nn_max_unpool1d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_max_unpool2d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);
CN_API cn_module *cn_nn_max_unpool3d(cn_ctx *ctx, int64_t kernel, const cn_nn_pool_desc *desc);

typedef struct cn_nn_unfold_desc {
    int64_t dilation, padding, stride;             /* 0: 1, 0, 1 */
    cn_dims kernels, dilations, paddings, strides; /* (height,width), in place of one number for both */
} cn_nn_unfold_desc;
CN_API cn_module *cn_nn_unfold(cn_ctx *ctx, int64_t kernel, const cn_nn_unfold_desc *desc); /* cn_im2col */
/* cn_col2im; output_size: (H,W) */
CN_API cn_module *cn_nn_fold(cn_ctx *ctx, cn_dims output_size, int64_t kernel, const cn_nn_unfold_desc *desc);

typedef enum cn_upsample_mode {
    CN_UPSAMPLE_NEAREST = CN_INTERPOLATE_NEAREST,
    CN_UPSAMPLE_LINEAR = CN_INTERPOLATE_LINEAR,       /* (N,C,L) */
    CN_UPSAMPLE_BILINEAR = CN_INTERPOLATE_BILINEAR,   /* (N,C,H,W) */
    CN_UPSAMPLE_BICUBIC = CN_INTERPOLATE_BICUBIC,     /* (N,C,H,W) */
    CN_UPSAMPLE_TRILINEAR = CN_INTERPOLATE_TRILINEAR, /* (N,C,D,H,W) */
} cn_upsample_mode;
typedef struct cn_nn_upsample_desc {
    cn_dims size;                /* the result's sizes after (N,C); one number: for all axes. Set size or scale */
    double scale;                /* PyTorch's scale_factor, of these sizes */
    cn_upsample_mode mode;
    bool align_corners;          /* not for nearest */
    bool recompute_scale_factor; /* coordinates follow from the sizes, not from the scale */
    double scales[3];            /* numbers for each axis, in place of one for all */
} cn_nn_upsample_desc;
CN_API cn_module *cn_nn_upsample(cn_ctx *ctx, const cn_nn_upsample_desc *desc); /* cn_interpolate */

/* ---- normalisation: eps and momentum of 0 mean PyTorch's defaults, negative ones mean 0 ---- */
typedef struct cn_nn_batch_norm_desc {
    double eps, momentum;     /* 0: 1e-5, 0.1 */
    bool cumulative;          /* PyTorch's momentum=None: running statistics are the mean over all batches */
    bool no_affine;           /* without weight and bias */
    bool no_running_stats;    /* PyTorch's track_running_stats=False: evaluation uses the batch's statistics too */
} cn_nn_batch_norm_desc;
/* x: (N,C) or (N,C,L); (N,C,H,W); (N,C,D,H,W). Buffers: running_mean and running_var (C), num_batches_tracked (i64). */
CN_API cn_module *cn_nn_batch_norm1d(cn_ctx *ctx, int64_t channels, const cn_nn_batch_norm_desc *desc);
CN_API cn_module *cn_nn_batch_norm2d(cn_ctx *ctx, int64_t channels, const cn_nn_batch_norm_desc *desc);
CN_API cn_module *cn_nn_batch_norm3d(cn_ctx *ctx, int64_t channels, const cn_nn_batch_norm_desc *desc);

typedef struct cn_nn_instance_norm_desc {
    double eps, momentum;     /* 0: 1e-5, 0.1 */
    bool affine;              /* with weight and bias; PyTorch's default is without */
    bool running_stats;       /* PyTorch's track_running_stats=True: evaluation uses running statistics */
} cn_nn_instance_norm_desc;
/* x: (C,L) or (N,C,L); (C,H,W) or (N,C,H,W); (C,D,H,W) or (N,C,D,H,W) */
CN_API cn_module *cn_nn_instance_norm1d(cn_ctx *ctx, int64_t channels, const cn_nn_instance_norm_desc *desc);
CN_API cn_module *cn_nn_instance_norm2d(cn_ctx *ctx, int64_t channels, const cn_nn_instance_norm_desc *desc);
CN_API cn_module *cn_nn_instance_norm3d(cn_ctx *ctx, int64_t channels, const cn_nn_instance_norm_desc *desc);

typedef struct cn_nn_norm_desc {
    double eps;               /* 0: 1e-5; RMSNorm: the machine epsilon of f64 for f64, of f32 for other types */
    bool no_affine, no_bias;  /* RMSNorm never has a bias */
} cn_nn_norm_desc;
/* shape: the sizes of the last axes, which are normalised together */
CN_API cn_module *cn_nn_layer_norm(cn_ctx *ctx, cn_dims shape, const cn_nn_norm_desc *desc);
CN_API cn_module *cn_nn_rms_norm(cn_ctx *ctx, cn_dims shape, const cn_nn_norm_desc *desc);
/* x: (N,C,...) */
CN_API cn_module *cn_nn_group_norm(cn_ctx *ctx, int64_t groups, int64_t channels, const cn_nn_norm_desc *desc);
/* x: (N,C,...); PyTorch's defaults are 1e-4, 0.75, 1 */
CN_API cn_module *cn_nn_local_response_norm(cn_ctx *ctx, int64_t size, double alpha, double beta, double k);

/* ---- dropout: in training an element becomes 0 with probability p (PyTorch's default is 0.5) ---- */
CN_API cn_module *cn_nn_dropout(cn_ctx *ctx, double p);
CN_API cn_module *cn_nn_dropout1d(cn_ctx *ctx, double p);      /* whole channels of (N,C,L) or (C,L) */
CN_API cn_module *cn_nn_dropout2d(cn_ctx *ctx, double p);      /* whole channels of (N,C,H,W) */
CN_API cn_module *cn_nn_dropout3d(cn_ctx *ctx, double p);      /* whole channels of (N,C,D,H,W) or (C,D,H,W) */
CN_API cn_module *cn_nn_alpha_dropout(cn_ctx *ctx, double p);  /* keeps the mean and variance of SELU's results */
CN_API cn_module *cn_nn_feature_alpha_dropout(cn_ctx *ctx, double p); /* the same, of whole channels of (N,C,...) */

/* ---- activations; the comments give PyTorch's defaults ---- */
CN_API cn_module *cn_nn_relu(cn_ctx *ctx);
CN_API cn_module *cn_nn_relu6(cn_ctx *ctx);
CN_API cn_module *cn_nn_leaky_relu(cn_ctx *ctx, double slope);               /* 0.01 */
CN_API cn_module *cn_nn_prelu(cn_ctx *ctx, int64_t channels, double slope);  /* 1, 0.25; weight (channels), on axis 1 */
CN_API cn_module *cn_nn_elu(cn_ctx *ctx, double alpha);                      /* 1 */
CN_API cn_module *cn_nn_celu(cn_ctx *ctx, double alpha);                     /* 1 */
CN_API cn_module *cn_nn_selu(cn_ctx *ctx);
CN_API cn_module *cn_nn_gelu(cn_ctx *ctx);
CN_API cn_module *cn_nn_gelu_tanh(cn_ctx *ctx);                              /* PyTorch's approximate='tanh' */
CN_API cn_module *cn_nn_silu(cn_ctx *ctx);
CN_API cn_module *cn_nn_mish(cn_ctx *ctx);
CN_API cn_module *cn_nn_sigmoid(cn_ctx *ctx);
CN_API cn_module *cn_nn_log_sigmoid(cn_ctx *ctx);
CN_API cn_module *cn_nn_hardsigmoid(cn_ctx *ctx);
CN_API cn_module *cn_nn_hardswish(cn_ctx *ctx);
CN_API cn_module *cn_nn_tanh(cn_ctx *ctx);
CN_API cn_module *cn_nn_tanhshrink(cn_ctx *ctx);                             /* x - tanh(x) */
CN_API cn_module *cn_nn_hardtanh(cn_ctx *ctx, double low, double high);      /* -1, 1 */
CN_API cn_module *cn_nn_softplus(cn_ctx *ctx, double beta, double threshold); /* 1, 20 */
CN_API cn_module *cn_nn_softsign(cn_ctx *ctx);
CN_API cn_module *cn_nn_softshrink(cn_ctx *ctx, double lambda);              /* 0.5; x moves towards 0 by lambda */
CN_API cn_module *cn_nn_hardshrink(cn_ctx *ctx, double lambda);              /* 0.5; x becomes 0 within ±lambda */
CN_API cn_module *cn_nn_threshold(cn_ctx *ctx, double threshold, double value); /* x if x > threshold, else value */
CN_API cn_module *cn_nn_glu(cn_ctx *ctx, int64_t axis);                      /* -1; a half times the other's sigmoid */
CN_API cn_module *cn_nn_softmax(cn_ctx *ctx, int64_t axis);
CN_API cn_module *cn_nn_log_softmax(cn_ctx *ctx, int64_t axis);
CN_API cn_module *cn_nn_softmin(cn_ctx *ctx, int64_t axis);                  /* softmax of -x */
CN_API cn_module *cn_nn_softmax2d(cn_ctx *ctx);                              /* over channels of (N,C,H,W) or (C,H,W) */
/* 1/8, 1/3. Below 0 each element has a slope of its own, drawn from [lower, upper) in training, else their mean. */
CN_API cn_module *cn_nn_rrelu(cn_ctx *ctx, double lower, double upper);

/* The functions of these modules that ops.h does not have. */
CN_API cn_tensor *cn_relu6(cn_tensor *x);
CN_API cn_tensor *cn_prelu(cn_tensor *x, cn_tensor *weight); /* weight: one number, or one for each index of axis 1 */
CN_API cn_tensor *cn_tanhshrink(cn_tensor *x);
CN_API cn_tensor *cn_softshrink(cn_tensor *x, double lambda);
CN_API cn_tensor *cn_hardshrink(cn_tensor *x, double lambda);
CN_API cn_tensor *cn_threshold(cn_tensor *x, double threshold, double value);
CN_API cn_tensor *cn_glu(cn_tensor *x, int64_t axis);
CN_API cn_tensor *cn_softmin(cn_tensor *x, int64_t axis);
CN_API cn_tensor *cn_rrelu(cn_tensor *x, double lower, double upper, bool training);

/* ---- distances, called by cn_forward_all with (x1, x2); loss.h has the functions ---- */
CN_API cn_module *cn_nn_cosine_similarity(cn_ctx *ctx, int64_t axis, double eps);               /* 1, 1e-8 */
CN_API cn_module *cn_nn_pairwise_distance(cn_ctx *ctx, double p, double eps, bool keepdim);     /* 2, 1e-6, false */

/* ---- shapes ---- */
CN_API cn_module *cn_nn_identity(cn_ctx *ctx);
CN_API cn_module *cn_nn_unflatten(cn_ctx *ctx, int64_t axis, cn_dims sizes); /* one size may be -1 */
CN_API cn_module *cn_nn_pixel_shuffle(cn_ctx *ctx, int64_t factor);          /* (...,C·r²,H,W) -> (...,C,H·r,W·r) */
CN_API cn_module *cn_nn_pixel_unshuffle(cn_ctx *ctx, int64_t factor);        /* (...,C,H·r,W·r) -> (...,C·r²,H,W) */
CN_API cn_module *cn_nn_channel_shuffle(cn_ctx *ctx, int64_t groups);        /* (N,C,...) */
/* pad: pairs (before, after) in the order of F.pad, last axis first: CN_DIMS(left, right, top, bottom). */
CN_API cn_module *cn_nn_zero_pad(cn_ctx *ctx, cn_dims pad);
CN_API cn_module *cn_nn_constant_pad(cn_ctx *ctx, cn_dims pad, double value);
CN_API cn_module *cn_nn_reflection_pad(cn_ctx *ctx, cn_dims pad);
CN_API cn_module *cn_nn_replication_pad(cn_ctx *ctx, cn_dims pad);
CN_API cn_module *cn_nn_circular_pad(cn_ctx *ctx, cn_dims pad);

/* ---- recurrent layers. cn_forward(x) returns y. cn_forward_all accepts (x, h0) and returns (y, h_n); for an LSTM it
   accepts (x, h0, c0) and returns (y, h_n, c_n). x is (T,B,in), or (T,in) without a batch. y is (T,B,hidden), twice as
   wide if bidirectional. h and c are (layers·directions,B,hidden); without h0 and c0 they start as zeros. With proj_size
   an LSTM multiplies every h by weight_hr: y and h are then proj_size wide, c is not.
   Names: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0, weight_ih_l0_reverse, ... ---- */
typedef struct cn_rnn_desc {
    int num_layers;             /* 0: 1 */
    bool no_bias, batch_first, bidirectional;
    bool relu;                  /* RNN only: in place of tanh */
    double dropout;             /* between layers, while training */
    int64_t proj_size;          /* LSTM only: less than hidden; 0: no projection */
} cn_rnn_desc;
CN_API cn_module *cn_nn_rnn(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_desc *desc);
CN_API cn_module *cn_nn_lstm(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_desc *desc); /* gates i, f, g, o */
CN_API cn_module *cn_nn_gru(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_desc *desc);  /* gates r, z, n */

/* Sequences of different lengths. `lengths` takes the place of PyTorch's packed sequences: the results are those of
   pack_padded_sequence(enforce_sorted=False), the layer, and pad_packed_sequence(total_length=T), in any order of the
   lengths. What x has behind the end of a sequence is not read, y is 0 there; h_n and c_n are those after each
   sequence's last step; the reverse direction begins at each sequence's own end.

       cn_tensor *x = cn_pad_sequence(CN_TENSORS(a, b), false, 0);      a (3,in), b (5,in): x is (5,2,in)
       cn_tensor *n = cn_from(cn, CN_I64, CN_DIMS(2), (int64_t[]){ 3, 5 });
       cn_tensor *h, *y = cn_rnn_forward(gru, x, &(cn_rnn_call){ .lengths = n }, &h, NULL); */
typedef struct cn_rnn_call {
    cn_tensor *h0, *c0;         /* first states; NULL: zeros. c0: LSTM only */
    cn_tensor *lengths;         /* (B), whole numbers from 1 to T; NULL: all sequences have T steps */
} cn_rnn_call;
/* Returns y. h_n and c_n are set to the last states; each may be NULL. rnn: an RNN, LSTM or GRU. */
CN_API cn_tensor *cn_rnn_forward(cn_module *rnn, cn_tensor *x, const cn_rnn_call *call, cn_tensor **h_n,
                                 cn_tensor **c_n);
/* n sequences (T_k, ...), filled up at their ends with padding_value to the longest: (T,n, ...), with batch_first
   (n,T, ...). */
CN_API cn_tensor *cn_pad_sequence(cn_tensor *const *sequences, int n, bool batch_first, double padding_value);

/* One step. x is (B,in) or (in). A cell accepts x and h and returns h; an LSTMCell accepts x, h and c and returns h and
   c. States that are left out start as zeros. */
typedef struct cn_rnn_cell_desc {
    bool no_bias;
    bool relu;                  /* RNNCell only */
} cn_rnn_cell_desc;
CN_API cn_module *cn_nn_rnn_cell(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_cell_desc *desc);
CN_API cn_module *cn_nn_lstm_cell(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_cell_desc *desc);
CN_API cn_module *cn_nn_gru_cell(cn_ctx *ctx, int64_t in, int64_t hidden, const cn_rnn_cell_desc *desc);

/* ---- attention and transformers. x is (T,B,width), with batch_first (B,T,width), without a batch (T,width).
   Masks are PyTorch's. In a bool mask true forbids a query to attend to a key; for the operator
   cn_scaled_dot_product_attention true allows it. A mask of a floating type is added to the scores. A query that may
   attend to no key gets 0 from attention; where weights are asked for, NaN, as in PyTorch. ---- */
typedef struct cn_multihead_desc {
    int64_t kdim, vdim;                /* widths of k and v; 0: embed_dim */
    double dropout;                    /* of the attention weights, while training */
    bool no_bias, batch_first;
    bool add_bias_kv;                  /* one more key and value, which are trained: bias_k and bias_v (1,1,embed_dim) */
    bool add_zero_attn;                /* one more key and value of zeros */
} cn_multihead_desc;
CN_API cn_module *cn_nn_multihead_attention(cn_ctx *ctx, int64_t embed_dim, int64_t num_heads,
                                            const cn_multihead_desc *desc);
typedef struct cn_mha_desc {
    cn_tensor *key_padding_mask;       /* (B,Tk), or (Tk) without a batch */
    cn_tensor *attn_mask;              /* (Tq,Tk) or (B·heads,Tq,Tk) */
    bool is_causal;                    /* query i attends to keys 0 to i; this needs no attn_mask */
    bool per_head;                     /* weights (B,heads,Tq,Tk); else their mean over heads, (B,Tq,Tk) */
} cn_mha_desc;
/* weights: set to the attention weights; NULL if you do not need them, which is faster. */
CN_API cn_tensor *cn_attention_forward(cn_module *mha, cn_tensor *q, cn_tensor *k, cn_tensor *v,
                                       const cn_mha_desc *call, cn_tensor **weights);

typedef struct cn_transformer_desc {
    int64_t dim_feedforward;           /* 0: 2048 */
    double dropout;                    /* 0: none; PyTorch's default is 0.1 */
    double layer_norm_eps;             /* 0: 1e-5 */
    bool gelu;                         /* in place of relu */
    bool norm_first, batch_first, no_bias;
    int num_layers;                    /* of a stack; 0: 6 */
    bool final_norm;                   /* of a stack: "norm" after its layers. A Transformer's stacks always have it */
    int decoder_layers;                /* of a Transformer, whose encoder has num_layers; 0: as many as the encoder */
} cn_transformer_desc;
CN_API cn_module *cn_nn_transformer_encoder_layer(cn_ctx *ctx, int64_t d_model, int64_t nhead,
                                                  const cn_transformer_desc *desc);
CN_API cn_module *cn_nn_transformer_decoder_layer(cn_ctx *ctx, int64_t d_model, int64_t nhead,
                                                  const cn_transformer_desc *desc);
CN_API cn_module *cn_nn_transformer_encoder(cn_ctx *ctx, int64_t d_model, int64_t nhead,
                                            const cn_transformer_desc *desc);
CN_API cn_module *cn_nn_transformer_decoder(cn_ctx *ctx, int64_t d_model, int64_t nhead,
                                            const cn_transformer_desc *desc);
CN_API cn_module *cn_nn_transformer(cn_ctx *ctx, int64_t d_model, int64_t nhead, const cn_transformer_desc *desc);
typedef struct cn_transformer_masks {
    cn_tensor *src_mask, *tgt_mask, *memory_mask; /* attn_mask of each attention */
    cn_tensor *src_key_padding_mask, *tgt_key_padding_mask, *memory_key_padding_mask;
    bool src_is_causal, tgt_is_causal, memory_is_causal;
} cn_transformer_masks;
/* Forward with masks. Without masks: cn_forward(encoder, src), cn_forward_all of a decoder with (tgt, memory), of a
   Transformer with (src, tgt). m of the first two is a stack or a layer. */
CN_API cn_tensor *cn_encoder_forward(cn_module *m, cn_tensor *src, const cn_transformer_masks *masks);
CN_API cn_tensor *cn_decoder_forward(cn_module *m, cn_tensor *tgt, cn_tensor *memory,
                                     const cn_transformer_masks *masks);
CN_API cn_tensor *cn_transformer_forward(cn_module *m, cn_tensor *src, cn_tensor *tgt,
                                         const cn_transformer_masks *masks);

#ifdef __cplusplus
}
#endif
#endif
