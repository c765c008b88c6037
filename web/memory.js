/* The module's memory: texts, shapes, descriptors and lists as C has them, and the tables of what can be called. */
import * as tables from './tables.js';

export const DTYPES = ['bool', 'u8', 'i8', 'i16', 'i32', 'i64', 'f16', 'bf16', 'f32', 'f64'];
export const ARRAYS = { bool: Uint8Array, u8: Uint8Array, i8: Int8Array, i16: Int16Array, i32: Int32Array, i64: BigInt64Array,
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

/* f(), and end(its result) after it or after its promise; after an error end(). */
export function settle(f, end) {
  const failed = error => { end(); throw error; };
  let result;
  try {
    result = f();
  } catch (error) {
    return failed(error);
  }
  const ended = value => { end(value); return value; };
  return result && typeof result.then === 'function' ? result.then(ended, failed) : ended(result);
}

const parseFunction = (line, index) => {
  const [name, result, parameters] = line.split(':');
  return { name, index, result, parameters: parameters ? parameters.split(',').map(p => p.split(' ')) : [] };
};

const parseStruct = text => text.split(',').map(field => {
  const [, name, kind, letter, count, at] = /^(\w+):(?:(\w+)!)?([a-zA-Z])(\d*)@(\d+)$/.exec(field);
  return { name, names: kind && tables.enums[kind], letter, count: +(count || 1), at: +at };
});

export const STRUCTS = Object.fromEntries(Object.entries(tables.structs).map(([name, text]) => [name, parseStruct(text)]));
export const FUNCTIONS = Object.fromEntries(tables.functions.map(parseFunction).map(f => [f.name, f]));

export class Memory {
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
  /* f with room on the stack; it is given back afterwards. */
  onStack(f) {
    const stack = this.module.stackSave();
    try {
      return f();
    } finally {
      this.module.stackRestore(stack);
    }
  }
  params(list) {
    const v = this.pointers(list), at = this.room(8);
    this.data.setUint32(at, v, true);
    this.data.setInt32(at + 4, list.length, true);
    return at;
  }
  /* f(address of a copy of these values, which is freed afterwards); f may be asynchronous. */
  with(values, f) {
    const at = this.hold(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    return settle(() => f(at), () => this.module._free(at));
  }
  /* The address of a copy of these bytes, or of so many bytes, for module._free. */
  hold(bytes) {
    const n = typeof bytes === 'number' ? bytes : bytes.length, at = this.module._malloc(n || 1);
    if (!at) throw new CairnError(`out of memory for ${n} bytes`, 'NO_MEMORY');
    if (bytes !== n) this.u8.set(bytes, at);
    return at;
  }
  put(letter, at, value) {
    const data = this.data;
    switch (letter) {
      case 'd': return data.setFloat64(at, value, true);
      case 'f': return data.setFloat32(at, value, true);
      case 'b': return data.setUint8(at, value ? 1 : 0);
      case 'c': return data.setUint8(at, value.charCodeAt(0));
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
    const size = last.at + 88 * last.count, at = this.room(size), given = { ...options };
    this.u8.fill(0, at, at + size);
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
      const step = { d: 8, j: 8, b: 1, D: 72 }[letter] || 4, start = at + (field || inverse).at;
      if (count === 1) this.put(letter, start, value);
      else for (let i = 0; i < count; i++) if (i < value.length) this.put(letter, start + step * i, value[i]);
    }
    return at;
  }
}

export const pointerOf = object => {
  if (object === null || object === undefined) return 0;
  if (typeof object === 'number') return object;
  if (object.pointer === 0) throw new CairnError('a tensor or object was used after its release', 'RELEASED');
  if (!object.pointer) throw new CairnError(`a tensor or object of Cairn was expected, got ${object}`, 'BAD_ARGUMENT');
  return object.pointer;
};
