import type { Container, ContainerStatus, PodStatus, Probe } from '../kinds/index.ts';
import {
  type Clock,
  describeError,
  HintLatch,
  type Instant,
  type Logger,
  type Random,
} from '../lib/index.ts';
import {
  findNamed,
  isTerminalPhase,
  type Pod,
  type PodJournal,
  type PodUid,
  restartsAfterExit,
} from '../pods/index.ts';
import type { ProbeObserver } from './metrics.ts';
import { ProbeRecorder } from './probe-recorder.ts';
import type { ProbeRequest, ProbeResponse, Prober, ProbeType } from './probe-request.ts';
import { type ActionTarget, probeAction } from './probe-request.ts';
import type { ProbeResult, ProbeResults } from './results.ts';

/** A changed probe result of a container. */
export interface ProbeChange {
  readonly type: ProbeType;
  readonly podUid: PodUid;
  /** The container ID as in statuses, with the scheme. */
  readonly containerId: string;
  readonly result: ProbeResult;
}

export interface ProbeWorkerDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly prober: Prober;
  readonly results: ProbeResults;
  readonly observer: ProbeObserver;
  /** The published status of the pod. */
  readonly statusOf: (uid: PodUid) => PodStatus | undefined;
  readonly isTerminating: (uid: PodUid) => boolean;
  readonly expand: ActionTarget['expand'];
  /** The start time of this kubelet, by the wall clock and by the monotonic clock. */
  readonly startedAt: Instant;
  readonly startedMs: number;
  /** Called synchronously with a changed result; must not block. */
  readonly changed: (change: ProbeChange) => void;
}

/** A probe of one container, which does not change during the lifetime of the worker. */
export interface ProbeWorkerSubject {
  readonly pod: Pod;
  readonly container: Container;
  readonly type: ProbeType;
  readonly probe: Probe;
}

const initialResults: Readonly<Record<ProbeType, ProbeResult>> = {
  liveness: 'success',
  readiness: 'failure',
  startup: 'unknown',
};
const maxProbeRetries = 3;
/**
 * If a container started at least this long before this kubelet process, a previous kubelet process
 * started it.
 */
const restartMarginMs = 10_000;

type Running = ContainerStatus & { readonly containerID: string };

/**
 * Probes one container periodically, through all its instances.
 *
 *   new instance ──> probing ──threshold──> result ──liveness failed, startup decided──> on hold
 *        ^                                                                                  │
 *        └───────────────────────────── another instance ───────────────────────────────────┘
 */
export class ProbeWorker {
  readonly #deps: ProbeWorkerDeps;
  readonly #subject: ProbeWorkerSubject;
  readonly #recorder: ProbeRecorder;
  readonly #wake: HintLatch;
  readonly #periodMs: number;
  /** The container ID of the observed instance. */
  #id: string | undefined;
  #observedMs = 0;
  /** The container ID of the instance that was probed last. */
  #probedId: string | undefined;
  #onHold = false;
  #isJittering = false;
  #isStopped = false;
  /** The last result and how many times in a row it was returned. */
  #streak: { readonly of: 'success' | 'failure'; readonly count: number } | undefined;

  constructor(deps: ProbeWorkerDeps, subject: ProbeWorkerSubject) {
    this.#deps = deps;
    this.#subject = subject;
    this.#wake = new HintLatch(deps.clock);
    this.#recorder = new ProbeRecorder(deps.journal, { ...subject, container: subject.container.name });
    this.#periodMs = secondsOr(subject.probe.periodSeconds, 10) * 1_000;
  }

  /** Probes until the pod ends or the signal is aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#jitter(signal);
      await this.#loop(signal);
    } catch (error) {
      if (!signal.aborted) this.#deps.logger.error('Probe worker ended unexpectedly', error, this.#fields());
    } finally {
      this.end();
    }
  }

  /** Stops the worker immediately: results in flight are dropped. */
  end(): void {
    this.#isStopped = true;
    if (this.#id !== undefined) this.#deps.results.remove(this.#subject.type, this.#id);
  }

  /**
   * Immediately probes a container that has started but was not probed yet, instead of waiting for
   * the next period.
   */
  trigger(status: PodStatus): void {
    const observed = containerIn(status, this.#subject.container.name);
    if (observed?.state?.running === undefined || observed.started !== true) return;
    if (rawId(observed.containerID) === this.#probedId) return;
    // The random delay of the first probe, which spreads the probes of all pods after a restart of
    // the kubelet.
    if (this.#isJittering && this.#isOlder(observed)) return;
    this.#wake.raise();
  }

  async #jitter(signal: AbortSignal): Promise<void> {
    const { clock, random, startedMs } = this.#deps;
    if (clock.monotonicMs() - startedMs >= this.#periodMs) return;
    this.#isJittering = true;
    await this.#wake.wait(random.next() * this.#periodMs, signal);
    this.#isJittering = false;
  }

  async #loop(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    let dueMs = clock.monotonicMs();
    for (;;) {
      this.#wake.clear();
      if ((await this.#tryProbe(signal)) === 'over') return;
      dueMs = Math.max(dueMs + this.#periodMs, clock.monotonicMs());
      const woken = await this.#wake.wait(dueMs - clock.monotonicMs(), signal);
      if (woken === 'hint') dueMs = clock.monotonicMs();
    }
  }

  /** An internal error skips one probe and does not end the worker. */
  async #tryProbe(signal: AbortSignal): Promise<'on' | 'over'> {
    try {
      return await this.#doProbe(signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.logger.error('Failed to run probe', error, this.#fields());
      return 'on';
    }
  }

  async #doProbe(signal: AbortSignal): Promise<'on' | 'over'> {
    const { statusOf } = this.#deps;
    const status = statusOf(this.#subject.pod.metadata.uid);
    if (status === undefined) return 'on';
    if (isTerminalPhase(status.phase)) return 'over';
    const observed = containerIn(status, this.#subject.container.name);
    // A created container that has not run cannot be probed.
    if (observed === undefined || observed.state?.waiting !== undefined) return 'on';
    this.#meet(observed);
    if (this.#onHold) return 'on';
    if (observed.state?.running === undefined) return this.#notRunning(observed);
    if (this.#mustRest()) return 'over';
    if (this.#isDue(observed)) await this.#probe(observed, status, signal);
    return 'on';
  }

  /** The results of an earlier instance do not count. */
  #meet(observed: Running): void {
    const { results, clock } = this.#deps;
    const { type } = this.#subject;
    const id = rawId(observed.containerID);
    if (id === this.#id) return;
    if (this.#id !== undefined) results.remove(type, this.#id);
    this.#id = id;
    this.#observedMs = clock.monotonicMs();
    this.#onHold = false;
    this.#streak = undefined;
    const first = this.#firstResult(observed);
    if (first !== undefined) results.set(type, id, first);
  }

  /**
   * If the published status says started or ready before this kubelet process has probed the
   * container, a previous kubelet process reported it; that state counts until the first probe.
   */
  #firstResult(observed: Running): ProbeResult | undefined {
    const { type } = this.#subject;
    if (type === 'startup' && observed.started === true) return 'success';
    if (type === 'readiness' && observed.ready) return 'success';
    return this.#isOlder(observed) ? undefined : initialResults[type];
  }

  #isOlder(observed: ContainerStatus): boolean {
    const startedAt = Date.parse(observed.state?.running?.startedAt ?? '');
    return startedAt < this.#deps.startedAt - restartMarginMs;
  }

  #notRunning(observed: Running): 'on' | 'over' {
    const { pod, container, type } = this.#subject;
    this.#deps.results.set(type, rawId(observed.containerID), 'failure');
    const ended = observed.state?.terminated;
    if (ended === undefined || restartsAfterExit(pod, container, ended.exitCode)) return 'on';
    return mayRestartAll(pod) ? 'on' : 'over';
  }

  /** A terminating pod gets only readiness probes, because a liveness failure must not kill it. */
  #mustRest(): boolean {
    const { pod, type } = this.#subject;
    const { uid, deletionTimestamp } = pod.metadata;
    if (type === 'readiness') return false;
    if (deletionTimestamp === undefined && !this.#deps.isTerminating(uid)) return false;
    if (this.#id !== undefined) this.#deps.results.set(type, this.#id, 'success');
    return true;
  }

  #isDue(observed: Running): boolean {
    const { type, probe } = this.#subject;
    const { clock } = this.#deps;
    const startedAt = Date.parse(observed.state?.running?.startedAt ?? '');
    // The start time of the container is wall time; a clock that was set back must not stop the
    // probes.
    const ageMs = Math.max(clock.now() - startedAt, clock.monotonicMs() - this.#observedMs);
    if (Math.floor(ageMs / 1_000) < (probe.initialDelaySeconds ?? 0)) return false;
    return (observed.started === true) === (type !== 'startup');
  }

  async #probe(observed: Running, status: PodStatus, signal: AbortSignal): Promise<void> {
    const { clock, observer } = this.#deps;
    const id = rawId(observed.containerID);
    this.#probedId = id;
    const beganMs = clock.monotonicMs();
    const response = await this.#attempt(id, status, signal);
    signal.throwIfAborted();
    if (!this.#isStill(id)) return;
    const seconds = (clock.monotonicMs() - beganMs) / 1_000;
    if (response.is === 'error') {
      observer.probed(this.#labels(), 'unknown', seconds);
      this.#recorder.errored(response.output);
      return;
    }
    observer.probed(this.#labels(), response.is === 'failure' ? 'failed' : 'successful', seconds);
    this.#count(observed.containerID, { is: response.is, output: response.output });
  }

  /** The result is dropped if the container has exited or was replaced during the probe. */
  #isStill(id: string): boolean {
    const status = this.#deps.statusOf(this.#subject.pod.metadata.uid);
    if (status === undefined || isTerminalPhase(status.phase) || this.#isStopped) return false;
    const now = containerIn(status, this.#subject.container.name);
    return now?.state?.running !== undefined && rawId(now.containerID) === id;
  }

  async #attempt(
    id: string,
    status: PodStatus,
    signal: AbortSignal,
  ): Promise<ProbeResponse | { readonly is: 'error'; readonly output: string }> {
    let why: unknown;
    for (let attempt = 0; attempt < maxProbeRetries; attempt++) {
      try {
        return await this.#deps.prober.probe(this.#question(id, status), signal);
      } catch (error) {
        signal.throwIfAborted();
        why = error;
      }
    }
    return { is: 'error', output: describeError(why) };
  }

  #question(containerId: string, { podIP = '' }: PodStatus): ProbeRequest {
    const { pod, container, type, probe } = this.#subject;
    const { uid, name, namespace } = pod.metadata;
    return {
      type,
      podUid: uid,
      podName: name,
      podNamespace: namespace,
      container: container.name,
      containerId,
      action: probeAction(probe, { container, podIp: podIP, expand: this.#deps.expand }),
      timeoutMs: secondsOr(probe.timeoutSeconds, 1) * 1_000,
    };
  }

  #count(containerId: string, { is, output }: ProbeResponse): void {
    const { probe, type } = this.#subject;
    const of = is === 'failure' ? 'failure' : 'success';
    const count = this.#streak?.of === of ? this.#streak.count + 1 : 1;
    this.#streak = { of, count };
    const threshold =
      of === 'failure' ? secondsOr(probe.failureThreshold, 3) : secondsOr(probe.successThreshold, 1);
    if (of === 'failure') this.#recorder.failed(output, count, threshold);
    if (is === 'warning') this.#recorder.warned(output);
    if (count < threshold) return;
    if (type === 'startup' || (type === 'liveness' && of === 'failure')) {
      this.#onHold = true;
      this.#streak = undefined;
    }
    this.#set(containerId, of);
  }

  #set(containerId: string, result: ProbeResult): void {
    const { type, pod } = this.#subject;
    if (!this.#deps.results.set(type, rawId(containerId), result)) return;
    this.#recorder.changed(result);
    this.#deps.changed({ type, podUid: pod.metadata.uid, containerId, result });
  }

  #labels() {
    const { pod, container, type } = this.#subject;
    const { uid, name, namespace } = pod.metadata;
    return { type, container: container.name, pod: name, namespace, podUid: uid };
  }

  #fields() {
    const { pod, container, type } = this.#subject;
    return { podUid: pod.metadata.uid, container: container.name, probe: type };
  }
}

/** The seconds of a probe setting; the default if it is zero or missing. */
function secondsOr(given: number | undefined, fallback: number): number {
  return given === undefined || given <= 0 ? fallback : given;
}

function containerIn(status: PodStatus, name: string): Running | undefined {
  const found = findNamed(status.containerStatuses, name) ?? findNamed(status.initContainerStatuses, name);
  return found?.containerID === undefined || found.containerID === '' ? undefined : (found as Running);
}

/** The container ID without the scheme. */
function rawId(containerId: string): string {
  return containerId.slice(containerId.indexOf('://') + 3);
}

function mayRestartAll({ spec }: Pod): boolean {
  return [...(spec.initContainers ?? []), ...spec.containers].some(({ restartPolicyRules = [] }) =>
    restartPolicyRules.some(({ action }) => action === 'RestartAllContainers'),
  );
}
