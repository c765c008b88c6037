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
  readonly autograd: Autograd;
  readonly data: Data;

  tensor(data: Nested | Values, options?: TensorOptions): Tensor;
  tensor(data: Nested | Values, shape: number[], options?: TensorOptions): Tensor;
  /** A leaf that is kept and requires a gradient. */
  parameter(value: Tensor): Tensor;
  /** Runs f and frees the tensors it has made, except those it returns. */
  scope<T>(f: () => T): T;
  /** Runs f without recording gradients. */
  noGrad<T>(f: () => T): T;
  /** Runs f with gradients recorded, also inside noGrad. */
  withGrad<T>(f: () => T): T;
  /** Gradients of outputs with respect to inputs; grad of the tensors stays as it is. */
  grad(outputs: Tensor[], inputs: Tensor[], options?: GradOptions): Array<Tensor | null>;
  /** The norm of all gradients before they were scaled. */
  clipGradNorm(parameters: Tensor[] | Module, maxNorm: number, options?: { norm_type?: number; error_if_nonfinite?: boolean }): Tensor;
  clipGradValue(parameters: Tensor[] | Module, most: number): void;
  /** An operator by name that computes its operands, as nonzero and masked_select do: these must be awaited on a GPU. */
  compute(name: string, ...args: unknown[]): Promise<any>;
  gptLoss(gpt: Module, tokens: Tensor, targets: Tensor): Tensor;
  evalAll(): Promise<void>;
  seed(value: number): void;
  /** The bytes of a file of tensors by name. */
  save(tensors: Record<string, Tensor>, options?: { texts?: Record<string, string | number>; format?: 'safetensors' | 'npz' | 'npy' }): Promise<Uint8Array>;
  /** The content of such a file, or of one that torch.save wrote. */
  load(data: Uint8Array | ArrayBuffer): Promise<Saved>;
  close(): Promise<void>;
  /** Calls the C function cn_NAME; it must not compute on a GPU. */
  call(name: string, ...args: unknown[]): unknown;
  /** Calls the C function cn_NAME, which may compute. */
  wait(name: string, ...args: unknown[]): Promise<unknown>;
  // FUNCTIONS
}

export interface GradOptions { gradients?: Tensor[]; retain?: boolean; create_graph?: boolean; allow_unused?: boolean }

/** Operators with one result, as methods. */
export interface Methods {
  // METHODS
}
/** The same with an underscore, as in PyTorch: they change the tensor itself, and return it. */
export type InPlace = { [K in keyof Methods as `${K}_`]: Methods[K] };
/** 3, -1: an element; '1:4', '::2': a slice; '...'; null: a new axis; a list, a tensor: elements by number, or a mask. */
export type Index = number | string | null | Nested[] | Tensor;
/** remove() ends a hook. */
export interface Hook { remove(): void }

export interface Tensor extends Methods, InPlace {}
export class Tensor {
  readonly cn: Cairn;
  readonly shape: number[];
  readonly dtype: DType;
  readonly ndim: number;
  readonly numel: number;
  readonly device: string;
  requires_grad: boolean;
  readonly is_leaf: boolean;
  readonly grad: Tensor | null;
  zero_grad(): void;
  /** f(gradient) is called by backward, and may return another gradient. */
  registerHook(f: (gradient: Tensor) => Tensor | void): Hook;
  backward(options?: { gradient?: Tensor; retain?: boolean; create_graph?: boolean }): void;
  /** The values in the order of rows. f16 and bf16 become Float32Array, bool Uint8Array. */
  read(): Promise<Values>;
  item(): Promise<number>;
  eval(): Promise<Tensor>;
  assign(value: Tensor | number): Tensor;
  /** x[...] of PyTorch: x.at(0, '1:', [2, 4]) */
  at(...indices: Index[]): Tensor;
  /** x[...] = value */
  set(indices: Index | Index[], value: Tensor | Nested): Tensor;
  fill_(value: number): Tensor;
  zero_(): Tensor;
  copy_(source: Tensor | number): Tensor;
  normal_(mean?: number, std?: number): Tensor;
  uniform_(low?: number, high?: number): Tensor;
  requires_grad_(on?: boolean): Tensor;
  /** Lives beyond its scope. */
  keep(): Tensor;
  release(): void;
  name(text: string): Tensor;
  // LISTS
}

/** A module of your own: a class with forward, whose properties are tensors and modules. */
export class Module {
  training: boolean;
  readonly count?: number;
  forward(...inputs: Array<Tensor | { results: number }>): any;
  parameters(): Tensor[];
  namedParameters(): Array<[string, Tensor]>;
  stateDict(): Record<string, Tensor>;
  /** strict (the default): names must be the same on both sides. */
  loadStateDict(state: Record<string, Tensor>, options?: { strict?: boolean }): { missing: string[]; unexpected: string[] };
  train(on?: boolean): this;
  eval(): this;
  /** f may return another result. */
  registerForwardHook(f: (module: this, operands: Tensor[], result: any) => Tensor | Tensor[] | void): Hook;
  /** f may return other operands. */
  registerForwardPreHook(f: (module: this, operands: Tensor[]) => Tensor | Tensor[] | void): Hook;
  /** Of layers of the library: f(module, gradient of the first operand), or before it, of the first result. */
  registerFullBackwardHook?(f: (module: this, gradient: Tensor) => Tensor | void): Hook;
  registerFullBackwardPreHook?(f: (module: this, gradient: Tensor) => Tensor | void): Hook;
  free?(): void;
}

export interface Layers {
  Module: typeof Module;
  Sequential: new (...modules: Module[]) => Module;
  ModuleList: new (...modules: Module[]) => Module;
  init: Record<'uniform_' | 'normal_' | 'trunc_normal_' | 'constant_' | 'ones_' | 'zeros_' | 'eye_' | 'dirac_' | 'xavier_uniform_' |
      'xavier_normal_' | 'kaiming_uniform_' | 'kaiming_normal_' | 'orthogonal_', (tensor: Tensor, ...args: Array<number | string>) => Tensor>;
  // LAYERS
}

export interface Saved { tensors: Record<string, Tensor>; texts: Record<string, string> }
type Numbers = Record<string, number | boolean | number[]>;
type Parameters = Tensor[] | Module;
type Group = { params: Parameters } & { [option: string]: number | boolean | number[] | Parameters };

export interface Optimizer {
  lr: number;
  /** closure (LBFGS needs one): it makes the loss, calls backward and returns the loss; step gives the number of the first one. */
  step(closure: () => Tensor): Promise<number>;
  step(): Promise<void>;
  zeroGrad(): void;
  addParamGroup(group: Group): void;
  stateDict(): Saved;
  loadStateDict(state: Saved): void;
  free(): void;
}
type Maker = new (parameters: Parameters | Group[], options?: Numbers) => Optimizer;
export type Optimizers = Record<'SGD' | 'Adam' | 'AdamW' | 'SparseAdam' | 'NAdam' | 'RAdam' | 'Adamax' | 'RMSprop' | 'Adagrad' |
    'Adadelta' | 'Lion' | 'Muon' | 'Rprop' | 'ASGD' | 'Adafactor' | 'LBFGS', Maker>;

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
  LambdaLR: new (optimizer: Optimizer, f: (step: number, group: number) => number) => Schedule;
  MultiplicativeLR: new (optimizer: Optimizer, f: (step: number, group: number) => number) => Schedule;
  SequentialLR: new (optimizer: Optimizer, schedules: Schedule[], milestones: number[]) => Schedule;
}

/** What forward and backward of a function of your own share. */
export interface FunctionContext {
  saveForBackward(...tensors: Tensor[]): void;
  savedTensors: Tensor[];
  [name: string]: any;
}
type Derived = (...inputs: Tensor[]) => Tensor;
export interface Autograd {
  /** A function with a backward of its own: a class with static forward(ctx, ...operands) and backward(ctx, gradient). */
  Function: { new (): object; apply(...operands: any[]): Tensor };
  grad(outputs: Tensor[], inputs: Tensor[], options?: GradOptions): Array<Tensor | null>;
  /** Without storing what the gradient of f needs: backward calls f again. */
  checkpoint(f: Derived, ...tensors: Tensor[]): Tensor;
  jacobian(f: Derived, inputs: Tensor, options?: { create_graph?: boolean }): Promise<Tensor>;
  jacobian(f: Derived, inputs: Tensor[], options?: { create_graph?: boolean }): Promise<Tensor[]>;
  hessian(f: Derived, inputs: Tensor, options?: { create_graph?: boolean }): Promise<Tensor>;
  hessian(f: Derived, inputs: Tensor[], options?: { create_graph?: boolean }): Promise<Tensor[][]>;
  vjp(f: Derived, inputs: Tensor | Tensor[], v?: Tensor): Promise<Tensor[]>;
  jvp(f: Derived, inputs: Tensor | Tensor[], v: Tensor | Tensor[]): Promise<Tensor>;
  hvp(f: Derived, inputs: Tensor | Tensor[], v: Tensor | Tensor[]): Promise<Tensor[]>;
}

/** Anything with items by number; get may be asynchronous. */
export interface AnyDataset<T> { readonly length: number; get(i: number): T | Promise<T> }
export interface Dataset<T> extends AnyDataset<T> {
  map<U>(f: (item: T, i: number) => U | Promise<U>): Dataset<U>;
  subset(indices: ArrayLike<number>): Dataset<T>;
}
/** A dataset whose batches the library makes: lists of tensors. */
export interface NativeDataset {
  readonly length: number;
  readonly classes: string[];
  subset(indices: ArrayLike<number>): NativeDataset;
  /** Random parts: fractions that sum to 1, or counts. */
  split(sizes: number[], seed?: number): NativeDataset[];
  free(): void;
}
export type Column = Values | Nested[] | { data: Values | Nested[]; shape: number[] };
export interface LoaderOptions<T> {
  batchSize?: number;
  shuffle?: boolean;
  dropLast?: boolean;
  /** 0: the context's. The order of an epoch is that of a native loader with this seed. */
  seed?: number;
  /** Items are drawn with these weights. */
  weights?: ArrayLike<number>;
  /** A batch of items; without it numbers, typed arrays, tensors, and lists and objects of these become tensors. */
  collate?: (items: T[]) => any;
  /** Of each batch. */
  transform?: (batch: any) => any;
}
/** Batches for `for await`; their tensors live until the next batch is asked for, unless they are kept. */
export interface DataLoader extends AsyncIterable<any> {
  readonly length: number;
  /** Of the next loop. */
  epoch: number;
  /** The indices of an epoch. */
  order(epoch?: number): number[];
}
export interface Tokenizer {
  readonly length: number;
  encode(text: string): Int32Array;
  decode(ids: ArrayLike<number>): string;
  token(id: number): string | null;
  /** tokenizer.json */
  save(): string;
  free(): void;
}
export interface Data {
  Dataset: abstract new <T>() => Dataset<T>;
  TensorDataset: new (...columns: Column[]) => Dataset<Array<Values & { shape: number[] }>>;
  DataLoader: new <T>(dataset: AnyDataset<T> | NativeDataset, options?: LoaderOptions<T>) => DataLoader;
  /** MNIST's files, unpacked. */
  idx(images: Uint8Array | ArrayBuffer, labels?: Uint8Array | ArrayBuffer): NativeDataset;
  csv(text: string | Uint8Array, options?: { target?: string | string[]; separator?: string; no_header?: boolean; classes?: boolean }): NativeDataset;
  tokens(ids: ArrayLike<number>, options: { context: number; stride?: number; vocab?: number }): NativeDataset;
  concat(datasets: NativeDataset[]): NativeDataset;
  concat<T>(datasets: AnyDataset<T>[]): Dataset<T>;
  /** A picture as u8 of shape (channels, height, width). */
  image(source: Blob | CanvasImageSource, options?: { channels?: 1 | 3 | 4; width?: number; height?: number }): Promise<Tensor>;
  byteTokenizer(): Tokenizer;
  characterTokenizer(text: string): Tokenizer;
  bpeTokenizer(text: string, vocab: number, options?: { min_frequency?: number; add_prefix_space?: boolean; no_split?: boolean }): Tokenizer;
  tokenizer(json: string): Tokenizer;
}
