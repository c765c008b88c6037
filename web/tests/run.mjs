/* Tests in a headless Chromium: node run.mjs NAME ...; scripts/web.sh sets the environment. NAME:

       types      web/tests/types.mts against cairn.d.ts
       ops        test_ops in a worker of a page without isolation
       gpu-ops    test_gpu_ops on the browser's WebGPU, in as many browsers as there are processors
       gpt        web/tests/gpt.c on WASM and on WebGPU against a native run
       steps      web/tests/steps.c on WASM and on WebGPU: one submission a step, and nothing grows
       lost       the same while the GPU is taken away
       api-single, api-threads, api-gpu   web/tests/api.js on one thread, with threads in an isolated page, on WebGPU
       api-async  the same on WebGPU, in a browser that cannot suspend WebAssembly

   The last line is "N passed, M failed". Every message of a page's console that is an error is a failure. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { serve } from './serve.mjs';

const root = new URL('../../', import.meta.url).pathname;
const require = createRequire(join(root, 'build/web/npm/'));
const { chromium } = require('playwright-core');
const FLAGS = ['--no-sandbox', '--enable-unsafe-webgpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
               '--disable-component-update', '--disable-sync', '--js-flags=--expose-gc'];
let passed = 0, failed = 0, skipped = 0;

function check(ok, words) {
  if (ok) passed++;
  else { failed++; console.log(`FAILED: ${words}`); }
}

/* A page of its own, with or without isolation, closed after use. */
async function withPage(isolated, use) {
  const profile = mkdtempSync(join(tmpdir(), 'cairn_chromium_'));
  const { server, origin } = await serve(root, isolated);
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CAIRN_CHROMIUM || '/usr/bin/chromium', headless: true, args: FLAGS, chromiumSandbox: false });
  const page = await browser.newPage();
  page.on('console', m => {
    if (m.type() === 'error') check(false, `console: ${m.text()} ${m.location().url}`);
    else if (process.env.CAIRN_TEST_LOG) console.log(m.text());
  });
  page.on('pageerror', error => check(false, `page: ${error.stack || error}`));
  try {
    await page.goto(`${origin}/web/tests/page.html`);
    check(await page.evaluate(() => self.crossOriginIsolated) === isolated, `isolated: ${isolated}`);
    return await use(page);
  } finally {
    await browser.close();
    server.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

/* The lines of a test program that ran in a worker; with watch (web/tests/worker.js) what was seen at each. */
async function program(page, name, words = [], env = {}, watch = null) {
  const ran = await page.evaluate(([url, words, env, watch]) => new Promise(done => {
    const worker = new Worker('/web/tests/worker.js'), lines = [], seen = [];
    worker.onmessage = ({ data }) => {
      if (data.line === undefined) {
        worker.terminate();
        done({ lines, seen, status: data.ended });
        return;
      }
      lines.push(data.line);
      seen.push(data.seen);
    };
    worker.onerror = error => done({ lines, seen, status: error.message });
    worker.postMessage({ url, words, env, watch });
  }), [`/build/web/tests/${name}.js`, words, env, watch]);
  if (process.env.CAIRN_TEST_LOG) console.log(ran.lines.join('\n'));
  return ran;
}

async function counted(page, label, name, words, env) {
  const { lines, status } = await program(page, name, words, env);
  const found = /(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/.exec(lines[lines.length - 1] || '');
  if (found) {
    passed += +found[1];
    failed += +found[2];
    skipped += +(found[3] || 0);
  }
  check(found && status === (+found[2] ? 1 : 0), `${label} ended with ${status}`);
  if (!found || +found[2]) console.log(lines.slice(-40).join('\n'));
  console.log(`${label}: ${lines.slice(-2).join('; ')}`);
}

const numbers = lines => Object.fromEntries(lines.filter(line => line.includes(' ')).map(line => line.split(' ')));

/* One training, natively, on WASM and on WebGPU: the same bits at the start, and losses that differ by less than 1e-4.
   On software GPUs a step of the larger model takes a second: it has fewer. */
async function gpt(page) {
  const steps = 200, large = +(process.env.CAIRN_GPU_STEPS || 0);
  for (const [device, size, n] of [['cpu', 'large', steps], ['cpu', 'small', steps], ['gpu', 'small', steps], ['gpu', 'large', large]]) {
    if (!n) continue;
    const label = `gpt, ${size}, on ${device}`, began = performance.now();
    const native = spawnSync(join(root, 'build/tests/web_gpt'), [String(n), size], { encoding: 'utf8', env: { ...process.env, CAIRN_DEVICE: 'cpu' } });
    const expected = numbers(native.stdout.trim().split('\n'));
    const { lines, status } = await program(page, 'web_gpt', [String(n), size], { CAIRN_DEVICE: device });
    const own = numbers(lines);
    check(native.status === 0 && status === 0, `${label}: ${status}, natively ${native.status}; ${lines.slice(-3).join('; ')}`);
    check(own.weights && own.weights === expected.weights, `${label}: initial weights ${own.weights}, natively ${expected.weights}`);
    check(own.dropout && own.dropout === expected.dropout, `${label}: dropout ${own.dropout}, natively ${expected.dropout}`);
    let most = 0, counted = 0;
    for (let step = 1; step <= n && own[step] !== undefined; step++, counted++)
      most = Math.max(most, Math.abs(own[step] - expected[step]));
    check(counted === n && most < 1e-4, `${label}: ${counted} losses, largest difference ${most}`);
    console.log(`${label}: ${counted} steps, last loss ${own[counted]}, largest difference ${most.toExponential(2)}, ` +
                `${((performance.now() - began) / 1000).toFixed(1)} s`);
  }
}

/* 1,000 steps of a training. On a GPU each is one submission with the same dispatches, and reads nothing back except the
   copy of section 7 of docs/gpu.md, every 50 steps. What is alive is at most the same in the last 200 steps as after the
   first 200: buffers and their bytes, objects of WebGPU that C holds, the heap, and what is in use of it. */
async function steps(page, device) {
  const label = `steps on ${device}`, began = performance.now(), last = 1000;
  const { lines, seen, status } = await program(page, 'web_steps', [String(last)], { CAIRN_DEVICE: device }, {});
  check(status === 0, `${label}: ${status}; ${lines.slice(-3).join('; ')}`);
  const at = []; // what was seen after each step; a read of a loss is part of the step that follows
  let reads = 0;
  lines.forEach((line, i) => {
    const [word, step, bytes] = line.split(' ');
    if (word === 'step') at[+step] = { ...seen[i], used: +bytes };
    if (word === 'loss') reads++;
  });
  check(at.length === last + 1 && reads === last / 100, `${label}: ${at.length - 1} steps, ${reads} losses`);
  if (at.length !== last + 1) return;
  for (const what of ['buffers', 'bytes', 'handles', 'heap', 'used']) {
    const most = (from, to) => Math.max(...at.slice(from, to + 1).map(seen => seen[what]));
    const early = most(201, 400), late = most(last - 199, last);
    check(late <= early, `${label}: ${what}: at most ${early} in steps 201 to 400, ${late} in the last 200`);
  }
  console.log(`${label}: ${last} steps, ${((performance.now() - began) / 1000).toFixed(1)} s; at the end ${JSON.stringify(at[last])}`);
  if (device !== 'gpu') return;
  const each = what => at.slice(202).map((seen, i) => seen[what] - at[i + 201][what]);
  const quiet = (_, i) => (i + 201) % 100 !== 0; // no loss was read between the two steps
  check(each('submissions').filter(quiet).every(n => n === 1), `${label}: submissions of a step: ${[...new Set(each('submissions'))]}`);
  check(new Set(each('dispatches').filter(quiet)).size === 1, `${label}: dispatches of a step: ${[...new Set(each('dispatches'))]}`);
  check(each('maps').filter(quiet).reduce((sum, n) => sum + n, 0) <= last / 50, `${label}: readbacks of steps: ${each('maps').filter(quiet)}`);
  check(each('writes').every(n => n <= 2), `${label}: uploads of a step: ${[...new Set(each('writes'))]}`);
  console.log(`${label}: a step: ${each('submissions')[0]} submission, ${each('dispatches')[0]} dispatches, ${each('writes')[0]} uploads`);
}

/* A page's GPU is taken away in the middle of a training: the next read has it again (two of them read here), and the
   weights have the same bits in the end.
   Without the mirror the loss is an error. */
async function lost(page) {
  const run = (env, lose) => program(page, 'web_steps', ['150'], { CAIRN_DEVICE: 'gpu', ...env }, { lose });
  const value = ({ lines }, word) => (lines.find(line => line.startsWith(`${word} `)) || '').split(' ')[1];
  const whole = await run({}, []), found = await run({}, ['step 3 ', 'step 77 ', 'step 100 ', 'step 101 ', 'loss 100 ', 'step 150 ']);
  check(whole.status === 0 && value(whole, 'recoveries') === '0', `lost: without a loss: ${whole.status}; ${whole.lines.slice(-3).join('; ')}`);
  check(found.status === 0 && value(found, 'recoveries') === '2', `lost: ${found.status}; ${found.lines.slice(-3).join('; ')}`);
  check(value(whole, 'weights') && value(whole, 'weights') === value(found, 'weights'),
        `lost: weights ${value(found, 'weights')} after losses, ${value(whole, 'weights')} without`);
  check(value(whole, 'loss') === value(found, 'loss'), 'lost: a loss that was read');
  const ended = await run({ CAIRN_GPU_MIRROR: '0' }, ['step 3 ']);
  check(ended.status === 1 && ended.lines.some(line => /the GPU ".*" was lost/.test(line)), `lost, no mirror: ${ended.status}; ${ended.lines.slice(-3).join('; ')}`);
  console.log(`lost: ${value(found, 'recoveries')} recoveries, the same bits; without a mirror: ${ended.lines[ended.lines.length - 1]}`);
}

async function api(page, label, options) {
  const results = await page.evaluate(async ([options]) => {
    const { run } = await import('/web/tests/api.js');
    return run(options);
  }, [options]);
  for (const { name, error } of results) check(!error, `${label}: ${name}: ${error}`);
  console.log(`${label}: ${results.filter(r => !r.error).length} of ${results.length}`);
}

/* The types, by TypeScript's compiler. */
function types() {
  const ran = spawnSync(join(root, 'build/web/npm/node_modules/.bin/tsc'),
                        ['--strict', '--noEmit', '--target', 'es2022', '--module', 'nodenext', '--lib', 'es2022,dom', 'web/tests/types.mts'],
                        { cwd: root, encoding: 'utf8' });
  check(ran.status === 0, `types: ${ran.error || ran.stdout}`);
}

const STAGES = {
  types,
  ops: () => withPage(false, page => counted(page, 'ops', 'test_ops', [], { CAIRN_TEST_QUICK: '1' })),
  'gpu-ops': () => Promise.all(Array.from({ length: availableParallelism() }, (_, k, n = availableParallelism()) =>
      withPage(false, page => counted(page, `gpu-ops, share ${k} of ${n}`, 'test_gpu_ops',
          process.env.CAIRN_TEST_PART ? [process.env.CAIRN_TEST_PART] : [],
          { CAIRN_TEST_QUICK: '1', CAIRN_GPU_STRICT: '1', CAIRN_TEST_SHARE: `${k}/${n}` })))),
  gpt: () => withPage(false, gpt),
  steps: () => withPage(false, async page => {
    await steps(page, 'cpu');
    await steps(page, 'gpu');
  }),
  lost: () => withPage(false, lost),
  'api-single': () => withPage(false, page => api(page, 'api, one thread', { device: 'cpu', threads: 1 })),
  'api-threads': () => withPage(true, page => api(page, 'api, threads', { device: 'cpu', threads: 2 })),
  'api-async': () => withPage(false, async page => {
    await page.addInitScript(() => { delete WebAssembly.Suspending; delete WebAssembly.promising; });
    await page.reload();
    await api(page, 'api, WebGPU by Asyncify', { device: 'gpu' });
  }),
  'api-gpu': () => withPage(false, page => api(page, 'api, WebGPU', { device: 'gpu' })),
};

for (const name of process.argv.slice(2)) {
  try {
    await STAGES[name]();
  } catch (error) {
    check(false, `${name}: ${error.stack || error}`);
  }
}
console.log(`${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
process.exit(failed ? 1 : 0);
