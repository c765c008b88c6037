/* The same for a module that saves and restores its own stack (Asyncify), for browsers that cannot suspend one. Asyncify
   resumes a call by the name of an export, without arguments; functions of the table get a name here. */
Module['cairnPromising'] = function(f) {
  var exports = Module['asm'], name = 'cairn' + Object.keys(exports).length;
  var given;
  exports[name] = function() {
    if (arguments.length) given = arguments;
    Asyncify.exportCallStack.push(name);
    try {
      return f.apply(null, given);
    } finally {
      Asyncify.exportCallStack.pop();
      Asyncify.maybeStopUnwind();
    }
  };
  return function() {
    var value = exports[name].apply(null, arguments);
    return Asyncify.currData ? Asyncify.whenDone() : Promise.resolve(value);
  };
};
