import type { ObjectReference } from '../../kinds/index.ts';

/** The object that an event is about. */
export interface EventSubject extends ObjectReference {
  readonly kind: string;
  readonly name: string;
}

interface NamedPod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion?: string | undefined;
  };
}

/**
 * Returns the event subject for a pod, or for a part of it such as a container. A static pod is
 * referenced by its own UID, because users query events by the UID of its mirror pod.
 */
export function podSubject({ metadata }: NamedPod, fieldPath?: string | undefined): EventSubject {
  const { name, namespace, uid, resourceVersion } = metadata;
  return { kind: 'Pod', apiVersion: 'v1', namespace, name, uid, resourceVersion, fieldPath };
}

/**
 * Returns the event subject for a node, without a UID, which is not known when the kubelet starts.
 */
export function nodeSubject(name: string): EventSubject {
  return { kind: 'Node', apiVersion: 'v1', name };
}

/** A persistent volume claim as returned by the API. */
export interface NamedClaim {
  readonly metadata?:
    | Partial<Record<'name' | 'namespace' | 'uid' | 'resourceVersion', string | undefined>>
    | undefined;
}

export function claimSubject({ metadata = {} }: NamedClaim): EventSubject {
  const { name = '', namespace, uid, resourceVersion } = metadata;
  return { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid, resourceVersion };
}

export interface NamedVolume {
  readonly name: string;
  readonly uid?: string | undefined;
}

export function volumeSubject({ name, uid }: NamedVolume): EventSubject {
  return { kind: 'PersistentVolume', apiVersion: 'v1', name, uid };
}

/**
 * Returns the queue key of an event's object. It does not include the field path, so that events of
 * all parts of one object are sent in order.
 */
export function eventSubjectKey({ kind, namespace, name, uid, apiVersion }: EventSubject): string {
  return [kind, namespace, name, uid, apiVersion].join('\n');
}
