import { createHash } from 'node:crypto';
import { pick, type Random, randomInt, readYaml, seededRandom } from '../../src/lib/index.ts';
import type { StoreChange } from '../../src/local-api/storage/versioned-store.ts';
import { randomFaults, scriptedFaults, type TraceEntry } from '../simulator/index.ts';
import { clusterOf, withCluster } from './cluster/cluster-script.ts';
import { Scenario } from './cluster/scenario.ts';
import { Desk } from './desk.ts';
import { withDevices } from './devices/device-world.ts';
import { isFarFromDeadline, leftovers, remembered, unsettled } from './end-state.ts';
import { allRules, type ClusterParts, type Rule } from './invariants/index.ts';
import type { KubeletLife } from './kubelet-life.ts';
import { uidOf } from './manifests.ts';
import { mayBeProbedToDeath, outcomeOf } from './outcome.ts';
import { withPressure } from './pressure/pressure-script.ts';
import { withResizes } from './resizes/resize-script.ts';
import {
  type ScriptWishes,
  type Step,
  type TimedStep,
  type Trouble,
  troubles,
  writeScript,
} from './script.ts';
import type { SeedOptions, SeedResult } from './seed-options.ts';
import { updateInPeace } from './volumes/peaceful-updates.ts';
import { withVolumeTrouble } from './volumes/volume-script.ts';
import { type Witness, World } from './world.ts';

const settleMs = 30 * 60_000;
const emptyMs = 10 * 60_000;
const lookMs = 1_000;
const quietMs = 70_000;
/** The time within which all pods whose termination was requested have terminated. */
const calmMs = 35_000;

/** Loads lazily loaded modules before a simulation, because loading takes real time. */
export async function prepareSimulation(): Promise<void> {
  await readYaml('kind: Pod');
  await import('../../src/resources/devices/index.ts');
  await import('../../src/pods/validation/index.ts');
}

/** Simulates one seed. */
export async function simulate(seed: number, options: SeedOptions = {}): Promise<SeedResult> {
  const run = new SeedRun(seed, options);
  try {
    await run.play();
  } catch (error) {
    if (!(error instanceof Violated)) throw error;
  } finally {
    run.close();
  }
  return run.result();
}

/** Thrown to end a simulation when a rule is violated. */
class Violated extends Error {}

class SeedRun {
  readonly #seed: number;
  readonly #patienceMs: number;
  readonly #random: Random;
  readonly #trouble: Trouble;
  readonly #wishes: ScriptWishes;
  readonly #world: World;
  readonly #desk: Desk;
  readonly #rules: readonly Rule[];
  readonly #scenario: Scenario | undefined;
  /**
   * Separate random generators, so that seeds without a cluster replay as before clusters were
   * added.
   */
  readonly #clusterRandom: Random;
  readonly #volumeRandom: Random;
  readonly #deviceRandom: Random;
  /** The random generator of resizes; undefined if no pod is resized. */
  readonly #resizeRandom: Random | undefined;
  readonly #pressureRandom: Random;
  readonly #violations: string[] = [];
  /** Pods affected by runtime failures, which may have to be recreated. */
  readonly #damaged = new Set<string>();
  /** Pods with a container that exited differently from the pod's generated description. */
  readonly #disturbed = new Set<string>();
  /** Pods whose status and containers must not change at the moment. */
  #quiet: ReadonlySet<string> = new Set();
  #faulty: 'no' | 'events' | 'calls' = 'no';
  #uncertain = false;
  /** The runtime call at which the kubelet will be killed. */
  #fuse: { readonly method: string; readonly crossings: number } | undefined;

  constructor(seed: number, options: SeedOptions) {
    this.#seed = seed;
    this.#patienceMs = options.patienceMs ?? settleMs;
    this.#random = seededRandom(seed * 2 + 1);
    this.#trouble = options.trouble ?? troubles[seed % troubles.length] ?? 'none';
    this.#wishes = options;
    const maxRestartWaitMs = seed % 3 === 0 ? 300_000 : 60_000;
    const flavour = this.#random.next() < 0.5 ? 'containerd-1.6' : 'containerd-2';
    this.#clusterRandom = seededRandom(seed * 7 + 3);
    const cluster = clusterOf(this.#clusterRandom, options.cluster ?? 'alone');
    this.#volumeRandom = seededRandom(seed * 11 + 5);
    this.#resizeRandom = options.resizes && seededRandom(seed * 19 + 13);
    const volumes = cluster && options.volumes && { random: this.#volumeRandom };
    this.#deviceRandom = seededRandom(seed * 13 + 7);
    const devices = options.devices && { random: this.#deviceRandom };
    const settings = { maxRestartWaitMs };
    const scarceDisk = options.disk && { random: seededRandom(seed * 17 + 11) };
    const pressure = cluster && options.pressure;
    this.#pressureRandom = seededRandom(seed * 23 + 17);
    const parts = { cluster, volumes, devices, scarceDisk, pressure };
    this.#world = new World({ ...options, seed, flavour, settings, ...parts }, this);
    this.#desk = new Desk(() => this.#world.clock.monotonicMs());
    this.#rules = allRules({
      desk: this.#desk,
      runtime: this.#world.runtime,
      nowMs: () => this.#world.clock.monotonicMs(),
      kubelet: () => this.#world.life?.kubelet,
      isDamaged: (uid) => this.#faulty === 'calls' || this.#damaged.has(uid),
      isUncertain: () => this.#uncertain,
      maxRestartWaitMs,
      cluster: this.#clusterParts(),
      volumes: this.#world.volumes,
      logs: this.#world.scarceDisk && this.#world.files,
      devices: this.#world.devices,
      report: (rule, what) => this.#report(rule, what),
    });
    this.#scenario = this.#makeScenario();
  }

  async play(): Promise<void> {
    const script = this.#script();
    const isAlone = this.#world.cluster === undefined;
    if (isAlone && script.some(({ step }) => step.do === 'write' && step.sketch.source === 'api'))
      this.#world.api.open();
    await this.#world.startKubelet();
    for (const { atMs, step } of script) {
      await this.#advance(Math.max(0, atMs - this.#world.clock.monotonicMs()));
      await this.#take(step);
    }
    await this.#heal();
    await this.#settle();
    await this.#advance(calmMs);
    await this.#settle();
    await updateInPeace({
      world: this.#world,
      random: this.#volumeRandom,
      pass: (ms) => this.#advance(ms),
      known: (uid) => this.#desk.known(uid),
      until: (...options) => this.#until(...options),
    });
    await this.#restartInPeace();
    await this.#empty();
    await this.#end();
  }

  close(): void {
    this.#quiet = new Set();
    this.#world.killKubelet();
    this.#world.cluster?.api.close();
    this.#world.volumes?.close();
    this.#world.runtime.close();
  }

  result(): SeedResult {
    const { history, clock, logs } = this.#world;
    const hash = createHash('sha256').update(history.join('\n')).digest('hex');
    return {
      seed: this.#seed,
      violations: this.#violations,
      history,
      hash,
      virtualMs: clock.monotonicMs(),
      logs,
    };
  }

  entry(entry: TraceEntry): void {
    for (const rule of this.#rules) rule.entry?.(entry);
    const isGarbage = entry.kind === 'container-removed' || entry.kind === 'sandbox-removed';
    if ('podUid' in entry && this.#quiet.has(entry.podUid) && !isGarbage)
      this.#report('a restart of the kubelet starts and stops nothing', `${entry.kind} of ${entry.podUid}`);
  }

  calling(method: string, request: unknown): void {
    if (this.#fuse?.method === method) this.#world.life?.killSoon(this.#fuse.crossings);
    if (this.#fuse?.method === method) this.#fuse = undefined;
    for (const rule of this.#rules) rule.calling?.(method, request);
  }

  readonly answered: NonNullable<Witness['answered']> = (request, answer) => {
    // An interrupted hook counts as failed, so its container may be killed.
    const owner = this.#world.runtime.containers().find(({ id }) => id === request.containerId);
    if (answer === undefined && owner !== undefined) this.#disturbed.add(owner.podUid);
    for (const rule of this.#rules) rule.answered?.(request, answer);
  };

  readonly probed: NonNullable<Witness['probed']> = (question, answer) => {
    for (const rule of this.#rules) rule.probed?.(question, answer);
  };

  kubeletStarted(life: KubeletLife): void {
    for (const rule of this.#rules) rule.kubeletStarted?.(life);
  }

  kubeletGone(): void {}

  apiChanged(change: StoreChange): void {
    this.#scenario?.changed(change);
    for (const rule of this.#rules) rule.apiChanged?.(change);
  }

  volumeChanging(method: string, path: string): void {
    for (const rule of this.#rules) rule.volumeChanging?.(method, path);
  }

  broken(rule: string, what: string): void {
    this.#report(rule, what);
  }

  kubeletEnded(error: unknown): void {
    this.#report('the kubelet runs until it is told to stop', String(error));
  }

  bug(method: string, error: unknown): void {
    this.#report('the simulator has no bugs', `${method}: ${String(error)}`);
  }

  #report(rule: string, what: string): void {
    const text = `${rule}: ${what}`;
    this.#world.note(`VIOLATED ${text}`);
    this.#violations.push(text);
  }

  async #advance(ms: number): Promise<void> {
    await this.#world.clock.advance(ms);
    if (this.#violations.length > 0) throw new Violated();
  }

  async #take(step: Step): Promise<void> {
    const environment = this.#world;
    switch (step.do) {
      case 'cluster':
        return this.#scenario?.take(step.what);
      case 'volumes':
        environment.note(`volumes: ${JSON.stringify(step.what)}`);
        return environment.cluster && environment.volumes?.take(step.what, environment.cluster.api);
      case 'devices':
        environment.note(`devices: ${JSON.stringify(step.what)}`);
        return environment.devices?.take(step.what);
      case 'pressure':
        environment.note(`pressure: ${JSON.stringify(step.what)}`);
        return environment.pressure?.take(step.what);
      case 'write':
        if (this.#scenario !== undefined && step.sketch.source === 'api')
          return this.#desk.sketchOf(step.sketch.name) === undefined
            ? this.#scenario.create(step.sketch)
            : this.#scenario.edit(step.sketch);
        // The pod may now differ from its generated description, because some restart policies do
        // not restart a container that has run before.
        if (this.#desk.known(uidOf(step.sketch)) !== undefined && step.sketch.ephemeral === undefined)
          this.#disturbed.add(uidOf(step.sketch));
        this.#desk.write(step.sketch);
        return environment.write(step.sketch);
      case 'remove':
        this.#desk.remove(step.name);
        return environment.remove(step.name);
      case 'spoil':
        if (this.#desk.sketchOf(step.name) === undefined) return;
        this.#desk.spoil(step.name);
        return environment.writeBroken(step.name);
      case 'mend':
        return this.#mend(step.name);
      case 'kill-kubelet':
        if (step.crossings === 0) return environment.killKubelet();
        return environment.life?.killSoon(step.crossings);
      case 'kill-kubelet-at':
        this.#fuse = step;
        return;
      case 'stop-kubelet':
        void environment.life?.stop();
        return;
      case 'start-kubelet':
        this.#fuse = undefined;
        environment.killKubelet();
        return await environment.startKubelet();
      case 'faults':
        this.#faulty = 'calls';
        this.#uncertain = true;
        return environment.setFaults(
          randomFaults({ random: this.#random, rates: step.rates }),
          JSON.stringify(step.rates),
        );
      case 'drop-events':
        return environment.setFaults(
          scriptedFaults({ events: [{ topic: '*', fault: { kind: 'drop' } }] }),
          'no event arrives',
        );
      case 'no-faults':
        return this.#endFaults();
      case 'disconnect':
        this.#uncertain = true;
        return environment.runtime.disconnect();
      case 'restart-runtime':
        this.#uncertain = true;
        if (step.options.state !== 'kept' || step.options.processes === 'killed') this.#lose();
        return environment.restartRuntime(step.options);
      case 'crash-container':
        return this.#crashContainer(step.choice, step.how);
      case 'crash-sandbox':
        return this.#crashSandbox(step.choice);
      case 'network':
        environment.note(`network: ${step.state}`);
        return environment.runtime.setNetworkReady(step.state);
      case 'jump-clock':
        environment.note(`clock: jumps by ${step.ms} ms`);
        for (const rule of this.#rules) rule.clockJumped?.();
        return environment.clock.jumpWall(step.ms);
    }
  }

  /** Restores the manifest as it was before it was made invalid. */
  #mend(name: string): void {
    const sketch = this.#desk.sketchOf(name);
    if (sketch === undefined || !this.#desk.isBroken(name)) return;
    this.#desk.restore(name);
    this.#world.write(sketch);
  }

  #lose(): void {
    for (const rule of this.#rules) rule.runtimeLost?.();
    this.#damageAll();
  }

  #damageAll(): void {
    for (const uid of this.#desk.everyUid()) {
      this.#damaged.add(uid);
      this.#disturbed.add(uid);
    }
  }

  #endFaults(): void {
    if (this.#faulty === 'calls') this.#damageAll();
    this.#faulty = 'no';
    this.#world.setFaults(undefined, 'none');
  }

  #crashContainer(choice: number, how: 'crash' | 'oom'): void {
    const victim = pick({ next: () => choice }, this.#world.runtime.runningContainers());
    if (victim === undefined) return;
    this.#disturbed.add(victim.podUid);
    if (how === 'oom') this.#world.runtime.oomKillContainer(victim.id);
    else this.#world.runtime.crashContainer(victim.id, 3);
  }

  #crashSandbox(choice: number): void {
    const victim = pick(
      { next: () => choice },
      this.#world.runtime.sandboxes().filter(({ running }) => running),
    );
    if (victim === undefined) return;
    this.#disturbed.add(victim.podUid);
    this.#damaged.add(victim.podUid);
    this.#world.runtime.crashSandbox(victim.id);
  }

  async #heal(): Promise<void> {
    this.#world.note('all is healed');
    this.#endFaults();
    this.#world.runtime.setNetworkReady('ready');
    this.#world.runtime.comeUp();
    for (const name of this.#desk.names()) this.#mend(name);
    this.#world.cluster?.heal();
    this.#world.volumes?.heal();
    this.#world.devices?.heal();
    this.#world.pressure?.heal();
    await this.#world.startKubelet();
  }

  async #settle(): Promise<void> {
    await this.#until(this.#patienceMs, 'what is wanted comes to be', async () => {
      const uids = new Set(this.#desk.wanted().map(({ uid }) => uid));
      return [...this.#unsettled(), ...(await leftovers(this.#world, uids)), ...this.#unlikeTheNode()];
    });
    for (const rule of this.#rules) rule.settled?.();
  }

  #unsettled(): readonly string[] {
    return this.#desk
      .wanted()
      .flatMap(({ uid, sketch }) =>
        unsettled(this.#world, uid, sketch, this.#disturbed.has(uid) ? 'disturbed' : 'left-alone'),
      );
  }

  /** Restarts the kubelet without other changes, which must not affect running containers. */
  async #restartInPeace(): Promise<void> {
    const stable = this.#desk
      .wanted()
      .filter(({ sketch }) => outcomeOf(sketch) !== 'never-settles' && !mayBeProbedToDeath(sketch))
      .filter(({ uid, sketch }) => unsettled(this.#world, uid, sketch, 'left-alone').length === 0)
      .filter(({ uid, sketch }) => !isFarFromDeadline(this.#world, uid, sketch));
    this.#quiet = new Set(stable.map(({ uid }) => uid));
    if (this.#random.next() < 0.5) this.#world.killKubelet();
    else await this.#stop();
    await this.#advance(randomInt(this.#random, 5_000));
    await this.#world.startKubelet();
    await this.#advance(quietMs);
    await this.#settle();
    this.#quiet = new Set();
  }

  async #empty(): Promise<void> {
    this.#world.note('all manifests go');
    for (const name of this.#desk.names()) {
      if (this.#desk.sketchOf(name)?.source === 'api' && this.#scenario !== undefined) {
        this.#scenario.remove(name);
        continue;
      }
      this.#desk.remove(name);
      this.#world.remove(name);
    }
    await this.#until(emptyMs, 'an empty node holds nothing', async () => [
      ...(await leftovers(this.#world, new Set())),
      ...remembered(this.#world),
      ...this.#unlikeTheNode(),
    ]);
  }

  async #end(): Promise<void> {
    await this.#stop();
    const { runtime, clock } = this.#world;
    const held = Object.entries(runtime.held()).filter(([, count]) => count > 0);
    for (const [what, count] of held) this.#report('an empty node holds nothing', `${count} ${what}`);
    runtime.close();
    const { api } = this.#world.cluster ?? {};
    for (const [what, count] of Object.entries(api?.held() ?? {}))
      if (count > 0) this.#report('nobody talks to the API who is gone', `${count} ${what}`);
    api?.close();
    this.#world.volumes?.close();
    if (clock.pendingTimers > 0) this.#report('no timer is left', `${clock.pendingTimers} are`);
    if (this.#violations.length > 0) throw new Violated();
  }

  async #stop(): Promise<void> {
    const left = await this.#world.stopKubelet();
    if (left !== undefined) this.#report('a kubelet that stops leaves nothing behind', left);
    if (this.#violations.length > 0) throw new Violated();
  }

  #clusterParts(): ClusterParts | undefined {
    const { cluster: environment, machine, cgroups } = this.#world;
    return environment && { world: environment, machine, cgroups, isQuiet: (uid) => this.#quiet.has(uid) };
  }

  #makeScenario(): Scenario | undefined {
    const { cluster, clock, network } = this.#world;
    if (cluster === undefined) return undefined;
    return new Scenario({
      cluster,
      clock,
      desk: this.#desk,
      random: this.#clusterRandom,
      met: (sketch) => network.meet(sketch),
      disturbed: (uid) => {
        this.#damaged.add(uid);
        this.#disturbed.add(uid);
        for (const rule of this.#rules) rule.edited?.(uid);
      },
      note: (what) => this.#world.note(what),
    });
  }

  #script(): readonly TimedStep[] {
    const plain = writeScript(this.#random, this.#trouble, this.#wishes);
    const script = this.#world.devices === undefined ? plain : withDevices(this.#deviceRandom, plain);
    if (this.#scenario === undefined) return script;
    const joined = withCluster(this.#clusterRandom, script);
    const all = this.#resizeRandom === undefined ? joined : withResizes(this.#resizeRandom, joined);
    const mounted = this.#world.volumes === undefined ? all : withVolumeTrouble(this.#volumeRandom, all);
    return this.#world.pressure === undefined ? mounted : withPressure(this.#pressureRandom, mounted);
  }

  #unlikeTheNode(): readonly string[] {
    const { life, runtime } = this.#world;
    return this.#scenario?.unlikeTheNode(life?.kubelet, runtime.runningContainers()) ?? [];
  }

  async #until(limitMs: number, rule: string, open: () => Promise<readonly string[]>): Promise<void> {
    for (let passedMs = 0; ; passedMs += lookMs) {
      const problems = await open();
      if (problems.length === 0) return;
      if (passedMs >= limitMs) {
        for (const problem of problems) this.#report(rule, problem);
        throw new Violated();
      }
      await this.#advance(lookMs);
    }
  }
}
