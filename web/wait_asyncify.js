/* The same for a module that saves and restores its own stack (Asyncify), for browsers that cannot suspend one. */
Module['cairnPromising'] = function(f) {
  return function() {
    var value = f.apply(null, arguments);
    return Asyncify.currData ? Asyncify.whenDone() : Promise.resolve(value);
  };
};
