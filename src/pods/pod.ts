import type {
  Container,
  EphemeralContainer,
  ObjectMeta,
  PodSpec,
  PodStatus,
  Volume,
  Pod as WrittenPod,
} from '../kinds/index.ts';
import { findNamed } from './find-named.ts';
import type { ObservedContainer, ObservedPod } from './observed.ts';

export type PodUid = string & { readonly __brand: 'PodUid' };
/** The full name `<name>_<namespace>`, shared by a static pod and its mirror pod. */
export type PodFullName = string & { readonly __brand: 'PodFullName' };

export interface PodMeta extends ObjectMeta {
  readonly name: string;
  readonly namespace: string;
  readonly uid: PodUid;
}

/**
 * A pod from the API server or a manifest: with a name, defaults, and a valid spec. Immutable; copy
 * it to change it.
 */
export interface Pod extends WrittenPod {
  readonly metadata: PodMeta;
  readonly spec: PodSpec;
  readonly status: PodStatus;
}

/** The source of a pod: a manifest file, a manifest URL or the API server. */
export type PodSource = 'file' | 'http' | 'api';

export const annotations = {
  source: 'kubernetes.io/config.source',
  seen: 'kubernetes.io/config.seen',
  hash: 'kubernetes.io/config.hash',
  mirror: 'kubernetes.io/config.mirror',
} as const;

export function podUid(text: string): PodUid {
  return text as PodUid;
}

const uidText = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})$/;

/** Directories are named by UIDs, so a UID must be a valid file name without path separators. */
export function mayBePodUid(text: string): text is PodUid {
  return uidText.test(text);
}

export function fullNameOf(pod: Pod): PodFullName {
  return `${pod.metadata.name}_${pod.metadata.namespace}` as PodFullName;
}

/** A pod in logs and messages: `name_namespace(uid)`. */
export function describePod({ metadata: { name, namespace, uid } }: Pod): string {
  return `${name}_${namespace}(${uid})`;
}

export function sourceOf(pod: Pod): string | undefined {
  return pod.metadata.annotations?.[annotations.source];
}

/** Whether the pod is a mirror pod, which represents a static pod in the API and never runs. */
export function isMirrorPod(pod: Pod): boolean {
  return pod.metadata.annotations?.[annotations.mirror] !== undefined;
}

/** Whether the pod comes from a manifest and not from the API server. */
export function isStaticPod(pod: Pod): boolean {
  const source = sourceOf(pod);
  return source !== undefined && source !== 'api';
}

const systemCritical = 2_000_000_000;

/** Whether the pod is critical: critical pods may preempt others and are never evicted. */
export function isCriticalPod(pod: Pod): boolean {
  return isStaticPod(pod) || isMirrorPod(pod) || (pod.spec.priority ?? 0) >= systemCritical;
}

export function isTerminalPhase(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

/**
 * The name of the claim that a volume uses: the one in the pod spec, or the generated name for an
 * ephemeral volume; undefined for other volume types.
 */
export function claimNameOf({ metadata }: Pod, volume: Volume): string | undefined {
  const { name, persistentVolumeClaim, ephemeral } = volume;
  if (persistentVolumeClaim !== undefined) return persistentVolumeClaim.claimName;
  return ephemeral === undefined ? undefined : `${metadata.name}-${name}`;
}

/** Whether an init container is a sidecar. */
export function isSidecar(initContainer: Container): boolean {
  return initContainer.restartPolicy === 'Always';
}

export function initContainersOf(pod: Pod): readonly Container[] {
  return pod.spec.initContainers ?? [];
}

export function ephemeralContainersOf(pod: Pod): readonly EphemeralContainer[] {
  return pod.spec.ephemeralContainers ?? [];
}

/** Returns the newest instance of a container. */
export function newestInstance(observed: ObservedPod, name: string): ObservedContainer | undefined {
  return findNamed(observed.containers, name);
}

/**
 * The field path for events about the container, such as spec.containers{web}; undefined when the
 * pod spec does not contain it.
 */
export function containerFieldPath(pod: Pod, name: string): string | undefined {
  const named = (container: Container) => container.name === name;
  if (pod.spec.containers.some(named)) return `spec.containers{${name}}`;
  if (initContainersOf(pod).some(named)) return `spec.initContainers{${name}}`;
  return ephemeralContainersOf(pod).some(named) ? `spec.ephemeralContainers{${name}}` : undefined;
}
