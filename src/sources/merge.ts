import {
  annotations,
  changeOf,
  fullNameOf,
  isLocalAnnotation,
  type Pod,
  type PodUid,
} from '../pods/index.ts';

export type PodOperation = 'ADD' | 'UPDATE' | 'DELETE' | 'REMOVE' | 'RECONCILE';

/** What is known of the pods of one source. */
export type KnownPods = ReadonlyMap<PodUid, Pod>;

export interface Merged {
  readonly known: KnownPods;
  readonly changes: Readonly<Record<PodOperation, readonly Pod[]>>;
}

/**
 * The order in which changes are told. What is removed goes first: a pod recreated under its old name is another pod
 * with the same name, and must not meet its predecessor.
 */
export const tellingOrder: readonly PodOperation[] = ['REMOVE', 'ADD', 'UPDATE', 'DELETE', 'RECONCILE'];

/** Compares the complete list a source has sent with what was known. Names and UIDs in the list must be unique. */
export function mergePods(before: KnownPods, pods: readonly Pod[], seen: string): Merged {
  const known = new Map<PodUid, Pod>();
  const changes = { ADD: [], UPDATE: [], DELETE: [], REMOVE: [], RECONCILE: [] } as Record<
    PodOperation,
    Pod[]
  >;
  for (const pod of pods) {
    const { uid } = pod.metadata;
    const { result, operation } = mergePod(before.get(uid), pod, seen);
    known.set(uid, result);
    if (operation !== undefined) changes[operation].push(result);
  }
  for (const [uid, pod] of before) if (!known.has(uid)) changes.REMOVE.push(pod);
  return { known, changes };
}

interface MergedPod {
  readonly result: Pod;
  readonly operation: PodOperation | undefined;
}

function mergePod(existing: Pod | undefined, pod: Pod, seen: string): MergedPod {
  if (existing === undefined)
    return { result: withAnnotation(pod, annotations.seen, seen), operation: 'ADD' };
  switch (changeOf(existing, pod)) {
    case 'none':
      return { result: existing, operation: undefined };
    case 'status':
      return { result: { ...existing, status: pod.status }, operation: 'RECONCILE' };
    case 'desired':
      return {
        result: refreshed(existing, pod),
        operation: pod.metadata.deletionTimestamp === undefined ? 'UPDATE' : 'DELETE',
      };
  }
}

/** Everything anybody acts on is taken over; owners, finalizers and the resource version stay as first seen. */
function refreshed(existing: Pod, pod: Pod): Pod {
  const { labels, deletionTimestamp, deletionGracePeriodSeconds, generation } = pod.metadata;
  return {
    ...existing,
    metadata: {
      ...existing.metadata,
      labels,
      deletionTimestamp,
      deletionGracePeriodSeconds,
      generation,
      annotations: { ...pod.metadata.annotations, ...localAnnotationsOf(existing) },
    },
    spec: pod.spec,
    status: pod.status,
  };
}

function localAnnotationsOf(pod: Pod): Readonly<Record<string, string>> {
  const written = Object.entries(pod.metadata.annotations ?? {});
  return Object.fromEntries(written.filter(([key]) => isLocalAnnotation(key)));
}

export function withAnnotation(pod: Pod, key: string, value: string): Pod {
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, [key]: value } },
  };
}

/** A pod left out of a list because of one before it. */
export interface RepeatedPod {
  readonly pod: Pod;
  readonly what: 'name' | 'UID';
}

/** Of pods with one full name or one UID the first stays. */
export function withoutRepeats(pods: readonly Pod[]): {
  readonly unique: readonly Pod[];
  readonly repeated: readonly RepeatedPod[];
} {
  const names = new Set<string>();
  const uids = new Set<PodUid>();
  const unique: Pod[] = [];
  const repeated: RepeatedPod[] = [];
  for (const pod of pods) {
    const name = fullNameOf(pod);
    const what = names.has(name) ? 'name' : uids.has(pod.metadata.uid) ? 'UID' : undefined;
    if (what === undefined) unique.push(pod);
    else repeated.push({ pod, what });
    names.add(name);
    uids.add(pod.metadata.uid);
  }
  return { unique, repeated };
}
