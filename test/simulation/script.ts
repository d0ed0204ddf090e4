import { pick, type Random, randomInt } from '../../src/lib/index.ts';
import type { FaultRates, RestartOptions } from '../simulator/index.ts';
import type { ClusterStep } from './cluster/cluster-steps.ts';
import type { DeviceStep } from './devices/device-world.ts';
import type { PressureStep } from './pressure/pressure-world.ts';
import type { PodSketch } from './sketch.ts';
import { type Feature, Sketcher } from './sketcher.ts';
import type { VolumeStep } from './volumes/volume-steps.ts';

/** One action in a simulation, such as an edit of a manifest or a kill of the kubelet. */
export type Step =
  | { readonly do: 'write'; readonly sketch: PodSketch }
  | { readonly do: 'remove'; readonly name: string }
  | { readonly do: 'spoil'; readonly name: string }
  | { readonly do: 'mend'; readonly name: string }
  | { readonly do: 'kill-kubelet'; readonly crossings: number }
  /**
   * Kills the kubelet at its next call of the given method, or the given number of calls and
   * responses later.
   */
  | { readonly do: 'kill-kubelet-at'; readonly method: string; readonly crossings: number }
  | { readonly do: 'stop-kubelet' }
  | { readonly do: 'start-kubelet' }
  | { readonly do: 'faults'; readonly rates: FaultRates }
  | { readonly do: 'drop-events' }
  | { readonly do: 'no-faults' }
  | { readonly do: 'disconnect' }
  | { readonly do: 'restart-runtime'; readonly options: RestartOptions }
  | { readonly do: 'crash-container'; readonly choice: number; readonly how: 'crash' | 'oom' }
  | { readonly do: 'crash-sandbox'; readonly choice: number }
  | { readonly do: 'network'; readonly state: 'ready' | 'not-ready' }
  | { readonly do: 'jump-clock'; readonly ms: number }
  | { readonly do: 'cluster'; readonly what: ClusterStep }
  | { readonly do: 'volumes'; readonly what: VolumeStep }
  | { readonly do: 'devices'; readonly what: DeviceStep }
  | { readonly do: 'pressure'; readonly what: PressureStep };

export interface TimedStep {
  readonly atMs: number;
  readonly step: Step;
}

/**
 * Which disturbances the actions of a seed contain: none, restarts of the kubelet, failures of the
 * runtime, or injected faults of calls; each value includes the previous ones.
 */
export type Trouble = 'none' | 'kubelet' | 'runtime' | 'faults';

export const troubles: readonly Trouble[] = ['none', 'kubelet', 'runtime', 'faults'];

/** What the actions of a seed must contain, in addition to the content drawn from the seed. */
export interface ScriptWishes {
  /** Properties that every generated pod gets; otherwise these properties are optional. */
  readonly always?: readonly Feature[] | undefined;
  /**
   * The runtime call at which the actions of the seed kill the kubelet; by default kubelets are
   * killed or stopped at random.
   */
  readonly killedAt?: DelicateCall | undefined;
}

/**
 * Generates the actions of one seed (its script) in the order of time. Equal random numbers give
 * equal scripts.
 */
export function writeScript(
  random: Random,
  trouble: Trouble,
  wishes: ScriptWishes = {},
): readonly TimedStep[] {
  const writer = new ScriptWriter(random, wishes);
  const spanMs = 20_000 + randomInt(random, 100_000);
  const names = Array.from({ length: 1 + randomInt(random, 6) }, (_, index) => `pod${index}`);
  for (const name of names) writer.pod(name, spanMs);
  if (random.next() < 0.15) writer.apiPod('remote', spanMs);
  const stages = troubles.slice(1, troubles.indexOf(trouble) + 1);
  for (const stage of stages) writer.trouble(stage, spanMs);
  return writer.steps();
}

/** Frequent kinds of runtime failures are listed twice, so that they are selected more often. */
const runtimeTroubles = [
  ...(['restart', 'restart', 'container', 'container'] as const),
  ...(['sandbox', 'network', 'disconnect', 'clock'] as const),
];

/** Runtime calls that start an operation that is not checkpointed yet. */
const delicateCalls = ['startContainer', 'startContainer', 'execSync', 'stopContainer', 'pullImage'] as const;
export type DelicateCall = (typeof delicateCalls)[number];

class ScriptWriter {
  readonly #random: Random;
  readonly #steps: TimedStep[] = [];
  readonly #sketcher: Sketcher;
  readonly #killedAt: DelicateCall | undefined;

  constructor(random: Random, { always = [], killedAt }: ScriptWishes) {
    this.#random = random;
    this.#sketcher = new Sketcher(random, always);
    this.#killedAt = killedAt;
  }

  steps(): readonly TimedStep[] {
    return this.#steps.toSorted((each, other) => each.atMs - other.atMs);
  }

  /** Adds the actions for one static pod: it is added, edited, removed and added again. */
  pod(name: string, spanMs: number): void {
    let atMs = this.#below(spanMs / 4);
    let sketch = this.#sketcher.pod(name);
    this.#add(atMs, { do: 'write', sketch });
    const changes = this.#whole(5);
    for (let change = 0; change < changes; change++) {
      atMs += this.#some([50, 2_000, spanMs / 3]);
      sketch = this.#change(name, sketch, atMs);
    }
  }

  /** Adds the actions for an API pod that gets one or two ephemeral containers. */
  apiPod(name: string, spanMs: number): void {
    let atMs = this.#below(spanMs / 4);
    let sketch = this.#sketcher.apiPod(name);
    this.#add(atMs, { do: 'write', sketch });
    for (let looks = 1 + this.#whole(2); looks > 0; looks--) {
      atMs += this.#some([50, 2_000, spanMs / 3]);
      sketch = this.#sketcher.withEphemeral(sketch);
      this.#add(atMs, { do: 'write', sketch });
    }
  }

  #change(name: string, before: PodSketch, atMs: number): PodSketch {
    const kind = this.#of(['edit', 'edit', 'remove', 'again', 'spoil', 'back'] as const);
    if (kind === 'remove') {
      this.#add(atMs, { do: 'remove', name });
      return before;
    }
    if (kind === 'spoil') {
      this.#add(atMs, { do: 'spoil', name });
      this.#add(atMs + this.#below(10_000), { do: 'mend', name });
      return before;
    }
    if (kind === 'again') {
      this.#add(atMs, { do: 'remove', name });
      this.#add(atMs + this.#some([20, 500, 8_000]), { do: 'write', sketch: before });
      return before;
    }
    const sketch = this.#sketcher.pod(name);
    this.#add(atMs, { do: 'write', sketch });
    if (kind === 'back') this.#add(atMs + this.#some([20, 500, 8_000]), { do: 'write', sketch: before });
    return kind === 'back' ? before : sketch;
  }

  trouble(kind: Trouble, spanMs: number): void {
    const times = 1 + this.#whole(3);
    for (let time = 0; time < times; time++) {
      const atMs = this.#below(spanMs);
      if (kind === 'kubelet') this.#troubleKubelet(atMs);
      else if (kind === 'runtime') this.#troubleRuntime(atMs);
      else this.#faults(atMs);
    }
  }

  #troubleKubelet(atMs: number): void {
    const kind = this.#killedAt
      ? 'kill-at'
      : this.#of(['stop', 'kill', 'kill', 'kill-at', 'kill-at'] as const);
    if (kind === 'stop') this.#add(atMs, { do: 'stop-kubelet' });
    if (kind === 'kill') this.#add(atMs, { do: 'kill-kubelet', crossings: this.#whole(60) });
    if (kind === 'kill-at') {
      const method = this.#killedAt ?? this.#of(delicateCalls);
      // The kill is scheduled in the first half of the time until `atMs`, because most critical
      // states occur while pods are added.
      this.#add(this.#below(atMs / 2), { do: 'kill-kubelet-at', method, crossings: 1 + this.#whole(3) });
    }
    this.#add(atMs + this.#some([1, 100, 15_000]), { do: 'start-kubelet' });
  }

  #troubleRuntime(atMs: number): void {
    const step = this.#runtimeTrouble();
    this.#add(atMs, step);
    if (step.do === 'network') this.#add(atMs + this.#below(20_000), { do: 'network', state: 'ready' });
  }

  #runtimeTrouble(): Step {
    const choice = this.#random.next();
    switch (this.#of(runtimeTroubles)) {
      case 'restart':
        return { do: 'restart-runtime', options: this.#restart() };
      case 'container':
        return { do: 'crash-container', choice, how: this.#of(['crash', 'oom'] as const) };
      case 'sandbox':
        return { do: 'crash-sandbox', choice };
      case 'network':
        return { do: 'network', state: 'not-ready' };
      case 'disconnect':
        return { do: 'disconnect' };
      case 'clock':
        return { do: 'jump-clock', ms: this.#of([-3_600_000, 3_600_000, -1_000, 1_000]) };
    }
  }

  #restart(): RestartOptions {
    const downMs = this.#some([10, 2_000, 60_000]);
    const state = this.#of(['kept', 'kept', 'kept', 'unknown', 'lost'] as const);
    const processes = state === 'kept' ? this.#of(['kept', 'kept', 'killed'] as const) : 'kept';
    return { state, processes, downMs };
  }

  #faults(atMs: number): void {
    const upTo = (most: number) => (this.#random.next() < 0.5 ? 0 : this.#random.next() * most);
    if (this.#random.next() < 0.2) this.#add(atMs, { do: 'drop-events' });
    else {
      const rates: FaultRates = {
        delay: upTo(0.3),
        error: upTo(0.2),
        hang: upTo(0.03),
        lostReply: upTo(0.1),
        lateEffect: upTo(0.1),
        eventDropped: upTo(0.3),
        eventLate: upTo(0.3),
        eventDuplicated: upTo(0.3),
        streamCut: upTo(0.1),
      };
      this.#add(atMs, { do: 'faults', rates });
    }
    this.#add(atMs + this.#below(40_000), { do: 'no-faults' });
  }

  #add(atMs: number, step: Step): void {
    this.#steps.push({ atMs, step });
  }

  #below(bound: number): number {
    return this.#random.next() * bound;
  }

  #whole(bound: number): number {
    return randomInt(this.#random, bound);
  }

  /** A random number below one of the bounds, which is selected randomly. */
  #some(bounds: readonly number[]): number {
    return this.#below(this.#of(bounds));
  }

  #of<T>(items: readonly T[]): T {
    return pick(this.#random, items) as T;
  }
}
