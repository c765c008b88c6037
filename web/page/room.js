/* What the rooms share on the page: a worker, the bar of buttons, the figures, files, and what survives a reload. */
import * as store from './store.js';

const THE_BAR = `
  <div class="buttons">
    <button type="button" class="primary" data-do="run" aria-keyshortcuts="Alt+Enter"><span aria-hidden="true">▶</span> <b>Start</b></button>
    <button type="button" data-do="reset">Reset</button>
    <button type="button" data-do="save">Save</button>
    <button type="button" data-do="load">Load</button>
    <input type="file" class="hidden" tabindex="-1" aria-hidden="true" multiple accept=".safetensors,.json">
  </div>
  <dl class="figures">
    <div><dt>step</dt><dd data-show="step">0</dd></div>
    <div><dt>steps a second</dt><dd data-show="rate">–</dd></div>
    <div><dt>memory</dt><dd data-show="memory">–</dd></div>
    <div><dt>parameters</dt><dd data-show="parameters">–</dd></div>
  </dl>
  <p class="status"><span data-show="status" role="status"></span><span data-show="clock" aria-hidden="true"></span></p>`;

export const count = n => n >= 1e6 ? (n / 1e6).toFixed(2) + ' M' : n >= 1e4 ? Math.round(n / 1e3) + ' k' : String(Math.round(n));
const megabytes = n => n >= 1e6 ? (n / 1e6).toFixed(n < 1e7 ? 1 : 0) + ' MB' : Math.round(n / 1e3) + ' kB';
const PATIENCE = 4000; // ms: a GPU that answers no sooner is left to itself
class Abandoned extends Error {}
const pace = n => n >= 100 ? String(Math.round(n)) : n >= 10 ? n.toFixed(1) : n.toFixed(2);

export class Room {
  constructor(name, shared) {
    this.name = name;
    this.shared = shared; // of all rooms: the device
    this.element = document.getElementById(name);
    this.bar = this.element.querySelector('.bar');
    this.bar.innerHTML = THE_BAR;
    this.button = this.bar.querySelector('[data-do=run]');
    this.file = this.bar.querySelector('input[type=file]');
    this.state = 'closed'; // then: open, running
    this.step = 0;
    this.waiting = new Map();
    this.next = 1;
    this.spoken = 0;
    this.seed = 1;
    this.bar.querySelectorAll('[data-do]').forEach(b => b.addEventListener('click', () => this.act(b.dataset.do)));
    this.file.addEventListener('change', () => {
      this.take([...this.file.files]);
      this.file.value = '';
    });
  }

  show(name, text) { this.bar.querySelector(`[data-show=${name}]`).textContent = text; }
  /* Says it, also to screen readers. */
  say(text, bad) {
    const status = this.bar.querySelector('[data-show=status]');
    status.parentElement.classList.toggle('bad', !!bad);
    if (status.textContent !== text) status.textContent = text;
  }

  /* ---- the worker ---- */

  ask(command, content = {}, moved = []) {
    if (!this.worker) {
      this.worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
      this.worker.onmessage = ({ data }) => this.hear(data);
      this.worker.onerror = e => this.say(e.message || 'The worker could not start.', true);
    }
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, command, ...content }, moved);
    });
  }
  hear(data) {
    if (data.id) {
      if (!this.waiting.has(data.id)) return;
      const { resolve, reject } = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error !== undefined) reject(new Error(data.error));
      else resolve(data.result);
    } else if (data.event === 'steps') {
      this.clock(false);
      this.figures(data);
      data.losses.forEach((loss, i) => this.learned(this.step - (data.losses.length - 1 - i) * this.stride(data), loss));
      this.drawn();
      this.speak();
    } else if (data.event === 'stopped' && data.lost) {
      this.acts = (this.acts || Promise.resolve()).then(() => this.fallBack(data.message));
    } else if (data.event === 'stopped') {
      this.clock(false);
      this.stopped();
      this.say(data.message, true);
    } else {
      this.told(data);
    }
  }
  stride(data) { return data.losses.length ? Math.max(1, (data.step - this.before) / data.losses.length) : 1; }
  figures(data) {
    this.before = this.step;
    this.step = data.step;
    this.show('step', data.step.toLocaleString('en'));
    if (data.perSecond) this.show('rate', pace(data.perSecond));
    this.show('memory', megabytes(data.bytes));
    this.bar.querySelector('[data-show=memory]').title = `tensors; the module has ${megabytes(data.heap)}`;
    if (data.recoveries > this.recoveries) {
      this.say(`The GPU was lost, and is back: it goes on from step ${data.step}.`);
      this.spoken = performance.now();
    }
    this.recoveries = data.recoveries;
  }
  /* Seconds of something slow, for the eye; screen readers get the words alone. */
  clock(on) {
    clearInterval(this.ticking);
    this.show('clock', '');
    const began = performance.now();
    if (on) this.ticking = setInterval(() => this.show('clock', ` ${Math.round((performance.now() - began) / 1000)} s`), 1000);
  }
  /* A word every few seconds, for those who do not see the curve. */
  speak() {
    if (performance.now() - this.spoken < 8000) return;
    this.spoken = performance.now();
    this.say(this.summary());
  }

  /* ---- buttons ---- */

  /* One after the other: a click while the room opens or keeps itself is not lost. */
  act(what) {
    this.acts = (this.acts || Promise.resolve()).then(() => this.perform(what));
    return this.acts;
  }
  async perform(what) {
    try {
      if (what === 'run') await (this.state === 'running' ? this.pause() : this.run());
      else if (what === 'reset') await this.reset();
      else if (what === 'save') await this.download();
      else if (what === 'load') this.file.click();
    } catch (error) {
      if (error instanceof Abandoned) return;
      this.clock(false);
      this.stopped();
      this.say(error.message, true);
    }
  }
  /* What f returns. If it fails on a GPU, or takes longer than a person waits, the worker is ended: undefined. */
  async soon(f) {
    if (this.device !== 'gpu') return f();
    const late = new Promise(resolve => setTimeout(resolve, PATIENCE)), done = f().catch(() => undefined);
    const result = await Promise.race([done, late]);
    if (result === undefined) this.abandon();
    return result;
  }
  /* Ends the worker, whatever it is doing. What was kept last stays. */
  abandon() {
    this.worker.terminate();
    this.worker = null;
    for (const { reject } of this.waiting.values()) reject(new Abandoned('The worker was ended.'));
    this.waiting.clear();
    clearInterval(this.keeper);
    this.clock(false);
    this.kept = this.safe && this.safe.file;
    this.step = this.before = this.safe ? this.safe.step : 0;
    this.show('step', this.step.toLocaleString('en'));
    this.state = 'closed';
  }
  /* The GPU is gone and does not come back: from what was kept last on the CPU. */
  async fallBack(message) {
    const running = this.element.classList.contains('running');
    let failed = '';
    this.abandon();
    this.shared.useCpu();
    try {
      await this.open(this.kept);
      this.kept = undefined;
      this.stopped();
      if (running) await this.run();
    } catch (error) {
      this.stopped();
      failed = error.message;
    }
    this.say(failed || `The GPU was lost: it goes on with the CPU from step ${this.step}.`, failed);
    this.bar.querySelector('.status').title = message; // the browser's words
    this.spoken = performance.now();
  }
  face(text, sign) {
    this.button.querySelector('b').textContent = text;
    this.button.querySelector('span').textContent = sign;
  }
  stopped() {
    this.state = this.state === 'closed' ? 'closed' : 'open';
    this.element.classList.remove('running');
    this.face(this.step ? 'Go on' : 'Start', '▶');
    this.show('rate', '–');
  }
  /* A new model, or one of a file. */
  async open(file, more = {}) {
    this.device = this.shared.device;
    this.safe = file && { file, step: this.step };
    this.say(this.device === 'gpu' ? 'Opening WebGPU …' : 'Opening …');
    this.clock(this.device === 'gpu');
    const info = await this.ask('open', { room: this.name, device: this.shared.device, seed: this.seed, file, ...await this.settings(), ...more });
    this.clock(false);
    this.state = 'open';
    this.recoveries = info.recoveries;
    this.step = this.before = info.step;
    if (file) this.safe = { file, step: info.step };
    this.figures({ ...info, perSecond: 0 });
    this.show('parameters', count(info.parameters));
    this.opened(info);
    this.shared.named(info.device, info.threads);
    this.say(info.step ? `Ready at step ${info.step}.` : 'Ready.');
    return info;
  }
  async run() {
    if (this.state === 'running') return;
    this.face('Pause', '❚❚');
    if (this.state === 'closed') await this.open(this.kept);
    this.kept = undefined;
    this.state = 'running';
    this.element.classList.add('running');
    this.say(this.device === 'gpu' ? 'Learning. The first step prepares the GPU:' : 'Learning.');
    this.clock(this.device === 'gpu');
    this.spoken = performance.now() - 5000;
    await this.ask('run');
    clearInterval(this.keeper);
    this.keeper = setInterval(() => this.state === 'running' && !this.keeping && this.keep().catch(() => {}), 5000);
  }
  async pause() {
    clearInterval(this.keeper);
    if (this.device === 'gpu') this.say('It pauses after this step.');
    this.figures({ ...await this.ask('pause'), perSecond: 0 });
    this.clock(false);
    this.stopped();
    this.say(`Paused at step ${this.step}. ${this.summary()}`);
    await this.keep();
  }
  /* Forgets what was learned; texts and settings stay. */
  async reset() {
    const running = this.state === 'running';
    clearInterval(this.keeper);
    if (this.state !== 'closed') await this.soon(async () => { await this.ask('close'); return true; });
    this.state = 'closed';
    this.kept = this.safe = undefined;
    this.seed++; // other weights at the start
    this.step = this.before = 0;
    this.show('step', '0');
    this.cleared();
    this.stopped();
    await store.forget(this.name);
    this.say('Everything learned is forgotten.');
    if (running) await this.run();
    else await this.prepared();
  }
  /* After another choice of device, data or shape. `anew`: what was learned does not fit any more. */
  async changed(anew) {
    if (this.state === 'closed' && !this.kept) return;
    if (anew) return this.reset();
    const running = this.state === 'running';
    if (this.state !== 'closed') {
      const saved = await this.soon(async () => {
        if (running) await this.pause();
        const { file } = await this.ask('save', { state: true });
        await this.ask('close');
        return file;
      });
      if (saved) this.kept = saved;
      this.state = 'closed';
    }
    if (running) await this.run();
    else await this.prepared();
  }

  /* ---- files ---- */

  async download() {
    if (this.state === 'closed') await this.open(this.kept);
    this.kept = undefined;
    const { file, step } = await this.ask('save', { state: false });
    const link = document.createElement('a'), name = `cairn-${this.name}-${step}.safetensors`;
    link.href = URL.createObjectURL(new Blob([file], { type: 'application/octet-stream' }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    this.say(`${name} is saved.${this.savedHint || ''}`);
  }
  async take(files) {
    const model = files.find(f => f.name.endsWith('.safetensors')), json = files.find(f => f.name.endsWith('.json'));
    if (!model) return this.say('Choose a .safetensors file.', true);
    try {
      if (this.state === 'running') await this.pause();
      const file = new Uint8Array(await model.arrayBuffer());
      const tokenizer = json ? new Uint8Array(await json.arrayBuffer()) : undefined;
      this.cleared();
      await this.open(file, { tokenizer });
      this.stopped();
      this.say(`${model.name} is loaded${this.step ? `, step ${this.step}` : ''}.`);
      await this.keep();
    } catch (error) {
      this.state = 'closed';
      this.stopped();
      this.say(error.message, true);
    }
  }

  /* ---- across reloads ---- */

  async keep() {
    this.keeping = true;
    try {
      const { file, step } = this.state === 'closed' ? { file: this.kept, step: this.step } : await this.ask('save', { state: true });
      this.safe = file && { file, step };
      await store.save(this.name, { ...this.record(), file, step, version: 1 });
    } finally {
      this.keeping = false;
    }
  }
  async restore() {
    this.ask('load').catch(error => this.say(error.message, true)); // so that the first step comes soon
    const record = await store.load(this.name);
    if (record && record.version === 1) {
      this.restored(record);
      this.kept = record.file;
      this.step = this.before = record.file ? record.step : 0;
      this.show('step', this.step.toLocaleString('en'));
      if (this.step) {
        this.face('Go on', '▶');
        this.say(`You were here before: it goes on from step ${this.step}.`);
      }
    }
    await this.prepared();
  }

  /* ---- of each room ---- */

  async settings() { return {}; }        // of the worker's `open`
  opened() {}                            // info
  learned() {}                           // step, loss
  drawn() {}                             // after several steps
  told() {}                              // other events of the worker
  cleared() {}                           // nothing is learned any more
  async prepared() {}                    // the page is ready, or the room was reset: what is shown before a start
  record() { return {}; }                // what is kept
  restored() {}                          // the same
  summary() { return ''; }
}
