/* What cairn.js needs of the module besides its exports: memory, files, functions by number, functions that may wait. */
Module['cairnMemory'] = function() { return wasmMemory; };
Module['cairnFiles'] = function() { return FILES; };
Module['cairnTable'] = function(number) { return wasmTable.get(number); };
