/* The room "write": a text becomes a GPT. */
import { Chart } from './chart.js';
import { Room, count } from './room.js';

const SIZES = {
  small: { layers: 2, heads: 4, width: 96, context: 64, batch: 8, rate: 6e-3 },
  medium: { layers: 4, heads: 4, width: 128, context: 64, batch: 8, rate: 3e-3 },
  large: { layers: 6, heads: 6, width: 192, context: 128, batch: 8, rate: 1.5e-3 },
};
const FIRST_SAMPLES = [5, 25, 60, 100, 150]; // steps; afterwards every 100

export class Write extends Room {
  constructor(shared) {
    super('write', shared);
    const $ = id => document.getElementById(id);
    this.text = $('text');
    this.size = $('size');
    this.reads = $('reads');
    this.temperature = $('temperature');
    this.prompt = $('prompt');
    this.pages = $('samples');
    this.chart = new Chart($('loss'), { name: 'loss', from: 1e9, to: -1e9, format: v => v.toFixed(1) });
    this.samples = [];
    this.savedHint = ' “cairn generate” reads it.';
    this.text.addEventListener('input', () => { this.measure(); this.suit(); });
    this.text.addEventListener('change', () => this.changed(true));
    this.size.addEventListener('change', () => this.changed(true));
    this.reads.addEventListener('change', () => this.changed(true));
    this.temperature.addEventListener('input', () => {
      $('temperature-value').textContent = (+this.temperature.value).toFixed(1);
      this.tune();
    });
    this.prompt.addEventListener('input', () => { this.chosen = true; this.tune(); });
    this.prompt.addEventListener('keydown', e => { if (e.key === 'Enter') this.writeNow(); });
    $('write-now').addEventListener('click', () => this.writeNow());
    $('open-text').addEventListener('click', () => $('text-file').click());
    $('text-file').addEventListener('change', async () => {
      const [file] = $('text-file').files;
      if (file) this.replace(await file.text());
      $('text-file').value = '';
    });
    const sheet = this.element;
    sheet.addEventListener('dragover', e => { e.preventDefault(); sheet.classList.add('over'); });
    sheet.addEventListener('dragleave', e => { if (!sheet.contains(e.relatedTarget)) sheet.classList.remove('over'); });
    sheet.addEventListener('drop', e => {
      e.preventDefault();
      sheet.classList.remove('over');
      this.drop([...e.dataTransfer.files], e.dataTransfer.getData('text'));
    });
  }
  async drop(files, text) {
    if (files.some(f => f.name.endsWith('.safetensors'))) return this.take(files);
    if (files.length) text = (await Promise.all(files.map(f => f.text()))).join('\n');
    if (text) this.replace(text);
  }
  /* Its own first words begin the samples of a new text, unless somebody has chosen others. */
  suit() {
    const [words] = /\S+(\s+\S{1,12})?/.exec(this.text.value.slice(0, 200)) || [''];
    if (words && !this.chosen) this.prompt.value = words.slice(0, 40);
  }
  replace(text) {
    this.text.value = text;
    this.measure();
    this.suit();
    this.changed(true);
  }
  measure() {
    const n = this.text.value.length;
    document.getElementById('text-size').textContent = n ? `${n.toLocaleString('en')} characters` : 'Paste or drop a text';
  }
  tune() {
    if (this.state !== 'closed')
      this.ask('set', { values: this.manner() }).then(() => this.guess());
  }

  async settings() {
    const text = this.text.value, size = SIZES[this.size.value], bytes = new Blob([text]).size;
    const letters = this.letters = this.reads.value === 'letters' || (this.reads.value === 'auto' && bytes < 20000);
    return { ...size, text, vocab: letters ? 0 : Math.min(1536, 256 + Math.round(bytes / 50)),
             ...this.manner() };
  }
  /* Pieces of words begin with their space: a space at the end of the prompt would be a piece of its own. */
  manner() {
    const prompt = this.prompt.value;
    return { temperature: +this.temperature.value, prompt: this.letters ? prompt : prompt.trimEnd() };
  }
  opened(info) {
    this.blind = Math.log(info.vocab || 2);
    document.getElementById('text-size').textContent =
        `${this.text.value.length.toLocaleString('en')} characters, ${count(info.tokens)} tokens of ${info.vocab} kinds`;
    this.written = info.step;
    if (this.device !== 'gpu') this.guess(); // on a GPU after its first sample: the first step comes sooner
  }
  learned(step, loss) { this.chart.add(step, loss); }
  drawn() {
    this.chart.draw();
    const loss = this.chart.last();
    document.getElementById('loss-value').textContent = Number.isFinite(loss) ? loss.toFixed(2) : '–';
    const due = FIRST_SAMPLES.find(s => s > this.written) || (Math.floor(this.written / 100) + 1) * 100;
    if (this.step >= due && this.state === 'running' && !this.writing) this.writeNow(true);
  }
  summary() {
    const loss = this.chart.last();
    return Number.isFinite(loss) ? `Step ${this.step}: the loss is ${loss.toFixed(2)}.` : '';
  }

  /* ---- samples ---- */

  async writeNow(byItself) {
    if (this.writing) return;
    this.writing = true;
    try {
      if (this.state === 'closed') {
        await this.open(this.kept);
        this.kept = undefined;
      }
      this.written = this.step;
      await this.ask('sample', { tokens: this.letters ? 280 : 120, seed: 1 + Math.floor(Math.random() * 1e6), most: byItself ? 4000 : 20000 });
      await this.guess();
    } catch (error) {
      if (this.state !== 'closed') this.say(error.message, true);
    } finally {
      this.writing = false;
      this.page = null;
    }
  }
  told(data) {
    if (data.event !== 'sample') return;
    if (!this.page) {
      this.page = document.createElement('article');
      this.page.innerHTML = '<h3></h3><p><mark></mark><span></span></p>';
      this.pages.prepend(this.page);
      while (this.pages.children.length > 12) this.pages.lastChild.remove();
    }
    this.fill(this.page, data);
    if (!data.done) return;
    this.samples.unshift({ step: data.step, prompt: data.prompt, text: data.text });
    this.samples.length = Math.min(this.samples.length, 12);
    this.page = null;
  }
  fill(page, { step, prompt, text, done }) {
    page.querySelector('h3').textContent = `after ${step.toLocaleString('en')} ${step === 1 ? 'step' : 'steps'}`;
    page.querySelector('mark').textContent = prompt;
    page.querySelector('span').textContent = text.replace(/\n{3,}/g, '\n\n');
    page.classList.toggle('coming', done === false);
  }
  /* What it expects after the prompt. */
  async guess() {
    if (this.state === 'closed') return;
    this.asked = (this.asked || 0) + 1;
    if (this.guessing) return; // the one under way asks again
    const { prompt } = this.manner(), list = document.getElementById('guesses'), number = this.asked;
    let best;
    this.guessing = true;
    try {
      ({ best } = await this.ask('expect', { prompt, most: 6 }));
    } catch {
      return; // the room was closed meanwhile
    } finally {
      this.guessing = false;
    }
    if (number !== this.asked) return this.guess();
    const seen = text => text.replace(/ /g, '␣').replace(/\n/g, '⏎').replace(/\t/g, '⇥') || '·';
    list.replaceChildren(...best.map(({ p, text }) => {
      const item = document.createElement('li'), name = document.createElement('code'), bar = document.createElement('i');
      name.textContent = seen(text);
      bar.style.setProperty('--p', p);
      item.append(name, bar, `${(100 * p).toFixed(p < 0.1 ? 1 : 0)} %`);
      return item;
    }));
  }
  cleared() {
    this.chart.clear();
    this.samples = [];
    this.page = null;
    this.pages.replaceChildren();
    document.getElementById('guesses').replaceChildren();
    document.getElementById('loss-value').textContent = '–';
    this.measure();
  }
  async prepared() {
    if (!this.text.value) {
      this.text.value = await (await fetch('text.txt')).text();
      this.text.defaultValue = this.text.value;
    }
    this.measure();
  }

  record() {
    return { text: this.text.value, size: this.size.value, reads: this.reads.value, temperature: this.temperature.value,
             prompt: this.prompt.value, chart: this.chart.saved, samples: this.samples };
  }
  restored(r) {
    this.chosen = true;
    for (const name of ['text', 'size', 'reads', 'temperature', 'prompt']) this[name].value = r[name];
    document.getElementById('temperature-value').textContent = (+this.temperature.value).toFixed(1);
    this.chart.saved = r.chart;
    const loss = this.chart.last();
    if (Number.isFinite(loss)) document.getElementById('loss-value').textContent = loss.toFixed(2);
    this.samples = r.samples || [];
    for (const sample of [...this.samples].reverse()) {
      this.told({ event: 'sample', ...sample, done: false });
      this.page = null;
      this.pages.firstChild.classList.remove('coming');
    }
  }
}
