/** Cairn in a browser: docs/web.md. The operators, methods and layers are filled in by web/generate.py. */

export type DType = 'bool' | 'u8' | 'i8' | 'i16' | 'i32' | 'i64' | 'f16' | 'bf16' | 'f32' | 'f64';
export type Values = Uint8Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Float32Array | Float64Array;
export type Nested = number | boolean | Nested[];

export interface OpenOptions {
  /** 'cpu' (default), 'gpu', or 'auto': a hardware GPU if there is one. */
  device?: 'cpu' | 'gpu' | 'auto' | `gpu:${number}`;
  /** Of all random numbers. */
  seed?: number;
  /** 0: one for each core where the page is cross-origin isolated, else 1. */
  threads?: number;
  /** Bytes of tensor memory; 0: no limit. */
  memory_limit?: number;
  /** Address of the folder that holds this package; it ends with a slash. */
  base?: string;
}

export function open(options?: OpenOptions): Promise<Cairn>;

/** An error with Cairn's words. */
export class CairnError extends Error {
  /** 'BAD_SHAPE', 'BAD_DTYPE', 'BAD_ARGUMENT', 'BAD_INDEX', 'NO_MEMORY', 'NO_GRADIENT', 'RELEASED', ... */
  code: string;
}

export interface TensorOptions { dtype?: DType; requires_grad?: boolean }

export class Cairn {
  readonly device: 'cpu' | 'gpu';
  readonly threads: number;
  readonly version: string;
  /** Bytes of the module's memory, which never shrinks. */
  readonly heapBytes: number;
  /** What the GPU has done so far; zeros on the CPU. */
  readonly counted: Record<'dispatches' | 'submissions' | 'uploaded_bytes' | 'downloaded_bytes' | 'parameter_bytes' | 'readbacks' |
      'fallbacks' | 'pipelines' | 'bind_groups' | 'buffers' | 'buffer_bytes' | 'recoveries' | 'mirrored_bytes', number>;
  readonly nn: Layers;
  readonly optim: Optimizers;
  readonly schedule: Schedules;

  tensor(data: Nested | Values, options?: TensorOptions): Tensor;
  tensor(data: Nested | Values, shape: number[], options?: TensorOptions): Tensor;
  /** A leaf that is kept and requires a gradient. */
  parameter(value: Tensor): Tensor;
  /** Runs f and frees the tensors it has made, except those it returns. */
  scope<T>(f: () => T): T;
  /** Runs f without recording gradients. */
  noGrad<T>(f: () => T): T;
  /** Gradients of outputs with respect to inputs; grad of the tensors stays as it is. */
  grad(outputs: Tensor[], inputs: Tensor[], options?: { retain?: boolean; create_graph?: boolean; allow_unused?: boolean }): Array<Tensor | null>;
  /** The norm of all gradients before they were scaled. */
  clipGradNorm(parameters: Tensor[] | Module, maxNorm: number, options?: { norm_type?: number; error_if_nonfinite?: boolean }): Tensor;
  gptLoss(gpt: Module, tokens: Tensor, targets: Tensor): Tensor;
  evalAll(): Promise<void>;
  seed(value: number): void;
  /** The bytes of a file of tensors by name. */
  save(tensors: Record<string, Tensor>, options?: { texts?: Record<string, string | number>; format?: 'safetensors' | 'npz' | 'npy' }): Promise<Uint8Array>;
  /** The content of such a file, or of one that torch.save wrote. */
  load(data: Uint8Array | ArrayBuffer): Promise<{ tensors: Record<string, Tensor>; texts: Record<string, string> }>;
  close(): Promise<void>;
  /** Calls the C function cn_NAME; it must not compute on a GPU. */
  call(name: string, ...args: unknown[]): unknown;
  /** Calls the C function cn_NAME, which may compute. */
  wait(name: string, ...args: unknown[]): Promise<unknown>;
  // FUNCTIONS
}

export class Tensor {
  readonly cn: Cairn;
  readonly shape: number[];
  readonly dtype: DType;
  readonly ndim: number;
  readonly numel: number;
  readonly device: string;
  requires_grad: boolean;
  readonly grad: Tensor | null;
  zero_grad(): void;
  backward(options?: { gradient?: Tensor; retain?: boolean; create_graph?: boolean }): void;
  /** The values in the order of rows. f16 and bf16 become Float32Array, bool Uint8Array. */
  read(): Promise<Values>;
  item(): Promise<number>;
  eval(): Promise<Tensor>;
  assign(value: Tensor | number): Tensor;
  /** Lives beyond its scope. */
  keep(): Tensor;
  release(): void;
  name(text: string): Tensor;
  // METHODS
}

/** A module of your own: a class with forward, whose properties are tensors and modules. */
export class Module {
  training: boolean;
  readonly count?: number;
  forward(...inputs: Array<Tensor | { results: number }>): any;
  parameters(): Tensor[];
  namedParameters(): Array<[string, Tensor]>;
  stateDict(): Record<string, Tensor>;
  loadStateDict(state: Record<string, Tensor>): void;
  train(on?: boolean): this;
  eval(): this;
  free?(): void;
}

export interface Layers {
  Module: typeof Module;
  Sequential: new (...modules: Module[]) => Module;
  ModuleList: new (...modules: Module[]) => Module;
  // LAYERS
}

export interface Optimizer {
  lr: number;
  step(): Promise<void>;
  zeroGrad(): void;
  free(): void;
}
type Maker = new (parameters: Tensor[] | Module, options?: Record<string, number | boolean | number[]>) => Optimizer;
export type Optimizers = Record<'SGD' | 'Adam' | 'AdamW' | 'SparseAdam' | 'NAdam' | 'RAdam' | 'Adamax' | 'RMSprop' | 'Adagrad' |
    'Adadelta' | 'Lion' | 'Muon' | 'Rprop' | 'ASGD' | 'Adafactor', Maker>;

export interface Schedule { step(metric?: number): void; free(): void }
type ScheduleOptions = Record<string, number | boolean | string>;
export interface Schedules {
  StepLR: new (optimizer: Optimizer, stepSize: number, gamma?: number) => Schedule;
  MultiStepLR: new (optimizer: Optimizer, milestones: number[], gamma?: number) => Schedule;
  ExponentialLR: new (optimizer: Optimizer, gamma: number) => Schedule;
  ConstantLR: new (optimizer: Optimizer, factor?: number, totalIters?: number) => Schedule;
  LinearLR: new (optimizer: Optimizer, options?: ScheduleOptions) => Schedule;
  PolynomialLR: new (optimizer: Optimizer, totalIters?: number, power?: number) => Schedule;
  CosineAnnealingLR: new (optimizer: Optimizer, tMax: number, etaMin?: number) => Schedule;
  CosineAnnealingWarmRestarts: new (optimizer: Optimizer, t0: number, tMult?: number, etaMin?: number) => Schedule;
  OneCycleLR: new (optimizer: Optimizer, options: ScheduleOptions) => Schedule;
  CyclicLR: new (optimizer: Optimizer, options: ScheduleOptions) => Schedule;
  ReduceLROnPlateau: new (optimizer: Optimizer, options?: ScheduleOptions) => Schedule;
}
