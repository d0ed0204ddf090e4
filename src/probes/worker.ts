import type { Container, ContainerStatus, PodStatus, Probe } from '../kinds/index.ts';
import {
  type Clock,
  describeError,
  HintLatch,
  type Instant,
  type Logger,
  type Random,
} from '../lib/index.ts';
import { isTerminalPhase, type Pod, type PodJournal, type PodUid, restartsAfterExit } from '../pods/index.ts';
import type { ProbeObserver } from './metrics.ts';
import { type ActionTarget, probeAction } from './probe-action.ts';
import { ProbeRecorder } from './probe-recorder.ts';
import type { ProbeRequest, ProbeResponse, Prober, ProbeType } from './probe-request.ts';
import type { ProbeResult, ProbeResults } from './results.ts';

/** What a container turned out to be. */
export interface ProbeChange {
  readonly type: ProbeType;
  readonly podUid: PodUid;
  /** As statuses have it, with the scheme. */
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
  /** As it is published now. */
  readonly statusOf: (uid: PodUid) => PodStatus | undefined;
  readonly isTerminating: (uid: PodUid) => boolean;
  readonly expand: ActionTarget['expand'];
  /** When this kubelet began, by both clocks. */
  readonly startedAt: Instant;
  readonly startedMs: number;
  /** Called at once; must be quick. */
  readonly changed: (change: ProbeChange) => void;
}

/** Which probe of which container. Stays as it is for the life of the worker. */
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
/** A container that began so long before the kubelet was there before it. */
const restartMarginMs = 10_000;

type Running = ContainerStatus & { readonly containerID: string };

/**
 * Asks one container one thing, again and again, through all its instances.
 *
 *   met a new instance ──> asking ──threshold──> result ──liveness failed, startup decided──> held
 *          ^                                                                                   │
 *          └───────────────────────────── another instance ────────────────────────────────────┘
 */
export class ProbeWorker {
  readonly #deps: ProbeWorkerDeps;
  readonly #subject: ProbeWorkerSubject;
  readonly #recorder: ProbeRecorder;
  readonly #wake: HintLatch;
  readonly #periodMs: number;
  /** The instance that is looked at, as the runtime calls it. */
  #id: string | undefined;
  #observedMs = 0;
  /** The last instance that was really asked. */
  #probedId: string | undefined;
  #onHold = false;
  #isJittering = false;
  #isStopped = false;
  /** How often in a row it was the same. */
  #streak: { readonly of: 'success' | 'failure'; readonly count: number } | undefined;

  constructor(deps: ProbeWorkerDeps, subject: ProbeWorkerSubject) {
    this.#deps = deps;
    this.#subject = subject;
    this.#wake = new HintLatch(deps.clock);
    this.#recorder = new ProbeRecorder(deps.journal, { ...subject, container: subject.container.name });
    this.#periodMs = secondsOr(subject.probe.periodSeconds, 10) * 1_000;
  }

  /** Until there is nothing left to ask, or the signal ends it. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#jitter(signal);
      await this.#loop(signal);
    } catch (error) {
      if (!signal.aborted) this.#deps.logger.error('A probe has ended unexpectedly', error, this.#fields());
    } finally {
      this.end();
    }
  }

  /** At once: whatever is still under way has no effect any more. */
  end(): void {
    this.#isStopped = true;
    if (this.#id !== undefined) this.#deps.results.remove(this.#subject.type, this.#id);
  }

  /** The container may have just become askable: one that was not asked yet is asked now, not at the next turn. */
  trigger(status: PodStatus): void {
    const seen = containerIn(status, this.#subject.container.name);
    if (seen?.state?.running === undefined || seen.started !== true) return;
    if (rawId(seen.containerID) === this.#probedId) return;
    // After a restart of the kubelet the probes of all pods would otherwise be asked in one moment.
    if (this.#isJittering && this.#isOlder(seen)) return;
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

  /** A mistake of ours costs one turn, not the probe. */
  async #tryProbe(signal: AbortSignal): Promise<'on' | 'over'> {
    try {
      return await this.#doProbe(signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.logger.error('A probe could not be made', error, this.#fields());
      return 'on';
    }
  }

  async #doProbe(signal: AbortSignal): Promise<'on' | 'over'> {
    const { statusOf } = this.#deps;
    const status = statusOf(this.#subject.pod.metadata.uid);
    if (status === undefined) return 'on';
    if (isTerminalPhase(status.phase)) return 'over';
    const seen = containerIn(status, this.#subject.container.name);
    // One that is made and has not run yet has done nothing that could be found out.
    if (seen === undefined || seen.state?.waiting !== undefined) return 'on';
    this.#meet(seen);
    if (this.#onHold) return 'on';
    if (seen.state?.running === undefined) return this.#notRunning(seen);
    if (this.#mustRest()) return 'over';
    if (this.#isDue(seen)) await this.#probe(seen, status, signal);
    return 'on';
  }

  /** What was found out about an earlier instance says nothing about this one. */
  #meet(seen: Running): void {
    const { results, clock } = this.#deps;
    const { type } = this.#subject;
    const id = rawId(seen.containerID);
    if (id === this.#id) return;
    if (this.#id !== undefined) results.remove(type, this.#id);
    this.#id = id;
    this.#observedMs = clock.monotonicMs();
    this.#onHold = false;
    this.#streak = undefined;
    const first = this.#firstResult(seen);
    if (first !== undefined) results.set(type, id, first);
  }

  /**
   * Nobody but an earlier kubelet can have published that a container is started or ready which this one has not asked:
   * that stands until it is asked.
   */
  #firstResult(seen: Running): ProbeResult | undefined {
    const { type } = this.#subject;
    if (type === 'startup' && seen.started === true) return 'success';
    if (type === 'readiness' && seen.ready) return 'success';
    return this.#isOlder(seen) ? undefined : initialResults[type];
  }

  #isOlder(seen: ContainerStatus): boolean {
    const startedAt = Date.parse(seen.state?.running?.startedAt ?? '');
    return startedAt < this.#deps.startedAt - restartMarginMs;
  }

  #notRunning(seen: Running): 'on' | 'over' {
    const { pod, container, type } = this.#subject;
    this.#deps.results.set(type, rawId(seen.containerID), 'failure');
    const ended = seen.state?.terminated;
    if (ended === undefined || restartsAfterExit(pod, container, ended.exitCode)) return 'on';
    return mayRestartAll(pod) ? 'on' : 'over';
  }

  /** Nobody is to be killed for how it behaves while it is told to end; whether it serves is still of interest. */
  #mustRest(): boolean {
    const { pod, type } = this.#subject;
    const { uid, deletionTimestamp } = pod.metadata;
    if (type === 'readiness') return false;
    if (deletionTimestamp === undefined && !this.#deps.isTerminating(uid)) return false;
    if (this.#id !== undefined) this.#deps.results.set(type, this.#id, 'success');
    return true;
  }

  #isDue(seen: Running): boolean {
    const { type, probe } = this.#subject;
    const { clock } = this.#deps;
    const startedAt = Date.parse(seen.state?.running?.startedAt ?? '');
    // By the wall clock, as its start is known by it alone; one that was set back must not silence the probe.
    const ageMs = Math.max(clock.now() - startedAt, clock.monotonicMs() - this.#observedMs);
    if (Math.floor(ageMs / 1_000) < (probe.initialDelaySeconds ?? 0)) return false;
    return (seen.started === true) === (type !== 'startup');
  }

  async #probe(seen: Running, status: PodStatus, signal: AbortSignal): Promise<void> {
    const { clock, observer } = this.#deps;
    const id = rawId(seen.containerID);
    this.#probedId = id;
    const beganMs = clock.monotonicMs();
    const answer = await this.#answer(id, status, signal);
    signal.throwIfAborted();
    if (!this.#isStill(id)) return;
    const seconds = (clock.monotonicMs() - beganMs) / 1_000;
    if (answer.is === 'error') {
      observer.probed(this.#labels(), 'unknown', seconds);
      this.#recorder.errored(answer.output);
      return;
    }
    observer.probed(this.#labels(), answer.is === 'failure' ? 'failed' : 'successful', seconds);
    this.#count(seen.containerID, { is: answer.is, output: answer.output });
  }

  /** While it was asked the container may have ended, or made way for another: the answer is about neither. */
  #isStill(id: string): boolean {
    const status = this.#deps.statusOf(this.#subject.pod.metadata.uid);
    if (status === undefined || isTerminalPhase(status.phase) || this.#isStopped) return false;
    const now = containerIn(status, this.#subject.container.name);
    return now?.state?.running !== undefined && rawId(now.containerID) === id;
  }

  async #answer(
    id: string,
    status: PodStatus,
    signal: AbortSignal,
  ): Promise<ProbeResponse | { readonly is: 'error'; readonly output: string }> {
    let why: unknown;
    for (let made = 0; made < maxProbeRetries; made++) {
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

/** Nothing and zero both stand for the default. */
function secondsOr(given: number | undefined, fallback: number): number {
  return given === undefined || given <= 0 ? fallback : given;
}

function containerIn(status: PodStatus, name: string): Running | undefined {
  const all = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];
  const found = all.find((one) => one.name === name);
  return found?.containerID === undefined || found.containerID === '' ? undefined : (found as Running);
}

/** Without the scheme. */
export function rawId(containerId: string): string {
  return containerId.slice(containerId.indexOf('://') + 3);
}

function mayRestartAll({ spec }: Pod): boolean {
  return [...(spec.initContainers ?? []), ...spec.containers].some(({ restartPolicyRules = [] }) =>
    restartPolicyRules.some(({ action }) => action === 'RestartAllContainers'),
  );
}
