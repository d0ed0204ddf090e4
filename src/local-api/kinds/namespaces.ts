import type { Namespace } from '../../kinds/index.ts';
import { TypedEvents } from '../../lib/index.ts';
import { dnsLabel } from '../../pods/validation/index.ts';
import type { FieldCause, ResourceStrategy, StoredObject, WriteContext } from '../api/index.ts';
import { forbidden } from '../api/index.ts';
import { invalid } from '../validation/causes.ts';
import { finalizerCauses, validatorFor } from '../validation/metadata.ts';
import { namespaces } from './resources.ts';

/** The finalizer that keeps a namespace until its contents are deleted. */
export const namespaceFinalizer = 'kubernetes';

/** System namespaces, which cannot be deleted. */
const undeletable = ['default', 'kube-system', 'kube-public'];

export function namespaceStrategy(forced: ForcedNamespaceDeletions): ResourceStrategy {
  return {
    status: 'separate',
    prepare: prepared,
    admit: (object, write) => {
      if (write.verb === 'delete') admitDeletion(object, write, forced);
      return object;
    },
    beginDeletion: asTerminating,
    blocksDeletion: (object) => finalizersOf(object).length > 0,
    validate: validatorFor(dnsLabel, namespaceCauses),
  };
}

/**
 * A second delete with a grace period of zero forces the deletion of the namespace: finalizers of
 * its contents are removed.
 */
function admitDeletion(
  { metadata }: StoredObject,
  { deletion, warn }: WriteContext,
  forced: ForcedNamespaceDeletions,
): void {
  const { name } = metadata;
  if (undeletable.includes(name))
    throw forbidden({ resource: namespaces, name }, 'this namespace may not be deleted');
  if (metadata.deletionTimestamp === undefined || deletion?.gracePeriodSeconds !== 0) return;
  forced.add(metadata);
  warn(
    `finalizers of all remaining objects in namespace ${name} are removed, and its pods are deleted without a grace period`,
  );
}

/** A namespace has no grace period: it is removed once its contents are deleted. */
function asTerminating(object: StoredObject): StoredObject {
  const { deletionGracePeriodSeconds: _, ...metadata } = object.metadata;
  return { ...object, metadata, status: { ...object.status, phase: 'Terminating' } };
}

/** The finalizers in the spec of a namespace, which only the finalize subresource can remove. */
export function finalizersOf(object: StoredObject): readonly string[] {
  return (object as unknown as Namespace).spec?.finalizers ?? [];
}

function prepared(object: StoredObject, { before, subresource }: WriteContext): StoredObject {
  const labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name };
  const labelled = { ...object, metadata: { ...object.metadata, labels } };
  if (before === undefined)
    return {
      ...labelled,
      spec: { ...object.spec, finalizers: withNamespaceFinalizer(finalizersOf(object)) },
      status: { phase: 'Active' },
    };
  return subresource === undefined ? { ...labelled, spec: { finalizers: finalizersOf(before) } } : labelled;
}

function withNamespaceFinalizer(finalizers: readonly string[]): readonly string[] {
  return finalizers.includes(namespaceFinalizer) ? finalizers : [...finalizers, namespaceFinalizer];
}

function namespaceCauses(object: StoredObject, { subresource }: WriteContext): readonly FieldCause[] {
  const names = finalizerCauses(finalizersOf(object), 'spec.finalizers', 'together');
  return subresource === 'status' ? [...names, ...phaseCauses(object)] : names;
}

function phaseCauses({ metadata, status }: StoredObject): readonly FieldCause[] {
  const phase = status?.['phase'] ?? '';
  const [required, empty] =
    metadata.deletionTimestamp === undefined ? ['Active', 'empty'] : ['Terminating', 'not empty'];
  if (phase === required) return [];
  return [invalid('status.Phase', phase, `may only be '${required}' if \`deletionTimestamp\` is ${empty}`)];
}

/** The UIDs of namespaces whose deletion is forced: finalizers of their contents are removed. */
export class ForcedNamespaceDeletions {
  readonly #uids = new Set<string>();
  readonly #events = new TypedEvents<{ added: string }>((error) => {
    throw error;
  });

  add({ name, uid }: { readonly name: string; readonly uid: string }): void {
    this.#uids.add(uid);
    this.#events.emit('added', name);
  }

  has(uid: string): boolean {
    return this.#uids.has(uid);
  }

  remove(uid: string): void {
    this.#uids.delete(uid);
  }

  /** Calls the listener synchronously with the name of each added namespace. */
  onAdded(listener: (name: string) => void): Disposable {
    return this.#events.on('added', listener);
  }
}
