/* Functions of the page that C calls: hooks, functions with a backward of their own, closures. C holds the number of such
   a function as its `user`; its function pointer is one for each kind. */
import { CairnError, pointerOf } from './memory.js';
import { Tensor } from './tensor.js';

const given = (cn, pointer) => new Tensor(cn, pointer, 'other');
const givenList = (cn, at, n) => cn.memory.readPointers(at, n).map(pointer => given(cn, pointer));
const isTensor = (value, who) => {
  if (!(value instanceof Tensor)) throw new CairnError(`${who} must return a tensor, got ${value}`, 'BAD_ARGUMENT');
  return pointerOf(value);
};
/* The tensors that a hook returns in the place of those in a list of C. */
const replace = (cn, at, n, value) => {
  if (value === undefined || value === null) return 1;
  const list = Array.isArray(value) ? value : [value];
  if (list.length > n) throw new CairnError(`a hook must return at most ${n} tensors, got ${list.length}`, 'BAD_ARGUMENT');
  list.forEach((tensor, i) => cn.memory.data.setUint32(at + 4 * i, isTensor(tensor, 'a hook'), true));
  return 1;
};
const gradient = (cn, f, g) => {
  const result = f(given(cn, g));
  return result === undefined || result === null ? g : isTensor(result, 'a hook');
};

/* Each kind: WebAssembly's signature, what C gets after an error, and the call of f by C's arguments. */
const KINDS = {
  hook: ['iii', g => g, gradient],
  same: ['iii', g => g, (cn, f, g) => g],
  function: ['iiii', () => 0, (cn, f, at, n) => isTensor(f(...givenList(cn, at, n)), 'a function')],
  backward: ['viiiiii', () => 0, (cn, f, at, n, out, g, grads) => {
    const result = f.backward(given(cn, g)), list = Array.isArray(result) ? result : [result];
    if (list.length > n) throw new CairnError(`backward must return at most ${n} gradients, got ${list.length}`, 'BAD_ARGUMENT');
    list.forEach((tensor, i) => tensor && cn.memory.data.setUint32(grads + 4 * i, isTensor(tensor, 'backward'), true));
  }],
  closure: ['ii', () => 0, (cn, f) => isTensor(f(), 'a closure')],
  forwardPre: ['iiiii', () => 0, (cn, f, m, at, n) => replace(cn, at, n, f(givenList(cn, at, n)))],
  forward: ['iiiiiii', () => 0, (cn, f, m, at, n, out, results) => {
    const made = givenList(cn, out, results);
    return replace(cn, out, results, f(givenList(cn, at, n), results === 1 ? made[0] : made));
  }],
  moduleBackward: ['iiii', (m, g) => g, (cn, f, m, g) => gradient(cn, f, g)],
  rate: ['diij', () => NaN, (cn, f, group, step) => Number(f(Number(step), group))],
};

export class Callbacks {
  constructor(cn) {
    this.cn = cn;
    this.functions = new Map();
    this.pointers = {};
    this.next = 1;
  }
  /* The number by which C holds f. */
  hold(f) {
    this.functions.set(this.next, f);
    return this.next++;
  }
  drop(number) { this.functions.delete(number); }
  pointer(kind) {
    if (!this.pointers[kind]) {
      const [signature, failed, run] = KINDS[kind];
      const called = (user, ...args) => this.cn._inside(() => run(this.cn, this.functions.get(user), ...args), failed(...args));
      this.pointers[kind] = this.cn.module.addFunction(called, signature);
    }
    return this.pointers[kind];
  }
  /* C tells that it needs a function no more. It must not be called back in that. */
  get ended() { return this.pointers.ended ||= this.cn.module.addFunction(user => this.drop(user), 'vi'); }

  /* C calls the function of this number as a hook of this kind, until the graph of the tensor is spent. */
  hook(tensor, kind, number) {
    try {
      this.cn.do('add_hook_until', tensor, this.pointer(kind), number, this.ended);
    } catch (error) {
      this.drop(number);
      throw error;
    }
  }
  /* The tensor of make(number), whose graph calls f. A hook that changes nothing tells the end of the graph. */
  graph(f, make) {
    const number = this.hold(f);
    let result = null;
    try {
      result = this.cn._result(() => make(number));
    } finally {
      if (!result || !result.requires_grad) this.drop(number);
    }
    if (result.requires_grad) this.hook(result, 'same', number);
    return result;
  }
}
