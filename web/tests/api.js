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

export async function run(options) {
  const results = [];
  const cn = await open({ seed: 7, ...options });
  results.push({ name: 'device', error: cn.device === options.device ? '' : `it is ${cn.device}` });
  if (options.threads) results.push({ name: 'threads', error: cn.threads === options.threads ? '' : `there are ${cn.threads}` });
  for (const [name, test] of Object.entries(TESTS)) {
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
