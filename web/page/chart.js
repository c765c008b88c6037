/* A curve that grows: raw values as a faint line, a running mean as a clear one. */

export class Chart {
  /* from, to: the least range of the axis; better: 'lower' or 'higher', for the words */
  constructor(canvas, { name, format = v => v.toFixed(2), from = 0, to = 1, smooth = 0.9, colour = '--accent' }) {
    Object.assign(this, { canvas, name, format, from, to, smooth, colour, points: [], second: [] });
    this.label = canvas.getAttribute('aria-label');
    new ResizeObserver(() => this.draw()).observe(canvas);
  }
  clear() { this.points = []; this.second = []; this.draw(); }
  /* x: a step; y: a value. Old points are thinned out, so that a long run stays cheap. */
  add(x, y) {
    this.points.push([x, y]);
    if (this.points.length > 2400) this.points = this.points.filter((_, i) => i % 2 === 0);
  }
  addSecond(x, y) { this.second.push([x, y]); }
  get saved() { return { points: this.points, second: this.second }; }
  set saved(s) {
    this.points = s && s.points ? s.points : [];
    this.second = s && s.second ? s.second : [];
    this.draw();
  }
  /* The running mean, corrected for its start. */
  means() {
    let sum = 0, weight = 0;
    return this.points.map(([x, y]) => {
      sum = sum * this.smooth + y * (1 - this.smooth);
      weight = weight * this.smooth + 1 - this.smooth;
      return [x, sum / weight];
    });
  }
  last() {
    const m = this.means();
    return m.length ? m[m.length - 1][1] : NaN;
  }
  draw() {
    const { canvas } = this, box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    if (!box.width) return;
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    const c = canvas.getContext('2d'), style = getComputedStyle(canvas);
    const ink = style.getPropertyValue('--faint'), colour = style.getPropertyValue(this.colour);
    c.scale(ratio, ratio);
    const left = 44, right = box.width - 10, top = 10, bottom = box.height - 22;
    const all = this.points.concat(this.second), means = this.means();
    canvas.setAttribute('aria-label', this.label + (means.length ? `. Now ${this.format(means.at(-1)[1])} at step ${means.at(-1)[0]}` : ''));
    if (!all.length) return;
    const end = Math.max(10, ...all.map(p => p[0]));
    const low = Math.min(this.from, ...all.map(p => p[1])), high = Math.max(this.to, ...all.map(p => p[1]));
    const x = v => left + (right - left) * v / end, y = v => bottom - (bottom - top) * (v - low) / (high - low || 1);
    c.font = '11px ' + style.getPropertyValue('--sans');
    c.fillStyle = c.strokeStyle = ink;
    c.lineWidth = 1;
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    for (const v of ticks(low, high, box.height > 160 ? 4 : 2)) {
      c.fillText(this.format(v), left - 8, y(v));
      c.globalAlpha = 0.25;
      c.beginPath(), c.moveTo(left, Math.round(y(v)) + 0.5), c.lineTo(right, Math.round(y(v)) + 0.5), c.stroke();
      c.globalAlpha = 1;
    }
    c.textBaseline = 'top';
    c.textAlign = 'center';
    for (const v of ticks(0, end, 4)) if (v > 0 && x(v) < right - 6) c.fillText(String(Math.round(v)), x(v), bottom + 6);
    const line = (list, width, alpha) => {
      c.beginPath();
      list.forEach(([px, py], i) => i ? c.lineTo(x(px), y(py)) : c.moveTo(x(px), y(py)));
      c.lineWidth = width;
      c.globalAlpha = alpha;
      c.lineJoin = 'round';
      c.stroke();
      c.globalAlpha = 1;
    };
    c.strokeStyle = c.fillStyle = colour;
    if (this.smooth) line(this.points, 1, 0.28);
    line(means, 2.25, 1);
    if (means.length) {
      const [px, py] = means[means.length - 1];
      c.beginPath(), c.arc(x(px), y(py), 3.5, 0, 7), c.fill();
    }
    c.strokeStyle = c.fillStyle = style.getPropertyValue('--second');
    c.setLineDash([4, 4]);
    line(this.second, 1.75, 1);
    c.setLineDash([]);
  }
}

function ticks(low, high, about) {
  const rough = (high - low) / about, power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= rough) || rough;
  const list = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-6; v += step) list.push(v);
  return list;
}
