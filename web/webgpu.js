/* The functions of src/gpu/functions.def on navigator.gpu: a library for Emscripten's --js-library.

   Objects of WebGPU get numbers, which are C's pointers. Layouts are those of src/gpu/webgpu.h with 32-bit pointers;
   struct values are passed by address. Only wgpuInstanceProcessEvents waits: everything else returns at once, and
   callbacks of C are called by it (or, for errors and loss, when the browser reports them).

   Uploads never wait. A buffer that C maps for writing is memory of the module here; when C unmaps it, the part that
   copies read is written to the queue, in front of the submission that follows.

   Submissions are gathered: a step and the read of its loss, which C submits one after the other, are one for the
   browser. The queue gets them before any other use of it, when C waits, or when the browser takes up its next task. */
var LibraryWebGPU = {
  $WGPU: {
    objects: [null],
    free: [],
    events: [], // calls of C that are due
    pending: 0, // calls of C that the browser owes
    arrived: null, // resolves the wait of wgpuInstanceProcessEvents
    queue: null, // of the command buffers that are not submitted yet
    commands: [],
    submitted: [], // calls that wait for their submission

    flush: function() {
      var commands = WGPU.commands, submitted = WGPU.submitted;
      if (!commands.length) return;
      WGPU.commands = [];
      WGPU.submitted = [];
      WGPU.queue.submit(commands);
      submitted.forEach(function(call) { call(); });
    },
    /* Maps a buffer that commands copy to. */
    map: function(buffer, mode, offset, size) {
      if (!WGPU.commands.length) return buffer.mapAsync(mode, offset, size);
      return new Promise(function(resolve) {
        WGPU.submitted.push(function() { resolve(buffer.mapAsync(mode, offset, size)); });
      });
    },
    add: function(object) {
      var number = WGPU.free.pop() || WGPU.objects.length;
      WGPU.objects[number] = object;
      return number;
    },
    at: function(number) { return WGPU.objects[number]; },
    drop: function(number) {
      if (!WGPU.objects[number]) return;
      WGPU.objects[number] = null;
      WGPU.free.push(number);
    },

    pointer: function(address) { return HEAPU32[address >>> 2]; },
    u64: function(address) { return HEAPU32[address >>> 2] + HEAPU32[(address >>> 2) + 1] * 4294967296; },
    setU64: function(address, value) {
      HEAPU32[address >>> 2] = value % 4294967296;
      HEAPU32[(address >>> 2) + 1] = value / 4294967296;
    },
    /* A WGPUStringView. */
    text: function(address) {
      var data = WGPU.pointer(address), length = WGPU.pointer(address + 4);
      if (!data) return '';
      return length === 4294967295 ? UTF8ToString(data) : UTF8ToString(data, length);
    },
    setText: function(address, text) {
      var bytes = lengthBytesUTF8(text), data = _malloc(bytes + 1);
      stringToUTF8(text, data, bytes + 1);
      HEAPU32[address >>> 2] = data;
      HEAPU32[(address >>> 2) + 1] = bytes;
    },
    /* Calls f with the address of a WGPUStringView that lives as long as the call. */
    withText: function(text, f) {
      var view = _malloc(8);
      WGPU.setText(view, text);
      f(view);
      _free(WGPU.pointer(view));
      _free(view);
    },

    /* Keeps the callback of a CallbackInfo with a mode until the promise is settled; call(callback, user1, user2, value)
       runs inside wgpuInstanceProcessEvents. */
    owe: function(info, promise, call) {
      var callback = WGPU.pointer(info + 8), user1 = WGPU.pointer(info + 12), user2 = WGPU.pointer(info + 16);
      var settle = function(value, error) {
        WGPU.pending--;
        WGPU.events.push(function() { call(callback, user1, user2, value, error); });
        if (WGPU.arrived) WGPU.arrived();
      };
      WGPU.pending++;
      promise.then(function(value) { settle(value, null); }, function(error) { settle(null, error); });
    },
    deliver: function() {
      var events = WGPU.events;
      WGPU.events = [];
      events.forEach(function(event) { event(); });
      return events.length > 0;
    },
    /* A promise of the next event, or of a few milliseconds: C may only want to look. */
    wait: function() {
      return new Promise(function(resolve) {
        var timer = setTimeout(resolve, 1);
        WGPU.arrived = function() { clearTimeout(timer); resolve(); };
      }).then(function() {
        WGPU.arrived = null;
        WGPU.deliver();
      });
    },

    /* WGPULimits: names in the order of the struct; '' stands for 4 bytes of padding, 8 marks 64 bits. */
    limits: [
      'maxTextureDimension1D', 'maxTextureDimension2D', 'maxTextureDimension3D', 'maxTextureArrayLayers',
      'maxBindGroups', 'maxBindGroupsPlusVertexBuffers', 'maxBindingsPerBindGroup',
      'maxDynamicUniformBuffersPerPipelineLayout', 'maxDynamicStorageBuffersPerPipelineLayout',
      'maxSampledTexturesPerShaderStage', 'maxSamplersPerShaderStage', 'maxStorageBuffersPerShaderStage',
      'maxStorageTexturesPerShaderStage', 'maxUniformBuffersPerShaderStage', '', '8maxUniformBufferBindingSize',
      '8maxStorageBufferBindingSize', 'minUniformBufferOffsetAlignment', 'minStorageBufferOffsetAlignment',
      'maxVertexBuffers', '', '8maxBufferSize', 'maxVertexAttributes', 'maxVertexBufferArrayStride',
      'maxInterStageShaderVariables', 'maxColorAttachments', 'maxColorAttachmentBytesPerSample',
      'maxComputeWorkgroupStorageSize', 'maxComputeInvocationsPerWorkgroup', 'maxComputeWorkgroupSizeX',
      'maxComputeWorkgroupSizeY', 'maxComputeWorkgroupSizeZ', 'maxComputeWorkgroupsPerDimension'],
    /* Calls f(name, address, bytes) for each limit. */
    eachLimit: function(address, f) {
      address += 4;
      WGPU.limits.forEach(function(name) {
        var wide = name[0] === '8';
        if (name) f(wide ? name.slice(1) : name, address, wide ? 8 : 4);
        address += wide ? 8 : 4;
      });
    },
    writeLimits: function(limits, address) {
      WGPU.eachLimit(address, function(name, at, bytes) {
        if (limits[name] === undefined) return;
        if (bytes === 8) WGPU.setU64(at, limits[name]);
        else HEAPU32[at >>> 2] = limits[name];
      });
      return 1;
    },
    /* The limits of C that the adapter knows; all bits set means no requirement. */
    readLimits: function(adapter, address) {
      var wanted = {};
      WGPU.eachLimit(address, function(name, at, bytes) {
        var value = bytes === 8 ? WGPU.u64(at) : HEAPU32[at >>> 2];
        if (value < (bytes === 8 ? 1.8e19 : 4294967295) && adapter.limits[name] !== undefined) wanted[name] = value;
      });
      return wanted;
    },
    features: { 0xB: 'shader-f16', 0x12: 'subgroups' },
    errorType: function(error) {
      if (self.GPUOutOfMemoryError && error instanceof GPUOutOfMemoryError) return 3;
      return self.GPUInternalError && error instanceof GPUInternalError ? 4 : 2;
    },
  },
  $WGPU__deps: ['malloc', 'free'],

  wgpuCreateInstance: function(descriptor) { return WGPU.add({}); },
  wgpuInstanceRelease: function(instance) { WGPU.drop(instance); },

#if ASYNCIFY
  wgpuInstanceProcessEvents: function(instance) {
    WGPU.flush();
    return Asyncify.handleSleep(function(wakeUp) {
      if (WGPU.deliver() || !WGPU.pending) wakeUp();
      else WGPU.wait().then(wakeUp);
    });
  },
#else
  /* The browser suspends the module while the promise is pending (JavaScript Promise Integration). */
  wgpuInstanceProcessEvents: function(instance) {
    WGPU.flush();
    if (!WGPU.deliver() && WGPU.pending) return WGPU.wait();
  },
  wgpuInstanceProcessEvents__postset:
      'if (WebAssembly.Suspending) _wgpuInstanceProcessEvents = new WebAssembly.Suspending(_wgpuInstanceProcessEvents);',
#endif

  wgpuInstanceRequestAdapter: function(instance, options, info) {
    var power = HEAPU32[(options + 8) >>> 2], fallback = HEAPU32[(options + 12) >>> 2];
    var gpu = typeof navigator === 'object' && navigator.gpu;
    var promise = gpu ? gpu.requestAdapter({
      powerPreference: power === 1 ? 'low-power' : power === 2 ? 'high-performance' : undefined,
      forceFallbackAdapter: !!fallback,
    }) : Promise.reject(new Error('this browser has no WebGPU (navigator.gpu is missing)'));
    WGPU.owe(info, promise, function(callback, user1, user2, adapter, error) {
      var words = adapter ? '' : error ? error.message : 'the browser has no adapter';
      WGPU.withText(words, function(view) {
        {{{ makeDynCall('viiiii', 'callback') }}}(adapter ? 1 : 3, adapter ? WGPU.add(adapter) : 0, view, user1, user2);
      });
    });
    return BigInt(0);
  },

  wgpuAdapterGetInfo: function(adapter, out) {
    var info = WGPU.at(adapter).info || {};
    var software = info.isFallbackAdapter || WGPU.at(adapter).isFallbackAdapter || info.architecture === 'swiftshader';
    var name = info.device || info.description || [info.vendor, info.architecture].filter(Boolean).join(' ') || 'GPU';
    WGPU.setText(out + 4, info.vendor || '');
    WGPU.setText(out + 12, info.architecture || '');
    WGPU.setText(out + 20, name);
    WGPU.setText(out + 28, info.description || '');
    HEAPU32[(out + 36) >>> 2] = 2; // WebGPU
    HEAPU32[(out + 40) >>> 2] = software ? 3 : 4;
    HEAPU32[(out + 52) >>> 2] = info.subgroupMinSize || 0;
    HEAPU32[(out + 56) >>> 2] = info.subgroupMaxSize || 0;
    return 1;
  },
  wgpuAdapterInfoFreeMembers: function(info) {
    for (var at = 4; at < 36; at += 8) _free(WGPU.pointer(info + at));
  },
  wgpuAdapterGetLimits: function(adapter, out) { return WGPU.writeLimits(WGPU.at(adapter).limits, out); },
  wgpuAdapterHasFeature: function(adapter, feature) {
    var name = WGPU.features[feature];
    return name && WGPU.at(adapter).features.has(name) ? 1 : 0;
  },
  wgpuAdapterRelease: function(adapter) { WGPU.drop(adapter); },

  wgpuAdapterRequestDevice: function(adapter, descriptor, info) {
    var features = [], n = WGPU.pointer(descriptor + 12), list = WGPU.pointer(descriptor + 16);
    for (var i = 0; i < n; i++) {
      var name = WGPU.features[WGPU.pointer(list + 4 * i)];
      if (name) features.push(name);
    }
    var limits = WGPU.pointer(descriptor + 20);
    var onLost = WGPU.pointer(descriptor + 44), lost1 = WGPU.pointer(descriptor + 48),
        lost2 = WGPU.pointer(descriptor + 52);
    var onError = WGPU.pointer(descriptor + 60), error1 = WGPU.pointer(descriptor + 64),
        error2 = WGPU.pointer(descriptor + 68);
    var promise = WGPU.at(adapter).requestDevice({
      label: WGPU.text(descriptor + 4),
      requiredFeatures: features,
      requiredLimits: limits ? WGPU.readLimits(WGPU.at(adapter), limits) : {},
    });
    WGPU.owe(info, promise, function(callback, user1, user2, device, error) {
      var number = device ? WGPU.add(device) : 0;
      if (device) {
        device.addEventListener('uncapturederror', function(event) {
          event.preventDefault();
          if (WGPU.at(number) !== device) return; // released: C's memory is gone
          WGPU.withText(event.error.message, function(view) {
            {{{ makeDynCall('viiiii', 'onError') }}}(0, WGPU.errorType(event.error), view, error1, error2);
          });
        });
        device.lost.then(function(loss) {
          if (WGPU.at(number) !== device) return;
          WGPU.withText(loss.message || 'the browser took it away', function(view) {
            {{{ makeDynCall('viiiii', 'onLost') }}}(0, loss.reason === 'destroyed' ? 2 : 1, view, lost1, lost2);
          });
        });
      }
      WGPU.withText(error ? error.message : '', function(view) {
        {{{ makeDynCall('viiiii', 'callback') }}}(device ? 1 : 3, number, view, user1, user2);
      });
    });
    return BigInt(0);
  },

  wgpuDeviceGetQueue: function(device) { return WGPU.add(WGPU.at(device).queue); },
  wgpuDeviceGetLimits: function(device, out) { return WGPU.writeLimits(WGPU.at(device).limits, out); },
  wgpuDeviceDestroy: function(device) { WGPU.at(device).destroy(); },
  wgpuDeviceRelease: function(device) { WGPU.drop(device); },
  wgpuQueueRelease: function(queue) { WGPU.drop(queue); },

  wgpuDeviceCreateBuffer: function(device, descriptor) {
    var usage = WGPU.pointer(descriptor + 16), size = WGPU.u64(descriptor + 24), d = WGPU.at(device);
    var writes = (usage & 2) !== 0;
    try {
      var buffer = d.createBuffer({ size: size, usage: writes ? 0xC : usage });
    } catch (error) { // a size that is no size
      return 0;
    }
    return WGPU.add({ buffer: buffer, queue: d.queue, size: size, writes: writes, memory: 0, used: 0 });
  },
  wgpuBufferMapAsync: function(buffer, mode, offset, size, info) {
    var b = WGPU.at(buffer);
    WGPU.owe(info, b.writes ? Promise.resolve() : WGPU.map(b.buffer, Number(mode), offset, size),
             function(callback, user1, user2, value, error) {
      WGPU.withText(error ? error.message : '', function(view) {
        {{{ makeDynCall('viiii', 'callback') }}}(!error ? 1 : error.name === 'AbortError' ? 4 : 3, view, user1, user2);
      });
    });
    return BigInt(0);
  },
  wgpuBufferGetMappedRange: function(buffer, offset, size) {
    var b = WGPU.at(buffer);
    if (!b.memory) b.memory = _malloc(b.size);
    return b.memory ? b.memory + offset : 0;
  },
  wgpuBufferGetConstMappedRange: function(buffer, offset, size) {
    var b = WGPU.at(buffer);
    try {
      var bytes = new Uint8Array(b.buffer.getMappedRange(offset, size));
    } catch (error) { // the device is lost
      return 0;
    }
    _free(b.memory);
    b.memory = _malloc(size);
    if (b.memory) HEAPU8.set(bytes, b.memory);
    return b.memory;
  },
  wgpuBufferUnmap: function(buffer) {
    var b = WGPU.at(buffer);
    if (b.writes) {
      WGPU.flush();
      if (b.used) b.queue.writeBuffer(b.buffer, 0, HEAPU8, b.memory, b.used);
      b.used = 0;
      return;
    }
    b.buffer.unmap();
    _free(b.memory);
    b.memory = 0;
  },
  wgpuBufferDestroy: function(buffer) {
    WGPU.flush();
    WGPU.at(buffer).buffer.destroy();
  },
  wgpuBufferRelease: function(buffer) {
    _free(WGPU.at(buffer).memory);
    WGPU.drop(buffer);
  },

  wgpuDeviceCreateShaderModule: function(device, descriptor) {
    var source = WGPU.pointer(descriptor);
    return WGPU.add(WGPU.at(device).createShaderModule({ code: WGPU.text(source + 8), label: WGPU.text(descriptor + 4) }));
  },
  wgpuShaderModuleRelease: function(shader) { WGPU.drop(shader); },
  wgpuDeviceCreateComputePipeline: function(device, descriptor) {
    var constants = {}, n = WGPU.pointer(descriptor + 32), list = WGPU.pointer(descriptor + 36);
    for (var i = 0; i < n; i++) constants[WGPU.text(list + 24 * i + 4)] = HEAPF64[(list + 24 * i + 16) >>> 3];
    var layout = WGPU.pointer(descriptor + 12);
    return WGPU.add(WGPU.at(device).createComputePipeline({
      label: WGPU.text(descriptor + 4),
      layout: layout ? WGPU.at(layout) : 'auto',
      compute: { module: WGPU.at(WGPU.pointer(descriptor + 20)), entryPoint: WGPU.text(descriptor + 24) || undefined,
                 constants: constants },
    }));
  },
  wgpuComputePipelineGetBindGroupLayout: function(pipeline, group) {
    return WGPU.add(WGPU.at(pipeline).getBindGroupLayout(group));
  },
  wgpuComputePipelineRelease: function(pipeline) { WGPU.drop(pipeline); },
  wgpuBindGroupLayoutRelease: function(layout) { WGPU.drop(layout); },
  wgpuDeviceCreateBindGroup: function(device, descriptor) {
    var entries = [], n = WGPU.pointer(descriptor + 16), list = WGPU.pointer(descriptor + 20);
    for (var i = 0; i < n; i++) {
      var entry = list + 40 * i, size = WGPU.u64(entry + 24);
      var resource = { buffer: WGPU.at(WGPU.pointer(entry + 8)).buffer, offset: WGPU.u64(entry + 16) };
      if (size < 1.8e19) resource.size = size; // else the whole buffer
      entries.push({ binding: WGPU.pointer(entry + 4), resource: resource });
    }
    return WGPU.add(WGPU.at(device).createBindGroup({ layout: WGPU.at(WGPU.pointer(descriptor + 12)), entries: entries }));
  },
  wgpuBindGroupRelease: function(group) { WGPU.drop(group); },

  wgpuDeviceCreateCommandEncoder: function(device, descriptor) { return WGPU.add(WGPU.at(device).createCommandEncoder()); },
  wgpuCommandEncoderBeginComputePass: function(encoder, descriptor) {
    return WGPU.add(WGPU.at(encoder).beginComputePass());
  },
  wgpuCommandEncoderCopyBufferToBuffer: function(encoder, from, fromOffset, to, toOffset, size) {
    var source = WGPU.at(from), end = Number(fromOffset) + Number(size);
    if (source.writes && end > source.used) source.used = end;
    WGPU.at(encoder).copyBufferToBuffer(source.buffer, Number(fromOffset), WGPU.at(to).buffer, Number(toOffset),
                                        Number(size));
  },
  wgpuCommandEncoderFinish: function(encoder, descriptor) { return WGPU.add(WGPU.at(encoder).finish()); },
  wgpuCommandEncoderRelease: function(encoder) { WGPU.drop(encoder); },
  wgpuCommandBufferRelease: function(commands) { WGPU.drop(commands); },
  wgpuComputePassEncoderSetPipeline: function(pass, pipeline) { WGPU.at(pass).setPipeline(WGPU.at(pipeline)); },
  wgpuComputePassEncoderSetBindGroup: function(pass, group, bindGroup, n, offsets) {
    WGPU.at(pass).setBindGroup(group, WGPU.at(bindGroup), Array.from(HEAPU32.subarray(offsets >>> 2, (offsets >>> 2) + n)));
  },
  wgpuComputePassEncoderDispatchWorkgroups: function(pass, x, y, z) { WGPU.at(pass).dispatchWorkgroups(x, y, z); },
  wgpuComputePassEncoderEnd: function(pass) { WGPU.at(pass).end(); },
  wgpuComputePassEncoderRelease: function(pass) { WGPU.drop(pass); },
  wgpuQueueSubmit: function(queue, n, list) {
    if (WGPU.queue !== WGPU.at(queue)) WGPU.flush();
    WGPU.queue = WGPU.at(queue);
    if (!WGPU.commands.length) setTimeout(WGPU.flush);
    for (var i = 0; i < n; i++) WGPU.commands.push(WGPU.at(WGPU.pointer(list + 4 * i)));
  },
};

autoAddDeps(LibraryWebGPU, '$WGPU');
mergeInto(LibraryManager.library, LibraryWebGPU);
