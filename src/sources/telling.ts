import { annotations, changeOf, type Pod, type PodUid } from '../pods/index.ts';
import { type KnownPods, type PodOperation, withAnnotation } from './merge.ts';

export interface Change {
  readonly op: PodOperation;
  readonly pods: readonly Pod[];
}

/** What the sync loop was told of a source, and of which pods that may not be what is known of them. */
export interface Told {
  readonly pods: Map<PodUid, Pod>;
  readonly doubtful: Set<PodUid>;
}

/**
 * The order in which changes are told. What is removed goes first: a pod recreated under its old name is another pod
 * with the same name, and must not meet its predecessor.
 */
const tellingOrder: readonly PodOperation[] = ['REMOVE', 'ADD', 'UPDATE', 'DELETE', 'RECONCILE'];

/** Whether a pod that was told is on its way out or has ended. */
export type HasEnded = (uid: PodUid) => boolean;

/**
 * What is to be told next to get from what was told to what is known, one kind at a time; undefined when everything is
 * told. It counts as told from then on. Takes as long as there are pods in doubt, however many there are.
 */
export function tellNext(told: Told, known: KnownPods, hasEnded: HasEnded): Change | undefined {
  const changes = changesOf(told, known, hasEnded);
  const op = tellingOrder.find((each) => changes.has(each));
  if (op === undefined) return undefined;
  const pods = changes.get(op) ?? [];
  for (const pod of pods) {
    const { uid } = pod.metadata;
    if (op === 'REMOVE') told.pods.delete(uid);
    else told.pods.set(uid, pod);
  }
  return { op, pods };
}

/** One that was gone in between, and nobody knew, goes on, unless it has ended: then it is wanted once more. */
function adopt(before: Pod, now: Pod | undefined, hasEnded: HasEnded): Pod {
  if (now === undefined || isSameLife(before, now) || hasEnded(now.metadata.uid)) return before;
  return withAnnotation(before, annotations.seen, now.metadata.annotations?.[annotations.seen] ?? '');
}

function changesOf(
  { pods, doubtful }: Told,
  known: KnownPods,
  hasEnded: HasEnded,
): ReadonlyMap<PodOperation, readonly Pod[]> {
  const changes = new Map<PodOperation, Pod[]>();
  for (const uid of doubtful) {
    const [told, now] = [pods.get(uid), known.get(uid)];
    const before = told && adopt(told, now, hasEnded);
    if (before !== undefined && before !== told) pods.set(uid, before);
    const op = operationOf(before, now);
    const pod = op === 'REMOVE' ? before : now;
    if (op === undefined || pod === undefined) {
      doubtful.delete(uid);
      continue;
    }
    const same = changes.get(op);
    if (same === undefined) changes.set(op, [pod]);
    else same.push(pod);
  }
  return changes;
}

function operationOf(before: Pod | undefined, pod: Pod | undefined): PodOperation | undefined {
  if (before === undefined) return pod === undefined ? undefined : 'ADD';
  if (before === pod) return undefined;
  if (pod === undefined || !isSameLife(before, pod)) return 'REMOVE';
  switch (changeOf(before, pod)) {
    case 'none':
      return undefined;
    case 'status':
      return 'RECONCILE';
    case 'desired':
      return pod.metadata.deletionTimestamp === undefined ? 'UPDATE' : 'DELETE';
  }
}

function isSameLife(before: Pod, now: Pod): boolean {
  const seen = (pod: Pod) => pod.metadata.annotations?.[annotations.seen];
  return seen(before) === seen(now);
}
