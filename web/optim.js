/* Optimizers and schedules of the learning rate. */
import { parametersOf } from './nn.js';

const OPTIMIZERS = { SGD: 'sgd', Adam: 'adam', AdamW: 'adamw', SparseAdam: 'sparse_adam', NAdam: 'nadam', RAdam: 'radam',
                     Adamax: 'adamax', RMSprop: 'rmsprop', Adagrad: 'adagrad', Adadelta: 'adadelta', Lion: 'lion', Muon: 'muon',
                     Rprop: 'rprop', ASGD: 'asgd', Adafactor: 'adafactor' };
const SCHEDULES = { StepLR: 'every', MultiStepLR: 'milestones', ExponentialLR: 'exponential', ConstantLR: 'constant',
                    LinearLR: 'linear', PolynomialLR: 'polynomial', CosineAnnealingLR: 'cosine',
                    CosineAnnealingWarmRestarts: 'cosine_restarts', OneCycleLR: 'one_cycle', CyclicLR: 'cyclic',
                    ReduceLROnPlateau: 'plateau' };

class Optimizer {
  constructor(cn, pointer) { this.cn = cn; this.pointer = pointer; }
  /* Computes everything pending and the new parameters; the gradients are cleared. */
  async step() { await this.cn.wait('step', this); }
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
    return new Optimizer(cn, cn.do(maker, cn.context, parametersOf(parameters), options));
  }]));
}

export function makeSchedules(cn) {
  const makers = Object.fromEntries(Object.entries(SCHEDULES).map(([name, maker]) => [name, function (optimizer, ...args) {
    return new Schedule(cn, cn._make('schedule_' + maker, [optimizer, ...args], [0, 0, 0]));
  }]));
  makers.MultiStepLR = function (optimizer, milestones, gamma = 0) {
    return cn.memory.with(BigInt64Array.from(milestones, BigInt), at =>
      new Schedule(cn, cn.do('schedule_milestones', optimizer, at, milestones.length, gamma)));
  };
  return makers;
}
