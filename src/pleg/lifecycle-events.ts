import type { ObservedContainerState, PodUid, RuntimeItem, RuntimePod } from '../pods/index.ts';

export interface ContainerLifecycleEvent {
  readonly type: 'ContainerStarted' | 'ContainerDied' | 'ContainerRemoved';
  readonly uid: PodUid;
  /** Of a container or a sandbox. */
  readonly containerId: string;
  /** Given when an event told before it, of the same look, makes for a sync of the pod that sees this too. */
  readonly sync?: 'asked-for';
}

export type PodLifecycleEvent =
  | ContainerLifecycleEvent
  /** The pod was looked at anew, and nothing of the above happened. */
  | { readonly type: 'PodSync'; readonly uid: PodUid };

/** One container or sandbox that is not what it was; undefined for not there. */
export interface ItemChange {
  readonly id: string;
  readonly from: ObservedContainerState | undefined;
  readonly to: ObservedContainerState | undefined;
}

/** All that differs between two looks at a pod, in the order of the listings. */
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

/** What to tell of changes; created and unknown ones are for the cache only. */
export function eventsOf(uid: PodUid, changes: readonly ItemChange[]): readonly ContainerLifecycleEvent[] {
  return changes.flatMap(({ id: containerId, from, to }): ContainerLifecycleEvent[] => {
    if (to === 'running') return [{ type: 'ContainerStarted', uid, containerId }];
    if (to === 'exited') return [{ type: 'ContainerDied', uid, containerId }];
    if (to !== undefined) return [];
    const removed = { type: 'ContainerRemoved', uid, containerId } as const;
    return from === 'exited' ? [removed] : [{ type: 'ContainerDied', uid, containerId }, removed];
  });
}
