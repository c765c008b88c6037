/* Files for C's functions, in memory: a library for Emscripten's --js-library, in the place of its file system, which is
   ten times as long. JavaScript has the files by name: Module.cairnFiles().

   There is one folder, "/", without links. Names of files do not begin with a slash here. A file that is open stays as
   long as it is, whatever happens to its name. */
var LibraryFiles = {
  $FILES__postset: 'FILES.named = new Map();',
  $FILES: {
    named: null, // name -> { bytes, size }: bytes may be longer
    open: [null, null, null], // by descriptor, { file, at }; the first three are C's streams

    set: function(name, bytes) { FILES.named.set(name, { bytes: bytes, size: bytes.length }); },
    /* The content of a file that is no longer needed. */
    take: function(name) {
      var file = FILES.named.get(name);
      FILES.named.delete(name);
      return file.bytes.slice(0, file.size);
    },

    /* '' is the folder. */
    name: function(path) { return UTF8ToString(path).replace(/^(\.?\/)*\.?$|^(\.?\/)+|\/+$/g, ''); },
    /* 0, or the number of an error, negative, if a name is not of a file or the folder. */
    check: function(name) { return !name || FILES.named.has(name) ? 0 : -{{{ cDefine('ENOENT') }}}; },
    stat: function(file, to) {
      HEAPU8.fill(0, to, to + {{{ C_STRUCTS.stat.__size__ }}});
      var type = file ? {{{ cDefine('S_IFREG') }}} : {{{ cDefine('S_IFDIR') }}};
      {{{ makeSetValue('to', C_STRUCTS.stat.st_mode, 'type | 511', 'i32') }}};
      {{{ makeSetValue('to', C_STRUCTS.stat.st_nlink, '1', 'i32') }}};
      {{{ makeSetValue('to', C_STRUCTS.stat.st_size, 'file ? file.size : 0', 'i32') }}};
      {{{ makeSetValue('to', C_STRUCTS.stat.st_blksize, '4096', 'i32') }}};
      return 0;
    },
    statName: function(path, to) {
      var name = FILES.name(path);
      return FILES.check(name) || FILES.stat(FILES.named.get(name), to);
    },
    /* Room for so many bytes. */
    grow: function(file, size) {
      if (size > file.bytes.length) {
        var bytes = new Uint8Array(Math.max(size, 2 * file.bytes.length));
        bytes.set(file.bytes.subarray(0, file.size));
        file.bytes = bytes;
      }
      file.size = Math.max(file.size, size);
    },
    /* f(address, bytes) for every part of an iovec. */
    each: function(parts, n, f) {
      for (var i = 0; i < n; i++) f(HEAPU32[(parts >>> 2) + 2 * i], HEAPU32[(parts >>> 2) + 2 * i + 1]);
    },
  },

  __syscall_open: function(path, flags, varargs) {
    var name = FILES.name(path), file = FILES.named.get(name);
    if (!name && !(flags & {{{ cDefine('O_DIRECTORY') }}})) return -{{{ cDefine('EISDIR') }}};
    if (file && flags & {{{ cDefine('O_DIRECTORY') }}}) return -{{{ cDefine('ENOTDIR') }}};
    if (file && flags & {{{ cDefine('O_EXCL') }}}) return -{{{ cDefine('EEXIST') }}};
    if (!file && name) {
      if (!(flags & {{{ cDefine('O_CREAT') }}}) || name.includes('/')) return -{{{ cDefine('ENOENT') }}};
      FILES.named.set(name, file = { bytes: new Uint8Array(0), size: 0 });
    }
    if (file && flags & {{{ cDefine('O_TRUNC') }}}) file.size = 0;
    var number = FILES.open.indexOf(undefined);
    if (number < 0) number = FILES.open.length;
    FILES.open[number] = { file: file, at: file && flags & {{{ cDefine('O_APPEND') }}} ? file.size : 0 };
    return number;
  },
  __syscall_stat64: function(path, to) { return FILES.statName(path, to); },
  __syscall_lstat64: function(path, to) { return FILES.statName(path, to); },
  __syscall_fstatat64: function(folder, path, to, flags) { return FILES.statName(path, to); },
  __syscall_fstat64: function(fd, to) { return fd < 3 ? -{{{ cDefine('EBADF') }}} : FILES.stat(FILES.open[fd].file, to); },
  __syscall_faccessat: function(folder, path, mode, flags) { return FILES.check(FILES.name(path)); },
  __syscall_readlink: function(path, to, size) { return FILES.check(FILES.name(path)) || -{{{ cDefine('EINVAL') }}}; },
  __syscall_chmod: function(path, mode) { return FILES.check(FILES.name(path)); },
  __syscall_fchmod: function(fd, mode) { return 0; },
  __syscall_fcntl64: function(fd, command, varargs) { return 0; },
  __syscall_ioctl: function(fd, command, varargs) { return -{{{ cDefine('ENOTTY') }}}; },
  __syscall_getcwd: function(to, size) {
    stringToUTF8('/', to, size);
    return 2;
  },
  __syscall_rmdir: function(path) { return -{{{ cDefine('EPERM') }}}; },
  __syscall_unlink: function(path) { return FILES.named.delete(FILES.name(path)) ? 0 : -{{{ cDefine('ENOENT') }}}; },
  __syscall_rename: function(from, to) {
    var file = FILES.named.get(FILES.name(from));
    if (!file) return -{{{ cDefine('ENOENT') }}};
    FILES.named.delete(FILES.name(from));
    FILES.named.set(FILES.name(to), file);
    return 0;
  },

  /* A private mapping: a copy. */
  _mmap_js: function(address, length, protection, flags, fd, offset, allocated) {
    var file = FILES.open[fd].file, memory = _malloc(length);
    if (!memory) return -{{{ cDefine('ENOMEM') }}};
    HEAPU8.set(file.bytes.subarray(offset, Math.min(offset + length, file.size)), memory);
    {{{ makeSetValue('allocated', 0, '1', 'i32') }}};
    return memory;
  },
  _munmap_js: function(address, length, protection, flags, fd, offset) { return 0; },

  fd_close: function(fd) {
    if (fd > 2) FILES.open[fd] = undefined;
    return 0;
  },
  fd_sync: function(fd) { return 0; },
  fd_fdstat_get: function(fd, to) {
    {{{ makeSetValue('to', C_STRUCTS.__wasi_fdstat_t.fs_filetype, 'fd < 3 ? 2 : 4', 'i8') }}}; // a terminal, a file
    return 0;
  },
  fd_read: function(fd, parts, n, count) {
    var stream = FILES.open[fd], total = 0;
    if (stream) FILES.each(parts, n, function(address, bytes) {
      var piece = stream.file.bytes.subarray(stream.at, Math.min(stream.at + bytes, stream.file.size));
      HEAPU8.set(piece, address);
      stream.at += piece.length;
      total += piece.length;
    });
    {{{ makeSetValue('count', 0, 'total', 'i32') }}};
    return 0;
  },
  fd_write: function(fd, parts, n, count) {
    var stream = FILES.open[fd], total = 0, text = '';
    FILES.each(parts, n, function(address, bytes) {
      if (stream) {
        FILES.grow(stream.file, stream.at + bytes);
        stream.file.bytes.set(HEAPU8.subarray(address, address + bytes), stream.at);
        stream.at += bytes;
      } else text += UTF8ToString(address, bytes);
      total += bytes;
    });
    if (text) (fd === 1 ? out : err)(text.replace(/\n$/, ''));
    {{{ makeSetValue('count', 0, 'total', 'i32') }}};
    return 0;
  },
  fd_seek: function(fd, offset, whence, to) {
    var stream = FILES.open[fd];
    if (!stream) return {{{ cDefine('ESPIPE') }}};
    stream.at = Number(offset) + (whence === 1 ? stream.at : whence === 2 ? stream.file.size : 0);
    {{{ makeSetValue('to', 0, 'stream.at', 'i32') }}};
    {{{ makeSetValue('to', 4, '0', 'i32') }}};
    return 0;
  },
};

/* Threads ask the first one, which has the files. */
Object.keys(LibraryFiles).forEach(function(name) {
  if (name[0] === '$') return;
  LibraryFiles[name + '__deps'] = ['$FILES'];
  LibraryFiles[name + '__proxy'] = 'sync';
});
mergeInto(LibraryManager.library, LibraryFiles);
