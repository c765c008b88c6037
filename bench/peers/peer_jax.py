#!/usr/bin/env python3
"""The reference workloads in JAX, on the CPU: prints `name median_ms peak_rss_mb compile_s`, a line each.

    .venv/jax/bin/python bench/peers/peer_jax.py [--threads 2] [--extra] [--only gpt-mini,mlp] [--seconds 4]

Shapes, dtypes and the optimizers (from optax) are those of bench/workloads/. A step is one compiled function that takes
over the memory of the parameters and moments it replaces; tracing and compiling it is compile_s, apart from the times.
"""
import argparse
import os
import resource
import statistics
import sys
import time

parser = argparse.ArgumentParser(description="the reference workloads in JAX")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--extra", action="store_true", help="the extra workloads instead of the reference ones")
parser.add_argument("--only", default="", help="names from either list, separated by commas")
parser.add_argument("--seconds", type=float, default=4.0, help="for each workload")
parser.add_argument("--turns", action="store_true", help="say `NAME ready`, then time it for every line that comes in")
args = parser.parse_args()
os.environ["JAX_PLATFORMS"] = "cpu"
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])  # XLA starts a thread for each core it may use

# Loaded in the children only (see the end): threads of XLA do not survive a fork.
jax = jnp = lax = optax = np = rng = floats = None


def load():
    global jax, jnp, lax, optax, np, rng, floats
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from jax import lax
    rng = np.random.default_rng(1)
    floats = np.float32


def randn(*shape):
    return jnp.asarray(rng.standard_normal(shape, dtype=floats))


def randint(high, *shape):
    return jnp.asarray(rng.integers(0, high, shape, dtype=np.int32))


def uniform(fan_in, *shape):
    bound = fan_in ** -0.5
    return jnp.asarray(rng.uniform(-bound, bound, shape).astype(floats))


def compiled(f, *inputs, donate=()):
    start = time.perf_counter()
    run = jax.jit(f, donate_argnums=donate).lower(*inputs).compile()
    return run, time.perf_counter() - start


def training(loss, optimizer, params, x, y, buffers=()):
    """loss(params, buffers, x, y) gives the loss and the new buffers (running statistics)."""

    def update(state, x, y):
        params, buffers, moments = state
        (value, buffers), grads = jax.value_and_grad(loss, has_aux=True)(params, buffers, x, y)
        change, moments = optimizer.update(grads, moments, params)
        return (optax.apply_updates(params, change), buffers, moments), value

    state = (params, buffers, optimizer.init(params))
    run, seconds = compiled(update, state, x, y, donate=0)

    def step():
        nonlocal state
        state, value = run(state, x, y)
        jax.block_until_ready((state, value))

    return step, seconds


def cross_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def linear(n_in, n_out, bias=True):
    w = uniform(n_in, n_in, n_out)
    return (w, uniform(n_in, n_out)) if bias else (w,)


def apply(layer, x):
    y = x @ layer[0]
    return y + layer[1] if len(layer) == 2 else y


def mlp(batch, *width):
    def loss(layers, buffers, x, y):
        for layer in layers[:-1]:
            x = jax.nn.relu(apply(layer, x))
        return cross_entropy(apply(layers[-1], x), y), buffers

    layers = [linear(a, b) for a, b in zip(width, width[1:])]
    return training(loss, optax.adam(1e-3), layers, randn(batch, width[0]), randint(width[-1], batch))


def mlp_f64(batch, *width):
    global floats
    jax.config.update("jax_enable_x64", True)
    floats = np.float64
    return mlp(batch, *width)


NHWC = ("NHWC", "HWIO", "NHWC")  # the layout XLA is quickest with on a CPU


def batch_norm(p, running, x):
    """In training: the result, and the new running statistics."""
    mean = x.mean((0, 1, 2))
    var = jnp.square(x - mean).mean((0, 1, 2))
    count = x.size // mean.size
    seen = lax.stop_gradient((mean, var * count / (count - 1)))
    running = tuple(0.9 * old + 0.1 * new for old, new in zip(running, seen))
    return (x - mean) * (lax.rsqrt(var + 1e-5) * p["scale"]) + p["shift"], running


def conv_block(p, running, x):
    """Convolution, batch norm, relu, pooling."""
    x = lax.conv_general_dilated(x, p["w"], (1, 1), "SAME", dimension_numbers=NHWC) + p["b"]
    x, running = batch_norm(p, running, x)
    x = jax.nn.relu(x)
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), running


def cnn(batch):
    def conv(a, b):
        return {"w": uniform(9 * a, 3, 3, a, b), "b": uniform(9 * a, b), "scale": jnp.ones(b), "shift": jnp.zeros(b)}

    def loss(params, buffers, x, y):
        seen = []
        for p, running in zip(params["conv"], buffers):
            x, running = conv_block(p, running, x)
            seen.append(running)
        x = jax.nn.relu(apply(params["full"][0], x.reshape(batch, -1)))
        return cross_entropy(apply(params["full"][1], x), y), seen

    params = {"conv": [conv(1, 32), conv(32, 64)], "full": [linear(64 * 7 * 7, 128), linear(128, 10)]}
    buffers = [(jnp.zeros(n), jnp.ones(n)) for n in (32, 64)]
    return training(loss, optax.adam(1e-3), params, randn(batch, 28, 28, 1), randint(10, batch), buffers)


def layer_norm(p, x):
    mean = x.mean(-1, keepdims=True)
    var = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p[0] + p[1]


def block(p, heads, x):  # (B,T,C) -> (B,T,C)
    B, T, C = x.shape
    h = apply(p["qkv"], layer_norm(p["ln1"], x)).reshape(B, T, 3, heads, C // heads)
    y = jax.nn.dot_product_attention(h[:, :, 0], h[:, :, 1], h[:, :, 2], is_causal=True)
    x = x + apply(p["proj"], y.reshape(B, T, C))
    return x + apply(p["down"], jax.nn.gelu(apply(p["up"], layer_norm(p["ln2"], x)), approximate=True))


def norm(width):
    return jnp.ones(width), jnp.zeros(width)


def new_block(width):
    return {"ln1": norm(width), "qkv": linear(width, 3 * width), "proj": linear(width, width),
            "ln2": norm(width), "up": linear(width, 4 * width), "down": linear(4 * width, width)}


def gpt(vocab, context, layers, heads, width, batch):
    def loss(params, buffers, tokens, y):
        x = params["tok"][tokens] + params["pos"]
        for p in params["blocks"]:
            x = block(p, heads, x)
        return cross_entropy(apply(params["head"], layer_norm(params["ln"], x)), y), buffers

    params = {"tok": randn(vocab, width), "pos": randn(context, width), "blocks": [new_block(width) for _ in range(layers)],
              "ln": norm(width), "head": linear(width, vocab, bias=False)}
    return training(loss, optax.adamw(1e-3, weight_decay=0.01), params,
                    randint(vocab, batch, context), randint(vocab, batch, context))


def pure(f, *inputs):
    run, seconds = compiled(f, *inputs)
    return lambda: jax.block_until_ready(run(*inputs)), seconds


def chain(n):
    def f(a, b, c):
        a = jnp.abs(a)
        return jnp.sqrt(jnp.tanh(a * b + c) * jax.nn.sigmoid(a - b) + a * a) / c - b

    return pure(f, randn(n), randn(n), jnp.asarray(rng.random(n, dtype=np.float32) + np.float32(0.5)))


def matmul(n):
    return pure(lambda a, b: a @ b, randn(n, n), randn(n, n))


def conv_norm(p, running, x, stride):
    pad = [(p["w"].shape[0] // 2,) * 2] * 2
    return batch_norm(p, running, lax.conv_general_dilated(x, p["w"], (stride, stride), pad, dimension_numbers=NHWC))


def residual(p, running, x, stride):
    """With stride 2: half the height and width, twice the channels."""
    h, first = conv_norm(p[0], running[0], x, stride)
    h, second = conv_norm(p[1], running[1], jax.nn.relu(h), 1)
    if stride == 1:
        return jax.nn.relu(h + x), [first, second]
    skip, shortcut = conv_norm(p[2], running[2], x, stride)
    return jax.nn.relu(h + skip), [first, second, shortcut]


def resnet(channels, strides, pool):
    batch, side = 32, 32

    def conv(a, b, size):
        return {"w": uniform(size * size * a, size, size, a, b), "scale": jnp.ones(b), "shift": jnp.zeros(b)}

    def running(b):
        return jnp.zeros(b), jnp.ones(b)

    def loss(params, buffers, x, y):
        x, stem = conv_norm(params["stem"], buffers[0], x, 1)
        x, seen = jax.nn.relu(x), [stem]
        for p, running, stride in zip(params["blocks"], buffers[1:], strides):
            x, block_seen = residual(p, running, x, stride)
            seen.append(block_seen)
        x = lax.reduce_window(x, 0.0, lax.add, (1, pool, pool, 1), (1, pool, pool, 1), "VALID") / pool ** 2
        return cross_entropy(apply(params["full"], x.reshape(batch, -1)), y), seen

    params, buffers = {"stem": conv(3, channels, 3), "blocks": []}, [running(channels)]
    for stride in strides:
        a, channels, side = channels, channels * stride, side // stride
        short = [conv(a, channels, 1)] if stride > 1 else []
        params["blocks"].append([conv(a, channels, 3), conv(channels, channels, 3), *short])
        buffers.append([running(channels) for _ in params["blocks"][-1]])
    params["full"] = linear(channels * (side // pool) ** 2, 10)
    return training(loss, optax.adam(1e-3), params, randn(batch, 32, 32, 3), randint(10, batch), buffers)


def patches(sizes, channels):
    def loss(params, buffers, x, y):
        for i, ((w, b), size) in enumerate(zip(params, sizes)):
            x = lax.conv_general_dilated(x, w, (size, size), "VALID", dimension_numbers=NHWC) + b
            x = jax.nn.relu(x) if i + 1 < len(sizes) else x
        return jnp.square(x).mean(), buffers

    params = [(uniform(size * size * a, size, size, a, b), uniform(size * size * a, b))
              for size, a, b in zip(sizes, channels, channels[1:])]
    x = randn(4, 224, 224, channels[0])
    return training(loss, optax.sgd(0.1), params, x, x[0, 0, 0])


def autoencoder(batch):
    def conv(a, b, size, fan_in):
        return uniform(fan_in, size, size, a, b), uniform(fan_in, b)

    def loss(params, buffers, x, y):
        for w, b in params["down"]:
            x = jax.nn.relu(lax.conv_general_dilated(x, w, (2, 2), [(1, 1)] * 2, dimension_numbers=NHWC) + b)
        (w0, b0), (w1, b1) = params["up"]
        x = jax.nn.relu(lax.conv_transpose(x, w0, (2, 2), "SAME", dimension_numbers=NHWC) + b0)
        x = jax.nn.sigmoid(lax.conv_transpose(x, w1, (2, 2), "SAME", dimension_numbers=NHWC) + b1)
        return jnp.square(x - y).mean(), buffers

    params = {"down": [conv(1, 32, 3, 9), conv(32, 64, 3, 32 * 9)],
              "up": [conv(64, 32, 4, 32 * 16), conv(32, 1, 4, 16)]}
    x = jnp.asarray(rng.random((batch, 28, 28, 1), dtype=np.float32))
    return training(loss, optax.adam(1e-3), params, x, x)


def lstm(layers, steps, batch, width, hidden):
    def layer(p, x):  # (T,B,width) -> (T,B,hidden)
        def one(state, of_x):  # gates in PyTorch's order: input, forget, cell, output
            h, c = state
            i, f, g, o = jnp.split(of_x + apply(p["again"], h), 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros((batch, hidden))
        return lax.scan(one, (start, start), apply(p["in"], x))[1]

    def loss(params, buffers, x, y):
        for p in params["layers"]:
            x = layer(p, x)
        return cross_entropy(apply(params["head"], x[-1]), y), buffers

    def layer_params(n):
        return {"in": (uniform(hidden, n, 4 * hidden), uniform(hidden, 4 * hidden)), "again": linear(hidden, 4 * hidden)}

    params = {"layers": [layer_params(hidden if k else width) for k in range(layers)], "head": linear(hidden, 10)}
    return training(loss, optax.adam(1e-3), params, randn(steps, batch, width), randint(10, batch))


def dropout(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0)


def encoder_block(p, heads, keys, x):  # (B,T,C) -> (B,T,C)
    B, T, C = x.shape
    h = apply(p["qkv"], layer_norm(p["ln1"], x)).reshape(B, T, 3, heads, C // heads)
    y = jax.nn.dot_product_attention(h[:, :, 0], h[:, :, 1], h[:, :, 2])
    x = x + dropout(keys[0], apply(p["proj"], y.reshape(B, T, C)))
    h = jax.nn.gelu(apply(p["up"], layer_norm(p["ln2"], x)), approximate=False)
    return x + apply(p["down"], dropout(keys[1], h))


def encoder(context, heads, width, batch):
    def loss(params, key, x, y):
        key, *keys = jax.random.split(key, 5)
        x = x + params["pos"]
        for i, p in enumerate(params["blocks"]):
            x = encoder_block(p, heads, keys[2 * i:], x)
        return cross_entropy(apply(params["head"], layer_norm(params["ln"], x).mean(1)), y), key

    params = {"pos": randn(context, width), "blocks": [new_block(width) for _ in range(2)],
              "ln": norm(width), "head": linear(width, 10)}
    return training(loss, optax.adamw(1e-3, weight_decay=0.01), params,
                    randn(batch, context, width), randint(10, batch), jax.random.key(1))


def softmax_rows(rows, width):
    return pure(lambda x: jax.nn.log_softmax(x, 1).sum(0), randn(rows, width))


def squares(x, axes):
    return jnp.square(x - x.mean(axes, keepdims=True)).sum(axes)


def blocks(f):
    return pure(f, randn(24, 40, 48, 64), randn(24, 40, 48, 64))


def layer_norm_backward(rows, width):
    def f(x, p, gradient):
        y, back = jax.vjp(lambda x, p: layer_norm(p, x), x, p)
        return y, back(gradient)

    return pure(f, randn(rows, width), norm(width), randn(rows, width))


def table(rows, width, batch):
    def loss(params, buffers, x, y):
        return jnp.square(params[x] - y).mean(), buffers

    return training(loss, optax.sgd(0.1), randn(rows, width), randint(rows, batch), randn(batch, width))


REFERENCE = {
    "mlp-tiny": lambda: mlp(16, 2, 16, 16, 2),
    "mlp": lambda: mlp(64, 784, 128, 10),
    "mlp-wide": lambda: mlp(128, 784, 1024, 1024, 10),
    "cnn": lambda: cnn(64),
    "gpt-mini": lambda: gpt(65, 64, 4, 4, 128, 12),
    "gpt-small": lambda: gpt(512, 256, 6, 6, 384, 4),
    "chain-16m": lambda: chain(1 << 24),
    "matmul-256": lambda: matmul(256),
    "matmul-1024": lambda: matmul(1024),
    "matmul-2048": lambda: matmul(2048),
}

EXTRA = {
    "mlp-odd": lambda: mlp(37, 777, 301, 103, 11),
    "mlp-f64": lambda: mlp_f64(64, 784, 256, 10),
    "cnn-strided": lambda: resnet(32, (2, 2), 4),
    "resnet": lambda: resnet(16, (1, 1, 2, 1, 2, 1), 8),
    "patches": lambda: patches((16,), (3, 192)),
    "downsample": lambda: patches((4, 2, 2), (3, 48, 96, 192)),
    "autoencoder": lambda: autoencoder(32),
    "lstm": lambda: lstm(1, 32, 32, 64, 128),
    "lstm-2x200": lambda: lstm(2, 50, 8, 100, 200),
    "lstm-odd": lambda: lstm(2, 40, 5, 77, 77),
    "encoder": lambda: encoder(100, 3, 192, 8),
    "softmax-rows": lambda: softmax_rows(4096, 1000),
    "layernorm-bwd": lambda: layer_norm_backward(4096, 768),
    "reduce-permuted": lambda: blocks(lambda a, b: squares(a.transpose(3, 1, 0, 2)[::2], (0, 2))),
    "reduce-sliced": lambda: blocks(lambda a, b: squares(a.transpose(2, 0, 3, 1)[:, :, 1:, ::2], (1, 3))),
    "permuted-add": lambda: blocks(lambda a, b: a.transpose(0, 2, 3, 1) + b.transpose(0, 2, 3, 1)),
    "gather-embed": lambda: table(50000, 128, 8192),
    "gpt2": lambda: gpt(50257, 512, 12, 12, 768, 1),
}

WORKLOADS = REFERENCE | EXTRA
CHOSEN = args.only.split(",") if args.only else EXTRA if args.extra else REFERENCE


def seconds_of(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def median_of(step, seconds, least):
    """The median of the times of steps, in ms: for so many seconds, but `least` of them at the least."""
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < least:
        times.append(seconds_of(step))
    return statistics.median(times) * 1e3


def measure(name):
    """As in bench/workloads/run.c: a slow step is repeated less often; turns begin with steps that are not timed."""
    load()
    step, compile_seconds = WORKLOADS[name]()
    step()
    slow = seconds_of(step) > 1
    if not slow:
        step()

    def print_line(ms):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name} {ms:.4f} {peak:.0f} {compile_seconds:.2f}", flush=True)

    if not args.turns:
        print_line(median_of(step, args.seconds, 3 if slow else 5))
        return
    print(f"{name} ready", flush=True)
    for _ in sys.stdin:
        if not slow:
            median_of(step, args.seconds / 5, 1)
        print_line(median_of(step, args.seconds, 1))


bad = 0
for name in WORKLOADS:
    if name not in CHOSEN:
        continue
    child = os.fork()
    if child == 0:
        try:
            measure(name)
        except Exception as error:
            print(f"{name} FAILED {type(error).__name__}", flush=True)
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    bad |= os.waitpid(child, 0)[1] != 0
sys.exit(bad)
