/* Optimizers and schedules of the learning rate. */
import { parametersOf } from './nn.js';

const OPTIMIZERS = { SGD: 'sgd', Adam: 'adam', AdamW: 'adamw', SparseAdam: 'sparse_adam', NAdam: 'nadam', RAdam: 'radam',
                     Adamax: 'adamax', RMSprop: 'rmsprop', Adagrad: 'adagrad', Adadelta: 'adadelta', Lion: 'lion', Muon: 'muon',
                     Rprop: 'rprop', ASGD: 'asgd', Adafactor: 'adafactor', LBFGS: 'lbfgs' };
const SCHEDULES = { StepLR: 'every', MultiStepLR: 'milestones', ExponentialLR: 'exponential', ConstantLR: 'constant',
                    LinearLR: 'linear', PolynomialLR: 'polynomial', CosineAnnealingLR: 'cosine',
                    CosineAnnealingWarmRestarts: 'cosine_restarts', OneCycleLR: 'one_cycle', CyclicLR: 'cyclic',
                    ReduceLROnPlateau: 'plateau' };

class Optimizer {
  constructor(cn, pointer) { this.cn = cn; this.pointer = pointer; }
  /* Computes everything pending and the new parameters; the gradients are cleared. closure (LBFGS needs one): it makes the
     loss, calls backward and returns the loss, without waiting; step returns the number of the first one. */
  async step(closure) {
    const { cn } = this;
    if (!closure) return void await cn.wait('step', this);
    const callbacks = cn._callbacks, held = callbacks.hold(closure), at = cn.memory.hold(8);
    try {
      await cn.scope(() => cn.wait('step_closure', this, callbacks.pointer('closure'), held, at).then(() => {}));
      return cn.memory.get('d', at);
    } finally {
      callbacks.drop(held);
      cn.module._free(at);
    }
  }
  /* Tensors and texts by name, for cn.save; loadStateDict takes what cn.load returns. */
  stateDict() {
    return this.cn._withDict(dict => { this.cn.do('optim_save', this, dict, ''); return this.cn._content(dict); });
  }
  loadStateDict(state) { this.cn._withDict(dict => this.cn.do('optim_load', this, dict, ''), state); }
  /* Parameters with numbers of their own: { lr, weight_decay, eps, momentum, beta2 } */
  addParamGroup({ params, ...options }) { this.cn.do('optim_add_group', this, parametersOf(params), options); }
  zeroGrad() { this.cn.call('optim_zero_grad', this); }
  get lr() { return this.cn.call('optim_lr', this, 0); }
  set lr(value) {
    for (let group = 0; group < this.cn.call('optim_groups', this); group++) this.cn.do('optim_set_lr', this, group, value);
  }
  free() { this.cn.call('optim_free', this); this.pointer = 0; }
}

class Schedule {
  constructor(cn, pointer) { this.cn = cn; this.pointer = pointer; }
  step(metric) {
    if (metric === undefined) this.cn.do('schedule_step', this);
    else this.cn.do('schedule_step_metric', this, metric);
  }
  free() { this.cn.call('schedule_free', this); this.pointer = 0; }
}

export function makeOptimizers(cn) {
  return Object.fromEntries(Object.entries(OPTIMIZERS).map(([name, maker]) => [name, function (parameters, options = {}) {
    const groups = Array.isArray(parameters) && parameters.length && parameters[0].params ? parameters : [{ params: parameters }];
    const [{ params, ...own }, ...others] = groups;
    const optimizer = new Optimizer(cn, cn.do(maker, cn.context, parametersOf(params), { ...options, ...own }));
    others.forEach(group => optimizer.addParamGroup(group));
    return optimizer;
  }]));
}

export function makeSchedules(cn) {
  const makers = Object.fromEntries(Object.entries(SCHEDULES).map(([name, maker]) => [name, function (optimizer, ...args) {
    return new Schedule(cn, cn._make('schedule_' + maker, [optimizer, ...args], [0, 0, 0]));
  }]));
  /* f(step, group): the rate is the first one times it, or each step multiplies the rate by it. */
  for (const [name, maker] of [['LambdaLR', 'lambda'], ['MultiplicativeLR', 'multiplicative']])
    makers[name] = function (optimizer, f) {
      return new Schedule(cn, cn.do('schedule_' + maker, optimizer, cn._callbacks.pointer('rate'), cn._callbacks.hold(f)));
    };
  makers.SequentialLR = function (optimizer, schedules, milestones) {
    return cn.memory.with(BigInt64Array.from(milestones, BigInt), at => cn.memory.onStack(() =>
      new Schedule(cn, cn.do('schedule_sequential', optimizer, cn.memory.pointers(schedules), schedules.length, at))));
  };
  makers.MultiStepLR = function (optimizer, milestones, gamma = 0) {
    return cn.memory.with(BigInt64Array.from(milestones, BigInt), at =>
      new Schedule(cn, cn.do('schedule_milestones', optimizer, at, milestones.length, gamma)));
  };
  return makers;
}
