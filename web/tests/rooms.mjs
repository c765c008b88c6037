/* The page's three rooms in a headless Chromium, driven by clicks and keys as a person would: node rooms.mjs [NAME ...].
   NAME: cold (from navigation to the first step, in new profiles), plain (without isolation: one thread), isolated (with
   threads), phone, gpu (WebGPU: all rooms, and a device that is lost), patience (a slow GPU is left for the CPU). Needs
   build/web/page, build/cairn and build/tests/next_token. Screenshots: build/web/screenshots.

   The last line is "N passed, M failed". Every error in the console is a failure. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { serve } from './serve.mjs';

const root = new URL('../../', import.meta.url).pathname, pictures = join(root, 'build/web/screenshots');
const { chromium } = createRequire(join(root, 'build/web/npm/'))('playwright-core');
const FLAGS = ['--no-sandbox', '--enable-unsafe-webgpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
               '--disable-component-update', '--disable-sync'];
const LONG = 60000; // ms: a crowded machine is slow
const FIRST_STEP = 3000; // ms from navigation to the first step, on a quiet machine; others may take four times as long
let passed = 0, failed = 0;

function check(ok, words) {
  if (ok) passed++;
  else { failed++; console.log(`FAILED: ${words}`); }
}

async function visit(label, isolated, options, use, hash = '') {
  const { server, origin } = await serve(join(root, 'build/web/page'), isolated);
  const profile = mkdtempSync(join(tmpdir(), 'cairn_rooms_'));
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CAIRN_CHROMIUM || '/usr/bin/chromium', headless: true, args: FLAGS, chromiumSandbox: false,
    viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
  const page = await browser.newPage();
  page.setDefaultTimeout(LONG);
  page.on('console', m => m.type() === 'error' && check(false, `${label}: console: ${m.text()} ${m.location().url}`));
  page.on('pageerror', error => check(false, `${label}: page: ${error.stack || error}`));
  try {
    await page.goto(origin + hash);
    check(await page.evaluate(() => self.crossOriginIsolated) === isolated, `${label}: isolated: ${isolated}`);
    check(await page.$eval('.brand img', img => img.naturalWidth > 0), `${label}: the picture of the brand`);
    await use(page, profile, origin);
  } finally {
    await browser.close();
    server.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

/* ---- what a person sees ---- */

const shown = async (page, room, name) => page.textContent(`#${room} [data-show=${name}]`);
const steps = async (page, room) => +(await shown(page, room, 'step')).replaceAll(',', '');
const until = (page, room, n) => page.waitForFunction(([room, n]) => {
  const text = name => document.querySelector(`#${room} [data-show=${name}]`).textContent;
  if (document.querySelector(`#${room} .status.bad`)) throw new Error(text('status'));
  return +text('step').replaceAll(',', '') >= n;
}, [room, n]);
const ready = (page, room) => page.waitForSelector(`#${room}[data-ready]`);
const enter = async (page, room) => {
  await page.click(`nav a[href="#${room}"]`);
  await ready(page, room);
};
const press = (page, room, what) => page.click(`#${room} [data-do=${what}]`);
const face = (page, room, words) =>
    page.waitForFunction(([room, words]) => document.querySelector(`#${room} [data-do=run] b`).textContent === words, [room, words]);
const picture = (page, name) => page.screenshot({ path: join(pictures, `${name}.png`) });

/* ---- write ---- */

const TALE = 'The old stone lay beside the path. The wind came over the hill and the stone did not move. '.repeat(60);

/* A text is pasted, learned, and written; the file goes to the native command and comes back. */
async function write(page, label, profile) {
  await ready(page, 'write');
  check((await page.inputValue('#text')).length > 10000, `${label}: a text is there at first`);
  await page.fill('#text', TALE);
  await page.fill('#prompt', 'The old');
  const began = Date.now();
  await press(page, 'write', 'run');
  await until(page, 'write', 1);
  const first = Date.now() - began;
  await until(page, 'write', 30);
  await page.waitForFunction(() => document.querySelectorAll('.samples article:not(.coming)').length >= 2);
  console.log(`${label}: write: first step after ${first} ms, two samples after ${Date.now() - began} ms, ${await shown(page, 'write', 'rate')} steps a second`);
  await picture(page, `${label}-write`);
  await press(page, 'write', 'run');
  await face(page, 'write', 'Go on');
  const paused = await steps(page, 'write'), loss = +await page.textContent('#loss-value');
  check(loss < 3.4, `${label}: write: the loss falls: ${loss}`);
  await page.waitForTimeout(300);
  check(await steps(page, 'write') === paused, `${label}: write: a pause is a pause`);
  await page.focus('#temperature');
  await page.keyboard.press('ArrowRight');
  check(await page.textContent('#temperature-value') === '0.8', `${label}: write: the temperature, by a key`);
  await exchange(page, label, profile);
  return paused;
}

/* The first number that `cairn eval` prints: a loss, or a share of right answers. */
function evaluate(file, ...words) {
  const text = execFileSync(join(root, 'build/cairn'), ['eval', file, ...words, '--quiet']).toString();
  return +(/(?:loss|accuracy)\D*([\d.]+)/.exec(text) || [])[1];
}

async function exchange(page, label, profile) {
  const [download] = await Promise.all([page.waitForEvent('download'), press(page, 'write', 'save')]);
  const file = join(profile, 'tab.safetensors');
  await download.saveAs(file);
  await page.fill('#prompt', 'The old st');
  const own = await page.evaluate(async () => {
    const { rooms } = await import('./page.js');
    return rooms.write.ask('expect', { prompt: 'The old st', most: 1000 });
  });
  const native = execFileSync(join(root, 'build/tests/next_token'), [file, 'The old st']).toString().trim().split('\n').map(Number);
  const most = Math.max(...own.best.map(({ id, p }) => Math.abs(p - native[id])));
  check(own.best.length === native.length && most < 1e-5, `${label}: a tab’s checkpoint natively: ${native.length} probabilities differ by ${most}`);
  console.log(`${label}: checkpoint: ${native.length} probabilities, largest difference ${most.toExponential(1)}`);
  const text = execFileSync(join(root, 'build/cairn'), ['generate', file, '--prompt', 'The old', '--tokens', '40', '--greedy', '--quiet']).toString();
  check(text.startsWith('The old') && text.length > 40, `${label}: cairn generate reads it: ${text}`);
  const words = join(profile, 'tale.txt');
  writeFileSync(words, TALE);
  const measured = evaluate(file, '--data', words), shownLoss = +await page.textContent('#loss-value');
  check(Math.abs(measured - shownLoss) < 0.5, `${label}: cairn eval: loss ${measured}, the page ${shownLoss}`);
  if (label !== 'plain') return;
  const run = join(profile, 'run');
  execFileSync(join(root, 'build/cairn'), ['train', 'gpt', '--data', words, '--tokenizer', 'bpe', '--vocab', '300', '--layers', '2', '--heads', '2',
      '--width', '32', '--context', '32', '--steps', '20', '--batch', '8', '--quiet', '--out', run], { stdio: 'ignore' });
  const model = execFileSync('sh', ['-c', `ls ${run}/*.safetensors`]).toString().trim();
  await page.setInputFiles('#write .bar input[type=file]', model);
  await page.waitForFunction(() => /is loaded, step 20/.test(document.querySelector('#write .status').textContent));
  const back = await page.evaluate(async () => {
    const { rooms } = await import('./page.js');
    return rooms.write.ask('expect', { prompt: 'The old st', most: 1000 });
  });
  const before = execFileSync(join(root, 'build/tests/next_token'), [model, 'The old st']).toString().trim().split('\n').map(Number);
  const off = Math.max(...back.best.map(({ id, p }) => Math.abs(p - before[id])));
  check(off < 1e-5, `a native checkpoint in the tab: probabilities differ by ${off}`);
  await press(page, 'write', 'run');
  await until(page, 'write', 23);
  await press(page, 'write', 'run');
  await face(page, 'write', 'Go on');
}

/* What was learned is there after a reload. */
async function reload(page, label) {
  const before = await steps(page, 'write'), text = await page.inputValue('#text');
  await page.waitForTimeout(500);
  await page.reload();
  await ready(page, 'write');
  check(await steps(page, 'write') === before, `${label}: a reload keeps the step ${before}, got ${await steps(page, 'write')}`);
  check(await page.inputValue('#text') === text, `${label}: a reload keeps the text`);
  await press(page, 'write', 'run');
  await until(page, 'write', before + 2);
  await press(page, 'write', 'run');
  await face(page, 'write', 'Go on');
  await press(page, 'write', 'reset');
  await face(page, 'write', 'Start');
  check(await steps(page, 'write') === 0 && !await page.$('.samples article'), `${label}: reset forgets`);
}

/* ---- see ---- */

/* The digits of the page's test as idx files. */
function testDigits(folder) {
  const all = gunzipSync(readFileSync(join(root, 'build/web/page/digits.bin.gz'))), train = all.readUInt32LE(0), test = all.readUInt32LE(4);
  const packed = all.subarray(8 + train + test + train * 392), pixels = Buffer.alloc(test * 784);
  for (let i = 0; i < packed.length; i++) { pixels[2 * i] = 17 * (packed[i] >> 4); pixels[2 * i + 1] = 17 * (packed[i] & 15); }
  const head = (kind, ...sizes) => { const b = Buffer.alloc(4 + 4 * sizes.length); [kind, ...sizes].forEach((v, i) => b.writeUInt32BE(v, 4 * i)); return b; };
  const images = join(folder, 'images'), labels = join(folder, 'labels');
  writeFileSync(images, Buffer.concat([head(0x803, test, 28, 28), pixels]));
  writeFileSync(labels, Buffer.concat([head(0x801, test), all.subarray(8 + train, 8 + train + test)]));
  return ['--images', images, '--labels', labels];
}

async function see(page, label, profile) {
  await enter(page, 'see');
  await press(page, 'see', 'run');
  await until(page, 'see', 40);
  await page.waitForFunction(() => parseFloat(document.getElementById('accuracy-value').textContent) > 60);
  const pad = await (await page.$('#pad')).boundingBox(), at = (x, y) => [pad.x + pad.width * x, pad.y + pad.height * y];
  await page.mouse.move(...at(0.5, 0.2)); // a one, with the mouse
  await page.mouse.down();
  for (let y = 0.25; y <= 0.8; y += 0.05) await page.mouse.move(...at(0.5, y));
  await page.mouse.up();
  await page.waitForFunction(() => /^\d$/.test(document.getElementById('reads-as').textContent));
  await page.waitForFunction(() => document.getElementById('reads-as').textContent === '1');
  await picture(page, `${label}-see`);
  await page.click('#clear-pad');
  check(await page.textContent('#reads-as') === '?', `${label}: see: Clear clears`);
  await page.focus('#pad'); // and with keys
  await page.keyboard.press('Space');
  for (let i = 0; i < 8; i++) await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Space');
  await page.waitForFunction(() => /^\d$/.test(document.getElementById('reads-as').textContent));
  check((await page.$$eval('#answers span', all => all.reduce((sum, s) => sum + parseInt(s.textContent, 10), 0))) > 90, `${label}: see: bars`);
  await press(page, 'see', 'run');
  await face(page, 'see', 'Go on');
  console.log(`${label}: see: ${await steps(page, 'see')} steps, ${await page.textContent('#accuracy-value')} right`);
  const [download] = await Promise.all([page.waitForEvent('download'), press(page, 'see', 'save')]), file = join(profile, 'see.safetensors');
  await download.saveAs(file);
  const own = parseFloat(await page.textContent('#accuracy-value')), native = 100 * evaluate(file, ...testDigits(profile));
  check(Math.abs(native - own) < 0.2, `${label}: see: cairn eval finds ${native} % right, the page ${own} %`);
}

/* ---- bend ---- */

async function bend(page, label) {
  await enter(page, 'bend');
  await press(page, 'bend', 'run');
  await page.waitForFunction(() => parseInt(document.getElementById('bend-right').textContent, 10) >= 95);
  await page.click('#bend label:has-text("circles")');
  await page.waitForFunction(() => document.querySelector('#bend').classList.contains('running'));
  await page.click('#add-layer');
  check((await page.$$('#layers li')).length === 3, `${label}: bend: a layer more`);
  await page.selectOption('#activation', { label: 'ReLU' });
  await page.waitForTimeout(400);
  await until(page, 'bend', 150);
  await page.waitForFunction(() => parseInt(document.getElementById('bend-right').textContent, 10) >= 95);
  await page.focus('#rate');
  await page.keyboard.press('ArrowLeft');
  await picture(page, `${label}-bend`);
  const stride = await shown(page, 'bend', 'rate');
  await page.keyboard.press('Alt+Enter');
  await face(page, 'bend', 'Go on');
  const before = await steps(page, 'bend');
  await page.reload();
  await ready(page, 'bend');
  check(await steps(page, 'bend') === before, `${label}: bend: a reload keeps the step`);
  console.log(`${label}: bend: ${before} steps, ${stride} a second`);
}

/* ---- visits ---- */

/* A person who opens the page for the first time and presses Start at once. */
async function firstStep(label, isolated, room) {
  await visit(label, isolated, {}, async page => {
    await page.click(`#${room} [data-do=run]`);
    await until(page, room, 1);
    const ms = Math.round(await page.evaluate(() => performance.now()));
    console.log(`${label}: ${room}: first step ${ms} ms after navigation`);
    check(ms < 4 * FIRST_STEP, `${label}: ${room}: the first step came after ${ms} ms`);
    if (room !== 'write') return;
    await page.waitForFunction(() => (document.querySelector('.samples article:not(.coming) p') || { textContent: '' }).textContent.length > 60);
    const sample = await page.textContent('.samples article:not(.coming) p');
    console.log(`${label}: first sample ${Math.round(await page.evaluate(() => performance.now()))} ms after navigation: ${JSON.stringify(sample.slice(0, 70))}`);
  }, `/#${room}`);
}

const chooseGpu = async (page, room) => {
  await enter(page, room);
  check(await page.$eval('#device option[value=gpu]', o => !o.disabled), 'gpu: there is an adapter');
  await page.selectOption('#device', 'gpu');
};

const VISITS = {
  cold: async () => {
    for (const room of ['write', 'see', 'bend'])
      for (const isolated of [false, true]) await firstStep(isolated ? 'isolated' : 'plain', isolated, room);
  },
  plain: () => visit('plain', false, {}, async (page, profile) => {
    await write(page, 'plain', profile);
    await reload(page, 'plain');
    await see(page, 'plain', profile);
    await bend(page, 'plain');
  }),
  isolated: () => visit('isolated', true, { colorScheme: 'dark' }, async (page, profile) => {
    await write(page, 'isolated', profile);
    await see(page, 'isolated', profile);
    await bend(page, 'isolated');
  }),
  /* One column, nothing wider than the screen, every control has a name and can be reached. */
  phone: () => visit('phone', false, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }, async page => {
    for (const room of ['write', 'see', 'bend']) {
      await enter(page, room);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      check(wide <= 360, `phone: ${room} is ${wide} pixels wide`);
      const nameless = await page.$$eval(`#${room} :is(button, select, input:not(.hidden), textarea, canvas[tabindex])`, all =>
        all.filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || (e.labels && e.labels.length))).map(e => e.outerHTML));
      check(!nameless.length, `phone: ${room}: controls without a name: ${nameless}`);
      await page.screenshot({ path: join(pictures, `phone-${room}.png`), fullPage: true });
    }
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.waitForSelector('html[data-theme=dark]'); // as the system
    await page.click('#theme');
    check(await page.getAttribute('html', 'data-theme') === 'light', 'phone: light by the switch');
    await page.reload();
    await page.waitForSelector('html[data-theme=light]');
  }),
  /* SwiftShader compiles every program for seconds: one step of each room. The device of the first one is lost. */
  gpu: () => visit('gpu', false, {}, async page => {
    page.setDefaultTimeout(3 * LONG);
    page.on('worker', worker => worker.evaluate(() => { // so that the test can lose the device
      const ask = GPUAdapter.prototype.requestDevice;
      GPUAdapter.prototype.requestDevice = async function (...args) { return self.lately = await ask.apply(this, args); };
    }).catch(() => {}));
    await enter(page, 'bend');
    await chooseGpu(page, 'bend');
    await page.waitForFunction(() => !/processor/.test(document.getElementById('where').textContent));
    await press(page, 'bend', 'run');
    await until(page, 'bend', 3);
    for (const worker of page.workers()) await worker.evaluate(() => self.lately && self.lately.destroy()).catch(() => {});
    await page.waitForFunction(() => /lost/.test(document.querySelector('#bend .status').textContent));
    const words = await shown(page, 'bend', 'status'), there = +/step (\d+)/.exec(words)[1];
    console.log(`gpu: bend: ${words}`);
    await page.selectOption('#device', 'cpu'); // it goes on where it was
    await page.waitForFunction(() => /processor/.test(document.getElementById('where').textContent));
    await until(page, 'bend', there + 50);
    for (const room of ['see', 'write']) {
      const began = Date.now();
      await chooseGpu(page, room);
      if (room === 'write') await page.fill('#text', TALE);
      await press(page, room, 'run');
      await page.waitForFunction(room => /[1-9] s/.test(document.querySelector(`#${room} [data-show=clock]`).textContent), room);
      await until(page, room, 1);
      console.log(`gpu: ${room}: first step after ${((Date.now() - began) / 1000).toFixed(1)} s`);
      await page.selectOption('#device', 'cpu');
      await page.waitForFunction(() => /processor/.test(document.getElementById('where').textContent));
      await until(page, room, 5);
      await press(page, room, 'run');
      await face(page, room, 'Go on');
    }
  }),
  /* A GPU that takes too long for a step: the CPU goes on from what was kept. */
  patience: () => visit('patience', false, {}, async page => {
    page.setDefaultTimeout(2 * LONG);
    await ready(page, 'write');
    await page.fill('#text', TALE);
    await press(page, 'write', 'run');
    await until(page, 'write', 3);
    await press(page, 'write', 'run');
    await face(page, 'write', 'Go on');
    const before = await steps(page, 'write');
    await chooseGpu(page, 'write');
    await press(page, 'write', 'run');
    await page.waitForFunction(() => /prepares the GPU/.test(document.querySelector('#write .status').textContent));
    await page.selectOption('#device', 'cpu');
    await page.waitForFunction(() => /processor/.test(document.getElementById('where').textContent));
    await until(page, 'write', before + 2);
    check(await page.$eval('#write', e => e.classList.contains('running')), 'patience: it runs on');
    console.log(`patience: back on the CPU at step ${before}`);
  }),
};

mkdirSync(pictures, { recursive: true });
for (const name of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(VISITS)) {
  try {
    await VISITS[name]();
  } catch (error) {
    check(false, `${name}: ${error.stack || error}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
