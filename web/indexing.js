/* x.at(...) and x.set([...], value): PyTorch's x[...]. An index is

       3, -1            one element of an axis
       ':', '1:', '::2' a slice, as Python writes it
       '...'            the axes that no other index names
       null             a new axis
       [0, 2], tensor   elements by number, or a mask of bool: indices of this kind broadcast to each other */
import { CairnError } from './memory.js';
import { Tensor } from './tensor.js';

const END = 2 ** 53; // beyond every axis
const isSlice = index => typeof index === 'string' && index !== '...';
const isList = index => index instanceof Tensor || Array.isArray(index);

function parseSlice(text) {
  const found = /^(-?\d*):(-?\d*)(?::(\d*))?$/.exec(text.trim());
  if (!found) throw new CairnError(`at: a slice is written 'from:to:step', got '${text}'`, 'BAD_ARGUMENT');
  return { start: +(found[1] || 0), end: found[2] ? +found[2] : END, step: +(found[3] || 1) };
}

/* How many axes an index takes. */
const taken = index => index === null ? 0 : index instanceof Tensor && index.dtype === 'bool' ? index.ndim : 1;

/* The view by slices and new axes, and the lists that remain: one for each axis of the view, null for a whole axis.
   Beside a list a number is a list of one, as in PyTorch. */
function resolve(x, indices) {
  const named = indices.filter(index => index !== '...').reduce((sum, index) => sum + taken(index), 0);
  if (indices.filter(index => index === '...').length > 1) throw new CairnError("at: '...' may be given once", 'BAD_ARGUMENT');
  if (named > x.ndim) throw new CairnError(`at: too many indices: ${named} for ${x.ndim} axes`, 'BAD_INDEX');
  const lists = [], mixed = indices.some(isList);
  let view = x, dim = 0;
  for (const index of indices) {
    if (index === '...') {
      for (let i = named; i < x.ndim; i++, dim++) lists.push(null);
    } else if (index === null) {
      view = view.unsqueeze(dim++);
      lists.push(null);
    } else if (isSlice(index)) {
      const { start, end, step } = parseSlice(index);
      if (index.trim() !== ':') view = view.slice(dim, start, end, step);
      lists.push(null);
      dim++;
    } else if (isList(index)) {
      const list = index instanceof Tensor ? index : x.cn.tensor(index, typeof index.flat(Infinity)[0] === 'boolean' ? {} : { dtype: 'i64' });
      lists.push(list);
      dim += taken(list);
    } else if (Number.isInteger(index)) {
      if (mixed) lists.push(x.cn.tensor(index, { dtype: 'i64' })), dim++;
      else view = view.select(dim, index);
    } else {
      throw new CairnError(`at: an index is a number, a text, a list, a tensor or null, got ${index}`, 'BAD_ARGUMENT');
    }
  }
  while (lists.length && lists[lists.length - 1] === null) lists.pop();
  return { view, lists };
}

function at(x, indices) {
  const { view, lists } = resolve(x, indices);
  return lists.length ? view.index(lists) : view === x ? x.slice() : view;
}

/* Lists name elements of x itself; other indices name places in the numbers of all elements. */
function put(x, indices, value) {
  const { cn } = x, source = value instanceof Tensor ? value : typeof value === 'number' ? cn._number(value, x) : cn.tensor(value);
  const typed = source.dtype === x.dtype ? source : source.cast(x.dtype);
  const { view, lists } = resolve(x, indices);
  if (view === x && lists.length) return x.index_put(lists, typed);
  const places = at(cn.arange(0, x.numel, 1, { dtype: 'i64' }).reshape(x.shape), indices);
  return x.put(places, typed.expand(places.shape));
}

Tensor.prototype.at = function (...indices) { return this.cn._tidy(() => at(this, indices)); };
Tensor.prototype.set = function (indices, value) {
  return this._change('set', () => this.cn._tidy(() => put(this, Array.isArray(indices) ? indices : [indices], value)));
};
