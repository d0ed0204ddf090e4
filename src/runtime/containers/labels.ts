import type { Container, ContainerPort, LifecycleHandler } from '../../kinds/index.ts';
import type { ObservedContainer, ObservedPod } from '../../pods/index.ts';
import { newestInstance, type Pod, type PodUid, podUid } from '../../pods/index.ts';
import { specHash } from './spec-hash.ts';

/** The labels that identify sandboxes and containers of the kubelet. */
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
  /** The name of the container; empty for a sandbox. */
  readonly containerName: string;
}

/**
 * Returns the labels of a sandbox: those of the pod, overridden by the kubelet's labels of the same
 * name.
 */
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

/**
 * Returns the pod and container that own a sandbox or container; undefined if the kubelet's labels
 * are missing.
 */
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

const names = {
  hash: 'io.kubernetes.container.hash',
  restartCount: 'io.kubernetes.container.restartCount',
  terminationMessagePath: 'io.kubernetes.container.terminationMessagePath',
  terminationMessagePolicy: 'io.kubernetes.container.terminationMessagePolicy',
  preStopHandler: 'io.kubernetes.container.preStopHandler',
  ports: 'io.kubernetes.container.ports',
  deletionGracePeriod: 'io.kubernetes.pod.deletionGracePeriod',
  terminationGracePeriod: 'io.kubernetes.pod.terminationGracePeriod',
} as const;

/**
 * The part of a container's spec that is stored in its annotations, for stopping it when the spec
 * is no longer available.
 */
export interface AnnotatedContainer {
  /**
   * The spec hash of the container; empty when the annotation is missing, so that the container
   * counts as changed.
   */
  readonly hash: string;
  readonly restartCount: number;
  readonly terminationMessagePath: string;
  readonly terminationMessagePolicy: string;
  readonly preStop: LifecycleHandler | undefined;
  readonly ports: readonly ContainerPort[];
  readonly deletionGraceSeconds: number | undefined;
  readonly terminationGraceSeconds: number | undefined;
}

/**
 * Returns the annotations of a container; `others` are the annotations of devices, which are
 * overridden by the kubelet's annotations.
 */
export function containerAnnotations(
  pod: Pod,
  container: Container,
  restartCount: number,
  others: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const preStop = container.lifecycle?.preStop;
  const ports = container.ports ?? [];
  const { deletionGracePeriodSeconds } = pod.metadata;
  const { terminationGracePeriodSeconds } = pod.spec;
  return {
    ...others,
    [names.hash]: specHash(container),
    [names.restartCount]: `${restartCount}`,
    [names.terminationMessagePath]: container.terminationMessagePath ?? '',
    [names.terminationMessagePolicy]: container.terminationMessagePolicy ?? '',
    ...given(names.preStopHandler, preStop === undefined ? undefined : JSON.stringify(preStop)),
    ...given(names.ports, ports.length === 0 ? undefined : JSON.stringify(ports)),
    ...given(names.deletionGracePeriod, deletionGracePeriodSeconds?.toString()),
    ...given(names.terminationGracePeriod, terminationGracePeriodSeconds?.toString()),
  };
}

function given(name: string, value: string | undefined): Record<string, string> {
  return value === undefined ? {} : { [name]: value };
}

/**
 * Reads the annotations of a container. Unreadable values count as missing, because another program
 * may have written them.
 */
export function readContainerAnnotations(from: Readonly<Record<string, string>>): AnnotatedContainer {
  const ports = parsed(from[names.ports]);
  const preStop = parsed(from[names.preStopHandler]);
  return {
    hash: from[names.hash] ?? '',
    restartCount: whole(from[names.restartCount]) ?? 0,
    terminationMessagePath: from[names.terminationMessagePath] ?? '',
    terminationMessagePolicy: from[names.terminationMessagePolicy] ?? '',
    preStop: typeof preStop === 'object' && preStop !== null ? (preStop as LifecycleHandler) : undefined,
    ports: Array.isArray(ports) ? (ports as ContainerPort[]) : [],
    deletionGraceSeconds: whole(from[names.deletionGracePeriod]),
    terminationGraceSeconds: whole(from[names.terminationGracePeriod]),
  };
}

function whole(text: string | undefined): number | undefined {
  return text !== undefined && /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Restores a pod from the annotations of its containers, for stopping a pod without a spec: names,
 * grace periods, ports and hooks.
 */
export function restorePod(observed: ObservedPod): Pod {
  const known = observed.containers.map(({ annotations }) => readContainerAnnotations(annotations));
  const deletionGrace = known.find(({ deletionGraceSeconds }) => deletionGraceSeconds !== undefined);
  const grace = known.find(({ terminationGraceSeconds }) => terminationGraceSeconds !== undefined);
  const names = [...new Set(observed.containers.map(({ name }) => name))];
  return {
    metadata: {
      name: observed.name,
      namespace: observed.namespace,
      uid: observed.uid,
      deletionGracePeriodSeconds: deletionGrace?.deletionGraceSeconds,
    },
    spec: {
      terminationGracePeriodSeconds: grace?.terminationGraceSeconds,
      containers: names.flatMap((name) => {
        const newest = newestInstance(observed, name);
        return newest === undefined ? [] : [restoreContainer(newest)];
      }),
    },
    status: {},
  };
}

/** The fields of an observed container from which its spec is restored. */
export type RememberedContainer = Pick<ObservedContainer, 'name'> &
  Partial<Pick<ObservedContainer, 'image' | 'annotations'>>;

export function restoreContainer(observed: RememberedContainer): Container {
  const { terminationMessagePath, terminationMessagePolicy, preStop, ports } = readContainerAnnotations(
    observed.annotations ?? {},
  );
  return {
    name: observed.name,
    image: observed.image,
    terminationMessagePath,
    terminationMessagePolicy,
    ports,
    lifecycle: preStop === undefined ? undefined : { preStop },
  };
}
