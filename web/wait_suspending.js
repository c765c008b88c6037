/* A function of the module that may wait for the GPU, as a function that returns a promise: the browser suspends it. */
Module['cairnPromising'] = function(f) {
  return WebAssembly.promising ? WebAssembly.promising(f) : function() { return Promise.resolve(f.apply(null, arguments)); };
};
