/* Counts what a program asks of WebGPU: wraps the browser's functions, before the program starts. watched.now(): the
   counts so far, what is alive, and the sizes of the module's heap and of its table of WebGPU's objects.
   watched.lose(): takes the device away, as a browser may do at any time. */
var watched = (function() {
  var counts = { submissions: 0, dispatches: 0, writes: 0, maps: 0 }, buffers = new Map(), devices = [];
  var wrap = function(type, name, f) {
    var own = type && type.prototype[name];
    if (!own) return;
    type.prototype[name] = function() { return f.call(this, own, arguments); };
  };
  var count = function(type, name, what) {
    wrap(type, name, function(own, given) {
      counts[what]++;
      return own.apply(this, given);
    });
  };
  count(self.GPUQueue, 'submit', 'submissions');
  count(self.GPUQueue, 'writeBuffer', 'writes');
  count(self.GPUComputePassEncoder, 'dispatchWorkgroups', 'dispatches');
  count(self.GPUBuffer, 'mapAsync', 'maps');
  wrap(self.GPUDevice, 'createBuffer', function(own, given) {
    var buffer = own.apply(this, given);
    buffers.set(buffer, this);
    return buffer;
  });
  wrap(self.GPUBuffer, 'destroy', function(own) {
    buffers.delete(this);
    return own.call(this);
  });
  wrap(self.GPUDevice, 'destroy', function(own) {
    buffers.forEach(function(device, buffer) { if (device === this) buffers.delete(buffer); }, this);
    return own.call(this);
  });
  wrap(self.GPUAdapter, 'requestDevice', function(own, given) {
    return own.apply(this, given).then(function(device) {
      devices.push(device);
      return device;
    });
  });
  return {
    now: function() {
      var now = Object.assign({ buffers: buffers.size, bytes: 0, handles: 0, heap: 0 }, counts);
      buffers.forEach(function(device, buffer) { now.bytes += buffer.size; });
      if (typeof WGPU === 'object') now.handles = WGPU.objects.filter(Boolean).length + WGPU.events.length + WGPU.pending;
      if (typeof HEAPU8 === 'object') now.heap = HEAPU8.length;
      return now;
    },
    lose: function() { devices[devices.length - 1].destroy(); },
  };
})();
