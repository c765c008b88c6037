/* Operators by their signatures, as functions of a context and as methods of tensors:
   "topk(Tensor input, int k, int dim=-1, bool largest=True) -> (Tensor values, Tensor indices)" */
import { CairnError, DTYPES, FUNCTIONS, STRUCTS } from './memory.js';
import * as tables from './tables.js';
import { Tensor, isOptions } from './tensor.js';

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
  if (p.kind === 'int') return Math.min(+text, Number.MAX_SAFE_INTEGER); // the largest int64 stands for "to the end"
  return text === 'inf' ? Infinity : text === '-inf' ? -Infinity : +text;
}

/* Operators whose result has a shape that depends on values. */
const COMPUTES = (name, args) => ['nonzero', 'masked_select', 'bincount', 'histc'].includes(name) ||
    (name === 'one_hot' && (args[1] === undefined || args[1] < 0)) ||
    (name === 'index' && Array.isArray(args[1]) && args[1].some(index => index && index.dtype === 'bool'));

/* A function that calls an operator: (cn, arguments) → a tensor, or a list of tensors; if it waits, a promise of them. */
function operator(s) {
  const c = FUNCTIONS[s.name], initial = s.parameters.map(initialOf);
  const at = Object.fromEntries(s.parameters.map((p, i) => [p.name, i]));
  const inC = new Set(c.parameters.map(([, name]) => name));
  const number = FUNCTIONS[s.name + '_s'];
  const hasNumberForm = number && number.parameters.length === 2 && s.parameters.length >= 2 &&
      s.parameters[0].kind === 'Tensor' && s.parameters[1].kind === 'Tensor';

  const fail = (p, value) => {
    throw new CairnError(`${s.name}: ${p.name} must be ${p.choices ? 'one of ' + p.choices.join(', ') : p.kind}, got ${value}`, 'BAD_ARGUMENT');
  };
  const ints = (p, value) => typeof value === 'number' ? new Array(p.count || 1).fill(value) : Array.from(value);
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

  return (cn, args, waits = false) => {
    if (cn.device === 'gpu' && !waits && COMPUTES(s.name, args))
      throw new CairnError(`${s.name} computes its operands: on a GPU call await cn.compute('${s.name}', ...)`, 'UNSUPPORTED');
    const given = bind(s, args), values = initial.map((v, i) => given[i] === undefined ? v : given[i]);
    if (hasNumberForm && typeof values[1] === 'number' && values[0] instanceof Tensor)
      return cn._result(() => cn.call(number.name, values[0], values[1]));
    let first = null;
    s.parameters.forEach((p, i) => {
      if (p.kind === 'Tensor' && values[i] instanceof Tensor && !first) first = values[i];
    });
    s.parameters.forEach((p, i) => {
      if (p.kind !== 'Tensor') return;
      if (typeof values[i] === 'number') values[i] = cn._number(values[i], first);
      else if (values[i] !== null && !(values[i] instanceof Tensor)) fail(p, values[i]);
    });
    const { memory } = cn, out = [];
    let room = 0;
    /* C's arguments; what they need is on the stack. */
    const make = () => c.parameters.map(([letter, name], k) => {
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
    const results = value => s.list ? memory.readPointers(room, value < 0 ? 0 : value)
                                    : [value, ...out.map(slot => memory.data.getUint32(slot, true))];
    const one = tensors => s.list || tensors.length > 1 ? tensors : tensors[0];
    if (waits) return cn._computed(s.name, make, results).then(one);
    return one(memory.onStack(() => cn._collect(() => results(cn.call(s.name, ...make())))));
  };
}

const SIGNATURES = tables.calls.map(parseCall);
export const OPERATORS = Object.fromEntries(SIGNATURES.map(s => [s.name, operator(s)]));

/* Methods, and forms that assign their result: x.add_(1). */
for (const { name, parameters: [first], list, results } of SIGNATURES) {
  const f = OPERATORS[name];
  if (!first || first.kind !== 'Tensor') continue;
  if (!(name in Tensor.prototype)) Tensor.prototype[name] = function (...args) { return f(this.cn, [this, ...args]); };
  if (list || results > 1 || name + '_' in Tensor.prototype) continue;
  Tensor.prototype[name + '_'] = function (...args) { return this._change(name + '_', () => f(this.cn, [this, ...args])); };
}
