import type { Namespace } from '../../kinds/index.ts';
import { TypedEvents } from '../../lib/index.ts';
import { dnsLabel } from '../../pods/validation/index.ts';
import type { FieldCause, KindRules, StoredObject, WriteContext } from '../api/index.ts';
import { forbidden } from '../api/index.ts';
import { invalid } from '../validation/causes.ts';
import { finalizerCauses, validated } from '../validation/metadata.ts';
import { namespaces } from './resources.ts';

/** What holds a namespace until all that is in it is gone. */
export const contentsFinalizer = 'kubernetes';

/** Without these there is no cluster. */
const lasting = ['default', 'kube-system', 'kube-public'];

export function namespaceRules(forced: ForcedEnds): KindRules {
  return {
    status: 'apart',
    prepare: prepared,
    admit: (object, write) => {
      if (write.verb === 'delete') admitEnd(object, write, forced);
      return object;
    },
    deleting: ending,
    holds: (object) => finalizersOf(object).length > 0,
    validate: validated(dnsLabel, namespaceCauses),
  };
}

/** Who asks again, and for no time at all, is taken at his word: what holds the contents is cleared away. */
function admitEnd({ metadata }: StoredObject, { deletion, warn }: WriteContext, forced: ForcedEnds): void {
  const { name } = metadata;
  if (lasting.includes(name))
    throw forbidden({ resource: namespaces, name }, 'this namespace may not be deleted');
  if (metadata.deletionTimestamp === undefined || deletion?.gracePeriodSeconds !== 0) return;
  forced.add(metadata);
  warn(`finalizers of all that is left in namespace ${name} are removed, and its pods end at once`);
}

/** It has no time of grace: it is there until its contents are gone. */
function ending(object: StoredObject): StoredObject {
  const { deletionGracePeriodSeconds: _, ...metadata } = object.metadata;
  return { ...object, metadata, status: { ...object.status, phase: 'Terminating' } };
}

/** The finalizers in its spec, which only the part `finalize` takes away. */
export function finalizersOf(object: StoredObject): readonly string[] {
  return (object as unknown as Namespace).spec?.finalizers ?? [];
}

function prepared(object: StoredObject, { before, subresource }: WriteContext): StoredObject {
  const labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name };
  const labelled = { ...object, metadata: { ...object.metadata, labels } };
  if (before === undefined)
    return {
      ...labelled,
      spec: { ...object.spec, finalizers: withOwn(finalizersOf(object)) },
      status: { phase: 'Active' },
    };
  return subresource === undefined ? { ...labelled, spec: { finalizers: finalizersOf(before) } } : labelled;
}

function withOwn(finalizers: readonly string[]): readonly string[] {
  return finalizers.includes(contentsFinalizer) ? finalizers : [...finalizers, contentsFinalizer];
}

function namespaceCauses(object: StoredObject, { subresource }: WriteContext): readonly FieldCause[] {
  const names = finalizerCauses(finalizersOf(object), 'spec.finalizers', 'together');
  return subresource === 'status' ? [...names, ...phaseCauses(object)] : names;
}

function phaseCauses({ metadata, status }: StoredObject): readonly FieldCause[] {
  const phase = status?.['phase'] ?? '';
  const [wanted, empty] =
    metadata.deletionTimestamp === undefined ? ['Active', 'empty'] : ['Terminating', 'not empty'];
  if (phase === wanted) return [];
  return [invalid('status.Phase', phase, `may only be '${wanted}' if \`deletionTimestamp\` is ${empty}`)];
}

/** Namespaces somebody insisted to be rid of: what holds their contents is not waited for. */
export class ForcedEnds {
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

  forget(uid: string): void {
    this.#uids.delete(uid);
  }

  /** Calls back with the name of each, at once. */
  onAdded(told: (name: string) => void): Disposable {
    return this.#events.on('added', told);
  }
}
