/* Two reference workloads of bench/workloads/reference.c. Every framework gets the same weights and data. */

/* dispatches: those of a step of Cairn on a native GPU. */
export const WORKLOADS = {
  mlp: { text: '784-128-10, batch 64, Adam', batch: 64, widths: [784, 128, 10], decay: 0, dispatches: 13 },
  'gpt-mini': { text: '4 layers, 4 heads, width 128, context 64, batch 12, AdamW', vocab: 65, context: 64, layers: 4, heads: 4,
                width: 128, batch: 12, decay: 0.01, dispatches: 154 },
};
export const ADAM = { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8 };

/* mulberry32: numbers in [0, 1) */
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/* { name, weights: { name: { shape, values } }, x, y, ...the row of WORKLOADS }; a linear layer's weight is (out, in). */
export function make(name) {
  const random = generator(1), weights = {}, workload = { name, weights, ...WORKLOADS[name] };
  const filled = (n, f) => Float32Array.from({ length: n }, f);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const put = (key, shape, f) => { weights[key] = { shape, values: filled(shape.reduce((a, b) => a * b), f) }; };
  const linear = (key, from, to, bias = true) => {
    const uniform = () => (2 * random() - 1) / Math.sqrt(from);
    put(`${key}.w`, [to, from], uniform);
    if (bias) put(`${key}.b`, [to], uniform);
  };
  const norm = (key, n) => { put(`${key}.w`, [n], () => 1); put(`${key}.b`, [n], () => 0); };
  const below = (n, most) => Int32Array.from({ length: n }, () => Math.floor(most * random()));

  if (workload.widths) {
    const { batch, widths: [from, hidden, to] } = workload;
    linear('0', from, hidden);
    linear('1', hidden, to);
    return { ...workload, x: filled(batch * from, normal), y: below(batch, to) };
  }
  const { vocab, context, layers, width, batch } = workload;
  put('tok', [vocab, width], normal);
  put('pos', [context, width], normal);
  for (let i = 0; i < layers; i++) {
    norm(`${i}.ln1`, width);
    norm(`${i}.ln2`, width);
    linear(`${i}.qkv`, width, 3 * width);
    linear(`${i}.proj`, width, width);
    linear(`${i}.up`, width, 4 * width);
    linear(`${i}.down`, 4 * width, width);
  }
  norm('ln', width);
  linear('head', width, vocab, false);
  return { ...workload, x: below(batch * context, vocab), y: below(batch * context, vocab) };
}

/* Rows of zeros with a 1: for frameworks without a gradient of an embedding, and as targets. */
export function oneHot(indices, n) {
  const rows = new Float32Array(indices.length * n);
  indices.forEach((index, i) => { rows[i * n + index] = 1; });
  return rows;
}
