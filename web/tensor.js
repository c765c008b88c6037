/* Tensors: what they are, how they are read, how long they live. operators.js adds the operators as methods. */
import { ARRAYS, CairnError, DTYPES } from './memory.js';

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

/* Whether an argument is an object of options: neither a tensor nor data. */
export const isOptions = value => value !== null && typeof value === 'object' && !(value instanceof Tensor) &&
    !Array.isArray(value) && !ArrayBuffer.isView(value);
