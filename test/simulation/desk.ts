import { uidOf } from './manifests.ts';
import type { PodSketch } from './sketch.ts';

interface Sheet {
  readonly sketch: PodSketch;
  readonly uid: string;
  readonly state: 'good' | 'broken';
}

/** The manifests and API pods of the simulation, which define the desired pods. */
export class Desk {
  readonly #nowMs: () => number;
  readonly #sheets = new Map<string, Sheet>();
  readonly #sketches = new Map<string, PodSketch>();
  /**
   * The requested grace period of each pod whose deletion requested a shorter one than the pod
   * spec, by UID.
   */
  readonly #graces = new Map<string, number>();
  /** The last time at which each pod was not desired. */
  readonly #unwantedMs = new Map<string, number>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  write(sketch: PodSketch): void {
    const uid = uidOf(sketch);
    if (this.#sheets.get(sketch.name)?.uid !== uid) {
      this.remove(sketch.name);
      this.#unwantedMs.set(uid, this.#nowMs());
    }
    this.#sheets.set(sketch.name, { sketch, uid, state: 'good' });
    this.#sketches.set(uid, sketch);
  }

  remove(name: string): void {
    const uid = this.#sheets.get(name)?.uid;
    if (uid !== undefined) this.#unwantedMs.set(uid, this.#nowMs());
    this.#sheets.delete(name);
  }

  /** Records that the deletion of a pod requested a shorter grace period than the pod spec. */
  shorten(uid: string, graceSeconds: number): void {
    this.#graces.set(uid, Math.min(graceSeconds, this.graceOf(uid)));
  }

  /** The grace period of a pod that is or was desired. */
  graceOf(uid: string): number {
    return this.#graces.get(uid) ?? this.#sketches.get(uid)?.graceSeconds ?? 0;
  }

  /**
   * Makes a manifest invalid. If its pod was desired before, this and every later kubelet must keep
   * the pod running.
   */
  spoil(name: string): void {
    const sheet = this.#sheets.get(name);
    if (sheet !== undefined) this.#sheets.set(name, { ...sheet, state: 'broken' });
  }

  /** Makes a manifest valid again, with its previous content. */
  restore(name: string): void {
    const sheet = this.#sheets.get(name);
    if (sheet !== undefined) this.#sheets.set(name, { ...sheet, state: 'good' });
  }

  everyUid(): readonly string[] {
    return [...this.#sketches.keys()];
  }

  /** The desired pods: those whose manifest is valid. */
  wanted(): readonly { readonly uid: string; readonly sketch: PodSketch }[] {
    return [...this.#sheets.values()].filter(({ state }) => state === 'good');
  }

  /** All pods that are or were desired. */
  *all(): Iterable<{ readonly uid: string; readonly sketch: PodSketch }> {
    for (const [uid, sketch] of this.#sketches) yield { uid, sketch };
  }

  names(): readonly string[] {
    return [...this.#sheets.keys()];
  }

  isBroken(name: string): boolean {
    return this.#sheets.get(name)?.state === 'broken';
  }

  sketchOf(name: string): PodSketch | undefined {
    return this.#sheets.get(name)?.sketch;
  }

  /** The generated description of a pod that is or was desired. */
  known(uid: string): PodSketch | undefined {
    return this.#sketches.get(uid);
  }

  /** Whether the pod has been desired without interruption since the given time. */
  wantedSince(uid: string, sinceMs: number): boolean {
    const isThere = [...this.#sheets.values()].some((sheet) => sheet.uid === uid);
    return isThere && (this.#unwantedMs.get(uid) ?? Number.NEGATIVE_INFINITY) < sinceMs;
  }
}
