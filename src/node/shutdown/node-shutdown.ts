import type { MetricRegistry } from '../../lib/index.ts';
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
import type { RuntimeFiles } from '../../runtime/index.ts';
import type { NodeEventInput } from '../inputs.ts';

/** Reports announced shutdowns of the machine, and delays them while a lock is held. */
export interface ShutdownSource {
  /**
   * Connects to the source of announcements and configures the maximum delay. Rejects when
   * shutdowns cannot be watched.
   */
  open(delayMs: number, signal: AbortSignal): Promise<ShutdownWatch>;
}

export interface ShutdownWatch extends Disposable {
  /** Whether an announced shutdown is in progress. */
  isUnderWay(signal: AbortSignal): Promise<boolean>;
  /** Acquires the lock that delays shutdowns. */
  hold(signal: AbortSignal): Promise<Disposable>;
  /** The next announcement; undefined when the connection was lost. */
  next(signal: AbortSignal): Promise<'begins' | 'cancelled' | undefined>;
}

export interface NodeShutdownDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly groups: readonly ShutdownGroup[];
  /** The source of shutdown announcements; undefined when the machine has none. */
  readonly announcer?: ShutdownSource | undefined;
  readonly event: (event: NodeEventInput) => void;
  /** Called when a machine shutdown begins or is cancelled. */
  readonly changed: () => void;
  /** The pods that use resources of the node. */
  readonly activePods: () => readonly Pod[];
  /** Terminates a pod; resolves when its containers are stopped and its volumes unmounted. */
  readonly terminatePod: (pod: Pod, graceSeconds: number, signal: AbortSignal) => Promise<void>;
  /** Resolves when the API server has the final statuses of the pods. */
  readonly reported: (pods: readonly Pod[], signal: AbortSignal) => Promise<void>;
  /** Called when the termination of the pods begins and when it has ended. */
  readonly observe?: ((when: 'start' | 'end') => void) | undefined;
}

const reconnect = { baseMs: 1_000, maxMs: 60_000 };
/** The additional time to report the final statuses of pods. */
const reportMs = 2_000;

/**
 * Terminates pods in order of priority while the shutdown is delayed: those of low priority first,
 * so that pods they depend on stop last. The shutdown is never delayed for longer than configured.
 */
export class NodeShutdown {
  readonly #deps: NodeShutdownDeps;
  #isShuttingDown = false;

  constructor(deps: NodeShutdownDeps) {
    this.#deps = deps;
  }

  get isShuttingDown(): boolean {
    return this.#isShuttingDown;
  }

  /** Why the node is not ready: a shutdown is in progress. */
  problem(): string | undefined {
    return this.#isShuttingDown ? 'node is shutting down' : undefined;
  }

  /** Handles shutdown announcements until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { announcer, clock, random, logger } = this.#deps;
    if (announcer === undefined) return await untilAborted(signal).catch(() => {});
    const backoff = new Backoff(reconnect, random);
    let isReported = false;
    while (!signal.aborted) {
      try {
        await this.#watch(announcer, signal);
        logger.warn('Lost connection to logind');
        isReported = false;
      } catch (error) {
        if (signal.aborted) return;
        if (!isReported) logger.warn('Failed to watch machine shutdowns', { why: describeError(error) });
        isReported = true;
      }
      await clock.sleep(backoff.fail(clock.monotonicMs()), signal).catch(() => {});
    }
  }

  /**
   * Terminates all pods, group by group. Never rejects; takes at most the total time of the groups
   * plus the time to report.
   */
  async terminatePods(signal: AbortSignal): Promise<void> {
    this.#start();
    const { groups, activePods, observe } = this.#deps;
    observe?.('start');
    const notifications: Promise<void>[] = [];
    for (const group of byShutdownGroup(groups, activePods())) {
      if (group.pods.length === 0) continue;
      await this.#terminateGroup(group, signal);
      // Reports final statuses while the next group terminates, because the API server may be slow
      // and the time until the machine shuts down is limited.
      notifications.push(this.#report(group.pods, signal));
    }
    await Promise.all(notifications);
    observe?.('end');
  }

  async #watch(announcer: ShutdownSource, signal: AbortSignal): Promise<void> {
    using watch = await announcer.open(wholeSeconds(this.#deps.groups) * 1_000, signal);
    // The shutdown may have been cancelled while the connection was lost.
    if (this.#isShuttingDown && !(await watch.isUnderWay(signal))) this.#cancelled();
    let held: Disposable | undefined = await watch.hold(signal);
    try {
      for (;;) {
        const event = await watch.next(signal);
        if (event === undefined) return;
        if (event === 'begins') {
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

  #start(): void {
    if (this.#isShuttingDown) return;
    this.#isShuttingDown = true;
    const message = 'Shutdown manager detected shutdown event';
    this.#deps.event({ type: 'Normal', reason: 'Shutdown', message });
    this.#deps.changed();
  }

  #cancelled(): void {
    if (!this.#isShuttingDown) return;
    this.#isShuttingDown = false;
    const message = 'Shutdown manager detected shutdown cancellation';
    this.#deps.event({ type: 'Normal', reason: 'Shutdown', message });
    this.#deps.changed();
  }

  async #terminateGroup(
    { pods, seconds, priority }: ShutdownGroup & { readonly pods: readonly Pod[] },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, logger } = this.#deps;
    logger.info('Terminating pods before machine shutdown', { pods: pods.length, priority, seconds });
    const end = (inner: AbortSignal) =>
      Promise.all(pods.map((pod) => this.#terminatePod(pod, seconds, inner)));
    const deadline = { clock, ms: seconds * 1_000, what: 'terminate pods before the machine shuts down' };
    await withDeadline(deadline, end, signal).catch((error: unknown) =>
      logger.error('Pods did not terminate in time', error, { priority, seconds }),
    );
  }

  async #report(pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    const { clock, logger, reported } = this.#deps;
    const deadline = { clock, ms: reportMs, what: 'report final pod statuses' };
    await withDeadline(deadline, (inner) => reported(pods, inner), signal).catch((error: unknown) =>
      logger.error('Failed to write final pod statuses before shutdown', error),
    );
  }

  async #terminatePod(pod: Pod, seconds: number, signal: AbortSignal): Promise<void> {
    const grace = Math.min(seconds, pod.spec.terminationGracePeriodSeconds ?? seconds);
    try {
      await this.#deps.terminatePod(pod, grace, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      this.#deps.logger.error('Failed to terminate pod', error, { pod: describePod(pod) });
    }
  }
}

/**
 * A shutdown group: pods from this priority up to that of the next group terminate together within
 * this time.
 */
export interface ShutdownGroup {
  readonly priority: number;
  readonly seconds: number;
}

/** The settings of graceful shutdown in the kubelet configuration. */
export interface ShutdownConfig {
  readonly shutdownGracePeriodMs: number;
  readonly shutdownGracePeriodCriticalPodsMs: number;
  readonly shutdownGracePeriodByPodPriority: readonly {
    readonly priority: number;
    readonly shutdownGracePeriodSeconds: number;
  }[];
}

const systemCritical = 2_000_000_000;

/**
 * The shutdown groups from the lowest priority to the highest; empty when graceful shutdown is
 * disabled.
 */
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

/** The total time of all shutdown groups. */
export function wholeSeconds(groups: readonly ShutdownGroup[]): number {
  return groups.reduce((sum, { seconds }) => sum + seconds, 0);
}

/**
 * Assigns each pod to the highest shutdown group whose priority is not above that of the pod; a pod
 * below all groups is assigned to the lowest group.
 */
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

export interface ShutdownTimesDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly files: Pick<RuntimeFiles, 'readEnd' | 'replace'>;
}

/**
 * The start and end times of the last node shutdown, which the next kubelet process exports as
 * metrics, too.
 */
export function shutdownTimes(
  path: string,
  { clock, metrics, files, logger }: ShutdownTimesDeps,
): (when: 'start' | 'end') => void {
  const gauges = shutdownMetrics(metrics);
  const show = ({ startTime, endTime }: ShutdownTimes) => {
    gauges.start.set(secondsOf(startTime));
    gauges.end.set(secondsOf(endTime));
  };
  const before = files.readEnd(path, 4_096).then((text) => text && show(JSON.parse(text.toString('utf8'))));
  before.catch((error: unknown) => logger.error('Failed to read times of last node shutdown', error));
  let times: ShutdownTimes = {};
  return (when) => {
    const now = new Date(clock.now()).toISOString();
    times = when === 'start' ? { startTime: now } : { ...times, endTime: now };
    show(times);
    files
      .replace(path, JSON.stringify(times), { mode: 0o600 })
      .catch((error: unknown) => logger.error('Failed to save time of node shutdown', error));
  };
}

interface ShutdownTimes {
  readonly startTime?: string;
  readonly endTime?: string;
}

function secondsOf(time: string | undefined): number {
  return time === undefined ? 0 : (Date.parse(time) || 0) / 1_000;
}

function shutdownMetrics(registry: MetricRegistry) {
  const gauge = (when: string) =>
    registry
      .gauge({
        name: `kubelet_graceful_shutdown_${when}_time_seconds`,
        help: `When ending the pods for a shutdown of the machine last came to its ${when}, in seconds since 1970.`,
      })
      .with({});
  return { start: gauge('start'), end: gauge('end') };
}
