/* Runs a test program in a worker; the message is { url, words, env }. Posts { line } for each line and { ended } at the end. */
self.onmessage = function(event) {
  const { url, words, env } = event.data;
  const say = line => postMessage({ line });
  self.Module = { arguments: words, env, print: say, printErr: say, ended: status => postMessage({ ended: status }) };
  importScripts(url);
};
