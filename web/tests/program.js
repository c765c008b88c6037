/* In front of a test program. Module.env has its environment variables; in node, those that begin with CAIRN_. main may
   wait for a GPU, so it is called as a function that the browser can suspend; Module.ended gets its status. */
Module['preRun'] = Module['preRun'] || [];
Module['preRun'].push(function() {
  var all = typeof process === 'object' ? process.env : Module['env'] || {};
  Object.keys(all).forEach(function(name) { if (name.indexOf('CAIRN_') === 0) ENV[name] = all[name]; });
});
if (typeof process === 'object') globalThis.fetch = undefined; // node's fetch cannot read the program's own file
if (Module['ended']) {
  Module['noInitialRun'] = true;
  Module['postRun'] = [function() {
    var main = Module['asm']['main'], words = ['program'].concat(Module['arguments'] || []);
    var argv = stackAlloc(4 * (words.length + 1));
    words.forEach(function(word, i) { HEAP32[(argv >> 2) + i] = allocateUTF8OnStack(word); });
    HEAP32[(argv >> 2) + words.length] = 0;
    (WebAssembly.promising ? WebAssembly.promising(main) : async function(n, v) { return main(n, v); })(words.length, argv)
        .then(Module['ended'], function(error) {
          if (error && error.status !== undefined) Module['ended'](error.status);
          else Module['ended'](String(error && error.stack || error));
        });
  }];
}
