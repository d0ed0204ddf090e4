import type { PodUid } from '../pods/index.ts';
import type { Claimant } from './claims.ts';

type StaticSource = 'file' | 'http';

interface Holder {
  readonly source: StaticSource;
  /** The file or URL with the line. */
  readonly where: string;
}

/** Which manifest has which UID, over all sources of manifests of one kubelet: who comes first has it until it goes. */
export class StaticUids {
  readonly #holders = new Map<PodUid, Holder>();
  /** Whether an earlier kubelet has let the pod run: nobody else remembers which of two manifests it used. */
  readonly wasInUse: (uid: PodUid) => boolean;

  constructor(wasInUse: (uid: PodUid) => boolean = () => false) {
    this.wasInUse = wasInUse;
  }

  /** Where another source has a pod of that UID. */
  elsewhere(uid: PodUid, source: StaticSource): string | undefined {
    const holder = this.#holders.get(uid);
    return holder === undefined || holder.source === source ? undefined : holder.where;
  }

  /** The source has these and no others. */
  hold(source: StaticSource, claimants: readonly Claimant[]): void {
    for (const [uid, holder] of this.#holders) if (holder.source === source) this.#holders.delete(uid);
    for (const { pod, path, at } of claimants)
      this.#holders.set(pod.metadata.uid, { source, where: `${path}:${at.line}` });
  }
}
