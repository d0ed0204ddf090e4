import {
  annotations,
  fullNameOf,
  isMirrorPod,
  isStaticPod,
  type Pod,
  type PodFullName,
  type PodUid,
  podUid,
} from './pod.ts';

/** A pod and its mirror, whichever of the two was asked about. */
export interface PodWithMirror {
  /** Undefined when a mirror was asked about whose static pod is gone. */
  readonly pod: Pod | undefined;
  readonly mirrorPod: Pod | undefined;
  /** Which of them was asked about. */
  readonly asked: 'pod' | 'mirror';
}

export interface PodsAndMirrors {
  readonly pods: readonly Pod[];
  readonly mirrorPods: readonly Pod[];
  /** Full names of mirrors that mirror nothing any more. */
  readonly orphanedMirrors: readonly PodFullName[];
}

export interface UidTranslations {
  /** Every static pod is in it; one without a mirror has the empty UID. */
  readonly podToMirror: ReadonlyMap<PodUid, PodUid>;
  readonly mirrorToPod: ReadonlyMap<PodUid, PodUid>;
}

/**
 * The desired pods of the node: what should run, which the workers bring about. Regular and static pods are pods;
 * mirrors are kept beside them, found by the full name they share with their static pod. Everything is answered in
 * the order it was added, and nothing handed out may be changed.
 */
export class PodManager {
  readonly #pods = new Map<PodUid, Pod>();
  readonly #mirrors = new Map<PodUid, Pod>();
  /** Of several pods of one name the newest, as users mean it by that name. */
  readonly #podByName = new Map<PodFullName, Pod>();
  readonly #mirrorByName = new Map<PodFullName, Pod>();
  /**
   * From mirror to static pod. It outlives the static pod, whose last statuses must still reach the mirror, and goes
   * with the mirror.
   */
  readonly #translations = new Map<PodUid, PodUid>();

  addPod(pod: Pod): void {
    this.updatePod(pod);
  }

  /** Adding and updating are the same: what is known of that UID is replaced. */
  updatePod(pod: Pod): void {
    const name = fullNameOf(pod);
    if (isMirrorPod(pod)) {
      this.#mirrors.set(pod.metadata.uid, pod);
      this.#mirrorByName.set(name, pod);
    } else {
      this.#pods.set(pod.metadata.uid, pod);
      this.#podByName.set(name, pod);
    }
    this.#translate(name);
  }

  /** Removing what is not known does nothing. */
  removePod(pod: Pod): void {
    const { uid } = pod.metadata;
    if (isMirrorPod(pod)) {
      removeName(this.#mirrors, this.#mirrorByName, pod);
      this.#translations.delete(uid);
    } else {
      removeName(this.#pods, this.#podByName, pod);
    }
    this.#translate(fullNameOf(pod));
  }

  getPods(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  getPodsAndMirrorPods(): PodsAndMirrors {
    return {
      pods: this.getPods(),
      mirrorPods: [...this.#mirrors.values()],
      orphanedMirrors: [...this.#mirrorByName.keys()].filter((name) => !this.#podByName.has(name)),
    };
  }

  /** Mirrors are not found by UID: translate what a user supplied first. */
  getPodByUid(uid: PodUid): Pod | undefined {
    return this.#pods.get(uid);
  }

  /**
   * What the API has of the pod: the pod itself, or the mirror of a static one. A mirror may outlive its static pod, whose
   * last statuses it shows; one of another version of the static pod says nothing of this one.
   */
  getApiPod(uid: PodUid): Pod | undefined {
    const pod = this.#pods.get(uid);
    if (pod !== undefined && !isStaticPod(pod)) return pod;
    const mirrors = [...this.#translations]
      .filter(([, own]) => own === uid)
      .map(([id]) => this.#mirrors.get(id));
    return mirrors.findLast(
      (mirror) => mirror !== undefined && (pod === undefined || isMirrorPodOf(mirror, pod)),
    );
  }

  getPodByFullName(name: PodFullName): Pod | undefined {
    return this.#podByName.get(name);
  }

  getPodByName(namespace: string, name: string): Pod | undefined {
    return this.#podByName.get(`${name}_${namespace}` as PodFullName);
  }

  getPodByMirrorPod(mirror: Pod): Pod | undefined {
    return this.#podByName.get(fullNameOf(mirror));
  }

  getMirrorPodByPod(pod: Pod): Pod | undefined {
    return this.#mirrorByName.get(fullNameOf(pod));
  }

  /** The static pod that is wanted under the name, and the mirror there is of that name. */
  getStaticPair(name: PodFullName): { readonly pod: Pod | undefined; readonly mirror: Pod | undefined } {
    const pod = this.#podByName.get(name);
    const isStatic = pod !== undefined && isStaticPod(pod);
    return { pod: isStatic ? pod : undefined, mirror: this.#mirrorByName.get(name) };
  }

  getPodAndMirrorPod(pod: Pod): PodWithMirror {
    return isMirrorPod(pod)
      ? { pod: this.getPodByMirrorPod(pod), mirrorPod: pod, asked: 'mirror' }
      : { pod, mirrorPod: this.getMirrorPodByPod(pod), asked: 'pod' };
  }

  /** The UID things really run under, for any UID users know: the mirror's becomes that of its static pod. */
  translatePodUid(uid: PodUid): PodUid {
    return this.#translations.get(uid) ?? uid;
  }

  getUidTranslations(): UidTranslations {
    const podToMirror = new Map<PodUid, PodUid>();
    for (const pod of this.#pods.values())
      if (isStaticPod(pod)) podToMirror.set(pod.metadata.uid, podUid(''));
    for (const [mirror, pod] of this.#translations) podToMirror.set(pod, mirror);
    return { podToMirror, mirrorToPod: new Map(this.#translations) };
  }

  /** Whichever half of a pair came second completes it. */
  #translate(name: PodFullName): void {
    const pod = this.#podByName.get(name);
    const mirror = this.#mirrorByName.get(name);
    if (pod !== undefined && mirror !== undefined)
      this.#translations.set(mirror.metadata.uid, pod.metadata.uid);
  }
}

/** Whether the mirror shows this very version of the static pod. */
export function isMirrorPodOf(mirror: Pod, pod: Pod): boolean {
  const shown = mirror.metadata.annotations?.[annotations.mirror];
  return (
    fullNameOf(mirror) === fullNameOf(pod) &&
    shown !== undefined &&
    shown === pod.metadata.annotations?.[annotations.hash]
  );
}

/** The name goes to the newest of those left that have it: two pods of one name may overlap for a while. */
function removeName(byUid: Map<PodUid, Pod>, byName: Map<PodFullName, Pod>, pod: Pod): void {
  const name = fullNameOf(pod);
  byUid.delete(pod.metadata.uid);
  if (byName.get(name)?.metadata.uid !== pod.metadata.uid) return;
  const heir = [...byUid.values()].findLast((other) => fullNameOf(other) === name);
  if (heir === undefined) byName.delete(name);
  else byName.set(name, heir);
}
