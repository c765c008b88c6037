/* Runs a test program in a worker; the message is { url, words, env, watch }. Posts { line } for each line and { ended }
   at the end. watch: lines have what watch.js has counted until then; the device is lost after the lines watch.lose. */
self.onmessage = function(event) {
  const { url, words, env, watch } = event.data;
  if (watch) importScripts('watch.js');
  const say = line => {
    postMessage(watch ? { line, seen: watched.now() } : { line });
    if (watch && watch.lose && watch.lose.some(start => line.startsWith(start))) watched.lose();
  };
  self.Module = { arguments: words, env, print: say, printErr: say, ended: status => postMessage({ ended: status }) };
  importScripts(url);
};
