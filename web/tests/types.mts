/* Uses the face of cairn.js in a few ways; the compiler must accept each, and refuse what @ts-expect-error marks. */
import { open, CairnError, Module, Tensor, type FunctionContext } from '../../build/web/package/cairn.js';

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
export const changed: Tensor = x.add_(1).clamp_({ min: 0 }).copy_(x).set([0, '1:'], 2).at('...', null, [0, 1]);
export class Double extends cn.autograd.Function {
  static forward(ctx: FunctionContext, x: Tensor): Tensor { ctx.saveForBackward(x); return x.mul(2); }
  static backward(_: FunctionContext, gradient: Tensor): Tensor { return gradient.mul(2); }
}
export const doubled: Tensor = Double.apply(x);
x.registerHook(gradient => gradient.mul(2)).remove();
mlp.registerForwardHook((_, [input]) => { input.shape; });
export const first: number = await new cn.optim.LBFGS(mlp).step(() => x.sum());
new cn.optim.SGD([{ params: mlp, lr: 0.1 }, { params: [x], momentum: 0.9 }]).loadStateDict(await cn.load(bytes));
const pairs = new cn.data.TensorDataset({ data: new Float32Array(8), shape: [4, 2] }, new Int32Array(4));
const sums = pairs.map(([a, b]) => ({ sum: Number(a[0]), label: b }));
for await (const { sum } of new cn.data.DataLoader(sums, { batchSize: 2, shuffle: true, dropLast: true })) sum.mul(2);
export const ids: Int32Array = cn.data.bpeTokenizer('text', 300).encode('text');
export const jacobian: Tensor = await cn.autograd.jacobian(v => v.square(), x);

// @ts-expect-error: split makes a list, and has no form in place
x.split_(1);
// @ts-expect-error: batchSize
new cn.data.DataLoader(pairs, { batch: 2 });
// @ts-expect-error: there is no argument axis
x.sum({ axis: 1 });
// @ts-expect-error: no such operator
cn.nothing();
// @ts-expect-error: not a reduction
cn.mse_loss(x, x, { reduction: 'all' });
