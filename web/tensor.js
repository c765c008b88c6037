/* Tensors: what they are, how they are read, how long they live. operators.js adds the operators as methods. */
import { ARRAYS, CairnError, DTYPES } from './memory.js';

export class Tensor {
  /* owner: 'kept' (released when it is collected), 'scope', 'batch' (a loader's, until its next batch) or 'other' (a
     module's, another tensor's). */
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
  get is_leaf() { return this.cn.call('is_leaf', this); }
  zero_grad() { this.cn.call('zero_grad', this); }
  /* Gradients of all leaves that this single number depends on. */
  backward(options = null) { this.cn._collect(() => { this.cn.do('backward_with', this, options); return []; }); }
  /* f(gradient) is called by backward, and may return another one. remove() of the result ends it. */
  registerHook(f) {
    const callbacks = this.cn._callbacks, number = callbacks.hold(f);
    callbacks.hook(this, 'hook', number);
    return { remove: () => { if (callbacks.functions.has(number)) callbacks.functions.set(number, () => {}); } };
  }
  /* The values, in the order of rows: a typed array. f16 and bf16 become Float32Array. */
  async read() {
    const cn = this.cn, dtype = this.dtype, n = this.numel, kind = ARRAYS[dtype] || Float64Array;
    const bytes = n * kind.BYTES_PER_ELEMENT, at = cn.memory.hold(bytes);
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
    this.cn.do('assign', this, typeof value === 'number' ? this.full_like(value) : value);
    return this;
  }
  fill_(value) { return this._change('fill_', () => this.full_like(value)); }
  zero_() { return this.fill_(0); }
  /* The same, of a shape that fits this one by broadcasting. */
  copy_(source) {
    const value = typeof source === 'number' ? this.cn._number(source, this) : source;
    return this._change('copy_', () => value.expand(this.shape));
  }
  normal_(mean = 0, std = 1) { return this._change('normal_', () => this.randn_like().mul(std).add(mean)); }
  uniform_(low = 0, high = 1) { return this._change('uniform_', () => this.rand_like().mul(high - low).add(low)); }
  requires_grad_(on = true) { this.requires_grad = on; return this; }
  /* Assigns what f returns. As in PyTorch a leaf that requires a gradient is not changed while gradients are recorded. */
  _change(name, f) {
    const recorded = this.cn.call('grad_enabled', this.cn.context);
    if (recorded && this.requires_grad && this.is_leaf)
      throw new CairnError(`${name}: a leaf that requires a gradient is changed in place; call it inside noGrad`, 'NO_GRADIENT');
    let value = f(); // a new tensor
    if (String(value.shape) !== String(this.shape))
      throw new CairnError(`${name}: a result of shape [${value.shape}] cannot be stored in a tensor of shape [${this.shape}]`, 'BAD_SHAPE');
    if (recorded && (value.requires_grad || this.requires_grad)) {
      if (value.dtype !== this.dtype) value = value.cast(this.dtype);
      this._swap(value);
    } else {
      this.cn.do('assign', this, value);
    }
    value.release();
    return this;
  }
  /* Each object gets the other's handle. Gradients flow through handles; assigning would cut them off. */
  _swap(other) {
    for (const key of ['pointer', 'owner']) [this[key], other[key]] = [other[key], this[key]];
    for (const tensor of [this, other]) {
      this.cn._forgotten.unregister(tensor);
      if (tensor.owner === 'kept') this.cn._forgotten.register(tensor, tensor.pointer, tensor);
    }
  }
  /* A kept tensor that lives beyond its scope. */
  keep() {
    if (this.owner === 'scope' || this.owner === 'batch') {
      if (this.owner === 'scope') this.cn.call('keep', this);
      this.cn._forgotten.register(this, this.pointer, this);
      this.owner = 'kept';
    }
    return this;
  }
  release() {
    if (!this.pointer || (this.owner !== 'kept' && this.owner !== 'batch')) return;
    this.cn._forgotten.unregister(this);
    this.cn.call('release', this);
    this.pointer = 0;
  }
  name(text) { this.cn.call('name', this, text); return this; }
  toString() { return `Tensor(${this.dtype} [${this.shape}] on ${this.device})`; }
}

/* Whether an argument is an object of options: neither a tensor nor data. */
export const isOptions = value => value !== null && typeof value === 'object' && !(value instanceof Tensor) &&
    !Array.isArray(value) && !ArrayBuffer.isView(value);
