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

export function makeLayers(cn) {
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

export const parametersOf = what => what instanceof Module ? what.parameters() : what;
