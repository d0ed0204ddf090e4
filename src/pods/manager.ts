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

/** A static pod and its mirror pod, and which of the two was requested. */
export interface PodWithMirror {
  /** The static pod; undefined for a mirror pod whose static pod was removed. */
  readonly pod: Pod | undefined;
  readonly mirrorPod: Pod | undefined;
  /** Whether the static pod or the mirror pod was requested. */
  readonly asked: 'pod' | 'mirror';
}

export interface PodsAndMirrors {
  readonly pods: readonly Pod[];
  readonly mirrorPods: readonly Pod[];
  /** The full names of mirror pods whose static pod was removed. */
  readonly orphanedMirrors: readonly PodFullName[];
}

export interface UidTranslations {
  /** The UID of the mirror pod of every static pod; empty for one without a mirror pod. */
  readonly podToMirror: ReadonlyMap<PodUid, PodUid>;
  readonly mirrorToPod: ReadonlyMap<PodUid, PodUid>;
}

/**
 * The desired pods of the node. Lists of pods contain regular and static pods; mirror pods are
 * stored separately and found by the full name they share with their static pod. Lists are in
 * insertion order, and returned pods must not be changed.
 */
export class PodManager {
  readonly #pods = new Map<PodUid, Pod>();
  readonly #mirrors = new Map<PodUid, Pod>();
  /**
   * The pods by name; the newest of several pods with the same name, which is the one that users
   * mean.
   */
  readonly #podByName = new Map<PodFullName, Pod>();
  readonly #mirrorByName = new Map<PodFullName, Pod>();
  /**
   * The UID of the static pod by that of its mirror pod. The entry is kept after the static pod was
   * removed, because its last status is still written to the mirror pod, and is removed with the
   * mirror pod.
   */
  readonly #translations = new Map<PodUid, PodUid>();

  addPod(pod: Pod): void {
    this.updatePod(pod);
  }

  /** Adds or updates a pod: replaces the stored pod with that UID. */
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

  /** Removes a pod; does nothing for an unknown one. */
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

  /**
   * Finds a pod by UID. Mirror pods are not found: UIDs that API clients pass must be translated
   * first.
   */
  getPodByUid(uid: PodUid): Pod | undefined {
    return this.#pods.get(uid);
  }

  /**
   * The API object of the pod: the pod itself, or the mirror pod of a static pod. A mirror pod may
   * exist longer than its static pod and show its last status; a mirror pod of another version of
   * the static pod is not returned.
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

  /** The desired static pod with the name, and the existing mirror pod. */
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

  /**
   * Translates the UID of a mirror pod to that of its static pod; other UIDs are returned
   * unchanged.
   */
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

  /** Links a static pod and its mirror pod when the second of the two is added. */
  #translate(name: PodFullName): void {
    const pod = this.#podByName.get(name);
    const mirror = this.#mirrorByName.get(name);
    if (pod !== undefined && mirror !== undefined)
      this.#translations.set(mirror.metadata.uid, pod.metadata.uid);
  }
}

/** Whether the mirror pod belongs to exactly this version of the static pod. */
export function isMirrorPodOf(mirror: Pod, pod: Pod): boolean {
  const shown = mirror.metadata.annotations?.[annotations.mirror];
  return (
    fullNameOf(mirror) === fullNameOf(pod) &&
    shown !== undefined &&
    shown === pod.metadata.annotations?.[annotations.hash]
  );
}

/**
 * Maps the name to the newest remaining pod: two pods with the same name may exist at the same
 * time.
 */
function removeName(byUid: Map<PodUid, Pod>, byName: Map<PodFullName, Pod>, pod: Pod): void {
  const name = fullNameOf(pod);
  byUid.delete(pod.metadata.uid);
  if (byName.get(name)?.metadata.uid !== pod.metadata.uid) return;
  const heir = [...byUid.values()].findLast((other) => fullNameOf(other) === name);
  if (heir === undefined) byName.delete(name);
  else byName.set(name, heir);
}
