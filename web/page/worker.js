/* A room at work, away from the page: loads the module, trains, answers. The page sends { id, command, ... } and gets
   { id, result } or { id, error }; in between come { event, ... }: steps, pieces of text, pictures.

   Commands   load                               the module, before it is needed
              open { room, device, seed, ... }   a new room, or the room of a file
              run, pause                         training goes on in slices, so that commands come in between
              set { ... }                        what may change while it trains: rate, temperature, prompt, image
              sample, expect, save { state }, close */

const SLICE = 40; // ms of training between two looks at the mailbox
let module, names, memory, promising = {}, room = 0, gpu = false, threads = 1;
let settings = {}, running = false, turn = Promise.resolve(), held = [];
let measured = { losses: [], since: 0, steps: 0, rate: 0 };
const event = (name, content, moved) => postMessage({ event: name, ...content }, moved || []);

/* ---- the module ---- */

async function start() {
  const shared = typeof SharedArrayBuffer !== 'undefined' && self.crossOriginIsolated;
  threads = shared ? Math.min(navigator.hardwareConcurrency || 1, 8) : 1;
  const build = threads > 1 ? 'threads' : 'single', url = new URL(`wasm/${build}.js`, self.location.href).href;
  const { default: make } = await import(url);
  module = await make({ cairnThreads: threads - 1, mainScriptUrlOrBlob: url, print: () => {}, printErr: () => {},
                        locateFile: file => new URL(`wasm/${file}`, self.location.href).href });
  const table = module._room_functions() >>> 2, list = readText(module._room_names()).trim().split(' ');
  const pointers = new Uint32Array(module.cairnMemory().buffer, table * 4, list.length);
  names = Object.fromEntries(list.map((name, i) => [name, module.cairnTable(pointers[i])]));
}

let started;
const load = () => started ||= start();

const bytes = () => new Uint8Array(module.cairnMemory().buffer); // anew each time: the memory may have grown
const readText = at => module.UTF8ToString(at);
/* Memory that is freed after the command; `keep` holds it as long as the room. */
function put(data, keep) {
  const from = typeof data === 'string' ? new TextEncoder().encode(data + '\0')
                                        : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const at = module._malloc(from.length || 1);
  if (!at) throw new Error('There is not enough memory.');
  bytes().set(from, at);
  (keep ? held : memory).push(at);
  return at;
}
function space(n) {
  const at = module._malloc(n || 1);
  if (!at) throw new Error('There is not enough memory.');
  memory.push(at);
  return at;
}
const floats = (at, n) => new Float32Array(bytes().slice(at, at + 4 * n).buffer);
const length = text => new TextEncoder().encode(text).length;

/* Calls a function of the room. On a GPU it may wait, so the browser suspends it. */
async function call(name, ...args) {
  if (!gpu) return names[name](...args);
  promising[name] ||= module.cairnPromising(names[name]);
  return promising[name](...args);
}
async function need(name, ...args) {
  const value = await call(name, ...args);
  if (!value) throw new Error(readText(await call('error', room)) || 'It did not work.');
  return value;
}
const number = async which => call('number', room, which);

/* ---- opening ---- */

const OPENERS = {
  async write(o) {
    const text = o.text, n = length(text);
    if (o.file) {
      module.cairnFiles().set('in.safetensors', o.file);
      if (o.tokenizer) module.cairnFiles().set('in.json', o.tokenizer);
      await need('write_load', room, put('in.safetensors'), put(o.tokenizer ? 'in.json' : ''), put(text), n, o.batch);
    } else {
      await need('write_new', room, put(text), n, o.vocab, o.layers, o.heads, o.width, o.context, o.batch);
    }
  },
  async see(o) {
    const images = put(o.images, true), labels = put(o.labels, true);
    await need('see_new', room, images, labels, o.train, o.test, o.side, o.batch);
    if (o.file) {
      module.cairnFiles().set('in.safetensors', o.file);
      await need('see_load', room, put('in.safetensors'));
    }
  },
  async bend(o) {
    const n = o.classes.length, widths = Int32Array.from(o.widths);
    await need('bend_new', room, put(o.points), put(o.classes), n, put(widths), widths.length, o.activation);
    if (o.file) {
      module.cairnFiles().set('in.safetensors', o.file);
      await need('bend_load', room, put('in.safetensors'));
    }
  },
};

async function open(o) {
  await load();
  await close();
  gpu = o.device === 'gpu';
  settings = { ...o, file: undefined, images: undefined, labels: undefined, points: undefined };
  room = await call('open', put(o.device), threads, o.seed || 1);
  if (!room) throw new Error('There is not enough memory.');
  const problem = readText(await call('error', room));
  if (problem) throw new Error(problem);
  await call('set_rate', room, o.rate);
  try {
    await OPENERS[o.room](o);
  } catch (error) {
    await close();
    throw error;
  }
  measured = { losses: [], since: performance.now(), steps: 0, rate: 0 };
  if (o.room !== 'write' && !gpu) await show(true); // a GPU shows something after its first step
  return { ...await state(), device: readText(await call('device', room)), threads: gpu ? 1 : threads,
           parameters: await number(1), tokens: await number(6), vocab: await number(7), context: await number(8) };
}

async function close() {
  running = false;
  if (room) await call('close', room);
  room = 0;
  held.forEach(at => module._free(at));
  held = [];
}

async function state() {
  return { step: await number(0), bytes: gpu ? await number(3) : await number(2), heap: bytes().length,
           submissions: await number(4), dispatches: await number(5), recoveries: await number(9) };
}

/* ---- training ---- */

let slice = 1; // steps in a turn, so that a turn takes about SLICE ms
async function train() {
  const began = performance.now();
  let spent = 0, steps = 0;
  while (running && spent < SLICE) {
    const n = settings.room === 'bend' ? slice : 1, loss = await call('step', room, n);
    steps += n;
    spent = performance.now() - began;
    if (Number.isNaN(loss)) {
      running = false;
      const problem = readText(await call('error', room));
      throw Object.assign(new Error(problem || 'The loss is no longer a number. A lower learning rate may help: press Reset.'),
                          { lost: gpu && !!problem });
    }
    measured.losses.push(loss);
    if (settings.room === 'bend' && spent > SLICE / 3) break;
  }
  slice = Math.max(1, Math.min(50, Math.round(slice * (SLICE / 3) / Math.max(spent, 1))));
  measured.steps += steps;
  await report(false);
}

async function report(now) {
  const spent = performance.now() - measured.since;
  if (!now && spent < 120) return;
  if (measured.steps) measured.rate = measured.steps / spent * 1000;
  event('steps', { losses: measured.losses, perSecond: measured.rate, ...await state() });
  measured = { losses: [], since: performance.now(), steps: 0, rate: measured.rate };
  if (settings.room !== 'write') await show(false);
}

/* What a room shows besides its loss: the plane, or what the network reads. On a slow device that is seldom: it takes a
   fifth of the time at most. */
const due = { show: { after: 90, at: 0 }, test: { after: 1500, at: 0 } };
async function seldom(what, now, f) {
  const { after, at, cost = 0 } = due[what], began = performance.now();
  if (!now && began - at < Math.max(after, 4 * cost)) return;
  await f();
  Object.assign(due[what], { at: performance.now(), cost: performance.now() - began });
}
async function show(now) {
  await seldom('show', now, async () => {
    if (settings.room === 'see') return readImage();
    const side = settings.side, at = space(4 * side * side);
    await need('bend_field', room, at, side, settings.reach);
    event('field', { field: floats(at, side * side), side });
  });
  if (settings.room !== 'see') return;
  await seldom('test', now, async () => {
    const accuracy = await call('see_accuracy', room);
    event('accuracy', { accuracy, step: await number(0) });
  });
}

async function readImage() {
  const side = settings.side, filters = space(8 * 9 * 4);
  await need('see_filters', room, filters);
  const result = { filters: floats(filters, 72) };
  if (settings.image) {
    const answer = space(40), seen = space(8 * side * side * 4);
    await need('see_read', room, put(settings.image), answer, seen);
    result.answer = floats(answer, 10);
    result.seen = floats(seen, 8 * side * side);
  }
  event('reading', result);
}

/* ---- writing ---- */

/* At most so many tokens, or so many ms. */
async function sample({ tokens, seed, quiet, most = Infinity }) {
  const prompt = settings.prompt || '';
  await need('write_begin', room, put(prompt), length(prompt), settings.temperature, seed || 1);
  const step = await number(0);
  const began = performance.now();
  let text = '', last = began;
  if (!quiet) event('sample', { step, prompt, text, done: false });
  for (let i = 0; i < tokens && performance.now() - began < most; i++) {
    const at = await call('write_next', room);
    if (!at) throw new Error(readText(await call('error', room)));
    text += readText(at);
    if (!quiet && performance.now() - last > 50) {
      event('sample', { step, prompt, text, done: false });
      last = performance.now();
    }
  }
  if (!quiet) event('sample', { step, prompt, text, done: true });
  return { step, prompt, text };
}

async function expect({ prompt, most }) {
  const vocab = await number(7), at = space(4 * 65536);
  const n = await call('write_expect', room, put(prompt), length(prompt), at, 65536);
  if (!n) throw new Error(readText(await call('error', room)));
  const all = floats(at, n), order = Array.from(all.keys()).filter(i => i < vocab).sort((a, b) => all[b] - all[a]);
  const best = [];
  for (const id of order.slice(0, most)) best.push({ id, p: all[id], text: readText(await call('write_token', room, id)) });
  return { best };
}

/* ---- commands, one at a time ---- */

const COMMANDS = {
  load,
  open,
  close,
  async run() {
    if (!room) throw new Error('The room is not open.');
    running = true;
    measured = { losses: [], since: performance.now(), steps: 0, rate: measured.rate };
    setTimeout(loop);
  },
  async pause() {
    running = false;
    await report(true);
    if (settings.room !== 'write') await show(!gpu);
    return state();
  },
  async set(o) {
    Object.assign(settings, o.values);
    if ('rate' in o.values) await call('set_rate', room, o.values.rate);
    if ('image' in o.values && room && !running) await readImage();
  },
  sample,
  expect,
  async save({ state: whole }) {
    await need('save', room, put('out.safetensors'), whole ? 1 : 0);
    return { file: module.cairnFiles().take('out.safetensors'), step: await number(0) };
  },
};

/* Runs f after everything before it, and frees what it has put into memory. */
function inTurn(f) {
  const result = turn.then(async () => {
    memory = [];
    try {
      return await f();
    } finally {
      memory.forEach(at => module._free(at));
    }
  });
  turn = result.catch(() => {});
  return result;
}

function loop() {
  if (!running) return;
  inTurn(async () => { if (running) await train(); })
      .then(() => setTimeout(loop), error => event('stopped', { message: error.message, lost: gpu && error.lost !== false }));
}

self.onmessage = ({ data }) => {
  inTurn(() => COMMANDS[data.command](data))
      .then(result => postMessage({ id: data.id, result }), error => postMessage({ id: data.id, error: error.message }));
};
