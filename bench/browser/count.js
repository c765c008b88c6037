/* Counts what a framework asks of WebGPU. It is loaded before the framework, so that nothing escapes it. */
self.counts = { dispatches: 0, submissions: 0, buffers: 0, bytes: 0 };
self.gpuErrors = []; // an invalid command buffer throws nothing: it is dropped, and looks fast

{
  const wrap = (type, name, count) => {
    if (!self[type]) return;
    const own = self[type].prototype[name];
    self[type].prototype[name] = function (...args) {
      count(...args);
      return own.apply(this, args);
    };
  };
  wrap('GPUQueue', 'submit', () => counts.submissions++);
  wrap('GPUComputePassEncoder', 'dispatchWorkgroups', () => counts.dispatches++);
  wrap('GPUComputePassEncoder', 'dispatchWorkgroupsIndirect', () => counts.dispatches++);
  wrap('GPUDevice', 'createBuffer', ({ size }) => { counts.buffers++; counts.bytes += size; });
  if (self.GPUAdapter) {
    const own = GPUAdapter.prototype.requestDevice;
    GPUAdapter.prototype.requestDevice = async function (...args) {
      const device = await own.apply(this, args);
      device.addEventListener('uncapturederror', ({ error }) => gpuErrors.push(error.message));
      device.lost.then(loss => gpuErrors.push(`the device was lost: ${loss.message}`));
      return device;
    };
  }
}
