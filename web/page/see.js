/* The room "see": a network that reads digits, and a pad to draw them on. */
import { Chart } from './chart.js';
import { Room } from './room.js';

const SIDE = 28, PAD = 280, MAPS = 8;

export class See extends Room {
  constructor(shared) {
    super('see', shared);
    const $ = id => document.getElementById(id);
    this.pad = $('pad');
    this.ink = this.pad.getContext('2d', { willReadFrequently: true });
    this.chart = new Chart($('accuracy'), { name: 'accuracy', from: 0, to: 1, smooth: 0, format: v => Math.round(100 * v) + ' %' });
    this.savedHint = ' “cairn eval” reads it.';
    this.pen = { x: PAD / 2, y: PAD / 2, down: false };
    this.bars = Array.from({ length: 10 }, (_, digit) => {
      const item = document.createElement('li');
      item.innerHTML = `<b>${digit}</b><i></i><span></span>`;
      $('answers').append(item);
      return item;
    });
    this.maps = Array.from({ length: MAPS }, () => {
      const box = document.createElement('li');
      box.setAttribute('aria-hidden', 'true');
      box.innerHTML = `<canvas class="seen" width="${SIDE}" height="${SIDE}"></canvas><canvas class="filter" width="3" height="3"></canvas>`;
      $('maps').append(box);
      return box;
    });
    this.listen();
    $('clear-pad').addEventListener('click', () => this.wipe());
    $('example').addEventListener('click', () => this.example());
    $('open-digits').addEventListener('click', () => $('digit-files').click());
    $('digit-files').addEventListener('change', () => {
      this.takeDigits([...$('digit-files').files]);
      $('digit-files').value = '';
    });
    this.wipe();
  }

  /* ---- drawing ---- */

  listen() {
    const { pad } = this, at = e => {
      const box = pad.getBoundingClientRect();
      return [(e.clientX - box.left) / box.width * PAD, (e.clientY - box.top) / box.height * PAD];
    };
    pad.addEventListener('pointerdown', e => {
      pad.setPointerCapture(e.pointerId);
      if (this.fresh) this.wipe(true);
      this.from = at(e);
      this.stroke(this.from, this.from);
    });
    pad.addEventListener('pointermove', e => {
      if (!this.from) return;
      const to = at(e);
      this.stroke(this.from, to);
      this.from = to;
    });
    for (const end of ['pointerup', 'pointercancel']) pad.addEventListener(end, () => { this.from = null; });
    pad.addEventListener('keydown', e => this.key(e));
    pad.addEventListener('focus', () => this.place());
    pad.addEventListener('blur', () => { this.pen.down = false; this.place(); });
  }
  /* Arrows move the pen, the space bar lifts and lowers it, Backspace clears. */
  key(e) {
    const { pen } = this, move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
    if (e.key === ' ') {
      pen.down = !pen.down;
      if (pen.down && this.fresh) this.wipe(true);
      this.say(pen.down ? 'The pen is down.' : 'The pen is up.');
      if (pen.down) this.stroke([pen.x, pen.y], [pen.x, pen.y]);
    } else if (e.key === 'Backspace' || e.key === 'Delete') {
      this.wipe();
    } else if (move) {
      const from = [pen.x, pen.y];
      pen.x = Math.min(PAD - 20, Math.max(20, pen.x + 12 * move[0]));
      pen.y = Math.min(PAD - 20, Math.max(20, pen.y + 12 * move[1]));
      if (pen.down) this.stroke(from, [pen.x, pen.y]);
    } else {
      return;
    }
    e.preventDefault();
    this.place();
  }
  place() {
    const mark = document.getElementById('pen');
    mark.style.left = 100 * this.pen.x / PAD + '%';
    mark.style.top = 100 * this.pen.y / PAD + '%';
    mark.classList.toggle('down', this.pen.down);
  }
  stroke([x0, y0], [x1, y1]) {
    const c = this.ink;
    c.strokeStyle = '#fff';
    c.lineWidth = 21;
    c.lineCap = c.lineJoin = 'round';
    c.beginPath();
    c.moveTo(x0, y0);
    c.lineTo(x1, y1 + (x0 === x1 && y0 === y1 ? 0.01 : 0));
    c.stroke();
    document.getElementById('hint').hidden = true;
    this.look();
  }
  wipe(quiet) {
    this.ink.fillStyle = '#000';
    this.ink.fillRect(0, 0, PAD, PAD);
    this.fresh = false;
    this.image = null;
    if (quiet) return;
    document.getElementById('hint').hidden = false;
    this.blank();
    if (this.state !== 'closed') this.ask('set', { values: { image: null } });
  }
  blank() {
    this.bars.forEach(item => {
      item.querySelector('i').style.setProperty('--p', 0);
      item.querySelector('span').textContent = '';
      item.classList.remove('best');
    });
    this.maps.forEach(box => box.querySelector('.seen').getContext('2d').clearRect(0, 0, SIDE, SIDE));
    document.getElementById('reads-as').textContent = '?';
  }
  /* A digit of the test set, which it has never learned from. */
  async example() {
    await this.getDigits();
    if (!this.digits) return;
    const { train, test, images } = this.digits, i = train + Math.floor(Math.random() * test);
    const small = images.subarray(i * SIDE * SIDE, (i + 1) * SIDE * SIDE), picture = new ImageData(SIDE, SIDE);
    small.forEach((v, k) => picture.data.set([v, v, v, 255], 4 * k));
    const canvas = new OffscreenCanvas(SIDE, SIDE);
    canvas.getContext('2d').putImageData(picture, 0, 0);
    this.ink.drawImage(canvas, 0, 0, PAD, PAD);
    document.getElementById('hint').hidden = true;
    this.fresh = true;
    this.show28(Uint8Array.from(small));
  }

  /* The drawing as the digits of MNIST are: 20 pixels high or wide, its centre of mass in the middle of 28. */
  look() {
    if (this.looking) return;
    this.looking = true;
    requestAnimationFrame(() => {
      this.looking = false;
      const { data } = this.ink.getImageData(0, 0, PAD, PAD);
      let left = PAD, right = -1, top = PAD, bottom = -1;
      for (let y = 0; y < PAD; y++)
        for (let x = 0; x < PAD; x++)
          if (data[4 * (y * PAD + x)] > 40) {
            left = Math.min(left, x), right = Math.max(right, x);
            top = Math.min(top, y), bottom = Math.max(bottom, y);
          }
      if (right < 0) return;
      const w = right - left + 1, h = bottom - top + 1, scale = 20 / Math.max(w, h, 60);
      const draw = (dx, dy) => {
        const canvas = new OffscreenCanvas(SIDE, SIDE), c = canvas.getContext('2d');
        c.fillRect(0, 0, SIDE, SIDE);
        c.imageSmoothingQuality = 'high';
        c.drawImage(this.pad, left, top, w, h, 14 - w * scale / 2 + dx, 14 - h * scale / 2 + dy, w * scale, h * scale);
        return c.getImageData(0, 0, SIDE, SIDE).data.filter((_, i) => i % 4 === 0);
      };
      let image = draw(0, 0), mass = 0, mx = 0, my = 0;
      image.forEach((v, i) => { mass += v; mx += v * (i % SIDE); my += v * Math.floor(i / SIDE); });
      if (mass) image = draw(Math.round(13.5 - mx / mass), Math.round(13.5 - my / mass));
      this.show28(Uint8Array.from(image));
    });
  }
  async show28(image) {
    this.image = image;
    if (this.state === 'closed') {
      if (!this.kept || this.opening) return;
      this.opening = true;
      await this.open(this.kept).catch(error => this.say(error.message, true));
      this.opening = false;
      this.kept = undefined;
    }
    this.ask('set', { values: { image } });
  }

  /* ---- data ---- */

  /* The digits that come with the page: half a byte a pixel. */
  async getDigits() {
    if (this.digits) return;
    const reply = await fetch('digits.bin.gz');
    if (!reply.ok) throw new Error('This page was built without digits. Choose MNIST’s four idx files: “Other digits”.');
    const plain = reply.body.pipeThrough(new DecompressionStream('gzip'));
    const all = new Uint8Array(await new Response(plain).arrayBuffer()), [train, test] = new Uint32Array(all.buffer, 0, 2);
    const n = train + test, labels = all.slice(8, 8 + n), packed = all.subarray(8 + n), images = new Uint8Array(n * SIDE * SIDE);
    for (let i = 0; i < packed.length; i++) {
      images[2 * i] = 17 * (packed[i] >> 4);
      images[2 * i + 1] = 17 * (packed[i] & 15);
    }
    this.digits = { train, test, images, labels };
    this.describeDigits('');
  }
  describeDigits(where) {
    const { train, test } = this.digits;
    document.getElementById('digit-count').textContent =
        `${train.toLocaleString('en')} digits to learn from, ${test.toLocaleString('en')} others for the test${where}`;
  }
  /* idx files: images and labels by their magic numbers; the larger pair is for training. */
  async takeDigits(files) {
    const images = [], labels = [];
    try {
      for (const file of files) {
        let bytes = new Uint8Array(await file.arrayBuffer());
        if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
          const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
          bytes = new Uint8Array(await new Response(plain).arrayBuffer());
        }
        const view = new DataView(bytes.buffer), kind = view.getUint32(0), n = view.getUint32(4);
        if (kind === 0x803 && view.getUint32(8) === SIDE && view.getUint32(12) === SIDE) images.push({ n, data: bytes.subarray(16) });
        else if (kind === 0x801) labels.push({ n, data: bytes.subarray(8) });
        else throw new Error(`${file.name} is not an idx file of 28 by 28 images or of labels.`);
      }
      const pairs = images.map(i => ({ n: i.n, images: i.data, labels: labels.find(l => l.n === i.n) })).sort((a, b) => b.n - a.n);
      if (!pairs.length || pairs.some(p => !p.labels)) throw new Error('Choose images together with their labels.');
      const n = pairs.reduce((sum, p) => sum + p.n, 0), all = new Uint8Array(n * SIDE * SIDE), names = new Uint8Array(n);
      let at = 0;
      for (const p of pairs) {
        all.set(p.images, at * SIDE * SIDE);
        names.set(p.labels.data, at);
        at += p.n;
      }
      const test = pairs.length > 1 ? Math.min(n - pairs[0].n, 2000) : Math.floor(n / 10);
      const train = pairs.length > 1 ? pairs[0].n : n - test;
      this.digits = { train, test, images: all, labels: names };
      this.describeDigits(', yours');
      await this.changed(true);
    } catch (error) {
      this.say(error.message, true);
    }
  }

  /* ---- learning ---- */

  async settings() {
    await this.getDigits();
    const { train, test, images, labels } = this.digits;
    return { images, labels, train, test, side: SIDE, batch: 50, rate: 4e-3, image: this.image };
  }
  opened() { if (this.image) this.ask('set', { values: { image: this.image } }); }
  drawn() { this.chart.draw(); }
  told(data) {
    if (data.event === 'accuracy' && Number.isFinite(data.accuracy)) {
      this.chart.add(data.step, data.accuracy);
      this.chart.draw();
      this.accuracy = data.accuracy;
      document.getElementById('accuracy-value').textContent = (100 * data.accuracy).toFixed(1) + ' %';
    } else if (data.event === 'reading') {
      this.showFilters(data.filters);
      if (data.answer && this.image) this.showAnswer(data.answer, data.seen);
    }
  }
  showAnswer(answer, seen) {
    const best = answer.indexOf(Math.max(...answer));
    this.bars.forEach((item, digit) => {
      item.classList.toggle('best', digit === best);
      item.querySelector('i').style.setProperty('--p', answer[digit]);
      item.querySelector('span').textContent = `${Math.round(100 * answer[digit])} %`;
    });
    document.getElementById('reads-as').textContent = best;
    document.getElementById('reads-as').style.opacity = 0.35 + 0.65 * answer[best];
    const most = Math.max(1e-6, ...seen), [r, g, b] = this.shared.colour('--accent');
    this.maps.forEach((box, k) => {
      const picture = new ImageData(SIDE, SIDE);
      for (let i = 0; i < SIDE * SIDE; i++) picture.data.set([r, g, b, 255 * Math.sqrt(seen[k * SIDE * SIDE + i] / most)], 4 * i);
      box.querySelector('.seen').getContext('2d').putImageData(picture, 0, 0);
    });
  }
  showFilters(filters) {
    const most = Math.max(...filters.map(Math.abs)), plus = this.shared.colour('--accent'), minus = this.shared.colour('--second');
    this.maps.forEach((box, k) => {
      const picture = new ImageData(3, 3);
      for (let i = 0; i < 9; i++) {
        const w = filters[9 * k + i] / most;
        picture.data.set([...(w > 0 ? plus : minus), 255 * Math.abs(w)], 4 * i);
      }
      box.querySelector('.filter').getContext('2d').putImageData(picture, 0, 0);
    });
  }
  summary() { return this.accuracy ? `Step ${this.step}: ${(100 * this.accuracy).toFixed(1)} % of the test digits are right.` : ''; }
  cleared() {
    this.chart.clear();
    this.accuracy = 0;
    this.blank();
    document.getElementById('accuracy-value').textContent = '–';
  }
  async prepared() {
    await this.getDigits().catch(error => this.say(error.message, true));
    if (this.state === 'closed' && this.kept) {
      await this.open(this.kept);
      this.kept = undefined;
      this.stopped();
      this.say(`You were here before: it goes on from step ${this.step}.`);
    }
  }
  record() { return { chart: this.chart.saved, accuracy: this.accuracy }; }
  restored(r) {
    this.chart.saved = r.chart;
    this.accuracy = r.accuracy;
    if (r.accuracy) document.getElementById('accuracy-value').textContent = (100 * r.accuracy).toFixed(1) + ' %';
  }
}
