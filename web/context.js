/* A context of C: calls of its functions, and how long their results live. */
import { Callbacks } from './callbacks.js';
import { CairnError, DTYPES, FUNCTIONS, Memory, STRUCTS, pointerOf, settle } from './memory.js';
import { Tensor, isOptions } from './tensor.js';

export class Context {
  constructor(module) {
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
    this._thrown = null;
    this._callbacks = new Callbacks(this);
    this._forgotten = new FinalizationRegistry(pointer => this._dead.push(pointer));
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
        case 's': return value === null || value === undefined ? 0 : typeof value === 'number' ? value : memory.text(value);
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
    return this.memory.onStack(() => {
      const place = this._place(f), list = this._arguments(f, args);
      if (place) list.unshift(place);
      const value = this._value(f.result, this._functions[name](...list), place);
      if ((value === 0 && f.result === 'p') || value === false) this._check();
      return value;
    });
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
    return this._turn(() => this._suspended(name, args));
  }
  /* f after everything that waits already. */
  _turn(f) {
    const turn = this._queue.then(f);
    this._queue = turn.catch(() => {});
    return turn;
  }
  /* The tensors of the pointers that finish(result) returns, of a C function that makes tensors and computes. make():
     its arguments, with room on the stack that lives until then. */
  async _computed(name, make, finish) {
    const { memory } = this;
    const body = run => {
      const scope = this._scopes.length ? -1 : this._functions.scope_begin(this.context);
      return settle(() => run(value => finish(value).map(pointer => this._made(pointer))),
                    () => { if (scope !== -1) this._functions.scope_end(this.context, scope); });
    };
    if (this.device === 'cpu') return memory.onStack(() => body(take => take(this.do(name, ...make()))));
    return this._turn(() => {
      const stack = this.module.stackSave();
      return settle(() => body(take => this._suspended(name, make()).then(take)), () => this.module.stackRestore(stack));
    });
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
    if (this._thrown) { // by a function of the page that C has called
      const error = this._thrown;
      this._thrown = null;
      this._functions.error_clear(this.context);
      throw error;
    }
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
  /* The tensor that f returns the pointer of. */
  _result(f) { return this._collect(() => [f()])[0]; }
  _number(value, beside) {
    const dtype = beside ? beside.dtype : 'f32';
    const fits = dtype[0] === 'f' || dtype === 'bf16' || Number.isInteger(value);
    return this._result(() => this.call('scalar', this.context, DTYPES.indexOf(fits ? dtype : 'f32'), value));
  }
  /* Runs f and frees the tensors it has made, except those it returns. f may be asynchronous; await the scope then. */
  scope(f) {
    const mark = this.call('scope_begin', this.context), made = [];
    this._scopes.push(made);
    return settle(f, result => {
      const keep = value => {
        if (value instanceof Tensor) value.keep();
        else if (Array.isArray(value)) value.forEach(keep);
        else if (value && Object.getPrototypeOf(value) === Object.prototype) Object.values(value).forEach(keep);
      };
      keep(result);
      while (this._scopes.length && this._scopes.pop() !== made) continue;
      this.call('scope_end', this.context, mark);
      this._leave(made);
    });
  }
  /* Several operators for one result: outside of scopes, what else they make is freed. */
  _tidy(f) { return this._scopes.length ? f() : this.scope(f); }
  _leave(made) { for (const tensor of made) if (tensor.owner === 'scope') tensor.pointer = 0; }
  /* Runs a function of the page that C has called in the midst of a call of its own. What it throws is thrown when C
     returns; `failed` is what C gets then. */
  _inside(f, failed) {
    if (this._thrown) return failed;
    const made = [], busy = this._busy;
    this._scopes.push(made);
    this._busy = false;
    try {
      return f();
    } catch (error) {
      this._thrown = error;
      return failed;
    } finally {
      this._busy = busy;
      while (this._scopes.pop() !== made) continue;
      this._leave(made);
    }
  }
  /* Runs f without recording gradients. */
  noGrad(f) {
    this.call('no_grad_begin', this.context);
    return settle(f, () => this.call('no_grad_end', this.context));
  }
  /* Runs f with gradients recorded, also inside noGrad. */
  withGrad(f) {
    let depth = 0;
    for (; !this.call('grad_enabled', this.context); depth++) this.call('no_grad_end', this.context);
    return settle(f, () => { while (depth--) this.call('no_grad_begin', this.context); });
  }
}
