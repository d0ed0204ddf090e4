import { pick, type Random, randomInt } from '../../../src/lib/index.ts';
import type { ApiFaultRates } from '../../simulator/index.ts';
import type { TimedStep } from '../script.ts';
import { images } from '../sketch.ts';
import { Sketcher } from '../sketcher.ts';
import type { ClusterStep } from './cluster-steps.ts';
import type { ClusterWorldOptions } from './cluster-world.ts';

const kinds = [
  ...(['label', 'new-image', 'look-into', 'call-unready', 'delete', 'delete'] as const),
  ...(['force', 'replace', 'replace', 'force-replace'] as const),
];

const troubles = [
  ...(['faults', 'faults', 'away', 'away', 'flapping'] as const),
  ...(['slow', 'compact', 'cut', 'node', 'mirror', 'kill', 'kill'] as const),
];

const skews = [0, 0, -90_000, 90_000, 1_500];

export function clusterOf(
  random: Random,
  options: 'joined' | 'alone',
): Pick<ClusterWorldOptions, 'random' | 'skewMs'> | undefined {
  // A random number is drawn even for a standalone node, so that existing seeds replay as before.
  random.next();
  if (options === 'alone') return undefined;
  return { random, skewMs: pick(random, skews) ?? 0 };
}

/**
 * Adds changes that users and controllers make through the API, and API failures, to the actions of
 * a simulated seed.
 */
export function withCluster(random: Random, script: readonly TimedStep[]): readonly TimedStep[] {
  const spanMs = Math.max(60_000, script.at(-1)?.atMs ?? 0);
  const isCalm = random.next() < 0.3;
  const writer = new ClusterScriptWriter(random, spanMs);
  const pods = 1 + randomInt(random, 4);
  for (let pod = 0; pod < pods; pod++) writer.pod(`api${pod}`);
  if (!isCalm) for (let times = 1 + randomInt(random, 4); times > 0; times--) writer.trouble();
  return [...script, ...writer.steps()].toSorted((each, other) => each.atMs - other.atMs);
}

class ClusterScriptWriter {
  readonly #random: Random;
  readonly #spanMs: number;
  readonly #sketcher: Sketcher;
  readonly #steps: TimedStep[] = [];

  constructor(random: Random, spanMs: number) {
    this.#random = random;
    this.#spanMs = spanMs;
    this.#sketcher = new Sketcher(random);
  }

  steps(): readonly TimedStep[] {
    return this.#steps.toSorted((each, other) => each.atMs - other.atMs);
  }

  pod(name: string): void {
    let atMs = this.#below(this.#spanMs / 4);
    this.#add(atMs, { do: 'create', sketch: this.#sketcher.apiPod(name) });
    for (let changes = this.#whole(5); changes > 0; changes--) {
      atMs += this.#below(this.#of([50, 2_000, this.#spanMs / 3]));
      this.#change(name, atMs);
    }
  }

  #change(name: string, atMs: number): void {
    const next = this.#sketcher.apiPod(name);
    const container = { name: 'debug', image: images.present, ...this.#visit() };
    switch (this.#of(kinds)) {
      case 'label':
        this.#add(atMs, { do: 'label', name, value: String(this.#whole(1_000)) });
        break;
      case 'call-unready':
        this.#add(atMs, { do: 'call-unready', name });
        break;
      case 'new-image':
        this.#add(atMs, { do: 'new-image', name });
        break;
      case 'look-into':
        this.#add(atMs, { do: 'look-into', name, container });
        break;
      case 'delete':
        this.#add(atMs, { do: 'delete', name, grace: this.#of([undefined, undefined, 1, 10]) });
        // Some pods are recreated later, whether or not the previous pod is completely removed.
        if (this.#random.next() < 0.5) this.#add(atMs + this.#below(60_000), { do: 'create', sketch: next });
        break;
      case 'force':
        this.#add(atMs, { do: 'delete', name, grace: 0 });
        break;
      case 'replace':
        this.#add(atMs, { do: 'delete', name, next });
        break;
      case 'force-replace':
        this.#add(atMs, { do: 'delete', name, grace: 0, next });
        break;
    }
  }

  #visit(): { readonly runMs?: number; readonly exitCode?: number } {
    return this.#random.next() < 0.5 ? {} : { runMs: this.#below(5_000), exitCode: this.#whole(2) };
  }

  trouble(): void {
    const atMs = this.#below(this.#spanMs);
    const forMs = this.#below(this.#of([2_000, 20_000, 90_000]));
    switch (this.#of(troubles)) {
      case 'faults':
        this.#add(atMs, { do: 'faults', rates: this.#rates(), maxDelayMs: this.#of([50, 5_000]) });
        this.#add(atMs + forMs, { do: 'no-faults' });
        break;
      case 'slow':
        this.#add(atMs, { do: 'faults', rates: { delay: 1 }, maxDelayMs: 4_000 });
        this.#add(atMs + forMs, { do: 'no-faults' });
        break;
      case 'away':
        this.#away(atMs, forMs);
        break;
      case 'flapping':
        for (let time = 0; time < 5; time++) this.#away(atMs + time * 3_000, this.#below(3_000));
        break;
      case 'compact':
        this.#add(atMs, { do: 'compact' });
        break;
      case 'cut':
        this.#add(atMs, { do: 'cut-watches' });
        break;
      case 'node':
        this.#add(atMs, { do: 'delete-node' });
        break;
      case 'kill':
        this.#kill(atMs, forMs);
        break;
      case 'mirror':
        this.#add(atMs, {
          do: 'delete-mirror',
          name: `pod${this.#whole(3)}`,
          grace: this.#of([undefined, 0]),
        });
        break;
    }
  }

  /** Kills the kubelet between sending a request to the API and receiving its watch events. */
  #kill(atMs: number, forMs: number): void {
    const method = this.#of(['api patch', 'api patch', 'api delete', 'api create', 'api update'] as const);
    const step = { do: 'kill-kubelet-at', method, crossings: 1 + this.#whole(3) } as const;
    this.#steps.push({ atMs, step }, { atMs: atMs + forMs, step: { do: 'start-kubelet' } });
  }

  #away(atMs: number, forMs: number): void {
    this.#add(atMs, { do: 'go-away', how: this.#of(['refusing', 'refusing', 'silent'] as const) });
    this.#add(atMs + forMs, { do: 'come-back' });
  }

  #rates(): ApiFaultRates {
    const upTo = (most: number) => (this.#random.next() < 0.5 ? 0 : this.#random.next() * most);
    return {
      delay: upTo(0.3),
      refuse: upTo(0.2),
      conflict: upTo(0.4),
      unreachable: upTo(0.1),
      hang: upTo(0.03),
      lostAnswer: upTo(0.2),
      lateEffect: upTo(0.2),
      stale: upTo(0.5),
      eventLate: upTo(0.2),
      eventDuplicated: upTo(0.3),
      watchCut: upTo(0.1),
      watchGone: upTo(0.1),
      watchEnded: upTo(0.1),
    };
  }

  #add(atMs: number, what: ClusterStep): void {
    this.#steps.push({ atMs, step: { do: 'cluster', what } });
  }

  #below(bound: number): number {
    return this.#random.next() * bound;
  }

  #whole(bound: number): number {
    return randomInt(this.#random, bound);
  }

  #of<T>(items: readonly T[]): T {
    return pick(this.#random, items) as T;
  }
}
