/* The strtod of numbers.c: a library for Emscripten's --js-library. It has decimal numbers, infinity and NaN, correctly
   rounded, but no hexadecimal numbers. */
mergeInto(LibraryManager.library, {
  cairnNumber: function(text, end) {
    var last = text, number = 0;
    while (HEAPU8[last] > 8 && HEAPU8[last] < 127) last++;
    var found = /^\s*([+-]?(?:inf(?:inity)?|nan|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))/i.exec(UTF8ToString(text, last - text));
    if (found) number = Number(found[1].replace(/inf(inity)?/i, 'Infinity')); // Number has NaN for other words
    if (end) HEAPU32[end >>> 2] = text + (found ? found[0].length : 0);
    return number;
  },
});
