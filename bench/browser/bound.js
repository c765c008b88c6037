/* What one thread of WebAssembly can do at most: loops of multiplications and additions of f32x4, assembled here by hand,
   so that no compiler stands between. `fused`: with f32x4.relaxed_madd, which this browser may not have.

       registers   accumulators in registers and nothing else
       4x2, ...    register tiles of a matrix product: so many rows times so many vectors of 4 columns, from packed operands
                   in the first-level cache, with k unrolled so many times */

const unsigned = n => n < 128 ? [n] : [n & 127 | 128, ...unsigned(n >>> 7)];
const signed = n => n >= -64 && n < 64 ? [n & 127] : [n & 127 | 128, ...signed(n >> 7)];
const section = (id, ...items) => {
  const bytes = [items.length, ...items.flat()];
  return [id, ...unsigned(bytes.length), ...bytes];
};
const I32 = 0x7f, V128 = 0x7b, END = 0x0b, LOOP = [0x03, 0x40], AGAIN = [0x0d, 0];
const get = i => [0x20, i], set = i => [0x21, i], constant = n => [0x41, ...signed(n)];
const vector = opcode => [0xfd, ...unsigned(opcode)];
const load = (pointer, offset) => [...get(pointer), ...vector(0), 2, ...unsigned(offset)];
const splat = (pointer, offset) => [...get(pointer), ...vector(9), 2, ...unsigned(offset)];
const store = offset => [...vector(11), 2, ...unsigned(offset)];
const step = (local, n) => [...get(local), ...constant(n), 0x6a, ...set(local)];
/* z + x·y, where each is the code that makes a value */
const multiplyAdd = (fused, x, y, z) => fused ? [...x, ...y, ...z, ...vector(0x105)]
                                              : [...z, ...x, ...y, ...vector(0xe6), ...vector(0xe4)];

/* A module whose function `run` has so many parameters (i32), locals (i32, then v128) and this body. */
function assemble(parameters, numbers, vectors, body) {
  const code = [2, ...unsigned(numbers), I32, ...unsigned(vectors), V128, ...body, END];
  const bytes = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, [0x60, parameters, ...Array(parameters).fill(I32), 0]), ...section(3, [0]), ...section(5, [0, 2]),
    ...section(7, [3, 0x72, 0x75, 0x6e, 0, 0]), ...section(10, [...unsigned(code.length), ...code])]);
  return WebAssembly.validate(bytes) ? new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports.run : null;
}

/* acc = acc·x + y, `chains` times a round; parameter 0: rounds */
function registers(fused, chains) {
  const acc = i => 2 + i, x = 2 + chains, body = [...LOOP];
  for (let i = 0; i < chains; i++) body.push(...multiplyAdd(fused, get(acc(i)), get(x), get(x + 1)), ...set(acc(i)));
  body.push(...step(0, -1), ...get(0), ...AGAIN, END);
  for (let i = 0; i < chains; i++) body.push(...constant(0), ...get(acc(i)), ...store(0));
  const run = assemble(1, 1, chains + 2, body);
  return run && { run: () => run(1 << 18), flops: 8 * chains * (1 << 18) };
}

/* A tile of a product over k, repeated; parameters: rounds. A is packed as (k,rows), B as (k,vectors·4). */
const K = 256, ROUNDS = 512;
function tile(fused, rows, vectors, unrolled) {
  const [a, b, left] = [1, 2, 3], acc = n => 4 + n, y = v => 4 + rows * vectors + v;
  const body = [...LOOP, ...constant(0), ...set(a), ...constant(4 * K * rows), ...set(b), ...constant(K / unrolled), ...set(left), ...LOOP];
  for (let u = 0; u < unrolled; u++) {
    for (let v = 0; v < vectors; v++) body.push(...load(b, 16 * (u * vectors + v)), ...set(y(v)));
    for (let i = 0; i < rows; i++) {
      body.push(...splat(a, 4 * (u * rows + i)), ...set(y(vectors)));
      for (let v = 0; v < vectors; v++) {
        const n = acc(i * vectors + v);
        body.push(...multiplyAdd(fused, get(y(vectors)), get(y(v)), get(n)), ...set(n));
      }
    }
  }
  body.push(...step(a, 4 * rows * unrolled), ...step(b, 16 * vectors * unrolled), ...step(left, -1), ...get(left), ...AGAIN, END);
  body.push(...step(0, -1), ...get(0), ...AGAIN, END);
  for (let n = 0; n < rows * vectors; n++) body.push(...constant(0), ...get(acc(n)), ...store(16 * n));
  const run = assemble(1, 3, rows * vectors + vectors + 1, body);
  return run && { run: () => run(ROUNDS), flops: 8 * rows * vectors * K * ROUNDS };
}

/* The best of ten turns, in GFLOP/s. A page's clock is coarse: a turn takes some 40 ms. */
function rate(loop) {
  if (!loop) return null;
  const runs = Math.ceil(2e9 / loop.flops);
  let best = Infinity;
  for (let turn = 0; turn < 10; turn++) {
    const began = performance.now();
    for (let i = 0; i < runs; i++) loop.run();
    best = Math.min(best, performance.now() - began);
  }
  return runs * loop.flops / best / 1e6;
}

const TILES = [[4, 2, 1], [4, 2, 2], [4, 2, 4], [5, 2, 1], [5, 2, 2], [6, 2, 1], [6, 2, 2], [4, 3, 1], [4, 3, 2], [3, 3, 2]];

/* [{ loop, plain, fused }], in GFLOP/s; null: the browser has no relaxed_madd */
export function measure() {
  const rows = [{ loop: 'registers', plain: rate(registers(false, 12)), fused: rate(registers(true, 12)) }];
  for (const [r, v, u] of TILES)
    rows.push({ loop: `${r}x${v}, k by ${u}`, plain: rate(tile(false, r, v, u)), fused: rate(tile(true, r, v, u)) });
  return rows;
}
