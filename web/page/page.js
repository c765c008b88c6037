/* The page: which room is open, the device, light and dark. */
import { Bend } from './bend.js';
import { See } from './see.js';
import { Write } from './write.js';

const root = document.documentElement, device = document.getElementById('device');
export const rooms = {}; // by name, those that were entered
const NAMES = { write: Write, see: See, bend: Bend };

const kept = { // of this browser; it may refuse
  get(name) { try { return localStorage.getItem('cairn.' + name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem('cairn.' + name, value); } catch { /* then not */ } },
};

const shared = {
  device: 'cpu',
  useCpu() { device.value = shared.device = 'cpu'; },
  /* A colour of the style sheet as three numbers. */
  colour(name) {
    const probe = document.createElement('i');
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const rgb = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
    probe.remove();
    return rgb;
  },
  named(name, threads) {
    document.getElementById('where').textContent =
        name === 'cpu' ? `It runs on this computer’s processor, ${threads === 1 ? 'one thread' : threads + ' threads'}.` : `It runs on ${name}.`;
  },
};

/* ---- rooms ---- */

async function enter() {
  const name = NAMES[location.hash.slice(1)] ? location.hash.slice(1) : 'write';
  for (const link of document.querySelectorAll('nav a'))
    if (link.hash === '#' + name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  for (const id of Object.keys(NAMES)) document.getElementById(id).hidden = id !== name;
  document.title = `Cairn: ${name}`;
  for (const [id, room] of Object.entries(rooms)) if (id !== name && room.state === 'running') room.act('run'); // pauses
  if (!rooms[name]) {
    const room = rooms[name] = new NAMES[name](shared);
    await room.restore().catch(error => room.say(error.message, true));
    room.element.dataset.ready = 'true';
  }
}
addEventListener('hashchange', () => {
  enter();
  document.getElementById('rooms').focus({ preventScroll: true });
  scrollTo(0, 0);
});
document.querySelectorAll('nav a').forEach(link => link.addEventListener('click', e => { // no jump to the section
  e.preventDefault();
  history.pushState(null, '', link.hash);
  dispatchEvent(new Event('hashchange'));
}));
addEventListener('popstate', enter);

/* ---- the device ---- */

async function findGpu() {
  const option = device.querySelector('[value=gpu]');
  const adapter = navigator.gpu && WebAssembly.Suspending ? await navigator.gpu.requestAdapter().catch(() => null) : null;
  option.disabled = !adapter;
  option.textContent = adapter ? 'WebGPU' : 'WebGPU: not here';
  if (adapter && kept.get('device') === 'gpu') device.value = shared.device = 'gpu';
}
device.addEventListener('change', async () => {
  shared.device = device.value;
  kept.set('device', device.value);
  for (const room of Object.values(rooms)) {
    try {
      await room.changed(false);
    } catch (error) { // the GPU could not be opened: back to the CPU, nothing is lost
      shared.useCpu();
      room.stopped();
      room.say(`${error.message} It goes on with the CPU.`, true);
    }
  }
});

/* ---- light and dark ---- */

const dark = matchMedia('(prefers-color-scheme: dark)');
function paint() {
  const chosen = kept.get('theme');
  root.dataset.theme = chosen || (dark.matches ? 'dark' : 'light');
  for (const room of Object.values(rooms)) {
    if (room.chart) room.chart.draw();
    if (room.draw) room.draw();
  }
}
dark.addEventListener('change', paint);
document.getElementById('theme').addEventListener('click', () => {
  const now = root.dataset.theme === 'dark' ? 'light' : 'dark';
  kept.set('theme', now === (dark.matches ? 'dark' : 'light') ? '' : now);
  paint();
});
addEventListener('keydown', e => {
  if (!(e.altKey && e.key === 'Enter')) return;
  const open = document.querySelector('.room:not([hidden]) [data-do=run]');
  if (open) open.click();
});

document.querySelector('.skip').addEventListener('click', e => { // the hash is the room's name
  e.preventDefault();
  document.getElementById('rooms').focus();
});

paint();
const found = findGpu();
if (kept.get('device') === 'gpu') await found;
await enter();
