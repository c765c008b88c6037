/* Tests in a headless Chromium: node run.mjs NAME ...; scripts/web.sh sets the environment. NAME:

       types      web/tests/types.mts against cairn.d.ts
       ops        test_ops in a worker of a page without isolation
       gpu-ops    test_gpu_ops on the browser's WebGPU; CAIRN_TEST_SHARE=N: every N-th operator
       gpt        web/tests/gpt.c on WASM and on WebGPU against a native run
       api-single, api-threads, api-gpu   web/tests/api.js on one thread, with threads in an isolated page, on WebGPU
       api-async  the same on WebGPU, in a browser that cannot suspend WebAssembly

   The last line is "N passed, M failed". Every message of a page's console that is an error is a failure. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
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

/* The lines of a test program that ran in a worker. */
async function program(page, name, words = [], env = {}) {
  const ran = await page.evaluate(([url, words, env]) => new Promise(done => {
    const worker = new Worker('/web/tests/worker.js'), lines = [];
    worker.onmessage = ({ data }) => {
      if (data.line === undefined) { worker.terminate(); done({ lines, status: data.ended }); }
      else lines.push(data.line);
    };
    worker.onerror = error => done({ lines, status: error.message });
    worker.postMessage({ url, words, env });
  }), [`/build/web/tests/${name}.js`, words, env]);
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

/* One training, natively (its lines are in a file), on WASM and on WebGPU: the same bits at the start, and losses that
   differ by less than 1e-4. */
async function gpt(page) {
  const native = numbers(readFileSync(process.env.CAIRN_NATIVE_GPT, 'utf8').trim().split('\n'));
  for (const device of ['cpu', 'gpu']) {
    const began = performance.now(), steps = device === 'cpu' ? 200 : +(process.env.CAIRN_GPU_STEPS || 20);
    const { lines, status } = await program(page, 'web_gpt', [String(steps)], { CAIRN_DEVICE: device });
    const own = numbers(lines);
    check(status === 0, `gpt on ${device}: ${status}; ${lines.slice(-3).join('; ')}`);
    check(own.weights === native.weights, `gpt on ${device}: initial weights ${own.weights}, natively ${native.weights}`);
    check(own.dropout === native.dropout, `gpt on ${device}: dropout ${own.dropout}, natively ${native.dropout}`);
    let most = 0, n = 0;
    for (let step = 1; step <= steps && own[step] !== undefined; step++, n++)
      most = Math.max(most, Math.abs(own[step] - native[step]));
    check(n === steps && most < 1e-4, `gpt on ${device}: ${n} losses, largest difference ${most}`);
    console.log(`gpt on ${device}: ${n} steps, last loss ${own[n]}, largest difference ${most.toExponential(2)}, ` +
                `${((performance.now() - began) / 1000).toFixed(1)} s`);
  }
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
  'gpu-ops': () => withPage(false, page => counted(page, 'gpu-ops', 'test_gpu_ops', process.env.CAIRN_TEST_PART ? [process.env.CAIRN_TEST_PART] : [],
      { CAIRN_TEST_QUICK: '1', CAIRN_GPU_STRICT: '1', CAIRN_TEST_SHARE: process.env.CAIRN_TEST_SHARE || '8' })),
  gpt: () => withPage(false, gpt),
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
