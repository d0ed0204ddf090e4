import type { PodStatus } from '../kinds/index.ts';
import { type Clock, type Logger, MetricRegistry, type Random, Subscription } from '../lib/index.ts';
import type { Pod, PodJournal, PodUid } from '../pods/index.ts';
import type { PlanContext } from '../runtime/index.ts';
import type { PodProbeResults, StatusManager } from '../status/index.ts';
import { type CommandRunner, ExecProbes } from './exec-probe.ts';
import { ProbeManager, type ProbeManagerDeps } from './manager.ts';
import { probeMetrics } from './metrics.ts';
import { withCommands } from './network-prober.ts';
import type { Prober } from './probe-request.ts';
import type { ProbeChange } from './worker.ts';

export interface PodProbesDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly journal: PodJournal;
  /** The prober for HTTP, TCP and gRPC probes. */
  readonly prober: Prober;
  readonly runner: CommandRunner;
  readonly statuses: Pick<StatusManager, 'getPodStatus' | 'setContainerReadiness' | 'setContainerStartup'>;
  readonly isTerminating: (uid: PodUid) => boolean;
  /** Expands variables in the command of an exec probe. */
  readonly expand: ProbeManagerDeps['expand'];
}

/**
 * The capacity of the queue of changed pods, larger than the number of pods per node, so that no
 * change is dropped.
 */
const waitingPods = 10_000;

/**
 * Connects the probe manager to the kubelet: a probe result is written to the status immediately,
 * and the pod is queued for a sync.
 */
export class PodProbes implements AsyncDisposable {
  /** The registry of probe metrics is separate, because each container has its own series. */
  readonly metrics: MetricRegistry;
  /** The probe results for the pod's status. */
  readonly results: PodProbeResults;
  readonly #deps: PodProbesDeps;
  readonly #manager: ProbeManager;
  readonly #commands: ExecProbes;
  readonly #found = new Subscription<PodUid>({
    keep: 'newest-of-key',
    capacity: waitingPods,
    keyOf: (uid) => uid,
  });

  constructor(deps: PodProbesDeps) {
    const { clock, logger, prober, statuses } = deps;
    this.#deps = deps;
    this.metrics = new MetricRegistry({
      onError: (error) => logger.error('Failed to report probe results', error),
    });
    this.#commands = new ExecProbes(deps);
    this.#manager = new ProbeManager({
      ...deps,
      prober: withCommands(prober, this.#commands),
      observer: probeMetrics(this.metrics),
      statusOf: (uid) => statuses.getPodStatus(uid),
      expand: deps.expand,
      startedAt: clock.now(),
      startedMs: clock.monotonicMs(),
      changed: (change) => this.#changed(change),
    });
    const of = (type: 'startup' | 'readiness') => (containerId: string) =>
      this.#manager.results.get(type, withoutScheme(containerId));
    this.results = { startup: of('startup'), readiness: of('readiness') };
  }

  held(): Readonly<Record<string, number>> {
    return { ...this.#manager.held(), commands: this.#commands.size };
  }

  /** Waits for the next pod with a changed probe result. */
  next(signal: AbortSignal): Promise<PodUid | undefined> {
    return this.#found.next(signal);
  }

  /** Starts the probes of a pod; called with every sync of a pod that may run. */
  begin(pod: Pod): void {
    this.#manager.addPod(pod);
  }

  /** Stops liveness and startup probes; called when the pod terminates. */
  ending(uid: PodUid): void {
    this.#manager.stopLivenessAndStartup(uid);
  }

  /** Stops all probes of the pod; called when its containers were removed. */
  removed(uid: PodUid): void {
    this.#manager.removePod(uid);
  }

  retain(mayRun: (uid: PodUid) => boolean): void {
    this.#manager.retain(mayRun);
  }

  published(uid: PodUid, status: PodStatus): void {
    this.#manager.trigger(uid, status);
  }

  /**
   * Probe results for computePodActions. A container that a previous kubelet reported as started
   * counts as started before its first probe.
   */
  planning(status: PodStatus): Pick<PlanContext, 'liveness' | 'startup'> {
    const { results } = this.#manager;
    const started = new Set(
      [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
        .filter((containerStatus) => containerStatus.started === true)
        .map(({ containerID = '' }) => withoutScheme(containerID)),
    );
    return {
      liveness: (id) => results.get('liveness', id),
      startup: (id) => results.get('startup', id) ?? (started.has(id) ? 'success' : undefined),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#manager[Symbol.asyncDispose]();
  }

  #changed({ type, podUid, containerId, result }: ProbeChange): void {
    const { statuses } = this.#deps;
    const isGood = result === 'success';
    if (type === 'liveness' && isGood) return;
    // For a terminating pod only failed readiness is reported: a container that becomes ready does
    // not make the pod ready.
    if (type === 'readiness' && !(isGood && this.#deps.isTerminating(podUid)))
      statuses.setContainerReadiness(podUid, containerId, isGood);
    if (type === 'startup') {
      statuses.setContainerStartup(podUid, containerId, isGood);
      const status = statuses.getPodStatus(podUid);
      if (status !== undefined) this.published(podUid, status);
    }
    this.#found.push(podUid);
  }
}

function withoutScheme(containerId: string): string {
  return containerId.slice(containerId.indexOf('://') + 3);
}
