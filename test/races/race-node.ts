import assert from 'node:assert/strict';
import { type CriClient, createCriClient } from '../../src/cri/index.ts';
import type { Kubelet, KubeletSettings, NodeMachine } from '../../src/kubelet/index.ts';
import { seededRandom } from '../../src/lib/index.ts';
import { type Pod, type PodFullName, type PodUid, podUid } from '../../src/pods/index.ts';
import type { ClusterWorld } from '../simulation/cluster/cluster-world.ts';
import { Desk } from '../simulation/desk.ts';
import { leftovers } from '../simulation/end-state.ts';
import { allRules, type Rule } from '../simulation/invariants/index.ts';
import type { KubeletLife } from '../simulation/kubelet-life.ts';
import { manifestPath, nodeName } from '../simulation/manifests.ts';
import { prepareSimulation } from '../simulation/simulate.ts';
import { type Witness, World } from '../simulation/world.ts';
import type { TraceEntry } from '../simulator/index.ts';

/** A call of the kubelet to the runtime, the file system or the cgroups. */
export interface Call {
  readonly part: 'cri' | 'files' | 'cgroups';
  readonly method: string;
  readonly args: readonly unknown[];
}

/**
 * Delays or fails calls of the kubelet: the call waits for the returned promise and fails when it
 * rejects.
 */
export interface Toll {
  readonly before?: (call: Call) => Promise<void> | undefined;
  /** Delays the response after the call has taken effect. */
  readonly after?: (call: Call) => Promise<void> | undefined;
}

export interface RaceOptions {
  readonly settings?: Partial<KubeletSettings>;
  readonly machine?: Partial<NodeMachine>;
  /** Names of simulation rules that the test violates on purpose. */
  readonly tolerates?: readonly string[];
  /** Whether the rules of the simulation are checked, which takes too long with very many pods. */
  readonly rules?: 'checked' | 'unchecked';
  /** Whether the node belongs to a cluster with its own API server; by default it is standalone. */
  readonly cluster?: 'joined' | 'alone';
  /**
   * Whether the kubelet caches API objects for a start without the API server; by default it does
   * not.
   */
  readonly copies?: 'kept' | undefined;
}

export type Happened = TraceEntry & { readonly atMs: number };

export interface RuntimeCall {
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
  readonly atMs: number;
}

/**
 * A complete kubelet on a simulated node under virtual time; the test can delay and fail all calls
 * of the kubelet to the node.
 */
export class RaceNode implements Witness, AsyncDisposable {
  readonly world: World;
  readonly happened: Happened[] = [];
  /** The runtime calls that change state. */
  readonly calls: RuntimeCall[] = [];
  toll: Toll = {};
  readonly #rules: readonly Rule[];
  readonly #problems: string[] = [];
  readonly #tolerates: readonly string[];

  static async start(options: RaceOptions = {}): Promise<RaceNode> {
    await prepareSimulation();
    const node = new RaceNode(options);
    await node.world.startKubelet();
    await node.pass(100);
    return node;
  }

  private constructor(options: RaceOptions) {
    this.#tolerates = options.tolerates ?? [];
    this.world = new World(
      {
        seed: 1,
        logs: 'kept',
        settings: options.settings,
        cluster:
          options.cluster === 'joined'
            ? { random: seededRandom(1), skewMs: 0, copies: options.copies }
            : undefined,
        aroundCri: (client) => this.#around('cri', client),
        aroundMachine: (machine) => ({
          ...machine,
          files: this.#around('files', machine.files),
          cgroups: this.#around('cgroups', machine.cgroups),
          ...options.machine,
        }),
      },
      this,
    );
    const { clock, runtime } = this.world;
    const rules = allRules({
      desk: new Desk(() => clock.monotonicMs()),
      runtime,
      nowMs: () => clock.monotonicMs(),
      kubelet: () => this.world.life?.kubelet,
      isDamaged: () => false,
      isUncertain: () => false,
      report: (rule, what) => this.#problems.push(`${rule}: ${what}`),
    });
    this.#rules = options.rules === 'unchecked' ? [] : rules;
  }

  get kubelet(): Kubelet {
    const { life } = this.world;
    assert.ok(life !== undefined, 'no kubelet runs');
    return life.kubelet;
  }

  get cluster(): ClusterWorld {
    const { cluster } = this.world;
    assert.ok(cluster !== undefined, 'the node is alone');
    return cluster;
  }

  get nowMs(): number {
    return this.world.clock.monotonicMs();
  }

  /** Replaces a manifest atomically, as a rename does. */
  write(name: string, text: string | Uint8Array): void {
    this.world.manifests.replace(manifestPath(name), text);
  }

  remove(name: string): void {
    this.world.remove(name);
  }

  /** Sets the pods that the API source delivers. */
  api(...pods: readonly Pod[]): void {
    this.kubelet.state.config.set('api', pods);
  }

  async pass(ms: number): Promise<void> {
    await this.world.clock.advance(ms);
  }

  /**
   * Advances virtual time until the condition holds, and fails at the limit; resolves with the
   * elapsed milliseconds.
   */
  async until(what: string, condition: () => boolean, limitMs = 60_000): Promise<number> {
    const startMs = this.nowMs;
    if (await this.world.clock.advanceUntil(condition, limitMs)) return this.nowMs - startMs;
    const history = this.world.history.slice(-60).join('\n');
    return assert.fail(`Not within ${limitMs} ms: ${what}\n${history}`);
  }

  /** Advances virtual time until the promise is settled. */
  async settled<T>(promise: Promise<T>, limitMs = 60_000): Promise<T> {
    let over = false;
    const done = promise.finally(() => {
      over = true;
    });
    done.catch(() => {});
    await this.until('something ends', () => over, limitMs);
    return await done;
  }

  /** The currently desired static pod with this name. */
  podOf(name: string): Pod | undefined {
    const { pods } = this.kubelet.state;
    return pods.getPodByFullName(`${name}-${nodeName}_default` as PodFullName);
  }

  async uidOf(name: string): Promise<PodUid> {
    await this.until(`${name} is wanted`, () => this.podOf(name) !== undefined);
    return this.podOf(name)?.metadata.uid ?? podUid('');
  }

  /** The names of the pod's containers that run according to the runtime. */
  running(uid: string): readonly string[] {
    return this.world.runtime.runningContainers().flatMap((each) => (each.podUid === uid ? [each.name] : []));
  }

  async runs(uid: string, limitMs?: number): Promise<number> {
    return await this.until(`${uid} runs`, () => this.running(uid).length > 0, limitMs);
  }

  /** Writes a manifest and waits until its pod runs. */
  async runsStatic(name: string, text: string): Promise<PodUid> {
    this.write(name, text);
    await this.pass(500);
    const uid = await this.uidOf(name);
    await this.runs(uid);
    await this.pass(1_000);
    return uid;
  }

  /** Whether the machine holds no state of any pod except the given ones. */
  async isClean(...but: readonly string[]): Promise<boolean> {
    return (await leftovers(this.world, new Set(but))).length === 0;
  }

  async becomesClean(limitMs: number, ...but: readonly string[]): Promise<number> {
    const startMs = this.nowMs;
    while (!(await this.isClean(...but))) {
      const left = await leftovers(this.world, new Set(but));
      if (this.nowMs - startMs > limitMs) assert.fail(`Left after ${limitMs} ms: ${left.join(', ')}`);
      await this.pass(250);
    }
    return this.nowMs - startMs;
  }

  of(uid: string, ...kinds: readonly TraceEntry['kind'][]): readonly Happened[] {
    return this.happened.filter(
      (entry) =>
        'podUid' in entry && entry.podUid === uid && (kinds.length === 0 || kinds.includes(entry.kind)),
    );
  }

  /** The reasons of the pod's events, once per occurrence. */
  events(uid: string): readonly string[] {
    return this.kubelet.state.flights
      .find(uid)
      .flatMap(({ entries }) => entries.flatMap((entry) => (entry.is === 'event' ? [entry.reason] : [])));
  }

  phase(uid: PodUid): string | undefined {
    return this.kubelet.state.statuses.getPodStatus(uid)?.phase;
  }

  restartCount(uid: PodUid): number | undefined {
    return this.kubelet.state.statuses.getPodStatus(uid)?.containerStatuses?.[0]?.restartCount;
  }

  /** The number of log records whose message contains the text. */
  logged(message: string): number {
    const records = this.world.logs?.records.toArray() ?? [];
    return records.filter((record) => record.message.includes(message)).length;
  }

  /** A runtime client that bypasses the kubelet. */
  behindTheBack(): CriClient {
    return createCriClient({ transport: this.world.runtime.transport(), clock: this.world.clock });
  }

  async restartKubelet(whileDown: () => void | Promise<void> = () => {}): Promise<void> {
    this.world.killKubelet();
    await this.pass(1_000);
    await whileDown();
    await this.world.startKubelet();
    await this.pass(100);
  }

  entry(entry: TraceEntry): void {
    this.happened.push({ ...entry, atMs: this.nowMs });
    for (const rule of this.#rules) rule.entry?.(entry);
  }

  calling(method: string, request: unknown): void {
    if (/^(run|create|start|stop|remove|pull)/.test(method))
      this.calls.push({ method, request: request as RuntimeCall['request'], atMs: this.nowMs });
    for (const rule of this.#rules) rule.calling?.(method, request);
  }

  kubeletStarted(life: KubeletLife): void {
    for (const rule of this.#rules) rule.kubeletStarted?.(life);
  }

  kubeletGone(): void {}

  kubeletEnded(error: unknown): void {
    this.#problems.push(`the kubelet ended: ${String(error)}`);
  }

  bug(method: string, error: unknown): void {
    this.#problems.push(`a bug in ${method}: ${String(error)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.world.killKubelet();
    this.world.runtime.close();
    this.world.cluster?.api.close();
    const broken = this.#problems.filter(
      (problem) => !this.#tolerates.some((rule) => problem.startsWith(rule)),
    );
    assert.deepEqual(broken, []);
  }

  #around<T extends object>(part: Call['part'], target: T): T {
    return new Proxy(target, {
      get: (inner, name) => {
        const value: unknown = Reflect.get(inner, name);
        if (typeof value !== 'function') return value;
        return (...args: readonly unknown[]) =>
          this.#passing({ part, method: String(name), args }, () => Reflect.apply(value, inner, args));
      },
    });
  }

  #passing(call: Call, act: () => unknown): unknown {
    const held = this.toll.before?.(call);
    const response = held === undefined ? act() : held.then(act);
    const late = this.toll.after;
    if (late === undefined || !(response instanceof Promise)) return response;
    return response.then(async (value: unknown) => {
      await late(call);
      return value;
    });
  }
}
