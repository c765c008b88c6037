/* Functions with a backward of their own, and derivatives of functions: PyTorch's torch.autograd. */
import { Tensor } from './tensor.js';
import { CairnError } from './memory.js';

/* A function with a backward of its own: a class with static forward(ctx, ...tensors), which is not recorded, and
   backward(ctx, gradient), which returns a gradient for each operand, null for none. apply(...tensors) calls it. */
class Function {
  static apply(...operands) {
    const first = operands.find(operand => operand instanceof Tensor);
    if (!first) throw new CairnError(`${this.name}.apply: a tensor is needed`, 'BAD_ARGUMENT');
    const { cn } = first, { memory } = cn, callbacks = cn._callbacks;
    const ctx = { savedTensors: [], saveForBackward(...tensors) { this.savedTensors = tensors.map(tensor => tensor.keep()); } };
    /* C gives the tensors; other operands stay where they are. */
    const places = operands.map((operand, i) => operand instanceof Tensor ? i : -1).filter(i => i >= 0);
    const tensors = places.map(i => operands[i]);
    const f = () => this.forward(ctx, ...operands);
    f.backward = gradient => {
      const result = this.backward(ctx, gradient), list = Array.isArray(result) ? result : [result];
      return list.length === operands.length ? places.map(i => list[i]) : list;
    };
    return callbacks.graph(f, number => memory.onStack(() => cn.do('custom_apply',
        memory.pointers([callbacks.pointer('function'), callbacks.pointer('backward'), number]), memory.pointers(tensors), tensors.length)));
  }
}

export function makeAutograd(cn) {
  const { memory } = cn, listed = inputs => Array.isArray(inputs) ? inputs : [inputs];
  /* Calls a C function that calls f once and computes; it writes n tensors. */
  const derive = async (name, f, inputs, before, n, after) => {
    const held = cn._callbacks.hold(f);
    let out;
    try {
      return await cn._computed(name, () => {
        out = memory.room(4 * n);
        return [cn._callbacks.pointer('function'), held, memory.pointers(inputs), inputs.length, ...before(), out, ...after];
      }, () => memory.readPointers(out, n));
    } finally {
      cn._callbacks.drop(held);
    }
  };
  return {
    Function,
    grad: (...args) => cn.grad(...args),
    /* f(...inputs): its derivatives as PyTorch's functional.jacobian, hessian, vjp, jvp, hvp give them. */
    async jacobian(f, inputs, options = null) {
      const all = await derive('jacobian', f, listed(inputs), () => [], listed(inputs).length, [options]);
      return Array.isArray(inputs) ? all : all[0];
    },
    async hessian(f, inputs, options = null) {
      const n = listed(inputs).length, all = await derive('hessian', f, listed(inputs), () => [], n * n, [options]);
      return Array.isArray(inputs) ? listed(inputs).map((_, k) => all.slice(k * n, (k + 1) * n)) : all[0];
    },
    vjp: (f, inputs, v = null) => derive('vjp', f, listed(inputs), () => [v, 0], listed(inputs).length, []),
    jvp: async (f, inputs, v) => (await derive('jvp', f, listed(inputs), () => [memory.pointers(listed(v)), 0], 1, []))[0],
    hvp: (f, inputs, v) => derive('hvp', f, listed(inputs), () => [memory.pointers(listed(v)), 0], listed(inputs).length, []),
    /* f(...tensors) without storing what its gradient needs: backward calls f again. */
    checkpoint: (f, ...tensors) => cn._callbacks.graph(f, number => memory.onStack(() =>
      cn.do('checkpoint', cn._callbacks.pointer('function'), number, memory.pointers(tensors), tensors.length))),
  };
}
