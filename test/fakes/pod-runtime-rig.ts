import { type CriClient, createCriClient } from '../../src/cri/index.ts';
import type { Container, PodSpec } from '../../src/kinds/index.ts';
import { collectLogs, seededRandom } from '../../src/lib/index.ts';
import {
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  type PodEvent,
  type PodStep,
  type PodUid,
  podUid,
} from '../../src/pods/index.ts';
import type { HookRunner } from '../../src/runtime/hooks/lifecycle-hooks.ts';
import { CrashBackoff } from '../../src/runtime/plan/crash-backoff.ts';
import type { PlanContext } from '../../src/runtime/plan/pod-actions.ts';
import { RuntimeManager, type RuntimeManagerDeps } from '../../src/runtime/runtime-manager.ts';
import type { SyncPodResult } from '../../src/runtime/sync/sync-result.ts';
import {
  createSimulatedRuntime,
  type MemoryFiles,
  memoryFiles,
  type SimulatedRuntime,
  type SimulatedRuntimeOptions,
} from '../simulator/index.ts';
import { memoryRuntimeFiles } from './memory-runtime-files.ts';
import { noCredentials, noHooks } from './runtime-stubs.ts';
import { simplePlanner } from './simple-planner.ts';
import { VirtualClock } from './virtual-clock.ts';

export const busybox = 'localhost/busybox:1';
const limitMs = 24 * 3_600_000;

export interface RigOptions extends Partial<Omit<SimulatedRuntimeOptions, 'clock' | 'random' | 'files'>> {
  readonly seed?: number;
  readonly hooks?: HookRunner;
  readonly deps?: Partial<RuntimeManagerDeps>;
  readonly requestTimeoutMs?: number;
}

/** The runtime package on a simulated runtime under virtual time. */
export class PodRuntimeRig implements Disposable {
  readonly clock: VirtualClock;
  readonly files: MemoryFiles = memoryFiles();
  readonly machine = memoryRuntimeFiles(this.files);
  readonly simulated: SimulatedRuntime;
  readonly runtime: RuntimeManager;
  readonly cri: CriClient;
  /** Every call to the runtime, in order. */
  readonly calls: string[] = [];
  readonly events: PodEvent[] = [];
  readonly steps: PodStep[] = [];
  readonly gone = new Set<PodUid>();
  readonly logs;
  readonly #controller = new AbortController();

  constructor({ seed = 1, hooks, deps, requestTimeoutMs, ...options }: RigOptions = {}) {
    const random = seededRandom(seed);
    this.clock = new VirtualClock({ random });
    this.logs = collectLogs(this.clock);
    this.simulated = createSimulatedRuntime({
      clock: this.clock,
      random,
      files: this.files,
      images: [{ reference: busybox, command: ['sh'], env: { PATH: '/bin' } }],
      ...options,
    });
    this.cri = this.#recorded(
      createCriClient({
        transport: this.simulated.transport(),
        clock: this.clock,
        ...(requestTimeoutMs === undefined ? {} : { requestTimeoutMs }),
      }),
    );
    this.runtime = new RuntimeManager({
      cri: this.cri,
      clock: this.clock,
      random,
      journal: {
        event: (_pod, event) => void this.events.push(event),
        step: (_uid, step) => void this.steps.push(step),
      },
      logger: this.logs.logger,
      files: this.machine,
      planner: simplePlanner({ podLogsDir: '/logs/pods', podsDir: '/pods' }),
      crashBackoff: new CrashBackoff({ random }),
      hooks: hooks ?? noHooks,
      credentials: noCredentials,
      pods: {
        shouldPodContentBeRemoved: (uid) => this.gone.has(uid),
        shouldPodRuntimeBeRemoved: (uid) => this.gone.has(uid),
        secondsLeft: () => undefined,
      },
      settings: {
        runtimeName: 'containerd',
        podLogsDir: '/logs/pods',
        logLinksDir: '/logs/containers',
        pulls: { maxParallel: 1, qps: 5, burst: 10 },
        gc: { minAgeMs: 0, maxPerContainer: 1, maxContainers: -1 },
      },
      ...deps,
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Advances the clock until the promise settles, and settles like it. */
  async done<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const mark = () => {
      settled = true;
    };
    promise.then(mark, mark);
    const ended = await this.clock.advanceUntil(() => settled, limitMs);
    if (!ended) throw new Error(`The promise did not settle within ${limitMs} ms of virtual time`);
    return await promise;
  }

  async observe(pod: Pod): Promise<ObservedPod> {
    const { uid, name, namespace } = pod.metadata;
    const listed = await this.done(this.runtime.listPod(uid, this.signal));
    if (listed !== undefined) return await this.done(this.runtime.observe(listed, this.signal));
    return { uid, name, namespace, ips: [], sandboxes: [], containers: [] };
  }

  /** Observes the pod and then syncs it, as a pod worker does. */
  async sync(pod: Pod, signal: AbortSignal = this.signal): Promise<SyncPodResult> {
    const observed = await this.observe(pod);
    return await this.done(this.runtime.syncPod({ pod, observed, context: noProbes }, signal));
  }

  async kill(pod: Pod, graceSeconds?: number, signal: AbortSignal = this.signal) {
    const running = await this.observe(pod);
    return await this.done(this.runtime.killPod({ pod, running, graceSeconds }, signal));
  }

  async newest(pod: Pod, name: string): Promise<ObservedContainer | undefined> {
    return (await this.observe(pod)).containers.find((container) => container.name === name);
  }

  eventsOf(reason: string): readonly string[] {
    return this.events.filter((event) => event.reason === reason).map(({ message }) => message);
  }

  /** Returns the runtime calls since the previous call of this method. */
  takeCalls(): readonly string[] {
    return this.calls.splice(0);
  }

  [Symbol.dispose](): void {
    this.#controller.abort(new Error('The test is over'));
    this.simulated.close();
  }

  #recorded(client: CriClient): CriClient {
    const calls = this.calls;
    return new Proxy(client, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...args: readonly unknown[]) => {
          calls.push(String(name));
          return Reflect.apply(value, target, args) as unknown;
        };
      },
    });
  }
}

export const noProbes: PlanContext = { liveness: () => undefined, startup: () => undefined };

export type ContainerSketch = Partial<Container> & { readonly script?: string };

/** Builds a pod whose containers each run a line of shell. */
export function podOf(
  containers: Readonly<Record<string, ContainerSketch>>,
  spec: Partial<PodSpec> & { readonly init?: Readonly<Record<string, ContainerSketch>> } = {},
  name = 'web',
): Pod {
  const { init, ...rest } = spec;
  return {
    metadata: { name, namespace: 'default', uid: podUid(`uid-${name}`) },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      containers: Object.entries(containers).map(containerOf),
      ...(init === undefined ? {} : { initContainers: Object.entries(init).map(containerOf) }),
      ...rest,
    },
    status: {},
  };
}

function containerOf([name, { script = 'sleep 100000', ...rest }]: readonly [
  string,
  ContainerSketch,
]): Container {
  return {
    name,
    image: busybox,
    imagePullPolicy: 'IfNotPresent',
    command: ['sh', '-c', script],
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    ...rest,
  };
}
