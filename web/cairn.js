/* cairn.js: Cairn in a browser.

       import { open } from './cairn.js';
       const cn = await open({ device: 'cpu', seed: 1 });
       const mlp = new cn.nn.Sequential(new cn.nn.Linear(784, 128), new cn.nn.ReLU(), new cn.nn.Linear(128, 10));
       const opt = new cn.optim.AdamW(mlp.parameters(), { lr: 1e-3 });
       await cn.scope(async () => {
         const loss = cn.cross_entropy(mlp.forward(cn.tensor(pixels, [64, 784])), cn.tensor(labels));
         loss.backward();
         await opt.step();
         console.log(await loss.item());
       });

   Operators only make nodes; what computes is asynchronous: read, item, step, save. One call at a time: await it.
   docs/web.md is the manual. context.js calls C, operators.js makes functions of signatures; tables.js, made by
   generate.py, lists the functions of the module and the operators. */
import { makeAutograd } from './autograd.js';
import { Context } from './context.js';
import { makeData } from './data.js';
import './indexing.js';
import { ARRAYS, CairnError, DTYPES, settle } from './memory.js';
import { Module, makeLayers, parametersOf } from './nn.js';
import { OPERATORS } from './operators.js';
import { makeOptimizers, makeSchedules } from './optim.js';
import { Tensor, isOptions } from './tensor.js';

export { CairnError, Module, Tensor };

export class Cairn extends Context {
  constructor(module) {
    super(module);
    this.nn = makeLayers(this);
    this.optim = makeOptimizers(this);
    this.schedule = makeSchedules(this);
    this.autograd = makeAutograd(this);
    this.data = makeData(this);
  }

  /* ---- tensors ---- */

  /* From a number, a list (nested lists give the shape) or a typed array. { dtype, requires_grad } */
  tensor(data, shape, options) {
    if (isOptions(shape)) [shape, options] = [undefined, shape];
    let { dtype, requires_grad } = options || {};
    let own = shape;
    if (!ArrayBuffer.isView(data)) {
      const sizes = [];
      for (let part = data; Array.isArray(part); part = part[0]) sizes.push(part.length);
      own = own || sizes;
      data = typeof data === 'number' || typeof data === 'boolean' ? [data] : data.flat(Infinity);
      dtype = dtype || (typeof data[0] === 'boolean' ? 'bool' : 'f32');
    }
    const natural = Object.keys(ARRAYS).find(t => t !== 'bool' && data instanceof ARRAYS[t]);
    own = own || [data.length];
    dtype = dtype || natural;
    if (!ARRAYS[dtype]) { // halves, and kinds of arrays that have no dtype
      if (!DTYPES.includes(dtype)) throw new CairnError(`tensor: dtype must be one of ${DTYPES.join(', ')}, got ${dtype}`, 'BAD_DTYPE');
      return this._tidy(() => this.tensor(Float32Array.from(data), own).cast(dtype));
    }
    const kind = ARRAYS[dtype];
    const values = data instanceof kind ? data : dtype === 'i64' ? BigInt64Array.from(data, v => BigInt(v)) : kind.from(data, Number);
    const wanted = own.reduce((a, b) => a * b, 1);
    if (wanted !== values.length)
      throw new CairnError(`tensor: shape [${own}] has ${wanted} elements, but there are ${values.length} values`, 'BAD_SHAPE');
    return this.memory.with(values, at => {
      const t = this._result(() => this.call('from', this.context, DTYPES.indexOf(dtype), own, at));
      if (requires_grad) t.requires_grad = true;
      return t;
    });
  }
  /* A parameter: a leaf that is kept and requires a gradient. */
  parameter(t) {
    const pointer = this.do('param', t);
    return new Tensor(this, pointer, 'kept');
  }
  /* Gradients of outputs with respect to inputs, without changing .grad. options: gradients (of the outputs), retain,
     create_graph, allow_unused */
  grad(outputs, inputs, options = null) {
    const { memory } = this;
    return memory.onStack(() => this._collect(() => {
      const out = memory.room(4 * inputs.length), given = options && { ...options };
      if (given && given.gradients) given.gradients = memory.pointers(given.gradients);
      this.do('grad', memory.pointers(outputs), outputs.length, memory.pointers(inputs), inputs.length, out, given);
      return memory.readPointers(out, inputs.length);
    }, true));
  }
  clipGradNorm(parameters, maxNorm, options = null) {
    return this._result(() => this.do('clip_grad_norm', parametersOf(parameters), maxNorm, options));
  }
  clipGradValue(parameters, most) { this.do('clip_grad_value', parametersOf(parameters), most); }
  gptLoss(gpt, tokens, targets) { return this._result(() => this.do('gpt_loss', gpt, tokens, targets)); }
  /* An operator by name that computes its operands, as nonzero and masked_select do: these must be awaited on a GPU. */
  compute(name, ...args) { return OPERATORS[name](this, args, true); }
  async evalAll() { await this.wait('eval_all', this.context); }
  seed(value) { this._seed = value; this.call('seed', this.context, value); }

  /* ---- files ---- */

  /* f(dict): an object of C with these tensors and texts. */
  _withDict(f, { tensors = {}, texts = {} } = {}) {
    const dict = this.do('dict_new', this.context);
    return settle(() => {
      for (const [name, tensor] of Object.entries(tensors)) this.do('dict_set', dict, name, tensor);
      for (const [name, text] of Object.entries(texts)) this.do('dict_set_text', dict, name, String(text));
      return f(dict);
    }, () => this.call('dict_free', dict));
  }
  _content(dict) {
    const tensors = {}, texts = {};
    for (let i = 0; i < this.call('dict_count', dict); i++) {
      const pointer = this.call('keep', this.call('dict_at', dict, i));
      tensors[this.call('dict_name', dict, i)] = new Tensor(this, pointer, 'kept');
    }
    for (let i = 0; i < this.call('dict_texts', dict); i++) {
      const name = this.call('dict_text_name', dict, i);
      texts[name] = this.call('dict_text', dict, name);
    }
    return { tensors, texts };
  }
  /* The bytes of a safetensors file (or .npy, .npz by `format`) of tensors by name. */
  async save(tensors, { texts = {}, format = 'safetensors' } = {}) {
    const path = `cairn.${format}`;
    return this._withDict(async dict => {
      await this.wait('save', dict, path);
      return this._takeFile(path);
    }, { tensors, texts });
  }
  _takeFile(path) {
    return this.module.cairnFiles().take(path);
  }
  /* The tensors and texts of such a file, or of one that torch.save wrote: { tensors, texts } */
  async load(data) {
    const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
    const dict = this.memory.with(bytes, at => this.do('load_memory', this.context, at, bytes.length));
    return settle(() => this._content(dict), () => this.call('dict_free', dict));
  }

  /* What the GPU has done so far; zeros on the CPU. */
  get counted() { return this.call('gpu_counted', this.context); }
  get version() { return this.call('version'); }
  /* Bytes of the module's memory, which never shrinks. */
  get heapBytes() { return this.memory.u8.length; }

  async close() {
    await this._queue;
    if (this.context) await this.wait('close', this.context).catch(() => {});
    this.context = 0;
    if (this.module.PThread) this.module.PThread.terminateAllThreads();
  }
}

for (const [name, f] of Object.entries(OPERATORS)) {
  if (!(name in Cairn.prototype)) Cairn.prototype[name] = function (...args) { return f(this, args); };
}

/* Opens a context. device: 'cpu', 'gpu' or 'auto'. threads: 0 or none: one for each core where the page is cross-origin
   isolated, else 1. base: where the files of this package are. */
export async function open({ device = 'cpu', seed = 0, threads = 0, memory_limit = 0, base = new URL('./', import.meta.url).href } = {}) {
  const possible = typeof SharedArrayBuffer !== 'undefined' && self.crossOriginIsolated;
  const wanted = !possible ? 1 : threads || navigator.hardwareConcurrency || 1;
  const build = device !== 'cpu' && !WebAssembly.Suspending ? 'async' : wanted > 1 ? 'threads' : 'single';
  const { default: start } = await import(`${base}wasm/${build}.js`);
  const module = await start({ cairnThreads: wanted - 1, locateFile: file => `${base}wasm/${file}`,
                               mainScriptUrlOrBlob: `${base}wasm/${build}.js` });
  const cn = new Cairn(module);
  cn.threads = build === 'single' ? 1 : wanted;
  cn._seed = seed;
  cn.device = 'opening';
  /* A GPU must not be waited for in the midst of an operator. */
  const options = { device, seed, threads: cn.threads, memory_limit };
  if (device !== 'cpu') options.pending_limit = 1e9;
  else cn.device = 'cpu';
  cn.context = await cn.wait('open', options);
  if (!cn.context) throw new CairnError('open: out of memory', 'NO_MEMORY');
  cn.device = cn.call('gpu_current', cn.context) >= 0 ? 'gpu' : 'cpu';
  try {
    cn._check();
  } catch (error) {
    await cn.close();
    throw error;
  }
  return cn;
}
