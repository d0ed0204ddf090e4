import { annotations, changeOf, type Pod, type PodUid } from '../pods/index.ts';
import { type KnownPods, type PodOperation, withAnnotation } from './merge.ts';

/** What the sync loop was told of a source. */
export type ToldPods = KnownPods;

export interface Change {
  readonly op: PodOperation;
  readonly pods: readonly Pod[];
}

export interface Telling {
  /** One kind at a time; undefined when everything is told. */
  readonly next: Change | undefined;
  /** What is told once that is. */
  readonly told: ToldPods;
}

/**
 * The order in which changes are told. What is removed goes first: a pod recreated under its old name is another pod
 * with the same name, and must not meet its predecessor.
 */
const tellingOrder: readonly PodOperation[] = ['REMOVE', 'ADD', 'UPDATE', 'DELETE', 'RECONCILE'];

/** Whether a pod that was told is on its way out or has ended. */
export type HasEnded = (uid: PodUid) => boolean;

/**
 * What is to be told next to get from what was told to what is known. A first list that has no pods is told all the
 * same: it is how the sync loop learns that the source is there.
 */
export function tell(told: ToldPods | undefined, known: KnownPods, hasEnded: HasEnded): Telling {
  if (told === undefined && known.size === 0) return { next: { op: 'ADD', pods: [] }, told: known };
  const before = new Map([...(told ?? [])].map(([uid, pod]) => [uid, adopt(pod, known.get(uid), hasEnded)]));
  const changes = changesBetween(before, known);
  const op = tellingOrder.find((each) => changes.has(each));
  if (op === undefined) return { next: undefined, told: before };
  const pods = changes.get(op) ?? [];
  for (const pod of pods) {
    if (op === 'REMOVE') before.delete(pod.metadata.uid);
    else before.set(pod.metadata.uid, pod);
  }
  return { next: { op, pods }, told: before };
}

/** One that was gone in between, and nobody knew, goes on, unless it has ended: then it is wanted once more. */
function adopt(before: Pod, now: Pod | undefined, hasEnded: HasEnded): Pod {
  if (now === undefined || isSameLife(before, now) || hasEnded(now.metadata.uid)) return before;
  return withAnnotation(before, annotations.seen, now.metadata.annotations?.[annotations.seen] ?? '');
}

function changesBetween(told: ToldPods, known: KnownPods): ReadonlyMap<PodOperation, readonly Pod[]> {
  const changes = new Map<PodOperation, Pod[]>();
  const add = (op: PodOperation, pod: Pod) => {
    const same = changes.get(op);
    if (same === undefined) changes.set(op, [pod]);
    else same.push(pod);
  };
  for (const [uid, pod] of told) if (!isSameLife(pod, known.get(uid))) add('REMOVE', pod);
  for (const [uid, pod] of known) {
    const op = operationOf(told.get(uid), pod);
    if (op !== undefined) add(op, pod);
  }
  return changes;
}

function operationOf(before: Pod | undefined, pod: Pod): PodOperation | undefined {
  if (before === undefined) return 'ADD';
  if (before === pod || !isSameLife(before, pod)) return undefined;
  switch (changeOf(before, pod)) {
    case 'none':
      return undefined;
    case 'status':
      return 'RECONCILE';
    case 'desired':
      return pod.metadata.deletionTimestamp === undefined ? 'UPDATE' : 'DELETE';
  }
}

function isSameLife(before: Pod, now: Pod | undefined): boolean {
  const seen = (pod: Pod) => pod.metadata.annotations?.[annotations.seen];
  return now !== undefined && seen(before) === seen(now);
}
