/* Data: datasets, loaders, tokenizers. PyTorch's torch.utils.data.

       const digits = new cn.data.TensorDataset({ data: pixels, shape: [n, 784] }, labels);
       for await (const [x, y] of new cn.data.DataLoader(digits, { batchSize: 64, shuffle: true })) ...

   A dataset is any object with length and get(i), which may be asynchronous: an item is a number, a typed array (its
   property shape may give its shape), a tensor, or a list or an object of these. Datasets of the library (idx, csv,
   tokens) make their batches in C. The order of a shuffle depends on seed, epoch and length alone, and is that of a
   native loader. */
import { CairnError, STRUCTS } from './memory.js';
import { Tensor } from './tensor.js';

class Dataset {
  map(f) { return new Derived(this.length, async i => f(await this.get(i), i)); }
  subset(indices) { return new Derived(indices.length, i => this.get(indices[i])); }
}
class Derived extends Dataset {
  constructor(length, get) { super(); Object.assign(this, { length, get }); }
}

/* Typed arrays and nested lists, or { data, shape } of them, whose first axis counts the items. */
class TensorDataset extends Dataset {
  constructor(...columns) {
    super();
    this.columns = columns.map(column => {
      let { data, shape } = ArrayBuffer.isView(column) || Array.isArray(column) ? { data: column } : column;
      if (!ArrayBuffer.isView(data)) {
        shape = shape || [];
        if (!shape.length) for (let part = data; Array.isArray(part); part = part[0]) shape.push(part.length);
        data = Float32Array.from(data.flat(Infinity), Number);
      }
      shape = shape || [data.length];
      const size = shape.slice(1).reduce((a, b) => a * b, 1);
      if (size * shape[0] !== data.length)
        throw new CairnError(`TensorDataset: shape [${shape}] has ${size * shape[0]} elements, but there are ${data.length} values`, 'BAD_SHAPE');
      return { data, size, shape: shape.slice(1), count: shape[0] };
    });
    this.length = this.columns[0].count;
    const other = this.columns.find(column => column.count !== this.length);
    if (other) throw new CairnError(`TensorDataset: columns must have the same length, got ${this.length} and ${other.count}`, 'BAD_SHAPE');
  }
  /* A typed array for each column, with the shape of one item. */
  get(i) {
    return this.columns.map(({ data, size, shape }) => Object.assign(data.subarray(i * size, (i + 1) * size), { shape }));
  }
}

/* Items of one kind as one tensor: numbers, typed arrays, tensors; lists and objects part by part. */
function collate(cn, items) {
  const [first] = items;
  if (first instanceof Tensor) return cn.stack(items, 0);
  if (typeof first === 'number' || typeof first === 'boolean') return cn.tensor(items, [items.length]);
  if (ArrayBuffer.isView(first)) {
    const shape = first.shape || [first.length], all = new first.constructor(first.length * items.length);
    items.forEach((item, i) => {
      if (String(item.shape || [item.length]) !== String(shape))
        throw new CairnError(`DataLoader: items of a batch must have one shape, got [${shape}] and [${item.shape || item.length}]: ` +
                             'give a collate', 'BAD_SHAPE');
      all.set(item, i * first.length);
    });
    return cn.tensor(all, [items.length, ...shape]);
  }
  if (Array.isArray(first)) return first.map((_, k) => collate(cn, items.map(item => item[k])));
  if (first && typeof first === 'object')
    return Object.fromEntries(Object.keys(first).map(key => [key, collate(cn, items.map(item => item[key]))]));
  throw new CairnError(`DataLoader: an item is ${first}: give a collate`, 'BAD_ARGUMENT');
}

/* A dataset of the library. `held`: memory of the module that it borrows. */
class NativeDataset {
  constructor(cn, pointer, held = 0) { Object.assign(this, { cn, pointer, held }); }
  get length() { return this.cn.call('dataset_count', this); }
  get classes() {
    return Array.from({ length: this.cn.call('dataset_classes', this) }, (_, i) => this.cn.call('dataset_class', this, i));
  }
  subset(indices) {
    return this.cn.memory.with(BigInt64Array.from(indices, BigInt), at =>
      new NativeDataset(this.cn, this.cn.do('dataset_subset', this, at, indices.length)));
  }
  /* Random parts: fractions that sum to 1, or counts. */
  split(sizes, seed = 0) {
    const { cn } = this, { memory } = cn;
    return memory.with(Float64Array.from(sizes), at => memory.onStack(() => {
      const parts = memory.room(4 * sizes.length);
      cn.do('dataset_split', this, at, sizes.length, seed, parts);
      return memory.readPointers(parts, sizes.length).map(pointer => new NativeDataset(cn, pointer));
    }));
  }
  free() {
    this.cn.call('dataset_free', this);
    if (this.held) this.cn.module._free(this.held);
    this.pointer = this.held = 0;
  }
}

const BATCH = Object.fromEntries(STRUCTS.cn_batch.map(field => [field.name, field.at]));

/* Batches, for `for await`. Their tensors live until the next batch is asked for, unless they are kept. transform(batch)
   may return others. epoch: of the next loop. */
class DataLoader {
  constructor(cn, dataset, { batchSize = 1, shuffle = false, dropLast = false, seed = 0, weights = null, collate = null, transform = null } = {}) {
    if (!(batchSize >= 1)) throw new CairnError(`DataLoader: batchSize must be ≥ 1, got ${batchSize}`, 'BAD_ARGUMENT');
    Object.assign(this, { cn, dataset, batchSize, shuffle, dropLast, seed, weights, collate, transform, epoch: 0 });
  }
  get length() {
    const batches = this.dataset.length / this.batchSize;
    return this.dropLast ? Math.floor(batches) : Math.ceil(batches);
  }
  async * [Symbol.asyncIterator]() {
    const epoch = this.epoch++, native = this.dataset instanceof NativeDataset;
    if (native && this.collate) throw new CairnError('DataLoader: a dataset of the library makes its batches itself: give a transform', 'BAD_ARGUMENT');
    for await (const batch of native ? this._native(epoch) : this._gathered(epoch)) {
      const made = [];
      try {
        const given = mark(batch, made);
        yield this.transform ? mark(await this.transform(given), made) : given;
      } finally {
        for (const tensor of made) if (tensor.owner === 'batch') tensor.release();
      }
    }
  }
  /* What C calls a sampler, as f needs it. */
  _sampler(f) {
    const { cn, dataset: { length } } = this;
    const free = sampler => { try { return f(sampler); } finally { cn.call('data_sampler_free', sampler); } };
    if (this.weights)
      return cn.memory.with(Float64Array.from(this.weights), at => free({ pointer: cn.do('data_sampler_weighted', cn.context, at, length, null) }));
    return free({ pointer: this.shuffle ? cn.do('data_sampler_random', cn.context, length, null) : cn.do('data_sampler_sequential', cn.context, length) });
  }
  /* The indices of an epoch. */
  order(epoch = this.epoch) {
    const { cn } = this, { length } = this.dataset, at = cn.memory.hold(8 * length);
    try {
      this._sampler(sampler => cn.do('data_sampler_indices', sampler, this.seed || cn._seed, epoch, at));
      return Array.from(new BigInt64Array(cn.memory.u8.slice(at, at + 8 * length).buffer), Number);
    } finally {
      cn.module._free(at);
    }
  }
  async * _gathered(epoch) {
    const order = this.order(epoch), make = this.collate || (items => collate(this.cn, items));
    for (let batch = 0; batch < this.length; batch++) {
      const indices = order.slice(batch * this.batchSize, (batch + 1) * this.batchSize);
      const items = await Promise.all(indices.map(i => this.dataset.get(i)));
      yield await make(items);
    }
  }
  async * _native(epoch) {
    const { cn } = this, { memory } = cn, options = { batch: this.batchSize, drop_last: this.dropLast, seed: this.seed, shuffle: this.shuffle };
    const make = sampler => ({ pointer: cn.do('loader_new', this.dataset, sampler ? { ...options, shuffle: false, sampler } : options) });
    const loader = this.weights ? this._sampler(make) : make(null);
    try {
      cn.do('loader_reset', loader, epoch);
      for (;;) {
        const fields = memory.onStack(() => {
          const at = memory.room(128);
          return cn._collect(() => cn.do('loader_next', loader, at) ?
            memory.readPointers(at + BATCH.field, memory.data.getInt32(at + BATCH.fields, true)) : []);
        });
        if (!fields.length) return;
        yield fields;
      }
    } finally {
      cn.call('loader_free', loader);
    }
  }
}

/* The tensors of a batch that no scope owns become the loader's. */
function mark(value, made) {
  if (value instanceof Tensor) {
    if (value.owner === 'kept' && !made.includes(value)) {
      value.cn._forgotten.unregister(value);
      value.owner = 'batch';
      made.push(value);
    }
  } else if (Array.isArray(value)) {
    value.forEach(part => mark(part, made));
  } else if (value && typeof value === 'object') {
    Object.values(value).forEach(part => mark(part, made));
  }
  return value;
}

/* A text as numbers and back. */
class Tokenizer {
  constructor(cn, pointer) { Object.assign(this, { cn, pointer }); }
  get length() { return this.cn.call('token_count', this); }
  encode(text) {
    const { cn } = this, bytes = new TextEncoder().encode(text);
    return cn.memory.with(bytes, from => {
      const n = cn.do('encode', this, from, bytes.length, 0, 0), at = cn.memory.hold(4 * n);
      try {
        cn.do('encode', this, from, bytes.length, at, n);
        return new Int32Array(cn.memory.u8.slice(at, at + 4 * n).buffer);
      } finally {
        cn.module._free(at);
      }
    });
  }
  decode(ids) {
    const { cn } = this;
    return cn.memory.with(Int32Array.from(ids, Number), from => {
      const n = cn.do('decode', this, from, ids.length, 0, 0), at = cn.memory.hold(n + 1);
      try {
        cn.do('decode', this, from, ids.length, at, n + 1);
        return new TextDecoder().decode(cn.memory.u8.slice(at, at + n));
      } finally {
        cn.module._free(at);
      }
    });
  }
  token(id) { return this.cn.call('token_text', this, id, 0); }
  /* tokenizer.json */
  save() {
    this.cn.do('tokenizer_save', this, 'tokenizer.json');
    return new TextDecoder().decode(this.cn._takeFile('tokenizer.json'));
  }
  free() { this.cn.call('tokenizer_free', this); this.pointer = 0; }
}

export function makeData(cn) {
  const { memory } = cn;
  const bytesOf = data => typeof data === 'string' ? new TextEncoder().encode(data) :
    ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);
  /* f(paths) with these files. */
  const withFiles = (files, f) => {
    const paths = files.map((file, i) => file === null ? null : `data${i}`);
    files.forEach((file, i) => file === null || cn.module.cairnFiles().set(paths[i], bytesOf(file)));
    try {
      return f(...paths);
    } finally {
      for (const path of paths) if (path) cn.module.cairnFiles().take(path);
    }
  };
  const withText = (text, f) => { const bytes = bytesOf(text); return memory.with(bytes, at => new Tokenizer(cn, f(at, bytes.length))); };
  return {
    Dataset, TensorDataset,
    DataLoader: function (dataset, options) { return new DataLoader(cn, dataset, options); },
    /* MNIST's files, unpacked: pixels from 0 to 1 of shape (1, h, w), and labels. */
    idx: (images, labels = null) => withFiles([images, labels], (a, b) => new NativeDataset(cn, cn.do('dataset_idx', cn.context, a, b))),
    /* Comma-separated numbers; target: names of columns. classes: the one target is a label. */
    csv: (text, { target = [], separator, no_header = false, classes = false } = {}) => withFiles([text], path => memory.onStack(() => {
      const names = [target].flat().map(name => memory.text(String(name)));
      const options = { no_header, classes, target: memory.pointers(names), targets: names.length, separator };
      return new NativeDataset(cn, cn.do('dataset_csv', cn.context, path, options));
    })),
    /* Windows of `context` tokens, and the same shifted by one. { context, stride, vocab } */
    tokens(ids, options) {
      const at = memory.hold(new Uint8Array(Int32Array.from(ids, Number).buffer));
      try {
        return new NativeDataset(cn, cn.do('dataset_token_array', cn.context, at, ids.length, { type: 'i32', ...options }), at);
      } catch (error) {
        cn.module._free(at);
        throw error;
      }
    },
    /* One dataset after the other: all of the library, or none. */
    concat(datasets) {
      if (datasets.every(d => d instanceof NativeDataset))
        return memory.onStack(() => new NativeDataset(cn, cn.do('dataset_concat', memory.pointers(datasets), datasets.length)));
      const length = datasets.reduce((sum, d) => sum + d.length, 0);
      return new Derived(length, i => {
        const d = datasets.find(d => { if (i < d.length) return true; i -= d.length; return false; });
        return d.get(i);
      });
    },
    /* A picture that the browser can read (a Blob, an ImageBitmap, a canvas), as u8 of shape (channels, height, width). */
    async image(source, { channels = 3, width, height } = {}) {
      const bitmap = source instanceof Blob ? await createImageBitmap(source) : source;
      const w = width || bitmap.width, h = height || bitmap.height, c = new OffscreenCanvas(w, h).getContext('2d');
      c.drawImage(bitmap, 0, 0, w, h);
      const { data } = c.getImageData(0, 0, w, h), out = new Uint8Array(channels * w * h);
      for (let i = 0; i < w * h; i++)
        if (channels === 1) out[i] = Math.round(0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]);
        else for (let k = 0; k < channels; k++) out[k * w * h + i] = data[4 * i + k];
      return cn.tensor(out, [channels, h, w]);
    },
    /* Tokenizers: of bytes, of the characters of a text, of pieces of words learned from it, or of a tokenizer.json. */
    byteTokenizer: () => new Tokenizer(cn, cn.do('tokenizer_bytes', cn.context)),
    characterTokenizer: text => withText(text, (at, n) => cn.do('tokenizer_characters', cn.context, at, n, null)),
    bpeTokenizer: (text, vocab, options = null) => withText(text, (at, n) => cn.do('bpe_train', cn.context, at, n, vocab, options)),
    tokenizer: json => withText(json, (at, n) => cn.do('tokenizer_parse', cn.context, at, n)),
  };
}
