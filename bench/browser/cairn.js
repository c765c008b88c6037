/* The workloads in Cairn. */
import { open as openCairn } from '../../build/web/package/cairn.js';
import { ADAM } from './workloads.js';

export async function open(device) {
  const cn = await openCairn({ device: device === 'webgpu' ? 'gpu' : 'cpu', threads: device === 'threads' ? 0 : 1 });

  function mlp({ batch, widths: [from] }, p, pixels) {
    const x = cn.tensor(pixels, [batch, from]);
    return () => x.linear(p['0.w'], p['0.b']).relu().linear(p['1.w'], p['1.b']); // (B, 10)
  }

  function gpt({ batch: B, context: T, width: C, heads: H, layers }, p, tokens) {
    const x = cn.tensor(tokens, [B, T]);
    const linear = (x, key) => x.linear(p[`${key}.w`], p[`${key}.b`] || null);
    const norm = (x, key) => x.layer_norm(1, p[`${key}.w`], p[`${key}.b`]);
    return () => {
      let h = cn.embedding(p.tok, x).add(p.pos); // (B, T, C)
      for (let i = 0; i < layers; i++) {
        const qkv = linear(norm(h, `${i}.ln1`), `${i}.qkv`).view([B, T, 3, H, C / H]).permute([2, 0, 3, 1, 4]);
        const y = cn.scaled_dot_product_attention(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2), { is_causal: true });
        h = h.add(linear(y.transpose(1, 2).reshape([B, T, C]), `${i}.proj`));
        h = h.add(linear(linear(norm(h, `${i}.ln2`), `${i}.up`).gelu_tanh(), `${i}.down`));
      }
      return linear(norm(h, 'ln'), 'head').reshape([B * T, p.tok.shape[0]]);
    };
  }

  async function train(workload) {
    const p = {};
    for (const [key, { shape, values }] of Object.entries(workload.weights)) p[key] = cn.parameter(cn.tensor(values, shape));
    const y = cn.tensor(workload.y), forward = (workload.widths ? mlp : gpt)(workload, p, workload.x);
    const opt = new cn.optim.AdamW(Object.values(p), { lr: ADAM.lr, weight_decay: workload.decay });
    return () => cn.scope(async () => {
      const loss = cn.cross_entropy(forward(), y);
      loss.backward();
      await opt.step();
      return loss.item();
    });
  }
  return { threads: cn.threads, train };
}
