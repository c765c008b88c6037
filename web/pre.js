/* What cairn.js needs of the module besides its exports: memory, functions by number, functions that may wait. */
Module['cairnMemory'] = function() { return wasmMemory; };
Module['cairnTable'] = function(number) { return wasmTable.get(number); };
