#!/usr/bin/env python3
"""The reference workloads in JAX, on the CPU: prints `name median_ms peak_rss_mb compile_s`, a line each.

    .venv/jax/bin/python bench/peers/peer_jax.py [--threads 2] [--only gpt-mini,mlp] [--seconds 4]

Shapes, f32 and the optimizers (from optax) are those of bench/workloads.c. A step is one compiled function that takes
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
parser.add_argument("--only", default="", help="names, separated by commas")
parser.add_argument("--seconds", type=float, default=4.0, help="for each workload")
args = parser.parse_args()
os.environ["JAX_PLATFORMS"] = "cpu"
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])  # XLA starts a thread for each core it may use

# Loaded in the children only (see the end): threads of XLA do not survive a fork.
jax = jnp = lax = optax = np = rng = None


def load():
    global jax, jnp, lax, optax, np, rng
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from jax import lax
    rng = np.random.default_rng(1)


def randn(*shape):
    return jnp.asarray(rng.standard_normal(shape, dtype=np.float32))


def randint(high, *shape):
    return jnp.asarray(rng.integers(0, high, shape, dtype=np.int32))


def uniform(fan_in, *shape):
    bound = fan_in ** -0.5
    return jnp.asarray(rng.uniform(-bound, bound, shape).astype(np.float32))


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


def conv_block(p, running, x):
    """Convolution, batch norm in training, relu, pooling. (N,H,W,C), the layout XLA is quickest with on a CPU."""
    x = lax.conv_general_dilated(x, p["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + p["b"]
    mean = x.mean((0, 1, 2))
    var = jnp.square(x - mean).mean((0, 1, 2))
    count = x.size // mean.size
    seen = lax.stop_gradient((mean, var * count / (count - 1)))
    running = tuple(0.9 * old + 0.1 * new for old, new in zip(running, seen))
    x = jax.nn.relu((x - mean) * (lax.rsqrt(var + 1e-5) * p["scale"]) + p["shift"])
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


def gpt(vocab, context, layers, heads, width, batch):
    def norm():
        return jnp.ones(width), jnp.zeros(width)

    def new_block():
        return {"ln1": norm(), "qkv": linear(width, 3 * width), "proj": linear(width, width),
                "ln2": norm(), "up": linear(width, 4 * width), "down": linear(4 * width, width)}

    def loss(params, buffers, tokens, y):
        x = params["tok"][tokens] + params["pos"]
        for p in params["blocks"]:
            x = block(p, heads, x)
        return cross_entropy(apply(params["head"], layer_norm(params["ln"], x)), y), buffers

    params = {"tok": randn(vocab, width), "pos": randn(context, width), "blocks": [new_block() for _ in range(layers)],
              "ln": norm(), "head": linear(width, vocab, bias=False)}
    return training(loss, optax.adamw(1e-3, weight_decay=0.01), params,
                    randint(vocab, batch, context), randint(vocab, batch, context))


def pure(f, *inputs):
    run, seconds = compiled(f, *inputs)
    return lambda: run(*inputs).block_until_ready(), seconds


def chain(n):
    def f(a, b, c):
        a = jnp.abs(a)
        return jnp.sqrt(jnp.tanh(a * b + c) * jax.nn.sigmoid(a - b) + a * a) / c - b

    return pure(f, randn(n), randn(n), jnp.asarray(rng.random(n, dtype=np.float32) + np.float32(0.5)))


def matmul(n):
    return pure(lambda a, b: a @ b, randn(n, n), randn(n, n))


WORKLOADS = {
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


def measure(name):
    load()
    step, compile_seconds = WORKLOADS[name]()
    for _ in range(3):
        step()
    times, end = [], time.perf_counter() + args.seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name} {statistics.median(times) * 1e3:.4f} {peak:.0f} {compile_seconds:.2f}", flush=True)


bad = 0
for name in WORKLOADS:
    if args.only and name not in args.only.split(","):
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
