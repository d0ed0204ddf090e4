import type { ObjectReference } from '../../kinds/index.ts';

/** The object of an event. */
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
 * A pod or a part of it. A static pod is referenced by its own UID, which users of its mirror pod
 * query.
 */
export function podSubject({ metadata }: NamedPod, fieldPath?: string | undefined): EventSubject {
  const { name, namespace, uid, resourceVersion } = metadata;
  return { kind: 'Pod', apiVersion: 'v1', namespace, name, uid, resourceVersion, fieldPath };
}

/** A node is referenced by name only: at start its UID is unknown. */
export function nodeSubject(name: string): EventSubject {
  return { kind: 'Node', apiVersion: 'v1', name };
}

/** A claim as returned by the API. */
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

/** The whole object: events of its parts are ordered too. */
export function eventSubjectKey({ kind, namespace, name, uid, apiVersion }: EventSubject): string {
  return [kind, namespace, name, uid, apiVersion].join('\n');
}
