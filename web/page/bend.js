/* The room "bend": the line between two kinds of points moves while a network learns. */
import { Chart } from './chart.js';
import { Room } from './room.js';

const REACH = 1.35, FIELD = 72, ACTIVATIONS = ['tanh', 'ReLU', 'GELU', 'sigmoid', 'sine'];

/* Numbers that look random and are always the same. */
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
const SHAPES = {
  moons: (t, kind) => kind ? [0.36 - 0.76 * Math.cos(Math.PI * t), 0.22 - 0.8 * Math.sin(Math.PI * t)]
                           : [-0.36 + 0.76 * Math.cos(Math.PI * t), -0.22 + 0.8 * Math.sin(Math.PI * t)],
  circles: (t, kind) => [(kind ? 0.4 : 0.95) * Math.cos(2 * Math.PI * t), (kind ? 0.4 : 0.95) * Math.sin(2 * Math.PI * t)],
  spiral: (t, kind) => {
    const r = 0.12 + 0.95 * t, a = 3.2 * Math.PI * t + (kind ? Math.PI : 0);
    return [r * Math.cos(a), r * Math.sin(a)];
  },
  xor: (t, kind, draw) => {
    const x = 0.12 + 0.9 * draw(), y = 0.12 + 0.9 * draw(), flip = draw() < 0.5 ? 1 : -1;
    return [flip * x, flip * (kind ? y : -y)];
  },
};
function makePoints(shape, noise, n = 320) {
  const draw = random(7), points = new Float32Array(2 * n), classes = new Uint8Array(n);
  const normal = () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
  for (let i = 0; i < n; i++) {
    const kind = i % 2, [x, y] = SHAPES[shape](draw(), kind, draw);
    points[2 * i] = x + noise * normal();
    points[2 * i + 1] = y + noise * normal();
    classes[i] = kind;
  }
  return { points, classes };
}

export class Bend extends Room {
  constructor(shared) {
    super('bend', shared);
    const $ = id => document.getElementById(id);
    this.plane = $('plane');
    this.chart = new Chart($('bend-loss'), { name: 'loss', from: 0, to: 0.7, smooth: 0 });
    this.widths = [16, 16];
    this.shape = 'moons';
    this.noise = $('noise');
    this.rate = $('rate');
    this.activation = $('activation');
    this.activation.append(...ACTIVATIONS.map((name, i) => new Option(name, i)));
    this.element.querySelectorAll('input[name=shape]').forEach(input => input.addEventListener('change', () => {
      this.shape = input.value;
      this.remake();
    }));
    this.noise.addEventListener('input', () => { $('noise-value').textContent = (+this.noise.value).toFixed(2); this.remake(); });
    this.activation.addEventListener('change', () => this.reshape());
    this.rate.addEventListener('input', () => this.setRate());
    $('add-layer').addEventListener('click', () => { if (this.widths.length < 6) this.widths.push(16); this.reshape(); });
    $('drop-layer').addEventListener('click', () => { if (this.widths.length > 1) this.widths.pop(); this.reshape(); });
    this.data = makePoints(this.shape, 0.09);
    this.showLayers();
    new ResizeObserver(() => this.draw()).observe(this.plane);
  }
  get speed() { return 10 ** +this.rate.value; }
  setRate() {
    document.getElementById('rate-value').textContent = this.speed.toPrecision(2).replace(/0+$/, '');
    if (this.state !== 'closed') this.ask('set', { values: { rate: this.speed } });
  }
  /* Other points: the network stays and learns on. Its new data need a new opening. */
  async remake() {
    this.data = makePoints(this.shape, +this.noise.value);
    this.draw();
    clearTimeout(this.later);
    this.later = setTimeout(() => this.changed(false), 150);
  }
  reshape() {
    this.showLayers();
    this.field = null;
    clearTimeout(this.later);
    this.later = setTimeout(() => this.changed(true).then(() => this.state === 'closed' && this.prepared()), 150);
  }
  /* The network as columns of dots, with a number below each that can be changed. */
  showLayers() {
    const box = document.getElementById('layers');
    box.replaceChildren(...this.widths.map((width, i) => {
      const column = document.createElement('li'), dots = document.createElement('div'), input = document.createElement('input');
      dots.className = 'dots';
      dots.setAttribute('aria-hidden', 'true');
      for (let k = 0; k < Math.min(width, 16); k++) dots.append(document.createElement('i'));
      Object.assign(input, { type: 'number', min: 1, max: 64, value: width });
      input.setAttribute('aria-label', `Width of layer ${i + 1}`);
      input.addEventListener('change', () => {
        this.widths[i] = Math.max(1, Math.min(64, Math.round(+input.value) || 1));
        this.reshape();
      });
      column.append(dots, input);
      return column;
    }));
    document.getElementById('drop-layer').disabled = this.widths.length === 1;
    document.getElementById('add-layer').disabled = this.widths.length === 6;
  }

  async settings() {
    return { ...this.data, widths: this.widths, activation: +this.activation.value, rate: this.speed, side: FIELD, reach: REACH };
  }
  learned(step, loss) {
    this.chart.add(step, loss);
    this.loss = loss;
  }
  drawn() {
    this.chart.draw();
    document.getElementById('bend-loss-value').textContent = this.loss.toFixed(3);
  }
  told(data) {
    if (data.event !== 'field') return;
    this.field = data.field;
    this.draw();
  }
  summary() {
    return this.right === undefined ? '' : `Step ${this.step}: ${Math.round(100 * this.right)} % of the points are on their side.`;
  }
  draw() {
    const { plane } = this, box = plane.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    const n = Math.round(box.width * ratio);
    if (!n) return;
    if (plane.width !== n) plane.width = plane.height = n;
    const c = plane.getContext('2d'), a = this.shared.colour('--second'), b = this.shared.colour('--accent');
    const paper = this.shared.colour('--card');
    c.clearRect(0, 0, n, n);
    if (this.field) this.drawField(c, n, a, b, paper);
    const at = (x, y) => [(x + REACH) / (2 * REACH) * n, (REACH - y) / (2 * REACH) * n];
    const { points, classes } = this.data, dot = Math.max(3, n / 150);
    c.lineWidth = Math.max(1, n / 500);
    for (let i = 0; i < classes.length; i++) {
      const [x, y] = at(points[2 * i], points[2 * i + 1]);
      c.beginPath();
      c.arc(x, y, dot, 0, 7);
      c.fillStyle = `rgb(${classes[i] ? b : a})`;
      c.strokeStyle = `rgb(${paper})`;
      c.fill();
      c.stroke();
    }
    if (this.field) this.count();
  }
  /* Colours by probability, and the line where both are equally likely. */
  drawField(c, n, a, b, paper) {
    const picture = new ImageData(FIELD, FIELD);
    this.field.forEach((p, i) => {
      const colour = p < 0.5 ? a : b, t = 0.10 + 0.55 * Math.min(1, Math.abs(2 * p - 1));
      picture.data.set(colour.map((v, k) => v * t + paper[k] * (1 - t)).concat(255), 4 * i);
    });
    const small = new OffscreenCanvas(FIELD, FIELD);
    small.getContext('2d').putImageData(picture, 0, 0);
    c.imageSmoothingEnabled = true;
    c.imageSmoothingQuality = 'high';
    const pixel = n / (FIELD - 1); // values are at the corners of the grid
    c.drawImage(small, -pixel / 2, -pixel / 2, n + pixel, n + pixel);
    c.strokeStyle = getComputedStyle(this.plane).getPropertyValue('--ink');
    c.lineWidth = Math.max(1.5, n / 320);
    c.lineCap = 'round';
    c.beginPath();
    const f = (x, y) => this.field[y * FIELD + x] - 0.5;
    for (let y = 0; y < FIELD - 1; y++)
      for (let x = 0; x < FIELD - 1; x++) {
        const v = [f(x, y), f(x + 1, y), f(x + 1, y + 1), f(x, y + 1)], cut = [];
        [[0, 1], [1, 2], [2, 3], [3, 0]].forEach(([i, j], side) => {
          if (v[i] > 0 === v[j] > 0) return;
          const t = v[i] / (v[i] - v[j]);
          cut.push([[x + t, y], [x + 1, y + t], [x + 1 - t, y + 1], [x, y + 1 - t]][side]);
        });
        for (let k = 0; k + 1 < cut.length; k += 2) {
          c.moveTo(cut[k][0] * pixel, cut[k][1] * pixel);
          c.lineTo(cut[k + 1][0] * pixel, cut[k + 1][1] * pixel);
        }
      }
    c.stroke();
  }
  count() {
    const { points, classes } = this.data, place = v => Math.max(0, Math.min(FIELD - 1, Math.round((v + REACH) / (2 * REACH) * (FIELD - 1))));
    let right = 0;
    classes.forEach((k, i) => { if (this.field[place(-points[2 * i + 1]) * FIELD + place(points[2 * i])] > 0.5 === !!k) right++; });
    this.right = right / classes.length;
    const text = `${Math.round(100 * this.right)} %`;
    document.getElementById('bend-right').textContent = text;
    this.plane.setAttribute('aria-label', `The plane with two kinds of points and the line between them; ${text} are on their side`);
  }
  cleared() {
    this.chart.clear();
    document.getElementById('bend-loss-value').textContent = '–';
  }
  async prepared() {
    if (this.state === 'closed') {
      await this.open(this.kept);
      this.kept = undefined;
      this.stopped();
      if (this.step) this.say(`You were here before: it goes on from step ${this.step}.`);
    }
    this.draw();
  }
  record() {
    return { shape: this.shape, noise: this.noise.value, rate: this.rate.value, activation: this.activation.value,
             widths: this.widths, chart: this.chart.saved };
  }
  restored(r) {
    this.shape = r.shape;
    this.widths = r.widths;
    for (const name of ['noise', 'rate', 'activation']) this[name].value = r[name];
    this.element.querySelector(`input[value=${r.shape}]`).checked = true;
    document.getElementById('noise-value').textContent = (+this.noise.value).toFixed(2);
    this.setRate();
    this.data = makePoints(this.shape, +this.noise.value);
    this.chart.saved = r.chart;
    this.showLayers();
  }
}
