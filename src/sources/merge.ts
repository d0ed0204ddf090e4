import {
  annotations,
  changeOf,
  fullNameOf,
  isLocalAnnotation,
  type Pod,
  type PodUid,
} from '../pods/index.ts';

export type PodOperation = 'ADD' | 'UPDATE' | 'DELETE' | 'REMOVE' | 'RECONCILE';

/** The merged pods of one source, by UID. */
export type KnownPods = ReadonlyMap<PodUid, Pod>;

/** Changes of a source's pod list. No two present pods have the same name or the same UID. */
export interface PodListChanges {
  readonly removed: readonly PodUid[];
  readonly present: readonly Pod[];
}

/** A listed pod with the time at which it was first seen, or 'as-before' when it is unchanged. */
export type ListedPod = { readonly pod: Pod; readonly seenAt: string } | 'as-before';

/**
 * Returns the merged pods of a source after it has sent a complete list. Names and UIDs in the list
 * must be unique.
 */
export function mergePods(
  before: KnownPods,
  pods: readonly Pod[],
  arrivalOf: (pod: Pod) => ListedPod,
): Map<PodUid, Pod> {
  const known = new Map<PodUid, Pod>();
  for (const pod of pods) {
    const { uid } = pod.metadata;
    const existing = before.get(uid);
    const arrival = arrivalOf(pod);
    if (arrival !== 'as-before') known.set(uid, mergePod(existing, arrival.pod, arrival.seenAt));
    else if (existing !== undefined) known.set(uid, existing);
  }
  return known;
}

export function mergePod(existing: Pod | undefined, pod: Pod, seenAt: string): Pod {
  if (existing === undefined) return withAnnotation(pod, annotations.seen, seenAt);
  switch (changeOf(existing, pod)) {
    case 'none':
      return existing;
    case 'status':
      return { ...existing, status: pod.status };
    case 'desired':
      return withUpdate(existing, pod);
  }
}

/**
 * Updates all fields that the kubelet acts on. Owners, finalizers and the resource version keep
 * their first values.
 */
function withUpdate(existing: Pod, pod: Pod): Pod {
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
  const present = Object.entries(pod.metadata.annotations ?? {});
  return Object.fromEntries(present.filter(([key]) => isLocalAnnotation(key)));
}

export function withAnnotation(pod: Pod, key: string, value: string): Pod {
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, [key]: value } },
  };
}

/** A pod that is omitted because an earlier pod of the list has the same name or UID. */
export interface DuplicatePod {
  readonly pod: Pod;
  readonly what: 'name' | 'UID';
}

/** Keeps the first of several pods with the same full name or UID, and returns the omitted ones. */
export function dropDuplicates(pods: readonly Pod[]): {
  readonly unique: readonly Pod[];
  readonly repeated: readonly DuplicatePod[];
} {
  const names = new Set<string>();
  const uids = new Set<PodUid>();
  const unique: Pod[] = [];
  const repeated: DuplicatePod[] = [];
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
