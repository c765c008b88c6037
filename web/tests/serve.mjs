/* A static file server on a loopback address.

       node web/tests/serve.mjs [--isolated] FOLDER PORT

   isolated: with the headers that give pages threads (COOP, COEP). serve(folder, isolated) is for tests: any free port. */
import { createServer } from 'node:http';
import { createReadStream, statSync } from 'node:fs';
import { extname, join, normalize, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm',
                '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json', '.txt': 'text/plain' };

export function serve(folder, isolated, port = 0) {
  const root = resolve(folder);
  const server = createServer((request, response) => {
    const path = join(root, normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname)));
    const headers = { 'Cache-Control': 'no-store' };
    if (isolated) Object.assign(headers, { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' });
    try {
      const file = statSync(path).isDirectory() ? join(path, 'index.html') : path;
      const { size } = statSync(file);
      response.writeHead(200, { ...headers, 'Content-Type': TYPES[extname(file)] || 'application/octet-stream', 'Content-Length': size });
      createReadStream(file).pipe(response);
    } catch {
      response.writeHead(404, headers).end('not found');
    }
  });
  return new Promise(done => server.listen(port, '127.0.0.1', () => done({ server, origin: `http://127.0.0.1:${server.address().port}` })));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const words = process.argv.slice(2).filter(word => word !== '--isolated');
  const { origin } = await serve(words[0], process.argv.includes('--isolated'), +words[1]);
  console.log(origin);
}
