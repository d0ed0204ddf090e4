import { mayRun, type ObservedContainerState, type PodUid, type RuntimePod } from '../pods/index.ts';
import { itemsOf } from './lifecycle-events.ts';

export interface PodRecord {
  /** The listing that events were last made from. */
  readonly reported: RuntimePod | undefined;
  /** The newest listing. */
  readonly listed: RuntimePod | undefined;
  /** When that listing was asked for. */
  readonly stamp: number;
  /** Whether the pod must be inspected though nothing changed, as the last time failed or somebody asked for it. */
  readonly reinspect: boolean;
}

/** How much there is in the runtime, as far as the newest listings show. */
export interface Tally {
  /** With a ready sandbox. */
  readonly runningPods: number;
  readonly containers: Readonly<Record<ObservedContainerState, number>>;
}

/** What the listings showed of each pod, and which container belongs to which pod. */
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

  /** All pods of that name of which something runs, as far as listings show. */
  runningUnder(name: string, namespace: string): readonly PodUid[] {
    return [...this.#records].flatMap(([uid, { listed }]) => {
      if (listed?.name !== name || listed.namespace !== namespace) return [];
      return itemsOf(listed).some(mayRun) ? [uid] : [];
    });
  }

  /** The pod a container or sandbox belongs to. */
  ownerOf(containerId: string): PodUid | undefined {
    return this.#owners.get(containerId);
  }

  /** Takes a listing of one pod in; answers the record as it is now, or undefined if a newer one is known. */
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

  /** The cache holds what this record's listing led to. An inspection asked for since then is still to be done. */
  setReported(uid: PodUid, record: PodRecord): void {
    const reinspect = this.#records.get(uid) !== record;
    if (record.listed === undefined) this.#records.delete(uid);
    else this.#records.set(uid, { ...record, reported: record.listed, reinspect });
  }

  /** Does nothing for a pod the runtime has nothing of: there is nothing to inspect. */
  reinspect(uid: PodUid): void {
    const record = this.#records.get(uid);
    if (record !== undefined) this.#records.set(uid, { ...record, reinspect: true });
  }

  #count(pod: RuntimePod | undefined, by: 1 | -1): void {
    if (pod?.sandboxes.some(({ state }) => state === 'running')) this.#runningPods += by;
    for (const { state } of pod?.containers ?? []) this.#containers[state] += by;
  }
}
