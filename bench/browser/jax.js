/* The workloads in jax-js: one jitted function is the whole step. Arrays are counted: .ref where one is used again. */
import { init, defaultDevice, jit, valueAndGrad, numpy as np, nn, tree } from '../../build/web/peers/node_modules/@jax-js/jax/dist/index.js';
import { ADAM, oneHot } from './workloads.js';

export async function open(device) {
  const name = device === 'webgpu' ? 'webgpu' : 'wasm';
  if (!(await init(name)).includes(name)) throw new Error(`jax-js has no ${name} here`);
  defaultDevice(name);

  const linear = (x, p, key) => {
    const y = np.matmul(x, np.transpose(p[`${key}.w`].ref));
    return p[`${key}.b`] ? y.add(p[`${key}.b`].ref) : y;
  };
  const norm = (x, p, key) => nn.standardize(x, -1, { epsilon: 1e-5 }).mul(p[`${key}.w`].ref).add(p[`${key}.b`].ref);

  const mlp = () => (p, x) => linear(nn.relu(linear(x, p, '0')), p, '1');

  const gpt = ({ batch: B, context: T, width: C, heads: H, layers }) => (p, x) => {
    let h = np.matmul(x, p.tok.ref).reshape([B, T, C]).add(p.pos.ref);
    for (let i = 0; i < layers; i++) {
      const qkv = np.split(linear(norm(h.ref, p, `${i}.ln1`), p, `${i}.qkv`), 3, -1).map(part => part.reshape([B, T, H, C / H]));
      const y = nn.dotProductAttention(...qkv, { isCausal: true }).reshape([B, T, C]);
      h = h.add(linear(y, p, `${i}.proj`));
      h = h.ref.add(linear(nn.gelu(linear(norm(h, p, `${i}.ln2`), p, `${i}.up`)), p, `${i}.down`));
    }
    return linear(norm(h, p, 'ln'), p, 'head').reshape([B * T, -1]);
  };

  async function train(workload) {
    const { batch, context, vocab, widths, decay } = workload;
    const array = (values, shape) => np.array(values, { shape, dtype: np.float32 });
    const forward = (widths ? mlp : gpt)(workload);
    const loss = (p, x, y) => {
      const sum = nn.logSoftmax(forward(p, x)).mul(y).sum().mul(-1 / workload.y.length);
      tree.dispose(p);
      return sum;
    };
    const { lr, beta1, beta2, eps } = ADAM;
    /* scale1, scale2: the corrections of the moments, which change at each step */
    const update = jit((p, m, v, scale1, scale2, x, y) => {
      const [value, g] = valueAndGrad(loss)(tree.ref(p), x, y), next = { p: {}, m: {}, v: {} };
      for (const key of Object.keys(p)) {
        next.m[key] = m[key].mul(beta1).add(g[key].ref.mul(1 - beta1));
        next.v[key] = v[key].mul(beta2).add(np.square(g[key]).mul(1 - beta2));
        const change = next.m[key].ref.mul(scale1.ref).div(np.sqrt(next.v[key].ref.mul(scale2.ref)).add(eps));
        next.p[key] = p[key].mul(1 - lr * decay).sub(change.mul(lr));
      }
      scale1.dispose();
      scale2.dispose();
      return [value, next.p, next.m, next.v];
    });

    let p = {}, m = {}, v = {}, n = 0;
    for (const [key, { shape, values }] of Object.entries(workload.weights)) {
      p[key] = array(values, shape);
      m[key] = np.zeros(shape);
      v[key] = np.zeros(shape);
    }
    const x = widths ? array(workload.x, [batch, widths[0]]) : array(oneHot(workload.x, vocab), [batch * context, vocab]);
    const y = array(oneHot(workload.y, widths ? widths[2] : vocab), [workload.y.length, widths ? widths[2] : vocab]);
    return async () => {
      n++;
      let value;
      [value, p, m, v] = update(p, m, v, np.array(1 / (1 - beta1 ** n)), np.array(1 / (1 - beta2 ** n)), x.ref, y.ref);
      return (await value.data())[0];
    };
  }
  return { threads: device === 'threads' ? navigator.hardwareConcurrency : 1, train };
}
