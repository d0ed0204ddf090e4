import type { ObservedContainer, ObservedPod, Pod } from '../pods/index.ts';

/** A pod with a running container, with the data needed to read its usage. */
export interface PodSubject {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly pod: Pod | undefined;
  /** Start time of the pod in RFC 3339 format. */
  readonly startTime: string | undefined;
  /** Path of the pod's cgroup below each tree; empty when it has none. */
  readonly cgroup: string;
  readonly network: 'pod' | 'node';
  readonly sandbox: { readonly id: string; readonly createdAtMs: number } | undefined;
  readonly containers: readonly ContainerSubject[];
}

export interface ContainerSubject {
  readonly id: string;
  readonly name: string;
  readonly image: string;
  readonly createdAtMs: number;
}

/**
 * Returns the pods with a running container. The ready sandbox of a recreated pod is used, and the
 * newest instance of each container.
 */
export function podSubjects(
  observed: readonly ObservedPod[],
  known: (uid: ObservedPod['uid']) => Pod | undefined,
  cgroupOf: (pod: Pod) => string,
): readonly PodSubject[] {
  return observed.flatMap((each) => {
    const running = newestOfEach(each.containers.filter(({ state }) => state === 'running'));
    if (running.length === 0) return [];
    const { uid, name, namespace, sandboxes } = each;
    const pod = known(uid);
    const sandbox = sandboxes.find(({ state }) => state === 'ready') ?? sandboxes[0];
    return [
      {
        uid,
        name,
        namespace,
        pod,
        startTime: pod?.status.startTime,
        cgroup: pod === undefined ? '' : cgroupOf(pod),
        network: sandbox?.network ?? 'pod',
        sandbox: sandbox && { id: sandbox.id, createdAtMs: msOf(sandbox.createdAtNs) },
        containers: running.map(({ id, name: called, image, createdAtNs }) => ({
          id,
          name: called,
          image,
          createdAtMs: msOf(createdAtNs),
        })),
      },
    ];
  });
}

/** Relies on containers being sorted newest first. */
function newestOfEach(containers: readonly ObservedContainer[]): readonly ObservedContainer[] {
  const newest = new Map<string, ObservedContainer>();
  for (const each of containers) if (!newest.has(each.name)) newest.set(each.name, each);
  return [...newest.values()];
}

function msOf(nanos: bigint): number {
  return Number(nanos / 1_000_000n);
}
