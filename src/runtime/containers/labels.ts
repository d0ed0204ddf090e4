import type { Container } from '../../kinds/index.ts';
import { type Pod, type PodUid, podUid } from '../../pods/index.ts';

/** What marks sandboxes and containers of the runtime as ours. */
export const labels = {
  podName: 'io.kubernetes.pod.name',
  podNamespace: 'io.kubernetes.pod.namespace',
  podUid: 'io.kubernetes.pod.uid',
  containerName: 'io.kubernetes.container.name',
} as const;

export interface LabelledOwner {
  readonly podName: string;
  readonly namespace: string;
  readonly uid: PodUid;
  /** Empty on sandboxes. */
  readonly containerName: string;
}

/** Our own labels win over labels of the same name in the pod. */
export function sandboxLabels(pod: Pod): Record<string, string> {
  return { ...pod.metadata.labels, ...podLabels(pod) };
}

export function containerLabels(pod: Pod, container: Container): Record<string, string> {
  return { ...podLabels(pod), [labels.containerName]: container.name };
}

function podLabels({ metadata }: Pod): Record<string, string> {
  return {
    [labels.podName]: metadata.name,
    [labels.podNamespace]: metadata.namespace,
    [labels.podUid]: metadata.uid,
  };
}

/** Whose it is; undefined for what no kubelet made. */
export function readOwner(from: Readonly<Record<string, string>>): LabelledOwner | undefined {
  const uid = from[labels.podUid];
  if (uid === undefined || uid === '') return undefined;
  return {
    uid: podUid(uid),
    podName: from[labels.podName] ?? '',
    namespace: from[labels.podNamespace] ?? '',
    containerName: from[labels.containerName] ?? '',
  };
}
