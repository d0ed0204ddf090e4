import { annotations, changeOf, type Pod, type PodUid } from '../pods/index.ts';
import type { KnownPods, PodOperation } from './merge.ts';

/** What the sync loop was told of a source. */
export type ToldPods = KnownPods;

export interface Change {
  readonly op: PodOperation;
  readonly pods: readonly Pod[];
  /** What is told once this is. */
  readonly told: ToldPods;
}

/**
 * The order in which changes are told. What is removed goes first: a pod recreated under its old name is another pod
 * with the same name, and must not meet its predecessor.
 */
const tellingOrder: readonly PodOperation[] = ['REMOVE', 'ADD', 'UPDATE', 'DELETE', 'RECONCILE'];

/**
 * What is to be told next, one kind at a time, to get from what was told to what is known; undefined when nothing is.
 * A first list that has no pods is told all the same: it is how the sync loop learns that the source is there.
 */
export function nextChange(told: ToldPods | undefined, known: KnownPods): Change | undefined {
  const before = told ?? new Map<PodUid, Pod>();
  const changes = changesBetween(before, known);
  const op = tellingOrder.find((each) => changes.has(each));
  if (op === undefined) return told === undefined ? { op: 'ADD', pods: [], told: known } : undefined;
  const pods = changes.get(op) ?? [];
  const after = new Map(before);
  for (const pod of pods) {
    if (op === 'REMOVE') after.delete(pod.metadata.uid);
    else after.set(pod.metadata.uid, pod);
  }
  return { op, pods, told: after };
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

/** One that was gone in between begins anew, even if it looks the same. */
function isSameLife(before: Pod, now: Pod | undefined): boolean {
  const seen = (pod: Pod) => pod.metadata.annotations?.[annotations.seen];
  return now !== undefined && seen(before) === seen(now);
}
