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
  /** By container and type. One that has come to its end stays: there is nothing left to ask. */
  readonly workers: Map<string, RunningWorker>;
}

/** The probes of all pods: one worker a probe, from the first sync of a pod until its containers are gone. */
export class ProbeManager implements AsyncDisposable {
  readonly results = new ProbeResults();
  readonly #deps: ProbeManagerDeps;
  readonly #pods = new Map<PodUid, ProbedPod>();
  readonly #running = new Set<Promise<void>>();
  #isClosed = false;

  constructor(deps: ProbeManagerDeps) {
    this.#deps = deps;
  }

  /** All zero when no pod is there. */
  held(): Readonly<Record<'pods' | 'workers' | 'results', number>> {
    return { pods: this.#pods.size, workers: this.#running.size, results: this.results.size };
  }

  /** Begins the probes that are not there yet; to be called with every sync. What a probe asks stays as it was. */
  addPod(pod: Pod): void {
    const subjects = this.#isClosed ? [] : subjectsOf(pod);
    for (const subject of subjects) this.#startWorker(subject);
  }

  /** The pod is told to end: nobody kills its containers for how they take it. */
  stopLivenessAndStartup(uid: PodUid): void {
    for (const one of this.#pods.get(uid)?.workers.values() ?? [])
      if (one.type !== 'readiness') stopWorker(one);
  }

  /** Its containers are gone. */
  removePod(uid: PodUid): void {
    const probed = this.#pods.get(uid);
    if (probed === undefined) return;
    this.#pods.delete(uid);
    for (const one of probed.workers.values()) stopWorker(one);
    const { name: pod, namespace } = probed.pod.metadata;
    this.#deps.observer.podRemoved(
      { pod, namespace, podUid: uid },
      this.#isNamed(probed.pod) ? 'taken' : 'free',
    );
  }

  /** Ends the probes of all other pods. */
  retain(isKept: (uid: PodUid) => boolean): void {
    for (const uid of [...this.#pods.keys()]) if (!isKept(uid)) this.removePod(uid);
  }

  /** The published status has changed: what can be asked now and never was is asked at once. */
  trigger(uid: PodUid, status: PodStatus): void {
    for (const { type, worker } of this.#pods.get(uid)?.workers.values() ?? [])
      if (type === 'readiness') worker.trigger(status);
  }

  /** Ends all probes and waits for them. */
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
  end.abort(cancelledError('The probe is not wanted any more'));
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
