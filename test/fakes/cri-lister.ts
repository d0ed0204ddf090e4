import type { Container, CriClient, PodSandbox } from '../../src/cri/index.ts';
import type { RuntimeLister } from '../../src/pleg/index.ts';
import { type ObservedContainerState, type PodUid, podUid, type RuntimePod } from '../../src/pods/index.ts';

const states: Readonly<Record<string, ObservedContainerState>> = {
  CONTAINER_CREATED: 'created',
  CONTAINER_RUNNING: 'running',
  CONTAINER_EXITED: 'exited',
};

/**
 * Lists pods and containers through the CRI, with only the fields that an event generator needs;
 * the runtime package reports many more.
 */
export function criLister(cri: CriClient): RuntimeLister {
  const listPods = async (signal: AbortSignal) => {
    const [sandboxes, containers] = await Promise.all([
      cri.listPodSandbox({}, signal),
      cri.listContainers({}, signal),
    ]);
    return podsOf(sandboxes.items, containers.containers);
  };
  return {
    listPods,
    listPod: async (uid, signal) => (await listPods(signal)).find((pod) => pod.uid === uid),
    observe: async ({ uid, name, namespace, sandboxes }, signal) => {
      for (const { id } of sandboxes) await cri.podSandboxStatus({ podSandboxId: id }, signal);
      return { uid, name, namespace, ips: [], sandboxes: [], containers: [] };
    },
  };
}

function podsOf(sandboxes: readonly PodSandbox[], containers: readonly Container[]): readonly RuntimePod[] {
  const uids = new Map(sandboxes.map(({ id, metadata }) => [id, podUid(metadata?.uid ?? '')]));
  const names = new Map(sandboxes.map(({ metadata }) => [podUid(metadata?.uid ?? ''), metadata]));
  const of = (uid: PodUid) => ({
    sandboxes: sandboxes
      .filter(({ id }) => uids.get(id) === uid)
      .map(({ id, state, createdAt }) => ({
        id,
        state: state === 'SANDBOX_READY' ? ('running' as const) : ('exited' as const),
        createdAtNs: createdAt,
      })),
    containers: containers
      .filter(({ podSandboxId }) => uids.get(podSandboxId) === uid)
      .map(({ id, state, createdAt, metadata, podSandboxId }) => ({
        id,
        state: states[state] ?? ('unknown' as const),
        createdAtNs: createdAt,
        name: metadata?.name ?? '',
        sandboxId: podSandboxId,
        image: '',
      })),
  });
  return [...new Set(uids.values())].map((uid) => ({
    uid,
    name: names.get(uid)?.name ?? '',
    namespace: names.get(uid)?.namespace ?? '',
    ...of(uid),
  }));
}
