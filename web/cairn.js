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
   docs/web.md is the manual. tables.js, made by generate.py, lists the functions of the module and the operators. */
import * as tables from './tables.js';

const DTYPES = ['bool', 'u8', 'i8', 'i16', 'i32', 'i64', 'f16', 'bf16', 'f32', 'f64'];
const ARRAYS = { bool: Uint8Array, u8: Uint8Array, i8: Int8Array, i16: Int16Array, i32: Int32Array, i64: BigInt64Array,
                 f32: Float32Array, f64: Float64Array };
const ZERO = -1e-300; // in descriptors: 0, where a plain 0 means the default

/* An error with Cairn's words; code is the name of a cn_code: 'BAD_SHAPE', 'NO_MEMORY', ... */
export class CairnError extends Error {
  constructor(message, code) {
    super(message);
    this.name = 'CairnError';
    this.code = code;
  }
}

/* ---- The module: memory, functions, arguments ---- */

const parseFunction = (line, index) => {
  const [name, result, parameters] = line.split(':');
  return { name, index, result, parameters: parameters ? parameters.split(',').map(p => p.split(' ')) : [] };
};

const parseStruct = text => text.split(',').map(field => {
  const [, name, kind, letter, count, at] = /^(\w+):(?:(\w+)!)?([a-zA-Z])(\d*)@(\d+)$/.exec(field);
  return { name, names: kind && tables.enums[kind], letter, count: +(count || 1), at: +at };
});

const STRUCTS = Object.fromEntries(Object.entries(tables.structs).map(([name, text]) => [name, parseStruct(text)]));
const FUNCTIONS = Object.fromEntries(tables.functions.map(parseFunction).map(f => [f.name, f]));

class Memory {
  constructor(module) {
    this.module = module;
    this.refresh();
  }
  /* Views are made again when the memory has grown. */
  refresh() {
    const buffer = this.module.cairnMemory().buffer;
    if (buffer === this.buffer) return;
    this.buffer = buffer;
    this.bytes = new Uint8Array(buffer);
    this.view = new DataView(buffer);
  }
  get u8() { this.refresh(); return this.bytes; }
  get data() { this.refresh(); return this.view; }
  room(bytes) { return this.module.stackAlloc((bytes + 15) & ~15); }
  text(string) {
    const bytes = new TextEncoder().encode(string), at = this.room(bytes.length + 1);
    this.u8.set(bytes, at);
    this.u8[at + bytes.length] = 0;
    return at;
  }
  readText(at) {
    if (!at) return null;
    const u8 = this.u8;
    return new TextDecoder().decode(u8.slice(at, u8.indexOf(0, at)));
  }
  /* A cn_dims; null: all axes. */
  dims(values) {
    const at = this.room(72), data = this.data, list = values === null ? [] : values;
    if (list.length > 8) throw new CairnError(`at most 8 dimensions, got ${list.length}`, 'BAD_SHAPE');
    data.setInt32(at, values === null ? -1 : list.length, true);
    list.forEach((v, i) => data.setBigInt64(at + 8 + 8 * i, BigInt(v), true));
    return at;
  }
  readDims(at) {
    const data = this.data, n = Math.max(0, data.getInt32(at, true));
    return Array.from({ length: n }, (_, i) => Number(data.getBigInt64(at + 8 + 8 * i, true)));
  }
  pointers(list) {
    const at = this.room(4 * list.length + 4), data = this.data;
    list.forEach((object, i) => data.setUint32(at + 4 * i, pointerOf(object), true));
    return at;
  }
  readPointers(at, n) { return Array.from({ length: n }, (_, i) => this.data.getUint32(at + 4 * i, true)); }
  params(list) {
    const v = this.pointers(list), at = this.room(8);
    this.data.setUint32(at, v, true);
    this.data.setInt32(at + 4, list.length, true);
    return at;
  }
  put(letter, at, value) {
    const data = this.data;
    switch (letter) {
      case 'd': return data.setFloat64(at, value, true);
      case 'f': return data.setFloat32(at, value, true);
      case 'b': return data.setUint8(at, value ? 1 : 0);
      case 'j': return data.setBigInt64(at, BigInt(value), true);
      case 'i': case 'z': return data.setUint32(at, value, true);
      case 's': { const p = value === null ? 0 : this.text(value); return this.data.setUint32(at, p, true); }
      case 'D': { const p = this.dims(value); return this.u8.copyWithin(at, p, p + 72); }
      default: return data.setUint32(at, pointerOf(value), true);
    }
  }
  get(letter, at) {
    const data = this.data;
    return letter === 'd' ? data.getFloat64(at, true) : letter === 'j' ? Number(data.getBigInt64(at, true)) :
        letter === 'b' ? data.getUint8(at) !== 0 : letter === 's' ? this.readText(data.getUint32(at, true)) :
        data.getUint32(at, true);
  }
  /* A descriptor from an object; null: the defaults. `zeros`: a 0 that is given means 0. `bias: false` is no_bias. */
  struct(name, options, zeros) {
    if (!options) return 0;
    const fields = STRUCTS[name], last = fields[fields.length - 1];
    const at = this.room(last.at + 80), given = { ...options };
    this.u8.fill(0, at, at + last.at + 80);
    if (given.betas) [given.beta1, given.beta2] = given.betas;
    delete given.betas;
    for (const key of Object.keys(given)) {
      const field = fields.find(f => f.name === key), inverse = field ? null : fields.find(f => f.name === 'no_' + key);
      if (!field && !inverse)
        throw new CairnError(`there is no option '${key}'; there are ${fields.map(f => f.name).join(', ')}`, 'BAD_ARGUMENT');
      let value = inverse ? !given[key] : given[key];
      if (value === undefined || value === null) continue;
      const { letter, count, names } = field || inverse;
      if (names && typeof value === 'string') {
        if (!names.includes(value))
          throw new CairnError(`${key} must be one of ${names.join(', ')}, got '${value}'`, 'BAD_ARGUMENT');
        value = names.indexOf(value);
      }
      if (letter === 'd' && value === 0 && (zeros || key === 'eps' || key === 'momentum')) value = ZERO;
      const size = { d: 8, j: 8, b: 1, D: 72 }[letter] || 4, start = at + (field || inverse).at;
      if (count === 1) this.put(letter, start, value);
      else for (let i = 0; i < count; i++) if (i < value.length) this.put(letter, start + size * i, value[i]);
    }
    return at;
  }
}

const pointerOf = object => {
  if (object === null || object === undefined) return 0;
  if (typeof object === 'number') return object;
  if (object.pointer === 0) throw new CairnError('a tensor or object was used after its release', 'RELEASED');
  if (!object.pointer) throw new CairnError(`a tensor or object of Cairn was expected, got ${object}`, 'BAD_ARGUMENT');
  return object.pointer;
};

/* ---- Signatures: "topk(Tensor input, int k, int dim=-1, bool largest=True) -> (Tensor values, Tensor indices)" ---- */

function parseCall(call) {
  const [, name, inside, result] = /^(\w+)\((.*)\) -> (.*)$/.exec(call);
  let byName = false;
  const parameters = [];
  for (const word of inside ? inside.split(', ') : []) {
    if (word === '*') { byName = true; continue; }
    const [, kindText, parameter, , initial] = /^(\S+) (\w+)(=(.*))?$/.exec(word);
    const optional = kindText.endsWith('?'), kind = optional ? kindText.slice(0, -1) : kindText;
    const count = /^int\[(\d)\]$/.exec(kind);
    parameters.push({ name: parameter, optional, byName, initial, count: count ? +count[1] : 0,
                      kind: kind.includes('|') ? 'enum' : count ? 'int[]' : kind,
                      choices: kind.includes('|') ? kind.split('|') : null });
  }
  return { name, parameters, list: result === 'Tensor[]', results: result === 'Tensor[]' ? 0 : result.split(', ').length };
}

const isOptions = value => value !== null && typeof value === 'object' && !(value instanceof Tensor) &&
    !Array.isArray(value) && !ArrayBuffer.isView(value);

/* Arguments by position and, in a last object, by name, in the order of the parameters. */
function bind(signature, args) {
  const { name, parameters } = signature, values = new Array(parameters.length);
  const last = args.length ? args[args.length - 1] : null, options = isOptions(last) ? last : null;
  const n = options ? args.length - 1 : args.length;
  if (n > parameters.length)
    throw new CairnError(`${name}: at most ${parameters.length} arguments, got ${n}`, 'BAD_ARGUMENT');
  for (let i = 0; i < n; i++) values[i] = args[i];
  for (const key in options) {
    const i = parameters.findIndex(p => p.name === key);
    if (i < 0) throw new CairnError(`${name}: there is no argument '${key}'; there are ${parameters.map(p => p.name).join(', ')}`, 'BAD_ARGUMENT');
    values[i] = options[key];
  }
  parameters.forEach((p, i) => {
    if (values[i] === undefined && p.initial === undefined && !p.optional)
      throw new CairnError(`${name}: the argument '${p.name}' is missing`, 'BAD_ARGUMENT');
  });
  return values;
}

function initialOf(p) {
  const text = p.initial;
  if (text === undefined || text === 'None') return null;
  if (p.kind === 'bool') return text === 'True';
  if (p.kind === 'enum' || p.kind === 'dtype') return text;
  if (p.kind === 'str') return text.replace(/^'|'$/g, '');
  if (p.kind === 'int[]') return p.count ? new Array(p.count).fill(+text) : [+text];
  return text === 'inf' ? Infinity : text === '-inf' ? -Infinity : +text;
}

/* A function that calls an operator: (cn, arguments) → a tensor, or a list of tensors. */
function operator(call) {
  const s = parseCall(call), c = FUNCTIONS[s.name], initial = s.parameters.map(initialOf);
  const at = Object.fromEntries(s.parameters.map((p, i) => [p.name, i]));
  const inC = new Set(c.parameters.map(([, name]) => name));
  const number = FUNCTIONS[s.name + '_s'];
  const hasNumberForm = number && number.parameters.length === 2 && s.parameters.length >= 2 &&
      s.parameters[0].kind === 'Tensor' && s.parameters[1].kind === 'Tensor';

  const fail = (p, value) => {
    throw new CairnError(`${s.name}: ${p.name} must be ${p.choices ? 'one of ' + p.choices.join(', ') : p.kind}, got ${value}`, 'BAD_ARGUMENT');
  };
  const ints = (p, value) => {
    const list = typeof value === 'number' ? new Array(p.count || 1).fill(value) : Array.from(value);
    return list;
  };
  const plain = (p, value) => { // everything but tensors
    switch (p.kind) {
      case 'dtype': { const i = DTYPES.indexOf(value); return i < 0 ? fail(p, value) : i; }
      case 'enum': { const i = p.choices.indexOf(value); return i < 0 ? fail(p, value) : i; }
      case 'bool': return value ? 1 : 0;
      case 'float': return value === null ? NaN : typeof value === 'number' ? value : fail(p, value);
      default: return value;
    }
  };
  /* The rules of generate.py for fields, in which 0 means the default. */
  const field = (options, p, value, given) => {
    const renamed = tables.fields[p.name], flag = Object.keys(tables.flags).find(f => tables.flags[f] === p.name);
    const fields = STRUCTS[descriptor];
    const own = fields.find(f => f.name === (renamed || p.name));
    if (renamed) options[renamed] = !value;
    else if (value === null) return;
    else if (p.kind === 'int[]') options[p.name] = p.name === 'size' && !Array.isArray(value) ? [value] : ints(p, value);
    else if (own && own.letter === 'd' && own.count > 1) options[p.name] = Array.isArray(value) ? value : [value];
    else if (p.kind === 'Tensor') options[p.name] = value;
    else {
      options[p.name] = plain(p, value);
      if (p.kind === 'float' && value === 0 && p.initial !== '0' && p.initial !== 'None') options[p.name] = 1e-300;
    }
    if (flag && fields.some(f => f.name === flag) && value !== null)
      options[flag] = flag === 'has_ignore' ? value !== +p.initial : flag === 'has_padding' ? given : value === 0;
  };
  const descriptor = c.parameters.map(([letter]) => letter).filter(letter => letter[0] === '{').map(l => l.slice(1, -1))[0];

  return (cn, args) => {
    const given = bind(s, args), values = initial.map((v, i) => given[i] === undefined ? v : given[i]);
    if (hasNumberForm && typeof values[1] === 'number' && values[0] instanceof Tensor)
      return cn._result(cn.call(number.name, values[0], values[1]));
    let first = null;
    s.parameters.forEach((p, i) => {
      if (p.kind === 'Tensor' && values[i] instanceof Tensor && !first) first = values[i];
    });
    s.parameters.forEach((p, i) => {
      if (p.kind !== 'Tensor') return;
      if (typeof values[i] === 'number') values[i] = cn._number(values[i], first);
      else if (values[i] !== null && !(values[i] instanceof Tensor)) fail(p, values[i]);
    });
    const memory = cn.memory, stack = cn.module.stackSave(), out = [];
    let room = 0;
    try {
      const list = c.parameters.map(([letter, name], k) => {
        if (name in at) {
          const p = s.parameters[at[name]], value = values[at[name]];
          if (p.kind === 'Tensor') return value;
          if (p.kind === 'Tensor[]') return memory.pointers(value);
          if (p.kind === 'int[]') return value === null ? null : ints(p, value);
          return plain(p, value);
        }
        if (letter[0] === '{') {
          const options = {};
          s.parameters.forEach((p, i) => inC.has(p.name) || field(options, p, values[i], given[i] !== undefined && given[i] !== null));
          return options;
        }
        if (name === 'ctx') return cn.context;
        if (name === 'height' || name === 'width') {
          const i = s.parameters.findIndex(p => p.count === 2 && !inC.has(p.name));
          return ints(s.parameters[i], values[i])[name === 'width' ? 1 : 0];
        }
        if (s.list && name === 'out') return room = memory.room(4 * 65536);
        if (s.list && name === 'room') return 65536;
        if (letter === 'i') return values[at[c.parameters[k - 1][1]]].length; // of the list before it
        const slot = memory.room(4);
        out.push(slot);
        return slot;
      });
      const tensors = cn._collect(() => {
        const result = cn.call(s.name, ...list);
        return s.list ? memory.readPointers(room, result < 0 ? 0 : result)
                      : [result, ...out.map(slot => memory.data.getUint32(slot, true))];
      });
      return s.list || tensors.length > 1 ? tensors : tensors[0];
    } finally {
      cn.module.stackRestore(stack);
    }
  };
}

const OPERATORS = Object.fromEntries(tables.calls.map(call => [/^\w+/.exec(call)[0], operator(call)]));
const IS_METHOD = new Set(tables.calls.filter(call => /^\w+\(Tensor \w/.test(call)).map(call => /^\w+/.exec(call)[0]));

/* ---- Tensors ---- */

export class Tensor {
  /* owner: 'kept' (released when it is collected), 'scope' or 'other' (a module's, another tensor's). */
  constructor(cn, pointer, owner) {
    this.cn = cn;
    this.pointer = pointer;
    if (owner === 'kept') cn._forgotten.register(this, pointer, this);
    this.owner = owner;
  }
  get shape() { return this.cn.call('shape', this); }
  get dtype() { return DTYPES[this.cn.call('type', this)]; }
  get ndim() { return this.cn.call('ndim', this); }
  get numel() { return this.cn.call('numel', this); }
  get device() { return this.cn.call('device', this); }
  get requires_grad() { return this.cn.call('requires_grad', this); }
  set requires_grad(on) { this.cn.call('set_requires_grad', this, on); this.cn._check(); }
  get grad() {
    const pointer = this.cn.call('grad_of', this);
    return pointer ? new Tensor(this.cn, pointer, 'other') : null;
  }
  zero_grad() { this.cn.call('zero_grad', this); }
  /* Gradients of all leaves that this single number depends on. */
  backward(options = null) { this.cn.do('backward_with', this, options); }
  /* The values, in the order of rows: a typed array. f16 and bf16 become Float32Array. */
  async read() {
    const cn = this.cn, dtype = this.dtype, n = this.numel, kind = ARRAYS[dtype] || Float64Array;
    const bytes = n * kind.BYTES_PER_ELEMENT, at = cn.module._malloc(bytes || 1);
    if (!at) throw new CairnError(`read: out of memory for ${bytes} bytes`, 'NO_MEMORY');
    try {
      if (ARRAYS[dtype]) await cn.wait('read', this, at, bytes);
      else await cn.wait('read_f64', this, at, n);
      const values = new kind(cn.memory.u8.slice(at, at + bytes).buffer);
      return ARRAYS[dtype] ? values : Float32Array.from(values);
    } finally {
      cn.module._free(at);
    }
  }
  async item() { return this.cn.wait('item', this); }
  async eval() { await this.cn.wait('eval', this); return this; }
  /* Gives this tensor another value, of its shape. */
  assign(value) {
    this.cn.do('assign', this, typeof value === 'number' ? this.cn._number(value, this) : value);
    return this;
  }
  /* A kept tensor that lives beyond its scope. */
  keep() {
    if (this.owner === 'scope') {
      this.cn.call('keep', this);
      this.cn._forgotten.register(this, this.pointer, this);
      this.owner = 'kept';
    }
    return this;
  }
  release() {
    if (!this.pointer || this.owner !== 'kept') return;
    this.cn._forgotten.unregister(this);
    this.cn.call('release', this);
    this.pointer = 0;
  }
  name(text) { this.cn.call('name', this, text); return this; }
  toString() { return `Tensor(${this.dtype} [${this.shape}] on ${this.device})`; }
}

for (const name of IS_METHOD) {
  const f = OPERATORS[name];
  if (!(name in Tensor.prototype)) Tensor.prototype[name] = function (...args) { return f(this.cn, [this, ...args]); };
}

/* ---- Modules ---- */

/* A module of your own: a class with forward(x) whose properties are tensors and modules. */
export class Module {
  constructor() { this.training = true; }
  * _named(prefix, seen) {
    for (const [key, value] of Object.entries(this)) {
      if (value instanceof Tensor && !seen.has(value.pointer)) {
        seen.add(value.pointer);
        yield [prefix + key, value, !value.requires_grad];
      } else if (value instanceof Module) {
        yield* value._named(`${prefix}${key}.`, seen);
      } else if (Array.isArray(value)) {
        for (const [i, part] of value.entries())
          if (part instanceof Module) yield* part._named(`${prefix}${key}.${i}.`, seen);
      }
    }
  }
  /* Tensors by name, with buffers; the names of PyTorch's state_dict. */
  stateDict() { return Object.fromEntries([...this._named('', new Set())].map(([name, tensor]) => [name, tensor])); }
  namedParameters() { return [...this._named('', new Set())].filter(([, , buffer]) => !buffer).map(([n, t]) => [n, t]); }
  parameters() { return this.namedParameters().map(([, tensor]) => tensor); }
  loadStateDict(state) {
    const own = this.stateDict();
    for (const name of Object.keys(own))
      if (!state[name]) throw new CairnError(`loadStateDict: '${name}' is missing`, 'NOT_FOUND');
    for (const [name, tensor] of Object.entries(own)) tensor.cn.noGrad(() => tensor.assign(state[name]));
  }
  * _children() {
    for (const value of Object.values(this))
      for (const part of Array.isArray(value) ? value : [value]) if (part instanceof Module) yield part;
  }
  train(on = true) {
    this.training = on;
    for (const child of this._children()) child.train(on);
    return this;
  }
  eval() { return this.train(false); }
}

/* A module of the library. */
class NativeModule extends Module {
  constructor(cn, pointer) {
    super();
    Object.defineProperty(this, 'cn', { value: cn });
    Object.defineProperty(this, 'pointer', { value: pointer, writable: true });
  }
  /* One operand gives a tensor; several, or `results` in a last object, give a list. */
  forward(...args) {
    const options = isOptions(args[args.length - 1]) ? args.pop() : {};
    if (args.length === 1 && !options.results) return this.cn._result(this.cn.call('forward', this, args[0]));
    const { cn } = this, n = options.results || 1, stack = cn.module.stackSave();
    try {
      return cn._collect(() => {
        const out = cn.memory.room(4 * n);
        cn.do('forward_all', this, cn.memory.pointers(args), args.length, out, n);
        return cn.memory.readPointers(out, n);
      }, true);
    } finally {
      cn.module.stackRestore(stack);
    }
  }
  * _named(prefix, seen) {
    const { memory } = this.cn, [at, n] = this.cn.call('module_named', this);
    for (let i = 0; i < n; i++) { // cn_named: name, tensor, whether it is a buffer
      const [name, pointer] = memory.readPointers(at + 12 * i, 2), buffer = memory.u8[at + 12 * i + 8] !== 0;
      if (seen.has(pointer)) continue;
      seen.add(pointer);
      yield [prefix + memory.readText(name), new Tensor(this.cn, pointer, 'other'), buffer];
    }
  }
  get count() { return this.cn.call('module_count', this); }
  train(on = true) {
    this.training = on;
    this.cn.call('module_train', this, on);
    return this;
  }
  free() {
    this.cn.call('module_free', this);
    this.pointer = 0;
  }
}

/* Arguments of makers for which PyTorch has defaults and C has none. */
const DEFAULTS = { Dropout: [0.5], Dropout1d: [0.5], Dropout2d: [0.5], Dropout3d: [0.5], AlphaDropout: [0.5], Flatten: [1, -1],
                   LeakyReLU: [0.01], PReLU: [1, 0.25], ELU: [1], CELU: [1], GLU: [-1], Softplus: [1, 20], Hardtanh: [-1, 1],
                   Softshrink: [0.5], Hardshrink: [0.5], Softmax: [-1], LogSoftmax: [-1] };

function makeLayers(cn) {
  const nn = { Module };
  for (const [name, maker] of Object.entries(tables.layers)) {
    nn[name] = function (...args) { return new NativeModule(cn, cn._make(maker, [cn.context, ...args], DEFAULTS[name] || [])); };
  }
  for (const name of ['Sequential', 'ModuleList']) {
    const maker = tables.layers[name];
    nn[name] = function (...modules) {
      const stack = cn.module.stackSave();
      try {
        return new NativeModule(cn, cn.do(maker, cn.context, cn.memory.pointers(modules), modules.length));
      } finally {
        cn.module.stackRestore(stack);
      }
    };
  }
  return nn;
}

/* ---- Optimizers and schedules ---- */

const OPTIMIZERS = { SGD: 'sgd', Adam: 'adam', AdamW: 'adamw', SparseAdam: 'sparse_adam', NAdam: 'nadam', RAdam: 'radam',
                     Adamax: 'adamax', RMSprop: 'rmsprop', Adagrad: 'adagrad', Adadelta: 'adadelta', Lion: 'lion', Muon: 'muon',
                     Rprop: 'rprop', ASGD: 'asgd', Adafactor: 'adafactor' };
const SCHEDULES = { StepLR: 'every', MultiStepLR: 'milestones', ExponentialLR: 'exponential', ConstantLR: 'constant',
                    LinearLR: 'linear', PolynomialLR: 'polynomial', CosineAnnealingLR: 'cosine',
                    CosineAnnealingWarmRestarts: 'cosine_restarts', OneCycleLR: 'one_cycle', CyclicLR: 'cyclic',
                    ReduceLROnPlateau: 'plateau' };

class Optimizer {
  constructor(cn, pointer) { this.cn = cn; this.pointer = pointer; }
  /* Computes everything pending and the new parameters; the gradients are cleared. */
  async step() { await this.cn.wait('step', this); }
  zeroGrad() { this.cn.call('optim_zero_grad', this); }
  get lr() { return this.cn.call('optim_lr', this, 0); }
  set lr(value) {
    for (let group = 0; group < this.cn.call('optim_groups', this); group++) this.cn.do('optim_set_lr', this, group, value);
  }
  free() { this.cn.call('optim_free', this); this.pointer = 0; }
}

class Schedule {
  constructor(cn, pointer) { this.cn = cn; this.pointer = pointer; }
  step(metric) {
    if (metric === undefined) this.cn.do('schedule_step', this);
    else this.cn.do('schedule_step_metric', this, metric);
  }
  free() { this.cn.call('schedule_free', this); this.pointer = 0; }
}

const parametersOf = what => what instanceof Module ? what.parameters() : what;

/* ---- The context ---- */

export class Cairn {
  constructor(module, options) {
    this.module = module;
    this.memory = new Memory(module);
    const table = module._cairn_web_functions() >>> 2, pointers = new Uint32Array(this.memory.u8.buffer);
    this._functions = {};
    for (const f of Object.values(FUNCTIONS)) this._functions[f.name] = module.cairnTable(pointers[table + f.index]);
    this._waiting = {};
    this._busy = false;
    this._queue = Promise.resolve();
    this._dead = [];
    this._scopes = [];
    this._forgotten = new FinalizationRegistry(pointer => this._dead.push(pointer));
    this.nn = makeLayers(this);
    this.optim = {};
    for (const [name, maker] of Object.entries(OPTIMIZERS)) {
      const cn = this;
      this.optim[name] = function (parameters, options = {}) {
        return new Optimizer(cn, cn.do(maker, cn.context, parametersOf(parameters), options));
      };
    }
    this.schedule = {};
    for (const [name, maker] of Object.entries(SCHEDULES)) {
      const cn = this;
      this.schedule[name] = function (optimizer, ...args) {
        if (name === 'MultiStepLR') {
          const [milestones, gamma = 0] = args;
          const at = cn.module._malloc(8 * milestones.length + 8);
          milestones.forEach((m, i) => cn.memory.data.setBigInt64(at + 8 * i, BigInt(m), true));
          try {
            return new Schedule(cn, cn.do('schedule_milestones', optimizer, at, milestones.length, gamma));
          } finally {
            cn.module._free(at);
          }
        }
        return new Schedule(cn, cn._make('schedule_' + maker, [optimizer, ...args], [0, 0, 0]));
      };
    }
  }

  /* ---- calls of C ---- */

  _arguments(f, args) {
    const { memory } = this;
    return f.parameters.map(([letter], i) => {
      const value = args[i];
      switch (letter) {
        case 'd': return value;
        case 'i': case 'z': return value === undefined ? 0 : value;
        case 'b': return value ? 1 : 0;
        case 'j': return BigInt(value === undefined ? 0 : value);
        case 's': return value === null || value === undefined ? 0 : memory.text(value);
        case 'D': return memory.dims(value === undefined ? null : value);
        case 'P': return memory.params(value);
        case 'p': return pointerOf(value);
        default: return memory.struct(letter.slice(1, -1), value, /^(optim|schedule|sgd|.*ad|rms|lion|muon|rprop|asgd)/.test(f.name));
      }
    });
  }

  _value(letter, value, place) {
    switch (letter) {
      case 'b': return (value & 255) !== 0;
      case 'j': return Number(value);
      case 's': return this.memory.readText(value);
      case 'D': return this.memory.readDims(place);
      case 'P': return this.memory.readPointers(place, 2);
      case 'p': case 'z': return value >>> 0;
      case 'd': case 'i': case 'v': return value;
      default: return Object.fromEntries(STRUCTS[letter.slice(1, -1)].map(f => [f.name, this.memory.get(f.letter, place + f.at)]));
    }
  }

  /* Room for a result that C returns by address: it is the first argument. */
  _place(f) { return f.result === 'D' || f.result === 'P' || f.result[0] === '{' ? this.memory.room(256) : 0; }

  /* Calls cn_NAME at once. It must not wait for a GPU. */
  call(name, ...args) {
    const f = FUNCTIONS[name];
    if (this._busy) throw new CairnError(`${name}: another call is under way: await it first`, 'BAD_ARGUMENT');
    if (this._dead.length) this._bury();
    const stack = this.module.stackSave();
    try {
      const place = this._place(f), list = this._arguments(f, args);
      if (place) list.unshift(place);
      const value = this._value(f.result, this._functions[name](...list), place);
      if ((value === 0 && f.result === 'p') || value === false) this._check();
      return value;
    } finally {
      this.module.stackRestore(stack);
    }
  }

  /* The same, and an error if the call has set one. */
  do(name, ...args) {
    const value = this.call(name, ...args);
    this._check();
    return value;
  }

  /* Calls cn_NAME, which computes and may wait for a GPU; calls are made one after the other. */
  wait(name, ...args) {
    if (this.device === 'cpu') {
      try {
        return Promise.resolve(this.do(name, ...args));
      } catch (error) {
        return Promise.reject(error);
      }
    }
    const turn = this._queue.then(() => this._suspended(name, args));
    this._queue = turn.catch(() => {});
    return turn;
  }

  async _suspended(name, args) {
    const f = FUNCTIONS[name], stack = this.module.stackSave();
    if (this._dead.length) this._bury();
    this._waiting[name] ||= this.module.cairnPromising(this._functions[name]);
    let value;
    try {
      const list = this._arguments(f, args);
      this._busy = true;
      value = this._value(f.result, await this._waiting[name](...list), 0);
    } finally {
      this._busy = false;
      this.module.stackRestore(stack);
    }
    this._check();
    return value;
  }

  _check() {
    if (!this.context || !this._functions.failed(this.context)) return;
    const message = this.memory.readText(this._functions.error(this.context));
    const code = this.memory.readText(this._functions.code_name(this._functions.error_code(this.context)));
    this._functions.error_clear(this.context);
    throw new CairnError(message, code);
  }

  _make(maker, args, defaults) {
    const f = FUNCTIONS[maker], list = f.parameters.map(([letter, name], i) => {
      if (letter[0] === '{') return isOptions(args[args.length - 1]) ? args[args.length - 1] : null;
      const value = isOptions(args[i]) && !args[i].pointer ? undefined : args[i];
      const given = value === undefined ? defaults[i - 1] : value;
      if (given === undefined) throw new CairnError(`${maker}: the argument '${name}' is missing`, 'BAD_ARGUMENT');
      return letter === 'D' && typeof given === 'number' ? [given] : given;
    });
    return this.do(maker, ...list);
  }

  /* ---- lifetimes ---- */

  _bury() {
    const dead = this._dead;
    this._dead = [];
    for (const pointer of dead) this._functions.release(pointer);
  }
  /* The tensors of the pointers that f returns. Outside of scopes they are kept, and what else f makes is freed; inside
     they belong to the scope. `absent`: 0 is null and no mistake. */
  _collect(f, absent) {
    const scope = this._scopes.length ? -1 : this._functions.scope_begin(this.context);
    try {
      return f().map(pointer => !pointer && absent ? null : this._made(pointer));
    } finally {
      if (scope !== -1) this._functions.scope_end(this.context, scope);
    }
  }
  _made(pointer) {
    if (!pointer) { this._check(); throw new CairnError('no result', 'BAD_ARGUMENT'); }
    if (!this._scopes.length) return new Tensor(this, this._functions.keep(pointer), 'kept');
    const tensor = new Tensor(this, pointer, 'scope');
    this._scopes[this._scopes.length - 1].push(tensor);
    return tensor;
  }
  _result(pointer) { return this._collect(() => [pointer])[0]; }
  _number(value, beside) {
    const dtype = beside ? beside.dtype : 'f32';
    const fits = dtype[0] === 'f' || dtype === 'bf16' || Number.isInteger(value);
    return this._result(this.call('scalar', this.context, DTYPES.indexOf(fits ? dtype : 'f32'), value));
  }
  /* Runs f and frees the tensors it has made, except those it returns. f may be asynchronous; await the scope then. */
  scope(f) {
    const mark = this.call('scope_begin', this.context), made = [];
    this._scopes.push(made);
    const end = result => {
      const keep = value => {
        if (value instanceof Tensor) value.keep();
        else if (Array.isArray(value)) value.forEach(keep);
        else if (value && Object.getPrototypeOf(value) === Object.prototype) Object.values(value).forEach(keep);
      };
      keep(result);
      while (this._scopes.length && this._scopes.pop() !== made) continue;
      this.call('scope_end', this.context, mark);
      for (const tensor of made) if (tensor.owner === 'scope') tensor.pointer = 0;
      return result;
    };
    let result;
    try {
      result = f();
    } catch (error) {
      end(null);
      throw error;
    }
    if (!result || typeof result.then !== 'function') return end(result);
    return result.then(end, error => { end(null); throw error; });
  }
  /* Runs f without recording gradients. */
  noGrad(f) {
    this.call('no_grad_begin', this.context);
    const end = () => this.call('no_grad_end', this.context);
    let result;
    try {
      result = f();
    } catch (error) {
      end();
      throw error;
    }
    if (!result || typeof result.then !== 'function') { end(); return result; }
    return result.then(value => { end(); return value; }, error => { end(); throw error; });
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
      return this.scope(() => this.tensor(Float32Array.from(data), own).cast(dtype));
    }
    const kind = ARRAYS[dtype];
    const values = data instanceof kind ? data : dtype === 'i64' ? BigInt64Array.from(data, v => BigInt(v)) : kind.from(data, Number);
    const wanted = own.reduce((a, b) => a * b, 1);
    if (wanted !== values.length)
      throw new CairnError(`tensor: shape [${own}] has ${wanted} elements, but there are ${values.length} values`, 'BAD_SHAPE');
    const at = this.module._malloc(values.byteLength || 1);
    if (!at) throw new CairnError(`tensor: out of memory for ${values.byteLength} bytes`, 'NO_MEMORY');
    try {
      this.memory.u8.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), at);
      const t = this._result(this.call('from', this.context, DTYPES.indexOf(dtype), own, at));
      if (requires_grad) t.requires_grad = true;
      return t;
    } finally {
      this.module._free(at);
    }
  }
  /* A parameter: a leaf that is kept and requires a gradient. */
  parameter(t) {
    const pointer = this.do('param', t);
    return new Tensor(this, pointer, 'kept');
  }
  /* Gradients of outputs with respect to inputs, without changing .grad. */
  grad(outputs, inputs, options = null) {
    const stack = this.module.stackSave();
    try {
      return this._collect(() => {
        const out = this.memory.room(4 * inputs.length);
        this.do('grad', this.memory.pointers(outputs), outputs.length, this.memory.pointers(inputs), inputs.length, out, options);
        return this.memory.readPointers(out, inputs.length);
      }, true);
    } finally {
      this.module.stackRestore(stack);
    }
  }
  clipGradNorm(parameters, maxNorm, options = null) {
    return this._result(this.do('clip_grad_norm', parametersOf(parameters), maxNorm, options));
  }
  gptLoss(gpt, tokens, targets) { return this._result(this.do('gpt_loss', gpt, tokens, targets)); }
  async evalAll() { await this.wait('eval_all', this.context); }
  seed(value) { this.call('seed', this.context, value); }

  /* ---- files ---- */

  /* The bytes of a safetensors file (or .npy, .npz by `format`) of tensors by name. */
  async save(tensors, { texts = {}, format = 'safetensors' } = {}) {
    const dict = this.do('dict_new', this.context), path = `/cairn.${format}`;
    try {
      for (const [name, tensor] of Object.entries(tensors)) this.do('dict_set', dict, name, tensor);
      for (const [name, text] of Object.entries(texts)) this.do('dict_set_text', dict, name, String(text));
      await this.wait('save', dict, path);
      const bytes = this.module.FS.readFile(path);
      this.module.FS.unlink(path);
      return bytes;
    } finally {
      this.call('dict_free', dict);
    }
  }
  /* The tensors and texts of such a file, or of one that torch.save wrote: { tensors, texts } */
  async load(data) {
    const bytes = data instanceof Uint8Array ? data : new Uint8Array(data), at = this.module._malloc(bytes.length || 1);
    if (!at) throw new CairnError(`load: out of memory for ${bytes.length} bytes`, 'NO_MEMORY');
    let dict = 0;
    try {
      this.memory.u8.set(bytes, at);
      dict = this.do('load_memory', this.context, at, bytes.length);
    } finally {
      this.module._free(at);
    }
    const tensors = {}, texts = {};
    for (let i = 0; i < this.call('dict_count', dict); i++) {
      const pointer = this.call('keep', this.call('dict_at', dict, i));
      tensors[this.call('dict_name', dict, i)] = new Tensor(this, pointer, 'kept');
    }
    for (let i = 0; i < this.call('dict_texts', dict); i++) {
      const name = this.call('dict_text_name', dict, i);
      texts[name] = this.call('dict_text', dict, name);
    }
    this.call('dict_free', dict);
    return { tensors, texts };
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
