import { mayRun, type ObservedContainerState, type PodUid, type RuntimePod } from '../pods/index.ts';
import { itemsOf } from './lifecycle-events.ts';

export interface PodRecord {
  /** The listing of the pod from which lifecycle events were last reported. */
  readonly reported: RuntimePod | undefined;
  /** The newest listing of the pod. */
  readonly listed: RuntimePod | undefined;
  /** The timestamp of the newest listing. */
  readonly stamp: number;
  /**
   * Whether the next relist must inspect the pod even without changes, after a failure or a
   * request.
   */
  readonly reinspect: boolean;
}

/** The numbers of pods and containers in the newest list of each pod from the runtime. */
export interface Tally {
  /** The number of pods with a ready sandbox. */
  readonly runningPods: number;
  readonly containers: Readonly<Record<ObservedContainerState, number>>;
}

/** The listings of each pod, and the pod of each container. */
export class PodRecords {
  readonly #records = new Map<PodUid, PodRecord>();
  readonly #owners = new Map<string, PodUid>();
  #runningPods = 0;
  readonly #containers = { created: 0, running: 0, exited: 0, unknown: 0 };

  get size(): number {
    return this.#records.size;
  }

  get tally(): Tally {
    return { runningPods: this.#runningPods, containers: { ...this.#containers } };
  }

  uids(): IterableIterator<PodUid> {
    return this.#records.keys();
  }

  get(uid: PodUid): PodRecord | undefined {
    return this.#records.get(uid);
  }

  /** The UIDs of listed pods with the given name that have a container which may be running. */
  runningUnder(name: string, namespace: string): readonly PodUid[] {
    return [...this.#records].flatMap(([uid, { listed }]) => {
      if (listed?.name !== name || listed.namespace !== namespace) return [];
      return itemsOf(listed).some(mayRun) ? [uid] : [];
    });
  }

  /** The pod that owns a container or sandbox. */
  ownerOf(containerId: string): PodUid | undefined {
    return this.#owners.get(containerId);
  }

  /**
   * Stores a listing of one pod; returns the pod's new entry, or undefined when a newer listing is
   * stored.
   */
  list(uid: PodUid, listed: RuntimePod | undefined, stamp: number): PodRecord | undefined {
    const before = this.#records.get(uid);
    if (before !== undefined && before.stamp >= stamp) return undefined;
    for (const { id } of itemsOf(before?.listed)) this.#owners.delete(id);
    for (const { id } of itemsOf(listed)) this.#owners.set(id, uid);
    this.#count(before?.listed, -1);
    this.#count(listed, 1);
    const record = { reported: before?.reported, listed, stamp, reinspect: before?.reinspect ?? false };
    this.#records.set(uid, record);
    return record;
  }

  /**
   * Called when the pod cache contains the state of the newest listing. An inspection that was
   * requested after this listing stays requested.
   */
  setReported(uid: PodUid, record: PodRecord): void {
    const reinspect = this.#records.get(uid) !== record;
    if (record.listed === undefined) this.#records.delete(uid);
    else this.#records.set(uid, { ...record, reported: record.listed, reinspect });
  }

  /** Requests an inspection by the next relist; does nothing for a pod that is not listed. */
  reinspect(uid: PodUid): void {
    const record = this.#records.get(uid);
    if (record !== undefined) this.#records.set(uid, { ...record, reinspect: true });
  }

  #count(pod: RuntimePod | undefined, by: 1 | -1): void {
    if (pod?.sandboxes.some(({ state }) => state === 'running')) this.#runningPods += by;
    for (const { state } of pod?.containers ?? []) this.#containers[state] += by;
  }
}
