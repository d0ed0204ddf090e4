import type { Container, PodStatus, Probe } from '../kinds/index.ts';
import { cancelledError } from '../lib/index.ts';
import { initContainersOf, isSidecar, type Pod, type PodUid } from '../pods/index.ts';
import { type ProbeType, probeTypes } from './probe-request.ts';
import { ProbeResults } from './results.ts';
import { ProbeWorker, type ProbeWorkerDeps, type ProbeWorkerSubject } from './worker.ts';

export type ProbeManagerDeps = Omit<ProbeWorkerDeps, 'results'>;

interface RunningWorker {
  readonly type: ProbeType;
  readonly worker: ProbeWorker;
  readonly end: AbortController;
}

interface ProbedPod {
  readonly pod: Pod;
  /**
   * The probe workers by container and type. Workers that have ended are kept, so that they are not
   * started again.
   */
  readonly workers: Map<string, RunningWorker>;
}

/**
 * The probe workers of all pods: one for each probe, from the first sync of a pod until its
 * containers are removed.
 */
export class ProbeManager implements AsyncDisposable {
  readonly results = new ProbeResults();
  readonly #deps: ProbeManagerDeps;
  readonly #pods = new Map<PodUid, ProbedPod>();
  readonly #running = new Set<Promise<void>>();
  #isClosed = false;

  constructor(deps: ProbeManagerDeps) {
    this.#deps = deps;
  }

  /**
   * The numbers of pods with probes, of running workers and of stored results; all are zero without
   * pods.
   */
  held(): Readonly<Record<'pods' | 'workers' | 'results', number>> {
    return { pods: this.#pods.size, workers: this.#running.size, results: this.results.size };
  }

  /**
   * Starts missing workers; called at every sync of a pod. A running worker keeps the probe with
   * which it was started.
   */
  addPod(pod: Pod): void {
    const subjects = this.#isClosed ? [] : subjectsOf(pod);
    for (const subject of subjects) this.#startWorker(subject);
  }

  /**
   * Stops liveness and startup probes; called when the pod terminates, so that failed probes do not
   * kill its containers.
   */
  stopLivenessAndStartup(uid: PodUid): void {
    for (const worker of this.#pods.get(uid)?.workers.values() ?? [])
      if (worker.type !== 'readiness') stopWorker(worker);
  }

  /** Stops all probes of a pod; called when its containers were removed. */
  removePod(uid: PodUid): void {
    const probed = this.#pods.get(uid);
    if (probed === undefined) return;
    this.#pods.delete(uid);
    for (const worker of probed.workers.values()) stopWorker(worker);
    const { name: pod, namespace } = probed.pod.metadata;
    this.#deps.observer.podRemoved(
      { pod, namespace, podUid: uid },
      this.#isNamed(probed.pod) ? 'taken' : 'free',
    );
  }

  /** Stops the probes of all pods that are not in the list. */
  retain(isRetained: (uid: PodUid) => boolean): void {
    for (const uid of [...this.#pods.keys()]) if (!isRetained(uid)) this.removePod(uid);
  }

  /**
   * Called when the published status of a pod has changed: a started container without a probe
   * result is probed immediately.
   */
  trigger(uid: PodUid, status: PodStatus): void {
    for (const { type, worker } of this.#pods.get(uid)?.workers.values() ?? [])
      if (type === 'readiness') worker.trigger(status);
  }

  /** Stops all probe workers and waits for them. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.retain(() => false);
    await Promise.all(this.#running);
  }

  #startWorker(subject: ProbeWorkerSubject): void {
    const { uid } = subject.pod.metadata;
    const probed = this.#pods.get(uid) ?? { pod: subject.pod, workers: new Map() };
    this.#pods.set(uid, probed);
    const key = `${subject.container.name}/${subject.type}`;
    if (probed.workers.has(key)) return;
    const worker = new ProbeWorker({ ...this.#deps, results: this.results }, subject);
    const end = new AbortController();
    probed.workers.set(key, { type: subject.type, worker, end });
    const run = worker.run(end.signal).finally(() => this.#running.delete(run));
    this.#running.add(run);
  }

  #isNamed({ metadata: { name, namespace } }: Pod): boolean {
    return [...this.#pods.values()].some(
      ({ pod: { metadata } }) => metadata.name === name && metadata.namespace === namespace,
    );
  }
}

function stopWorker({ worker, end }: RunningWorker): void {
  worker.end();
  end.abort(cancelledError('The probe is stopped'));
}

function subjectsOf(pod: Pod): readonly ProbeWorkerSubject[] {
  const containers = [...pod.spec.containers, ...initContainersOf(pod).filter(isSidecar)];
  return containers.flatMap((container) =>
    probeTypes.flatMap((type) => {
      const probe = probeOf(container, type);
      return probe === undefined ? [] : [{ pod, container, type, probe }];
    }),
  );
}

function probeOf(container: Container, type: ProbeType): Probe | undefined {
  switch (type) {
    case 'liveness':
      return container.livenessProbe;
    case 'readiness':
      return container.readinessProbe;
    case 'startup':
      return container.startupProbe;
  }
}
