/* Modules: layers of the library, and classes of your own. */
import { CairnError } from './memory.js';
import * as tables from './tables.js';
import { Tensor, isOptions } from './tensor.js';

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
  /* Assigns the values of these names. strict: names must be the same on both sides. Returns those that are not. */
  loadStateDict(state, { strict = true } = {}) {
    const own = this.stateDict(), missing = Object.keys(own).filter(name => !state[name]);
    const unexpected = Object.keys(state).filter(name => !own[name]);
    if (strict && (missing.length || unexpected.length))
      throw new CairnError('loadStateDict: ' + [missing.length && `missing: ${missing.join(', ')}`, unexpected.length &&
                           `unexpected: ${unexpected.join(', ')}`].filter(Boolean).join('; '), 'NOT_FOUND');
    const names = Object.keys(own).filter(name => state[name]);
    for (const name of names) // before anything changes
      if (String(own[name].shape) !== String(state[name].shape))
        throw new CairnError(`loadStateDict: ${name} has shape [${own[name].shape}], the given one [${state[name].shape}]`, 'BAD_SHAPE');
    for (const name of names) own[name].assign(state[name].detach());
    return { missing, unexpected };
  }
  /* f(module, operands, result) after forward, and f(module, operands) before it, may return other tensors in the place of
     the result or the operands. remove() of what these return ends them. */
  registerForwardHook(f) {
    return this._around(forward => (...operands) => {
      const result = forward(...operands), other = f(this, operands, result);
      return other === undefined || other === null ? result : other;
    });
  }
  registerForwardPreHook(f) {
    return this._around(forward => (...operands) => {
      const other = f(this, operands);
      return forward(...(other === undefined || other === null ? operands : [other].flat()));
    });
  }
  _around(wrap) {
    const before = this.forward, on = wrap((...args) => before.apply(this, args));
    let removed = false;
    this.forward = (...args) => removed ? before.apply(this, args) : on(...args);
    return { remove: () => { removed = true; } };
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
    if (args.length === 1 && !options.results) return this.cn._result(() => this.cn.call('forward', this, args[0]));
    const { cn } = this, { memory } = cn, n = options.results || 1;
    return memory.onStack(() => cn._collect(() => {
      const out = memory.room(4 * n);
      cn.do('forward_all', this, memory.pointers(args), args.length, out, n);
      return memory.readPointers(out, n);
    }, true));
  }
  registerForwardHook(f) { return this._hook('forward_hook', 'forward', (operands, result) => f(this, operands, result)); }
  registerForwardPreHook(f) { return this._hook('forward_pre_hook', 'forwardPre', operands => f(this, operands)); }
  /* f(module, gradient): of the first operand, after the module's own backward; pre: of the first result, before it. */
  registerFullBackwardHook(f) { return this._hook('backward_hook', 'moduleBackward', grad => f(this, grad)); }
  registerFullBackwardPreHook(f) { return this._hook('backward_pre_hook', 'moduleBackward', grad => f(this, grad)); }
  _hook(adder, kind, f) {
    const { cn } = this, callbacks = cn._callbacks, held = callbacks.hold(f);
    const number = cn.do('module_' + adder, this, callbacks.pointer(kind), held);
    return { remove: () => { cn.do('module_remove_hook', this, number); callbacks.drop(held); } };
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

/* nn.init.xavier_uniform_(tensor, ...): C's cn_init_*, by PyTorch's names. */
const FANS = ['fan_in', 'fan_out'];
const INITIAL = { uniform: [0, 1], normal: [0, 1], trunc_normal: [0, 1, -2, 2], xavier_uniform: [1], xavier_normal: [1], orthogonal: [1],
                  kaiming_uniform: [0, 'fan_in', 'leaky_relu'], kaiming_normal: [0, 'fan_in', 'leaky_relu'], dirac: [1], constant: [],
                  ones: [], zeros: [], eye: [] };
function makeInitialisers(cn) {
  return Object.fromEntries(Object.entries(INITIAL).map(([name, defaults]) => [name + '_', (tensor, ...args) => {
    const values = Array.from({ length: Math.max(args.length, defaults.length) }, (_, i) => args[i] === undefined ? defaults[i] : args[i]);
    cn.do('init_' + name, tensor, ...values.map(value => FANS.includes(value) ? FANS.indexOf(value) : value));
    return tensor;
  }]));
}

export function makeLayers(cn) {
  const nn = { Module };
  for (const [name, maker] of Object.entries(tables.layers)) {
    nn[name] = function (...args) { return new NativeModule(cn, cn._make(maker, [cn.context, ...args], DEFAULTS[name] || [])); };
  }
  for (const name of ['Sequential', 'ModuleList']) {
    const maker = tables.layers[name];
    nn[name] = function (...modules) {
      return cn.memory.onStack(() =>
        new NativeModule(cn, cn.do(maker, cn.context, cn.memory.pointers(modules), modules.length)));
    };
  }
  nn.init = makeInitialisers(cn);
  return nn;
}

export const parametersOf = what => what instanceof Module ? what.parameters() : what;
