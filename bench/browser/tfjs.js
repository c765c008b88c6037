/* The workloads in TensorFlow.js: the package with gradients, and one backend. */
import { ADAM, oneHot } from './workloads.js';

const packages = new URL('../../build/web/peers/node_modules/@tensorflow/', import.meta.url).href;

export async function open(device) {
  const name = device === 'webgpu' ? 'webgpu' : 'wasm';
  importScripts(`${packages}tfjs/dist/tf.es2017.min.js`, `${packages}tfjs-backend-${name}/dist/tf-backend-${name}.es2017.min.js`);
  const { tf } = self;
  if (name === 'wasm') tf.wasm.setWasmPaths(`${packages}tfjs-backend-wasm/dist/`);
  if (device === 'threads') tf.wasm.setThreadsCount(navigator.hardwareConcurrency);
  if (!await tf.setBackend(name)) throw new Error(`TensorFlow.js has no ${name} here`);
  await tf.ready();

  const linear = (x, p, key) => {
    const y = tf.matMul(x, p[`${key}.w`], false, true);
    return p[`${key}.b`] ? tf.add(y, p[`${key}.b`]) : y;
  };
  const norm = (x, p, key) => {
    const { mean, variance } = tf.moments(x, -1, true);
    return tf.add(tf.mul(tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, 1e-5))), p[`${key}.w`]), p[`${key}.b`]);
  };
  const gelu = x => {
    const inner = tf.mul(tf.add(x, tf.mul(tf.mul(tf.square(x), x), 0.044715)), Math.sqrt(2 / Math.PI));
    return tf.mul(tf.mul(x, 0.5), tf.add(tf.tanh(inner), 1));
  };

  const mlp = (workload, p, x) => () => linear(tf.relu(linear(x, p, '0')), p, '1');

  function gpt({ batch: B, context: T, width: C, heads: H, layers }, p, x) {
    const mask = tf.tensor(Float32Array.from({ length: T * T }, (_, i) => i % T > Math.floor(i / T) ? -1e9 : 0), [T, T]);
    return () => {
      let h = tf.reshape(tf.add(tf.reshape(tf.matMul(x, p.tok), [B, T, C]), p.pos), [B * T, C]);
      for (let i = 0; i < layers; i++) {
        const qkv = tf.reshape(linear(norm(h, p, `${i}.ln1`), p, `${i}.qkv`), [B, T, 3, H, C / H]);
        const [q, k, v] = tf.unstack(tf.transpose(qkv, [2, 0, 3, 1, 4])); // (B, H, T, D)
        const scores = tf.softmax(tf.add(tf.mul(tf.matMul(q, k, false, true), 1 / Math.sqrt(C / H)), mask));
        const y = tf.reshape(tf.transpose(tf.matMul(scores, v), [0, 2, 1, 3]), [B * T, C]);
        h = tf.add(h, linear(y, p, `${i}.proj`));
        h = tf.add(h, linear(gelu(linear(norm(h, p, `${i}.ln2`), p, `${i}.up`)), p, `${i}.down`));
      }
      return linear(norm(h, p, 'ln'), p, 'head');
    };
  }

  async function train(workload) {
    const { batch, context, vocab, widths, decay } = workload, p = {};
    for (const [key, { shape, values }] of Object.entries(workload.weights)) p[key] = tf.variable(tf.tensor(values, shape), true, key);
    const x = widths ? tf.tensor(workload.x, [batch, widths[0]]) : tf.tensor(oneHot(workload.x, vocab), [batch * context, vocab]);
    const y = tf.tensor(oneHot(workload.y, widths ? widths[2] : vocab), [workload.y.length, widths ? widths[2] : vocab]);
    const forward = (widths ? mlp : gpt)(workload, p, x), list = Object.values(p);
    const opt = tf.train.adam(ADAM.lr, ADAM.beta1, ADAM.beta2, ADAM.eps);
    const loss = () => tf.neg(tf.div(tf.sum(tf.mul(tf.logSoftmax(forward()), y)), workload.y.length));
    return async () => {
      const { value, grads } = opt.computeGradients(loss, list);
      if (decay) tf.tidy(() => list.forEach(v => v.assign(tf.mul(v, 1 - ADAM.lr * decay))));
      opt.applyGradients(grads);
      const [number] = await value.data();
      tf.dispose([value, grads]);
      return number;
    };
  }
  return { threads: device === 'threads' ? tf.wasm.getThreadsCount() : 1, train };
}
