import type { ObservedContainerState, PodUid, RuntimeItem, RuntimePod } from '../pods/index.ts';

export interface ContainerLifecycleEvent {
  readonly type: 'ContainerStarted' | 'ContainerDied' | 'ContainerRemoved';
  readonly uid: PodUid;
  /** The ID of a container or a sandbox. */
  readonly containerId: string;
  /** Whether a previous event of the same relist already triggers a sync of the pod. */
  readonly sync?: 'requested';
}

export type PodLifecycleEvent =
  | ContainerLifecycleEvent
  /** A requested inspection of the pod that found no change. */
  | { readonly type: 'PodSync'; readonly uid: PodUid };

/** A state change of a container or sandbox; an undefined state means that it is not listed. */
export interface ItemChange {
  readonly id: string;
  readonly from: ObservedContainerState | undefined;
  readonly to: ObservedContainerState | undefined;
}

/** The differences between two listings of a pod, in the order of the listings. */
export function changesBetween(
  before: RuntimePod | undefined,
  after: RuntimePod | undefined,
): readonly ItemChange[] {
  const [old, now] = [statesOf(before), statesOf(after)];
  const ids = new Set([...old.keys(), ...now.keys()]);
  return [...ids]
    .map((id) => ({ id, from: old.get(id), to: now.get(id) }))
    .filter(({ from, to }) => from !== to);
}

export function itemsOf(pod: RuntimePod | undefined): readonly RuntimeItem[] {
  return pod === undefined ? [] : [...pod.containers, ...pod.sandboxes];
}

function statesOf(pod: RuntimePod | undefined): ReadonlyMap<string, ObservedContainerState> {
  return new Map(itemsOf(pod).map(({ id, state }) => [id, state]));
}

/** The pod lifecycle events of the changes; created and unknown states only update the cache. */
export function eventsOf(uid: PodUid, changes: readonly ItemChange[]): readonly ContainerLifecycleEvent[] {
  return changes.flatMap(({ id: containerId, from, to }): ContainerLifecycleEvent[] => {
    if (to === 'running') return [{ type: 'ContainerStarted', uid, containerId }];
    if (to === 'exited') return [{ type: 'ContainerDied', uid, containerId }];
    if (to !== undefined) return [];
    const removed = { type: 'ContainerRemoved', uid, containerId } as const;
    return from === 'exited' ? [removed] : [{ type: 'ContainerDied', uid, containerId }, removed];
  });
}
