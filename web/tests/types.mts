/* Uses the face of cairn.js in a few ways; the compiler must accept each, and refuse what @ts-expect-error marks. */
import { open, CairnError, Module, Tensor } from '../../build/web/package/cairn.js';

const cn = await open({ device: 'cpu', seed: 1 });
const mlp = new cn.nn.Sequential(new cn.nn.Linear(784, 128), new cn.nn.ReLU(), new cn.nn.Linear(128, 10, { no_bias: true }));
const opt = new cn.optim.AdamW(mlp, { lr: 1e-3, betas: [0.9, 0.99] });
const x: Tensor = cn.randn([2, 3]);
const [values, indices] = x.topk(2);
export const shapes: number[][] = [values.shape, indices.shape, x.sum({ dim: 0, keepdim: true }).add(1).shape];
export const loss: number = await cn.scope(async () => {
  const y = cn.mse_loss(x, x, { reduction: 'sum' });
  y.backward();
  await opt.step();
  return y.item();
});
export const convolved = cn.conv2d(x, x, null, 2, { padding: [1, 1] });
export class Net extends Module {
  first = new cn.nn.Linear(1, 1);
  forward(x: Tensor): Tensor { return this.first.forward(x); }
}
export const bytes: Uint8Array = await cn.save(mlp.stateDict(), { texts: { step: 1 } });
export const code = (error: CairnError): string => error.code;

// @ts-expect-error: there is no argument axis
x.sum({ axis: 1 });
// @ts-expect-error: no such operator
cn.nothing();
// @ts-expect-error: not a reduction
cn.mse_loss(x, x, { reduction: 'all' });
