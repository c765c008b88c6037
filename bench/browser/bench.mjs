/* Trains in a headless Chromium with Cairn and its peers, in turns: node bench.mjs [OPTION...]; scripts/web.sh bench
   installs what it needs.

       --only mlp,gpt-mini            workloads (default: both)
       --devices wasm,threads,webgpu  wasm: one thread; threads: in an isolated page (default: all)
       --frameworks cairn,jax,tfjs    (default: those that are installed)
       --rounds N                     turns of each framework (default 7)
       --seconds S                    of a turn, at least one step (default 0.4)
       --slow                         also what takes more than half a minute a step
       --bound                        instead: what one thread of WebAssembly can do at most (bound.js)
       --smoke                        Cairn alone, mlp, a moment on wasm and webgpu: are results and counts right?

   Every step is waited for: its loss is read. The losses of the first steps must be those of Cairn on one thread. The
   ratio is the median over the rounds of a framework's step by Cairn's of the same round. It ends with 1 if Cairn is
   wrong, or asks more of WebGPU than one submission, no buffer and the dispatches of a native step. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { serve } from '../../web/tests/serve.mjs';
import { WORKLOADS } from './workloads.js';

const root = new URL('../../', import.meta.url).pathname;
const { chromium } = createRequire(join(root, 'build/web/npm/'))('playwright-core');
const FLAGS = ['--no-sandbox', '--enable-unsafe-webgpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
               '--disable-component-update', '--disable-sync'];
const PEERS = { cairn: ['Cairn'], jax: ['jax-js', '@jax-js/jax'], tfjs: ['TensorFlow.js', '@tensorflow/tfjs'] };
const DEVICES = ['wasm', 'threads', 'webgpu'];
const SLOW = [['tfjs', 'gpt-mini', 'webgpu']]; // one step each is all that is asked of them
const isSlow = (...names) => SLOW.some(slow => slow.join() === names.join());
const CHECKED = 3, TOLERANCE = 1e-3;

const { values: options } = parseArgs({ options: {
  only: { type: 'string', default: Object.keys(WORKLOADS).join() }, devices: { type: 'string', default: DEVICES.join() },
  frameworks: { type: 'string', default: Object.keys(PEERS).join() }, rounds: { type: 'string', default: '7' },
  seconds: { type: 'string', default: '0.4' }, slow: { type: 'boolean' }, bound: { type: 'boolean' },
  smoke: { type: 'boolean' } } });
if (options.smoke) Object.assign(options, { only: 'mlp', devices: 'wasm,webgpu', frameworks: 'cairn', rounds: '1', seconds: '0.1' });

const chosen = (text, known) => text.split(',').map(word => {
  if (!known.includes(word)) throw new Error(`'${word}' is none of ${known.join(', ')}`);
  return word;
});
const installed = framework => PEERS[framework].slice(1).every(name => existsSync(join(root, 'build/web/peers/node_modules', name)));
const median = list => {
  const sorted = [...list].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};

/* ---- The browser: a page and a worker for each framework, workload and device ---- */

class Browser {
  async open() {
    this.profile = mkdtempSync(join(tmpdir(), 'cairn_chromium_'));
    this.plain = await serve(root, false);
    this.isolated = await serve(root, true);
    this.fetched = new Set();
    for (const { server } of [this.plain, this.isolated]) server.on('request', ({ url }) => this.fetched.add(url));
    this.context = await chromium.launchPersistentContext(this.profile, {
      executablePath: process.env.CAIRN_CHROMIUM || '/usr/bin/chromium', headless: true, args: FLAGS, chromiumSandbox: false });
  }
  async close() {
    await this.context.close();
    for (const { server } of [this.plain, this.isolated]) server.close();
    rmSync(this.profile, { recursive: true, force: true });
  }
  /* Takes the first steps, and counts what was fetched for them. */
  async start(framework, workload, device) {
    const page = await this.context.newPage(), { origin } = device === 'threads' ? this.isolated : this.plain;
    const ask = question => page.evaluate(question => ask(question), question);
    this.fetched.clear();
    await page.goto(`${origin}/bench/browser/page.html`);
    const { threads } = await ask({ framework, device, workload });
    const losses = [];
    let last;
    const slow = isSlow(framework, workload, device);
    while (losses.length < (slow ? 1 : CHECKED)) {
      last = await ask({ steps: 1 });
      losses.push(...last.losses);
    }
    return { framework, workload, device, slow, page, ask, threads, losses, ms: [], counts: [], rounds: [], last, fetched: [...this.fetched].filter(url => url.startsWith('/build/')) };
  }
}

/* Bytes of a file that was fetched, compressed; brotli takes seconds for a module. */
const compressed = { brotli: new Map(), gzip: new Map() };
function bytesOf(kind, url) {
  const known = compressed[kind], compress = kind === 'gzip' ? bytes => gzipSync(bytes, { level: 9 }) : brotliCompressSync;
  if (!known.has(url)) known.set(url, options.smoke ? 0 : compress(readFileSync(join(root, decodeURIComponent(url)))).length);
  return known.get(url);
}

/* ---- Turns ---- */

async function race(entrants) {
  for (let round = 0; round < +options.rounds; round++) {
    for (const e of entrants) {
      if (e.slow && round > 0) continue;
      e.last = await e.ask({ steps: Math.max(1, Math.round(1000 * options.seconds / median(e.last.ms))) });
      e.ms.push(...e.last.ms);
      e.counts.push(...e.last.counts);
      e.rounds[round] = median(e.last.ms);
    }
  }
}

/* Of the median step. */
const counted = (e, key) => median(e.counts.map(counts => counts[key]));

/* What is wrong with an entrant, or ''. */
function faults(e, reference) {
  if (e.last.errors.length) return `error: ${e.last.errors[0]}`;
  const i = e.losses.findIndex((loss, i) => !(Math.abs(loss - reference[i]) <= TOLERANCE));
  if (i >= 0) return `wrong: loss ${i + 1} is ${e.losses[i]}, Cairn's ${reference[i]}`;
  if (e.framework !== 'cairn' || e.device !== 'webgpu') return '';
  const most = { dispatches: WORKLOADS[e.workload].dispatches, submissions: 1, buffers: 0 };
  const over = Object.keys(most).filter(key => counted(e, key) > most[key]);
  return over.map(key => `${key} should be ${most[key]}`).join(', ');
}

function row(e, cairn, fault) {
  const ratios = e.rounds.map((ms, i) => ms / (cairn ? cairn.rounds[i] : NaN)).filter(ratio => !Number.isNaN(ratio));
  const number = (value, digits = 0) => value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const time = ms => number(ms, ms < 100 ? 2 : 0), gpu = e.device === 'webgpu';
  const cells = [e.workload, e.device === 'threads' ? `threads: ${e.threads}` : e.device, PEERS[e.framework][0],
                 time(Math.min(...e.ms)), time(median(e.ms)), ratios.length ? number(median(ratios), 2) : '',
                 ...['dispatches', 'submissions', 'buffers', 'bytes'].map(key => gpu ? number(counted(e, key)) : ''),
                 ...['brotli', 'gzip'].map(kind => number(e.fetched.reduce((sum, url) => sum + bytesOf(kind, url), 0))), fault || 'right'];
  console.log(`| ${cells.join(' | ')} |`);
}

let rows = 0, failed = 0; // of Cairn
const browser = new Browser();

async function compare() {
  const frameworks = chosen(options.frameworks, Object.keys(PEERS)).filter(framework => {
    if (!installed(framework)) console.log(`${PEERS[framework][0]} is not installed: left out`);
    return installed(framework);
  });
  console.log('| workload | device | framework | lowest ms | median ms | times Cairn | dispatches | submissions | new buffers | bytes | brotli | gzip | |');
  console.log('|---|---|---|---|---|---|---|---|---|---|---|---|---|');
  for (const workload of chosen(options.only, Object.keys(WORKLOADS))) {
    let reference = null;
    for (const device of chosen(options.devices, DEVICES)) {
      const entrants = [];
      if (!reference) {
        const first = await browser.start('cairn', workload, 'wasm');
        reference = first.losses;
        await first.page.close();
      }
      for (const framework of frameworks) {
        if (!options.slow && isSlow(framework, workload, device)) {
          console.log(`${PEERS[framework][0]} takes long for ${workload} on ${device}: left out without --slow`);
          continue;
        }
        try {
          entrants.push(await browser.start(framework, workload, device));
        } catch (error) {
          if (framework === 'cairn') throw error;
          console.log(`${PEERS[framework][0]} does not run ${workload} on ${device}: ${error.message.split('\n')[0]}`);
        }
      }
      await race(entrants);
      for (const e of entrants) {
        const fault = faults(e, reference);
        if (e.framework === 'cairn') rows++;
        if (e.framework === 'cairn' && fault) failed++;
        row(e, entrants.find(other => other.framework === 'cairn'), fault);
        await e.page.close();
      }
    }
  }
}

async function bound() {
  const page = await browser.context.newPage();
  await page.goto(`${browser.plain.origin}/bench/browser/page.html`);
  console.log('| loop | f32x4.mul, f32x4.add | f32x4.relaxed_madd |\n|---|---|---|');
  for (const { loop, plain, fused } of await page.evaluate(async () => (await import('./bound.js')).measure()))
    console.log(`| ${loop} | ${plain.toFixed(1)} | ${fused ? fused.toFixed(1) : ''} |`);
}

await browser.open();
try {
  await (options.bound ? bound() : compare());
} finally {
  await browser.close();
}
if (options.smoke) console.log(`${rows - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
