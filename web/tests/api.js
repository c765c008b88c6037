/* Tests of cairn.js, in a page: run(options of open) returns [{ name, error }]. */
import { open, CairnError, Module, Tensor } from '../../build/web/package/cairn.js';

const near = (a, b, tolerance = 1e-5) => {
  const x = Array.from(a, Number), y = Array.from(b, Number);
  if (x.length !== y.length || x.some((v, i) => !(Math.abs(v - y[i]) <= tolerance * (1 + Math.abs(y[i])))))
    throw new Error(`[${x}] is not [${y}]`);
};
const same = (a, b) => {
  if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(`${JSON.stringify(a)} is not ${JSON.stringify(b)}`);
};
const fails = async (f, code, words) => {
  try {
    await f();
  } catch (error) {
    if (!(error instanceof CairnError) || error.code !== code || !error.message.includes(words))
      throw new Error(`${error.name} ${error.code}: ${error.message}, expected ${code}: ${words}`);
    return;
  }
  throw new Error('no error');
};

const TESTS = {
  async tensors(cn) {
    const x = cn.tensor([[1, 2, 3], [4, 5, 6]]);
    same([x.shape, x.dtype, x.ndim, x.numel], [[2, 3], 'f32', 2, 6]);
    near(await x.read(), [1, 2, 3, 4, 5, 6]);
    near(await x.transpose(0, 1).read(), [1, 4, 2, 5, 3, 6]);
    same(cn.tensor(new Int32Array([1, 2])).dtype, 'i32');
    same(cn.tensor([true, false]).dtype, 'bool');
    near(await cn.tensor([1, 2], { dtype: 'i64' }).read(), [1, 2]);
    near(await cn.tensor([1, 2.5], { dtype: 'bf16' }).read(), [1, 2.5]);
    near([await cn.tensor(3).item()], [3]);
  },
  async operators(cn) {
    const x = cn.tensor([[1, 2], [3, 4]]), y = cn.tensor([[10, 20], [30, 40]]);
    near(await x.add(y).read(), [11, 22, 33, 44]);
    near(await x.add(1).mul(2).read(), [4, 6, 8, 10]);
    near(await x.pow(2).read(), [1, 4, 9, 16]);
    near(await x.matmul(y).read(), [70, 100, 150, 220]);
    near(await x.sum().read(), [10]);
    near(await x.sum(0).read(), [4, 6]);
    near(await x.sum([1], { keepdim: true }).read(), [3, 7]);
    near(await cn.sum(x, { dim: 1 }).read(), [3, 7]);
    near(await cn.cat([x, y], { dim: 1 }).read(), [1, 2, 10, 20, 3, 4, 30, 40]);
    const [values, indices] = cn.tensor([3, 1, 2]).topk(2);
    near(await values.read(), [3, 2]);
    near(await indices.read(), [0, 2]);
    const parts = cn.tensor([1, 2, 3, 4, 5]).split(2);
    same(parts.map(p => p.shape[0]), [2, 2, 1]);
    near(await parts[1].read(), [3, 4]);
    near(await cn.where(x.gt(2), x, 0).read(), [0, 0, 3, 4]);
    near(await cn.zeros([2]).read(), [0, 0]);
    same(cn.ones([3], { dtype: 'f32' }).shape, [3]);
    near(await cn.arange(0, 4, 1).read(), [0, 1, 2, 3]);
    near(await cn.full([2], 7).read(), [7, 7]);
    near(await cn.clamp(x, 2, 3).read(), [2, 2, 3, 3]);
    near(await cn.softmax(x, -1).sum(-1).read(), [1, 1]);
    near(await (await cn.compute('nonzero', x.gt(2))).read(), [1, 0, 1, 1]);
    near(await (await cn.compute('masked_select', x, x.gt(2))).read(), [3, 4]);
    if (cn.device === 'gpu') await fails(() => x.nonzero(), 'UNSUPPORTED', 'cn.compute');
    else near(await x.nonzero().read(), [0, 0, 0, 1, 1, 0, 1, 1]);
  },
  async descriptors(cn) {
    const x = cn.arange(0, 16, 1, { dtype: 'f32' }).reshape([1, 1, 4, 4]), w = cn.ones([1, 1, 2, 2]);
    near(await cn.conv2d(x, w, { stride: 2 }).read(), [10, 18, 42, 50]);
    same(cn.conv2d(x, w, { padding: [1, 0] }).shape, [1, 1, 5, 3]);
    near(await cn.max_pool2d(x, 2).read(), [5, 7, 13, 15]);
    same(cn.interpolate(x, { scale_factor: 2 }).shape, [1, 1, 8, 8]);
    const logits = cn.tensor([[1, 2], [3, 4]]), target = cn.tensor([0, 1], { dtype: 'i64' });
    near(await cn.cross_entropy(logits, target, { reduction: 'none' }).read(), [1.3132616, 0.3132617]);
    near(await cn.mse_loss(logits, cn.zeros([2, 2]), { reduction: 'sum' }).read(), [30]);
    near(await cn.layer_norm(logits, 1).read(), [-1, 1, -1, 1], 1e-3);
    near(await cn.scaled_dot_product_attention(x.reshape([1, 4, 4]), x.reshape([1, 4, 4]), x.reshape([1, 4, 4])).sum().read(),
         [216], 1e-2);
  },
  async gradients(cn) {
    const x = cn.tensor([1, 2, 3], { requires_grad: true });
    x.mul(x).sum().backward();
    near(await x.grad.read(), [2, 4, 6]);
    x.zero_grad();
    same(x.grad, null);
    const [g] = cn.grad([x.pow(3).sum()], [x]);
    near(await g.read(), [3, 12, 27]);
    cn.noGrad(() => same(x.mul(2).requires_grad, false));
    for (let i = 0; i < 3; i++) x.mul(i).sum().backward(); // adds up
    near(await x.grad.read(), [3, 3, 3]);
    await fails(() => cn.tensor([1]).backward(), 'NO_GRADIENT', 'backward');
  },
  async errors(cn) {
    await fails(() => cn.matmul(cn.ones([3, 4]), cn.ones([5, 6])), 'BAD_SHAPE', 'matmul');
    await fails(() => cn.zeros([2]).read.call({ cn, pointer: 0, dtype: 'f32', numel: 2 }), 'RELEASED', 'release');
    await fails(() => cn.softmax(cn.ones([2])), 'BAD_ARGUMENT', "'dim' is missing");
    await fails(() => cn.sum(cn.ones([2]), { axis: 1 }), 'BAD_ARGUMENT', "no argument 'axis'");
    await fails(() => new cn.optim.AdamW([], { rate: 1 }), 'BAD_ARGUMENT', "no option 'rate'");
    await fails(() => cn.embedding(cn.ones([3, 2]), cn.tensor([7], { dtype: 'i64' })).read(), 'BAD_INDEX', 'out of range');
    await fails(() => cn.tensor([1, 2], [3]), 'BAD_SHAPE', '3 elements');
    near(await cn.ones([1]).read(), [1]); // errors do not stay
  },
  async modules(cn) {
    const net = new cn.nn.Sequential(new cn.nn.Linear(4, 8), new cn.nn.ReLU(), new cn.nn.Dropout(), new cn.nn.Linear(8, 2, { bias: false }));
    same(Object.keys(net.stateDict()), ['0.weight', '0.bias', '3.weight']);
    same(net.parameters().map(p => p.shape), [[8, 4], [8], [2, 8]]);
    same(net.count, 56);
    net.eval();
    const x = cn.randn([3, 4]), before = await net.forward(x).read();
    same(before.length, 6);
    const other = new cn.nn.Sequential(new cn.nn.Linear(4, 8), new cn.nn.ReLU(), new cn.nn.Dropout(), new cn.nn.Linear(8, 2, { bias: false }));
    other.loadStateDict(net.stateDict());
    other.eval();
    near(await other.forward(x).read(), before);
    const lstm = new cn.nn.LSTM(4, 5, { batch_first: true, num_layers: 2 });
    const [y, h, c] = lstm.forward(cn.randn([2, 3, 4]), { results: 3 });
    same([y.shape, h.shape, c.shape], [[2, 3, 5], [2, 2, 5], [2, 2, 5]]);
    same(new cn.nn.Conv2d(1, 6, 3, { padding: 1 }).forward(cn.randn([2, 1, 8, 8])).shape, [2, 6, 8, 8]);
    same(new cn.nn.LayerNorm([4]).forward(x).shape, [3, 4]);
    class Net extends Module {
      constructor() {
        super();
        this.first = new cn.nn.Linear(4, 4);
        this.more = [new cn.nn.Linear(4, 1)];
        this.scale = cn.parameter(cn.ones([1]));
      }
      forward(x) { return this.more[0].forward(this.first.forward(x).tanh()).mul(this.scale); }
    }
    const own = new Net();
    same(own.namedParameters().map(([name]) => name), ['first.weight', 'first.bias', 'more.0.weight', 'more.0.bias', 'scale']);
    own.forward(x).sum().backward();
    same(own.parameters().every(p => p.grad !== null), true);
  },
  async training(cn) {
    cn.seed(3);
    const net = new cn.nn.Sequential(new cn.nn.Linear(2, 16), new cn.nn.Tanh(), new cn.nn.Linear(16, 1));
    const opt = new cn.optim.Adam(net, { lr: 0.05, betas: [0.9, 0.99] });
    const schedule = new cn.schedule.CosineAnnealingLR(opt, 200);
    const x = cn.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]), y = cn.tensor([[0], [1], [1], [0]]);
    let first = 0, last = 0;
    for (let step = 0; step < 60; step++) {
      last = await cn.scope(async () => {
        const loss = cn.mse_loss(net.forward(x), y);
        loss.backward();
        cn.clipGradNorm(net, 10);
        await opt.step();
        schedule.step();
        return loss.item();
      });
      first = first || last;
    }
    if (!(last < 0.1 * first)) throw new Error(`the loss went from ${first} to ${last}`);
    if (!(opt.lr < 0.05)) throw new Error(`lr ${opt.lr}`);
    for (const name of ['SGD', 'AdamW', 'NAdam', 'RAdam', 'Adamax', 'RMSprop', 'Adagrad', 'Adadelta', 'Lion', 'Rprop', 'ASGD', 'Adafactor']) {
      const optimizer = new cn.optim[name](net.parameters(), { lr: 1e-3 });
      cn.scope(() => cn.mse_loss(net.forward(x), y).backward());
      await optimizer.step();
      optimizer.free();
    }
    for (const [make, lr] of [[o => new cn.schedule.StepLR(o, 2, 0.5), 0.5], [o => new cn.schedule.MultiStepLR(o, [1, 3], 0.5), 0.25],
                              [o => new cn.schedule.LinearLR(o, { total_iters: 6 }), 2 / 3],
                              [o => new cn.schedule.ExponentialLR(o, 0.5), 0.125]]) {
      const o = new cn.optim.SGD(net.parameters(), { lr: 1 }), s = make(o);
      for (let i = 0; i < 3; i++) { await o.step(); s.step(); }
      near([o.lr], [lr]);
      o.free();
    }
  },
  async inPlace(cn) {
    const x = cn.tensor([[1, 2], [3, 4]]);
    same(x.add_(1).mul_(cn.tensor([1, 10])) === x, true);
    near(await x.read(), [2, 30, 4, 50]);
    near(await x.sub_(1).clamp_(2, 30).read(), [2, 29, 3, 30]);
    near(await x.copy_(cn.tensor([7, 8])).read(), [7, 8, 7, 8]);
    near(await x.fill_(3).read(), [3, 3, 3, 3]);
    near(await x.zero_().read(), [0, 0, 0, 0]);
    same([x.normal_().shape, x.uniform_(1, 2).dtype], [[2, 2], 'f32']);
    const w = cn.tensor([1, 2], { requires_grad: true });
    await fails(() => w.mul_(2), 'NO_GRADIENT', 'noGrad');
    cn.noGrad(() => w.mul_(2));
    near(await w.read(), [2, 4]);
    const y = w.mul(1).pow_(2); // no leaf: recorded
    y.sum().backward();
    near(await w.grad.read(), [4, 8]);
    await fails(() => x.add_(cn.ones([3])), 'BAD_SHAPE', 'add');
    await fails(() => cn.zeros([2]).add_(cn.ones([3, 2])), 'BAD_SHAPE', 'cannot be stored');
    cn.scope(() => {
      const z = w.mul(3);
      z.add_(1).mul_(z).sum().backward();
    });
    near(await w.grad.read(), [4 + 42, 8 + 78]);
  },
  async indexing(cn) {
    const x = cn.arange(0, 24, 1, { dtype: 'f32' }).reshape([2, 3, 4]), list = async t => [t.shape, Array.from(await t.read())];
    same(await list(x.at(1, 2, 3)), [[], [23]]);
    same(await list(x.at(-1, ':', 0)), [[3], [12, 16, 20]]);
    same(await list(x.at(0, '1:', '::2')), [[2, 2], [4, 6, 8, 10]]);
    same(await list(x.at('...', -1)), [[2, 3], [3, 7, 11, 15, 19, 23]]);
    same(x.at(null, '...', null).shape, [1, 2, 3, 4, 1]);
    same(await list(x.at(0, [0, 2])), [[2, 4], [0, 1, 2, 3, 8, 9, 10, 11]]);
    same(await list(x.at([0, 1], [2, 0], ':2')), [[2, 2], [8, 9, 12, 13]]);
    same(x.at(0, ':', [0, 1]).shape, [2, 3]); // as PyTorch: numbers beside lists are lists
    same(await list(x.slice(1, 1).select(0, 0)), [[2, 4], [4, 5, 6, 7, 8, 9, 10, 11]]);
    await fails(() => x.at(2), 'BAD_ARGUMENT', 'select');
    await fails(() => x.at(0, 0, 0, 0), 'BAD_INDEX', 'too many');
    await fails(() => x.at('1;2'), 'BAD_ARGUMENT', 'slice');
    const y = cn.zeros([2, 3]);
    y.set([0, 1], 5).set([1], cn.tensor([1, 2, 3])).set([':', 2], 9);
    near(await y.read(), [0, 5, 9, 1, 2, 9]);
    near(await y.set([y.gt(4)], -1).read(), [0, -1, -1, 1, 2, -1]);
    near(await y.set([[0, 1], [0, 0]], [7, 8]).read(), [7, -1, -1, 8, 2, -1]);
    const w = cn.tensor([1, 2, 3, 4], { requires_grad: true });
    cn.scope(() => w.at('1:3').mul(cn.tensor([10, 20])).sum().backward());
    near(await w.grad.read(), [0, 10, 20, 0]);
  },
  async callbacks(cn) {
    const x = cn.tensor([1, 2, 3], { requires_grad: true }), seen = [];
    const y = x.mul(2), hook = y.registerHook(g => { seen.push(g.shape); return g.mul(10); });
    y.sum().backward();
    near(await x.grad.read(), [20, 20, 20]);
    same(seen, [[3]]);
    x.zero_grad();
    const z = x.mul(2), gone = z.registerHook(g => g.mul(10));
    gone.remove();
    hook.remove();
    cn.scope(() => z.sum().backward());
    near(await x.grad.read(), [2, 2, 2]);
    x.zero_grad();
    class Cube extends cn.autograd.Function {
      static forward(ctx, x, factor) { ctx.saveForBackward(x.square()); ctx.factor = factor; return x.pow(3).mul(factor); }
      static backward(ctx, g) { return [g.mul(ctx.savedTensors[0]).mul(3 * ctx.factor), null]; }
    }
    near(await Cube.apply(x, 2).read(), [2, 16, 54]);
    Cube.apply(x, 2).sum().backward();
    near(await x.grad.read(), [6, 24, 54]);
    x.zero_grad();
    await cn.scope(async () => { Cube.apply(x.mul(1), 1).sum().backward(); near(await x.grad.read(), [3, 12, 27]); });
    x.zero_grad();
    const held = cn._callbacks.functions.size;
    for (let i = 0; i < 5; i++) cn.scope(() => { Cube.apply(x, 1).sum().backward(); });
    same(cn._callbacks.functions.size, held); // spent graphs hold no functions
    x.zero_grad();
    cn.autograd.checkpoint(v => v.exp().sum(), x).backward();
    near(await x.grad.read(), [Math.E, Math.E ** 2, Math.E ** 3]);
    class Bad extends cn.autograd.Function {
      static forward(ctx, x) { return x.mul(1); }
      static backward() { throw new RangeError('from backward'); }
    }
    let thrown = '';
    try { Bad.apply(x).sum().backward(); } catch (error) { thrown = `${error.name} ${error.message}`; }
    same(thrown, 'RangeError from backward');
    await fails(() => cn.ones([1]).registerHook(g => g), 'NO_GRADIENT', 'hook');
    const j = await cn.autograd.jacobian(v => v.square(), x), h = await cn.autograd.hessian(v => v.pow(3).sum(), x);
    near(await j.read(), [2, 0, 0, 0, 4, 0, 0, 0, 6]);
    near(await h.read(), [6, 0, 0, 0, 12, 0, 0, 0, 18]);
    near(await (await cn.autograd.jvp(v => v.square(), x, cn.ones([3]))).read(), [2, 4, 6]);
    near(await (await cn.autograd.vjp(v => v.square().sum(), x))[0].read(), [2, 4, 6]);
    same(cn.noGrad(() => [x.mul(2).requires_grad, cn.withGrad(() => x.mul(2).requires_grad), x.mul(2).requires_grad]), [false, true, false]);
    const [g] = cn.grad([x.square()], [x], { gradients: [cn.tensor([1, 0, 2])] });
    near(await g.read(), [2, 0, 12]);
  },
  async moduleHooks(cn) {
    const layer = new cn.nn.Linear(2, 2), net = new cn.nn.Sequential(layer, new cn.nn.ReLU()), x = cn.ones([1, 2]), seen = [];
    const before = await net.forward(x).read();
    const first = layer.registerForwardHook((m, [input], output) => { seen.push(input.shape, m === layer); return output.mul(0).add(3); });
    const pre = net.registerForwardPreHook((m, [input]) => { seen.push('pre'); return input.mul(2); });
    const back = net.registerFullBackwardPreHook((m, grad) => { seen.push('back'); return grad.mul(2); });
    const y = net.forward(x);
    near(await y.read(), [3, 3]);
    y.sum().backward();
    same(seen, ['pre', [1, 2], true, 'back']);
    [first, pre, back].forEach(hook => hook.remove());
    near(await net.forward(x).read(), before);
    await fails(() => { const hook = layer.registerForwardHook(() => 5); try { layer.forward(x); } finally { hook.remove(); } }, 'BAD_ARGUMENT', 'tensor');
    class Twice extends Module { forward(v) { return v.mul(2); } }
    const own = new Twice(), hook = own.registerForwardHook((m, inputs, output) => output.add(1));
    near(await own.forward(x).read(), [3, 3]);
    hook.remove();
    near(await own.forward(x).read(), [2, 2]);
    cn.nn.init.constant_(layer.stateDict().bias, 4);
    near(await layer.stateDict().bias.read(), [4, 4]);
    cn.nn.init.kaiming_normal_(layer.stateDict().weight, 0, 'fan_out', 'relu');
  },
  async states(cn) {
    const net = new cn.nn.Linear(2, 2), state = net.stateDict();
    await fails(() => net.loadStateDict({ weight: state.weight }), 'NOT_FOUND', 'missing: bias');
    await fails(() => net.loadStateDict({ ...state, other: state.bias }), 'NOT_FOUND', 'unexpected: other');
    await fails(() => net.loadStateDict({ weight: cn.ones([2, 2]), bias: cn.ones([3]) }), 'BAD_SHAPE', 'bias has shape [2]');
    same(net.loadStateDict({ weight: cn.ones([2, 2]), more: cn.ones([1]) }, { strict: false }), { missing: ['bias'], unexpected: ['more'] });
    near(await state.weight.read(), [1, 1, 1, 1]);
    const make = () => new cn.optim.Adam([{ params: [net.stateDict().weight], lr: 0.1 }, { params: [net.stateDict().bias], lr: 0.2 }]);
    const step = async opt => { cn.scope(() => net.forward(cn.ones([1, 2])).square().sum().backward()); await opt.step(); };
    const one = make(), values = async () => Promise.all(Object.values(net.stateDict()).map(async v => Array.from(await v.read())));
    near([one.lr], [0.1]);
    await step(one);
    const kept = one.stateDict(), file = await cn.save(kept.tensors, { texts: kept.texts }), model = await cn.save(net.stateDict());
    await step(one);
    const after = await values();
    net.loadStateDict((await cn.load(model)).tensors);
    const two = make();
    two.loadStateDict(await cn.load(file));
    await step(two);
    same(await values(), after); // the same bits
    await fails(() => two.loadStateDict({ tensors: {}, texts: {} }), 'BAD_ARGUMENT', 'no optimizer');
    const rate = new cn.optim.SGD(net, { lr: 1 }), s = new cn.schedule.LambdaLR(rate, n => 1 / (1 + n));
    for (let i = 0; i < 3; i++) { await rate.step(); s.step(); }
    near([rate.lr], [0.25]);
  },
  async closures(cn) {
    const w = cn.parameter(cn.tensor([3, -2])), opt = new cn.optim.LBFGS([w], { strong_wolfe: true });
    let calls = 0;
    const first = await opt.step(() => {
      calls++;
      const loss = w.sub(cn.tensor([1, 2])).square().sum();
      loss.backward();
      return loss;
    });
    near([first], [20]);
    near(await w.read(), [1, 2], 1e-3);
    same(calls > 1, true);
    await fails(() => opt.step(() => 3), 'BAD_ARGUMENT', 'a closure must return a tensor');
    near(await cn.ones([1]).read(), [1]);
  },
  async data(cn) {
    cn.seed(5);
    const n = 10, x = Float32Array.from({ length: 2 * n }, (_, i) => i), y = Int32Array.from({ length: n }, (_, i) => i);
    const pairs = new cn.data.TensorDataset({ data: x, shape: [n, 2] }, y);
    const all = async loader => {
      const out = [];
      for await (const [a, b] of loader) {
        same([a.shape, a.dtype, b.dtype], [[b.shape[0], 2], 'f32', 'i32']);
        const labels = Array.from(await b.read());
        near(await a.read(), labels.flatMap(v => [2 * v, 2 * v + 1]));
        out.push(labels);
      }
      return out;
    };
    const loader = new cn.data.DataLoader(pairs, { batchSize: 4, shuffle: true });
    same([loader.length, new cn.data.DataLoader(pairs, { batchSize: 4, dropLast: true }).length], [3, 2]);
    const epochs = [await all(loader), await all(loader)];
    same(epochs.map(e => e.flat().sort((a, b) => a - b)), [Array.from(y), Array.from(y)]);
    same(String(epochs[0]) !== String(epochs[1]), true);
    /* The library's own loader has the same order. */
    const table = Array.from(y, v => `${2 * v},${2 * v + 1},${v}`).join('\n');
    const csv = cn.data.csv(`a,b,label\n${table}\n`, { target: 'label', classes: true });
    same([csv.length, csv.classes.length], [10, 10]);
    const native = new cn.data.DataLoader(csv, { batchSize: 4, shuffle: true }), orders = [];
    for (let epoch = 0; epoch < 2; epoch++) {
      const order = [];
      for await (const [a, b] of native) { order.push(Array.from(await b.read(), Number)); same(a.dtype, 'f32'); }
      orders.push(order);
    }
    same(orders, epochs);
    const [most, few] = csv.split([0.8, 0.2], 3);
    same([most.length, few.length, csv.subset([1, 3]).length, cn.data.concat([most, few]).length], [8, 2, 2, 10]);
    let held;
    const mapped = pairs.map(([a, b]) => ({ sum: a[0] + a[1], label: b, picture: cn.full([2], b[0]) })).subset([3, 1]);
    for await (const batch of new cn.data.DataLoader(mapped, { batchSize: 2, transform: b => ({ ...b, sum: b.sum.mul(2) }) })) {
      near(await batch.sum.read(), [26, 10]);
      near(await batch.label.read(), [3, 1]);
      same(batch.picture.shape, [2, 2]);
      held = batch;
      batch.label.keep();
    }
    await fails(async () => held.sum.shape, 'RELEASED', 'release');
    near(await held.label.read(), [3, 1]);
    const lines = ['a', 'bcd'], own = { length: 2, async get(i) { return lines[i]; } };
    for await (const batch of new cn.data.DataLoader(own, { batchSize: 2, collate: items => items.join('-') })) same(batch, 'a-bcd');
    await fails(async () => { for await (const b of new cn.data.DataLoader(own, { batchSize: 2 })) void b; }, 'BAD_ARGUMENT', 'collate');
    const idx = new Uint8Array([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 255, 51, 102]), names = new Uint8Array([0, 0, 8, 1, 0, 0, 0, 2, 7, 1]);
    for await (const [a, b] of new cn.data.DataLoader(cn.data.idx(idx, names), { batchSize: 2 })) {
      same([a.shape, b.dtype], [[2, 1, 1, 2], 'i64']);
      near(await a.read(), [0, 1, 0.2, 0.4]);
      near(await b.read(), [7, 1]);
    }
    await fails(() => cn.data.idx(new Uint8Array([1, 2])), 'BAD_FILE', 'idx');
    await fails(() => cn.data.csv('a,b\n1,x\n'), 'BAD_FILE', 'line 2');
    const image = await cn.data.image(await createImageBitmap(new ImageData(new Uint8ClampedArray([255, 0, 10, 255, 1, 2, 3, 255]), 2, 1)));
    near(await image.read(), [255, 1, 0, 2, 10, 3]);
  },
  async text(cn) {
    const story = 'the old stone and the old wind, äöü. '.repeat(20), bpe = cn.data.bpeTokenizer(story, 290), ids = bpe.encode(story);
    same([bpe.decode(ids), bpe.length <= 290, ids.length < story.length], [story, true, true]);
    const again = cn.data.tokenizer(bpe.save());
    same(Array.from(again.encode('the old')), Array.from(bpe.encode('the old')));
    const letters = cn.data.characterTokenizer('cab');
    same([letters.length, Array.from(letters.encode('abc')), letters.decode([1, 2, 3])], [4, [1, 2, 3], 'abc']);
    same(Array.from(cn.data.byteTokenizer().encode('A')), [65]);
    const windows = cn.data.tokens(Int32Array.from({ length: 10 }, (_, i) => i), { context: 4, stride: 1 });
    same(windows.length, 6);
    for await (const [x, y] of new cn.data.DataLoader(windows, { batchSize: 6 })) {
      same(x.shape, [6, 4]);
      near((await y.read()).slice(0, 4), [1, 2, 3, 4]);
    }
    windows.free();
    await fails(() => cn.data.tokenizer('{}'), 'BAD_FILE', 'tokenizer');
  },
  async files(cn) {
    const net = new cn.nn.Linear(3, 2), state = net.stateDict();
    const bytes = await cn.save(state, { texts: { note: 'from a page' } });
    same(new TextDecoder().decode(bytes.slice(8, 9)), '{');
    const { tensors, texts } = await cn.load(bytes);
    same(Object.keys(tensors).sort(), ['bias', 'weight']);
    same(texts.note, 'from a page');
    near(await tensors.weight.read(), await state.weight.read(), 0);
    await fails(() => cn.load(new Uint8Array([1, 2, 3])), 'BAD_FILE', 'not a safetensors');
  },
  async scopes(cn) {
    let inside;
    const out = cn.scope(() => {
      inside = cn.ones([4]);
      return inside.add(1);
    });
    near(await out.read(), [2, 2, 2, 2]);
    await fails(async () => inside.shape, 'RELEASED', 'release');
    const pair = await cn.scope(async () => ({ a: cn.ones([1]), list: [cn.ones([2])] }));
    near(await pair.list[0].read(), [1, 1]);
    out.release();
    await fails(async () => out.shape, 'RELEASED', 'release');
  },
  /* Tensors that nobody holds any more are freed, and so is the memory of steps. */
  async forgotten(cn) {
    const many = () => { for (let i = 0; i < 300; i++) cn.ones([1000]).add(i); };
    for (let round = 0; round < 4; round++) {
      many();
      if (self.gc) gc();
      await new Promise(done => setTimeout(done, 20));
      cn.ones([1]);
    }
    await cn.evalAll();
    const size = cn.heapBytes;
    const net = new cn.nn.Linear(64, 64), opt = new cn.optim.SGD(net, { lr: 0.01 });
    const step = () => cn.scope(async () => {
      net.forward(cn.ones([32, 64])).square().mean().backward();
      await opt.step();
    });
    for (let i = 0; i < (cn.device === 'cpu' ? 5 : 55); i++) await step(); // a GPU makes its mirror after 50
    await cn.ones([1]).item(); // the mirror has arrived
    await step(); // and is in place
    const before = cn.heapBytes, buffers = cn.counted.buffers;
    for (let i = 0; i < (cn.device === 'cpu' ? 300 : 60); i++) await step();
    same([cn.heapBytes, cn.counted.buffers], [before, buffers]);
  },
  async gpt(cn) {
    cn.seed(1);
    const gpt = new cn.nn.GPT({ vocab: 32, context: 16, layers: 1, heads: 2, width: 32 });
    const opt = new cn.optim.AdamW(gpt, { lr: 1e-2 }), tokens = Int32Array.from({ length: 32 }, (_, i) => i % 32);
    let first, last;
    for (let step = 0; step < (cn.device === 'cpu' ? 40 : 8); step++) {
      last = await cn.scope(async () => {
        const loss = cn.gptLoss(gpt, cn.tensor(tokens, [2, 16]), cn.tensor(tokens.map(t => (t + 1) % 32), [2, 16]));
        loss.backward();
        await opt.step();
        return loss.item();
      });
      first = first || last;
    }
    if (!(last < first)) throw new Error(`the loss went from ${first} to ${last}`);
    if (cn.device === 'gpu') {
      const before = cn.counted.submissions;
      await cn.scope(async () => {
        cn.gptLoss(gpt, cn.tensor(tokens, [2, 16]), cn.tensor(tokens, [2, 16])).backward();
        await opt.step();
      });
      same(cn.counted.submissions - before, 1);
    }
  },
};

/* The devices that the page was given. */
function watchDevices() {
  const devices = [], own = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function(...given) {
    devices.push(await own.apply(this, given));
    return devices[devices.length - 1];
  };
  return devices;
}

/* A GPU that is taken away is had again by the next step or read; nothing else is seen of it. */
async function loss(cn, devices) {
  const train = async mishaps => {
    cn.seed(5);
    const net = new cn.nn.Sequential(new cn.nn.Linear(8, 16), new cn.nn.ReLU(), new cn.nn.Dropout(), new cn.nn.Linear(16, 1));
    const opt = new cn.optim.AdamW(net, { lr: 0.01 }), losses = [];
    for (let step = 0; step < 12; step++) {
      await cn.scope(async () => {
        const value = net.forward(cn.ones([4, 8]).mul(step)).square().mean();
        if (mishaps.includes(`${step} forward`)) devices[devices.length - 1].destroy();
        value.backward();
        await opt.step();
        if (mishaps.includes(`${step} read`)) devices[devices.length - 1].destroy();
        losses.push(await value.item());
      });
      if (mishaps.includes(`${step} end`)) devices[devices.length - 1].destroy();
    }
    const weights = Array.from(await net.parameters()[0].read());
    opt.free();
    net.free();
    return [losses, weights];
  };
  const whole = await train([]), before = cn.counted.recoveries;
  same(await train(['2 forward', '5 read', '6 read', '9 end']), whole);
  same(cn.counted.recoveries - before, 4);
}

export async function run(options) {
  const results = [];
  const tests = { ...TESTS };
  if (options.device === 'gpu') {
    const devices = watchDevices();
    tests.loss = cn => loss(cn, devices);
  }
  const cn = await open({ seed: 7, ...options });
  results.push({ name: 'device', error: cn.device === options.device ? '' : `it is ${cn.device}` });
  if (options.threads) results.push({ name: 'threads', error: cn.threads === options.threads ? '' : `there are ${cn.threads}` });
  for (const [name, test] of Object.entries(tests)) {
    let error = '';
    try {
      await test(cn);
    } catch (e) {
      error = String(e.stack || e);
    }
    results.push({ name, error });
  }
  await cn.close();
  return results;
}
