import type { CgroupDriver, CriTransport } from '../../src/cri/index.ts';
import { type Clock, KubelingError, type Random, type Timer } from '../../src/lib/index.ts';
import { GrpcError, type GrpcServer } from '../../src/protocols/grpc/index.ts';
import { CallGate } from './calls.ts';
import { ContainerLifecycle } from './container-lifecycle.ts';
import type { SimulatorContext } from './context.ts';
import { EventHub } from './events.ts';
import { Exec } from './exec.ts';
import { Exits } from './exits.ts';
import { type FaultPlan, noFaults } from './faults.ts';
import { memoryFiles, type SimulatedFiles } from './files.ts';
import { type Flavour, flavours } from './flavour.ts';
import { ImageOperations } from './image-service.ts';
import { ImageStore, type SimulatedImage } from './image-store.ts';
import { type Latency, typicalLatency } from './latency.ts';
import type { ScriptChooser } from './launch-plan.ts';
import { Listing } from './listing.ts';
import { rulesWith, type SimulatorMutation } from './mutations.ts';
import { NanoClock } from './nano-clock.ts';
import { PodNetwork } from './network.ts';
import { type ContainerRecord, containerFacts, containerState, hasProcess, sandboxFacts } from './records.ts';
import { Recovery, type RestartOptions } from './recovery.ts';
import { type ImageRegistry, registryOf } from './registry.ts';
import { SandboxLifecycle } from './sandbox-lifecycle.ts';
import {
  contentHandlers,
  eventHandlers,
  imageHandlers,
  type RuntimeParts,
  runtimeHandlers,
} from './services.ts';
import { Stats } from './stats.ts';
import { Store } from './store.ts';
import { Trace } from './trace.ts';
import { inProcessTransport, type SimulatedServices, serveServices } from './transport.ts';
import { sandboxState } from './views.ts';
import { Work } from './work.ts';

export interface SimulatedRuntimeOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** The simulated containerd version; containerd-1.6 by default. */
  readonly flavour?: Flavour;
  /**
   * Selects the behaviour of containers. The behaviour of a container without a selection is
   * defined by its image, or else by its command line.
   */
  readonly script?: ScriptChooser;
  /** The images that exist at the start. */
  readonly images?: readonly SimulatedImage[];
  /** The registry from which images are pulled; by default it is empty. */
  readonly registry?: ImageRegistry;
  readonly latency?: Latency;
  readonly faults?: FaultPlan;
  /** The files of the machine; by default in memory. */
  readonly files?: SimulatedFiles;
  /** The range of pod addresses; 10.88.0.0/16 by default. */
  readonly podCidr?: string;
  /** The supported runtime handlers; only runc by default. */
  readonly runtimeHandlers?: readonly string[];
  /**
   * The reported cgroup driver; CGROUPFS by default. Only simulated containerd versions that
   * support RuntimeConfig report it.
   */
  readonly cgroupDriver?: CgroupDriver;
  readonly imageFsPath?: string;
  /** The prefix of streaming URLs; no server listens there. */
  readonly streamingUrl?: string;
  /**
   * The probability that a request takes effect although its caller aborted it in flight; 0.5 by
   * default.
   */
  readonly abandonedEffect?: number;
  /** How many entries the trace retains; 10,000 by default. */
  readonly traceCapacity?: number;
  /** A rule of the runtime to violate on purpose. */
  readonly mutation?: SimulatorMutation;
  /**
   * Called for bugs in the simulator or in a test's container script; by default they end the
   * process.
   */
  readonly onBug?: (method: string, error: unknown) => void;
}

/** The actual state of a container, regardless of the runtime's records. */
export type ContainerView = ReturnType<typeof containerFacts> & {
  readonly state: ReturnType<typeof containerState>;
  readonly running: boolean;
  readonly removing: boolean;
  /** The current resource limits of the container. */
  readonly resources: ContainerRecord['resources'];
};

export type SandboxView = ReturnType<typeof sandboxFacts> & {
  readonly state: ReturnType<typeof sandboxState>;
  readonly running: boolean;
};

const defaultImageFsPath = '/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs';

export function createSimulatedRuntime(options: SimulatedRuntimeOptions): SimulatedRuntime {
  return new SimulatedRuntime(options);
}

/**
 * A simulated container runtime with sandboxes, containers, images and events on any clock; over
 * CRI it behaves like containerd. The same seed, container scripts and calls give the same history,
 * including IDs and times.
 */
export class SimulatedRuntime implements AsyncDisposable {
  readonly trace: Trace;
  readonly #options: SimulatedRuntimeOptions;
  readonly #context: SimulatorContext;
  readonly #gate: CallGate;
  readonly #services: SimulatedServices;
  readonly #sandboxes: SandboxLifecycle;
  readonly #recovery: Recovery;
  readonly #onBug: (method: string, error: unknown) => void;
  #faults: FaultPlan;
  #up = true;
  #comeback: Timer | undefined;
  /** The options of the last kill. */
  #died: RestartOptions = { state: 'kept' };

  constructor(options: SimulatedRuntimeOptions) {
    this.#options = options;
    this.#faults = options.faults ?? noFaults;
    this.#onBug = options.onBug ?? throwLater;
    this.trace = new Trace(options.traceCapacity ?? 10_000, () => options.clock.now());
    this.#context = this.#newContext();
    const parts = this.#newParts();
    this.#sandboxes = parts.sandboxes;
    this.#recovery = new Recovery(this.#context, parts.containers);
    this.#gate = this.#newGate();
    this.#services = {
      gate: this.#gate,
      runtime: runtimeHandlers(parts),
      image: imageHandlers(parts),
      events: eventHandlers(parts),
      content: contentHandlers(parts),
    };
    for (const image of options.images ?? []) this.#context.images.import(image);
  }

  /** Creates a transport for one client in this process. */
  transport(): CriTransport {
    return inProcessTransport(this.#services);
  }

  /**
   * Serves the runtime on a Unix socket until the returned server is closed. Requires a runtime
   * with the real clock.
   */
  serve(socketPath: string): Promise<GrpcServer> {
    return serveServices(this.#services, socketPath, this.#onBug);
  }

  get isUp(): boolean {
    return this.#up;
  }

  /** Replaces the fault plan; undefined removes all faults. */
  setFaults(faults: FaultPlan | undefined): void {
    this.#faults = faults ?? noFaults;
  }

  setNetworkReady(state: 'ready' | 'not-ready'): void {
    this.#context.network.ready = state === 'ready';
  }

  /** Whether an image exists, by any of its names or its ID. */
  hasImage(reference: string): boolean {
    return this.#context.images.resolve(reference) !== undefined;
  }

  importImage(image: SimulatedImage): void {
    this.#context.images.import(image);
  }

  /** Breaks all connections immediately; the runtime itself keeps running. */
  disconnect(): void {
    this.trace.add({ kind: 'disconnected' });
    this.#gate.disconnect(broken());
  }

  /**
   * Kills the runtime now and restarts it after the downtime. Calling it for a stopped runtime
   * prolongs the downtime.
   */
  restart(options: RestartOptions): void {
    this.goDown(options);
    this.#comeback = this.#options.clock.timer(options.downMs ?? 1_000, () => this.comeUp());
  }

  /** Kills the runtime now; it stays down until `comeUp` is called. */
  goDown(options: RestartOptions): void {
    this.#comeback?.cancel();
    this.#up = false;
    this.#died = options;
    this.trace.add({ kind: 'runtime-down', state: options.state });
    this.#context.work.abandon();
    this.#gate.goDown(broken());
    this.#context.events.failAll(broken());
    this.#recovery.die(options);
  }

  comeUp(): void {
    if (this.#up) return;
    this.#comeback?.cancel();
    this.#up = true;
    this.#recovery.recover(this.#died);
    this.#gate.comeUp();
    this.trace.add({ kind: 'runtime-up', state: this.#died.state });
  }

  /** Kills the process of a container without a call to the runtime. */
  crashContainer(id: string, exitCode = 137): void {
    this.#record(id).process?.endWith({ exitCode, cause: exitCode === 137 ? 'signal' : 'exit' });
  }

  /** Kills the process of a container as the OOM killer does. */
  oomKillContainer(id: string): void {
    this.#record(id).process?.endWith({ exitCode: 137, cause: 'oom' });
  }

  /** Kills the process of the sandbox itself; its containers keep running. */
  crashSandbox(id: string): void {
    const found = this.#context.store.sandboxes.find(id);
    if (found.kind === 'one') this.#sandboxes.kill(found.record);
    else throw noSuch('sandbox', id);
  }

  sandboxes(): readonly SandboxView[] {
    return this.#context.store.sandboxes
      .all()
      .map((record) => ({ ...sandboxFacts(record), state: sandboxState(record), running: record.pid !== 0 }));
  }

  containers(): readonly ContainerView[] {
    return this.#context.store.containers.all().map(viewOf);
  }

  /** The containers whose process exists. */
  runningContainers(): readonly ContainerView[] {
    return this.containers().filter(({ running }) => running);
  }

  /**
   * The numbers of resources in use: all zero when the node is empty and no client is connected.
   */
  held(): Readonly<
    Record<'sandboxes' | 'containers' | 'names' | 'addresses' | 'calls' | 'subscribers', number>
  > {
    const { store, network, events } = this.#context;
    return {
      sandboxes: store.sandboxes.size + store.startingSandboxes.size,
      containers: store.containers.size + store.creatingContainers.size,
      names: store.sandboxNames.size + store.containerNames.size,
      addresses: network.addressesTaken,
      calls: this.#gate.inFlight,
      subscribers: events.subscribers,
    };
  }

  /** Stops the runtime and releases all processes and timers. */
  close(): void {
    this.goDown({ state: 'lost' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  #record(id: string): ContainerRecord {
    const found = this.#context.store.containers.find(id);
    if (found.kind === 'one') return found.record;
    throw noSuch('container', id);
  }

  #newContext(): SimulatorContext {
    const options = this.#options;
    const { clock, random } = options;
    const nanos = new NanoClock(clock);
    const work = new Work(clock);
    const latency = options.latency ?? typicalLatency;
    const rules = rulesWith(options.mutation);
    const nowNs = () => nanos.now();
    let pid = 1_000;
    return {
      clock,
      random,
      work,
      rules,
      nowNs,
      newId: () => newId(random),
      newPid: () => ++pid,
      latencyMs: (step) => latency(step, random),
      flavour: flavours[options.flavour ?? 'containerd-1.6'],
      store: new Store(),
      images: new ImageStore(),
      network: new PodNetwork(options.podCidr ?? '10.88.0.0/16'),
      files: options.files ?? memoryFiles(),
      trace: this.trace,
      isUp: () => this.#up,
      chooseScript: options.script ?? (() => undefined),
      events: new EventHub({
        work,
        rules,
        nowNs,
        nowMs: () => clock.monotonicMs(),
        latencyMs: () => latency('event', random),
        fault: (event) => this.#eventFault(event),
      }),
    };
  }

  #newParts(): RuntimeParts {
    const context = this.#context;
    const {
      registry,
      imageFsPath = defaultImageFsPath,
      streamingUrl = 'http://127.0.0.1:10010',
    } = this.#options;
    const handlers = this.#options.runtimeHandlers ?? ['runc'];
    const exits = new Exits(context);
    const containers = new ContainerLifecycle(context, exits);
    return {
      context,
      containers,
      sandboxes: new SandboxLifecycle({ context, exits, containers, runtimeHandlers: handlers }),
      listing: new Listing(context),
      exec: new Exec(context, streamingUrl),
      stats: new Stats(context, imageFsPath),
      images: new ImageOperations(context, registry ?? registryOf([]), imageFsPath),
      cgroupDriver: this.#options.cgroupDriver ?? 'CGROUPFS',
      runtimeHandlers: handlers,
    };
  }

  #newGate(): CallGate {
    const { work, random, latencyMs } = this.#context;
    return new CallGate({
      work,
      random,
      latencyMs,
      trace: this.trace,
      faults: () => this.#faults,
      abandonedEffect: this.#options.abandonedEffect ?? 0.5,
      onBug: this.#onBug,
    });
  }

  #eventFault(event: Parameters<FaultPlan['event']>[0]): ReturnType<FaultPlan['event']> {
    const fault = this.#faults.event(event);
    if (fault !== undefined) this.trace.add({ kind: 'event-fault', topic: event.topic, fault: fault.kind });
    return fault;
  }
}

function viewOf(record: ContainerRecord): ContainerView {
  const removing = record.busy === 'removing';
  const { resources } = record;
  return {
    ...containerFacts(record),
    state: containerState(record),
    running: hasProcess(record),
    removing,
    resources,
  };
}

function newId(random: Random): string {
  let id = '';
  for (let words = 0; words < 8; words++) {
    id += Math.floor(random.next() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  }
  return id;
}

function broken(): GrpcError {
  return new GrpcError('UNAVAILABLE', 'error reading from server: EOF');
}

function noSuch(what: string, id: string): KubelingError {
  return new KubelingError('BUG', `There is no simulated ${what} ${id}`);
}

function throwLater(_method: string, error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
