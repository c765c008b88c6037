/* One framework with one workload at work. Questions and answers:

       { framework, device, workload }   opens it; { threads }
       { steps }                         runs steps, waiting for the loss of each: { losses, ms, counts, errors }
   A classic worker, because TensorFlow.js comes as scripts. */
importScripts('count.js');
let step;

async function start({ framework, device, workload }) {
  const { make } = await import('./workloads.js');
  const { open } = await import(`./${framework}.js`);
  const { threads, train } = await open(device);
  step = await train(make(workload));
  return { threads };
}

async function run({ steps }) {
  const losses = [], ms = [], counted = [];
  for (let i = 0; i < steps; i++) {
    for (const key in counts) counts[key] = 0;
    const began = performance.now();
    losses.push(await step());
    ms.push(performance.now() - began);
    counted.push({ ...counts });
  }
  return { losses, ms, counts: counted, errors: gpuErrors };
}

onmessage = async ({ data }) => {
  try {
    postMessage(await (data.steps ? run(data) : start(data)));
  } catch (error) {
    postMessage({ error: String(error.stack || error) });
  }
};
