import {
  Backoff,
  type Clock,
  describeError,
  type Logger,
  type Random,
  untilAborted,
  withDeadline,
} from '../../lib/index.ts';
import { describePod, type Pod } from '../../pods/index.ts';
import type { NodeEvent } from '../inputs.ts';

/** Who announces that the machine shuts down, and waits for us while we hold it up. */
export interface ShutdownSource {
  /** Connects, and sees to it that it would wait as long as given. Rejects when there is nobody to do so. */
  open(delayMs: number, signal: AbortSignal): Promise<ShutdownWatch>;
}

export interface ShutdownWatch extends Disposable {
  /** Whether one that was announced, perhaps to somebody else, is under way. */
  isUnderWay(signal: AbortSignal): Promise<boolean>;
  /** From now on a shutdown waits for us. */
  hold(signal: AbortSignal): Promise<Disposable>;
  /** The next news; undefined when there will be none any more. */
  next(signal: AbortSignal): Promise<'begins' | 'cancelled' | undefined>;
}

export interface NodeShutdownDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly groups: readonly ShutdownGroup[];
  /** Nobody announces a shutdown unless given. */
  readonly announcer?: ShutdownSource | undefined;
  readonly event: (event: NodeEvent) => void;
  /** The node is, or is no longer, shutting down: others should hear of it. */
  readonly changed: () => void;
  /** Pods that use anything of the node. */
  readonly activePods: () => readonly Pod[];
  /** Ends the pod; resolves when nothing of it runs or is mounted any more. */
  readonly terminatePod: (pod: Pod, graceSeconds: number, signal: AbortSignal) => Promise<void>;
  /** Resolves when everybody who should know how these have ended does. */
  readonly reported: (pods: readonly Pod[], signal: AbortSignal) => Promise<void>;
  /** Told when the end of pods begins, and when it is done. */
  readonly observe?: ((when: 'start' | 'end') => void) | undefined;
}

const reconnect = { baseMs: 1_000, maxMs: 60_000 };
/** How much longer than its pods have it may take, to tell of them. */
const reportMs = 2_000;

/**
 * Ends the pods in order while the machine that shuts down waits: those of low priority first, so that what others rely
 * on goes last. Whatever goes wrong, the machine is not held up for longer than configured.
 */
export class NodeShutdown {
  readonly #deps: NodeShutdownDeps;
  #isNow = false;

  constructor(deps: NodeShutdownDeps) {
    this.#deps = deps;
  }

  get isNow(): boolean {
    return this.#isNow;
  }

  /** Why the node is not ready. */
  problem(): string | undefined {
    return this.#isNow ? 'node is shutting down' : undefined;
  }

  /** Waits for announcements until the signal ends it. */
  async run(signal: AbortSignal): Promise<void> {
    const { announcer, clock, random, logger } = this.#deps;
    if (announcer === undefined) return await untilAborted(signal).catch(() => {});
    const backoff = new Backoff(reconnect, random);
    let isTold = false;
    while (!signal.aborted) {
      try {
        await this.#watch(announcer, signal);
        logger.warn('Whoever announces shutdowns of the machine has gone');
        isTold = false;
      } catch (error) {
        if (signal.aborted) return;
        if (!isTold) logger.warn('Shutdowns of the machine are not announced', { why: describeError(error) });
        isTold = true;
      }
      await clock.sleep(backoff.fail(clock.monotonicMs()), signal).catch(() => {});
    }
  }

  /** Ends all pods, group by group. Never rejects; takes no longer than the groups have, and a little to tell of it. */
  async terminatePods(signal: AbortSignal): Promise<void> {
    this.#begin();
    const { groups, activePods, observe } = this.#deps;
    observe?.('start');
    const telling: Promise<void>[] = [];
    for (const group of byShutdownGroup(groups, activePods())) {
      if (group.pods.length === 0) continue;
      await this.#terminateGroup(group, signal);
      // While the next ones end: the API may be slow, and the machine does not wait for it.
      telling.push(this.#report(group.pods, signal));
    }
    await Promise.all(telling);
    observe?.('end');
  }

  async #watch(announcer: ShutdownSource, signal: AbortSignal): Promise<void> {
    using watch = await announcer.open(wholeSeconds(this.#deps.groups) * 1_000, signal);
    // It may have been called off while nobody listened.
    if (this.#isNow && !(await watch.isUnderWay(signal))) this.#cancelled();
    let held: Disposable | undefined = await watch.hold(signal);
    try {
      for (;;) {
        const news = await watch.next(signal);
        if (news === undefined) return;
        if (news === 'begins') {
          await this.terminatePods(signal);
          held?.[Symbol.dispose]();
          held = undefined;
        } else {
          this.#cancelled();
          held ??= await watch.hold(signal);
        }
      }
    } finally {
      held?.[Symbol.dispose]();
    }
  }

  #begin(): void {
    if (this.#isNow) return;
    this.#isNow = true;
    const message = 'Shutdown manager detected shutdown event';
    this.#deps.event({ type: 'Normal', reason: 'Shutdown', message });
    this.#deps.changed();
  }

  #cancelled(): void {
    if (!this.#isNow) return;
    this.#isNow = false;
    const message = 'Shutdown manager detected shutdown cancellation';
    this.#deps.event({ type: 'Normal', reason: 'Shutdown', message });
    this.#deps.changed();
  }

  async #terminateGroup(
    { pods, seconds, priority }: ShutdownGroup & { readonly pods: readonly Pod[] },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, logger } = this.#deps;
    logger.info('Pods end as the machine shuts down', { pods: pods.length, priority, seconds });
    const end = (inner: AbortSignal) =>
      Promise.all(pods.map((pod) => this.#terminatePod(pod, seconds, inner)));
    const deadline = { clock, ms: seconds * 1_000, what: 'end pods before the machine shuts down' };
    await withDeadline(deadline, end, signal).catch((error: unknown) =>
      logger.error('Pods did not end in the time they have', error, { priority, seconds }),
    );
  }

  async #report(pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    const { clock, logger, reported } = this.#deps;
    const deadline = { clock, ms: reportMs, what: 'tell how pods have ended' };
    await withDeadline(deadline, (inner) => reported(pods, inner), signal).catch((error: unknown) =>
      logger.error('Not everybody knows how pods have ended', error),
    );
  }

  async #terminatePod(pod: Pod, seconds: number, signal: AbortSignal): Promise<void> {
    const grace = Math.min(seconds, pod.spec.terminationGracePeriodSeconds ?? seconds);
    try {
      await this.#deps.terminatePod(pod, grace, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      this.#deps.logger.error('A pod does not end', error, { pod: describePod(pod) });
    }
  }
}

/** Pods of this priority and above, up to the next group's, end together and have this long. */
export interface ShutdownGroup {
  readonly priority: number;
  readonly seconds: number;
}

/** The parts of the configuration that say how long pods have when the machine shuts down. */
export interface ShutdownConfig {
  readonly shutdownGracePeriodMs: number;
  readonly shutdownGracePeriodCriticalPodsMs: number;
  readonly shutdownGracePeriodByPodPriority: readonly {
    readonly priority: number;
    readonly shutdownGracePeriodSeconds: number;
  }[];
}

const systemCritical = 2_000_000_000;

/** From the lowest priority to the highest; none for a node that lets its pods go down with the machine. */
export function shutdownGroups(config: ShutdownConfig): readonly ShutdownGroup[] {
  const { shutdownGracePeriodMs: total, shutdownGracePeriodCriticalPodsMs: critical } = config;
  const byPriority = config.shutdownGracePeriodByPodPriority.map(
    ({ priority, shutdownGracePeriodSeconds }) => ({
      priority,
      seconds: shutdownGracePeriodSeconds,
    }),
  );
  if (byPriority.length > 0) return byPriority.toSorted((a, b) => a.priority - b.priority);
  if (total === 0) return [];
  return [
    { priority: 0, seconds: Math.floor((total - critical) / 1_000) },
    { priority: systemCritical, seconds: Math.floor(critical / 1_000) },
  ];
}

/** How long all of them together need. */
export function wholeSeconds(groups: readonly ShutdownGroup[]): number {
  return groups.reduce((sum, { seconds }) => sum + seconds, 0);
}

/** The highest group that is not above the pod; the lowest for one below all. */
export function byShutdownGroup<P extends { readonly spec: { readonly priority?: number | undefined } }>(
  groups: readonly ShutdownGroup[],
  pods: readonly P[],
): readonly (ShutdownGroup & { readonly pods: readonly P[] })[] {
  const indexOf = ({ spec: { priority = 0 } }: P) =>
    Math.max(
      0,
      groups.findLastIndex((group) => group.priority <= priority),
    );
  const members = Map.groupBy(pods, indexOf);
  return groups.map((group, index) => ({ ...group, pods: members.get(index) ?? [] }));
}
