import {
  type DeleteOptions,
  type JsonObject,
  type Patch,
  sameValue,
  withoutEmptyFields,
} from '../../api/index.ts';
import { apiTime, type Clock, nextTurn, type Random } from '../../lib/index.ts';
import type { ApiRequest, FieldCause, ResourceEntry, WriteContext } from '../api/api-types.ts';
import {
  alreadyExists,
  generatedNameConflict,
  invalid,
  notFound,
  pathNotFound,
} from '../api/status-errors.ts';
import { isLarge, type StoredMeta, type StoredObject, toWireObject } from '../api/stored-object.ts';
import { enforceNodeRestriction } from '../node-access/node-restriction.ts';
import type { StorageBudget } from '../storage/storage-budget.ts';
import type { VersionedStore } from '../storage/versioned-store.ts';
import type { Catalogue } from './catalogue.ts';
import { isRemovable, planDeletion } from './deletion.ts';
import {
  chooseName,
  deletionTimestampCauses,
  metadataOf,
  newFinalizerCauses,
  newStoredObject,
  newUid,
} from './object-meta.ts';
import { isWritableSubresource, PatchApplier, updatedObject } from './object-update.ts';
import { asResource, storedResource } from './reads.ts';
import {
  checkDeletePreconditions,
  checkMatchesPath,
  checkNamespaceActive,
  checkUpdatePreconditions,
  uidMismatch,
  versionOnCreate,
  versionRequired,
} from './write-preconditions.ts';

export interface WritesDeps {
  readonly store: VersionedStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly catalogue: Catalogue;
  /**
   * Whether the namespace of a new object must exist. Only the simulated API of the tests skips the
   * check.
   */
  readonly namespaces: 'checked' | 'unchecked';
  /** Bounds the size of the stored objects; unbounded if not set. */
  readonly budget?: StorageBudget | undefined;
}

export interface WriteResult {
  readonly object: StoredObject;
  readonly how: 'created' | 'changed';
}

export interface Deleted {
  readonly object: StoredObject;
  readonly how: 'removed' | 'kept';
}

/**
 * The stages of a write; each yields the value on which the next one works. A stage of a large
 * object takes tens of milliseconds, so other requests may run between two stages.
 */
export type WriteStages<T> = Generator<unknown, T, undefined>;

/** Another request has changed the object between two stages of a write. */
class ChangedBetweenStages extends Error {}

const maxAttempts = 4;

/** Runs all stages of a write in one event loop iteration. */
export function inOneTurn<T>(stages: WriteStages<T>): T {
  for (;;) {
    const { done, value } = stages.next();
    if (done) return value;
  }
}

/**
 * Runs each stage of the write of a large object in its own event loop iteration. Starts again if
 * another request changes the object in between; the last attempt runs all stages in one iteration.
 */
export async function inTurns<T>(begin: () => WriteStages<T>): Promise<T> {
  for (let attempt = 1; attempt < maxAttempts; attempt++) {
    try {
      return await eachInItsTurn(begin());
    } catch (error) {
      if (!(error instanceof ChangedBetweenStages)) throw error;
    }
  }
  return inOneTurn(begin());
}

async function eachInItsTurn<T>(stages: WriteStages<T>): Promise<T> {
  for (;;) {
    const { done, value } = stages.next();
    if (done) return value;
    if (isLarge(value)) await nextTurn();
  }
}

/** Executes authorized writes according to the strategy of their resource. */
export class Writes {
  readonly #deps: WritesDeps;
  readonly #patchApplier = new PatchApplier();

  constructor(deps: WritesDeps) {
    this.#deps = deps;
  }

  /** The stages of a create: decode and admit; validate; store. */
  *create(request: ApiRequest, body: unknown): WriteStages<StoredObject> {
    yield body;
    const entry = this.#entry(request);
    const desired = asStored(entry, toWireObject(body));
    const requestedName = metadataOf(desired)['name'] as string | undefined;
    checkNamespaceActive(request, requestedName, this.#deps);
    const object = this.#newObject(request, entry, desired);
    const named = { ...request, name: object.metadata.name };
    const context = this.#context(named, 'create', undefined);
    const admitted = this.#admit(named, entry, object, context);
    yield admitted;
    this.#validate(named, entry, admitted, context, []);
    yield admitted;
    checkNamespaceActive(request, requestedName, this.#deps);
    this.#checkNameFree(named, entry, metadataOf(desired));
    return asResource(entry, this.#store(named, entry, admitted));
  }

  /** The stages of an update: decode and admit; validate; store. */
  *update(request: ApiRequest, body: unknown): WriteStages<WriteResult> {
    yield body;
    const entry = this.#entry(request);
    const { createOnUpdate, unconditionalUpdate } = entry.strategy;
    const sent = toWireObject(body);
    const desired = asStored(entry, sent);
    checkMatchesPath(request, metadataOf(desired));
    const before = this.#find(request, entry);
    if (before === undefined && createOnUpdate === 'allowed' && request.subresource === undefined)
      return { object: yield* this.#createOnUpdate(request, sent), how: 'created' };
    if (before === undefined) throw notFound(request);
    if (unconditionalUpdate === 'refused' && (metadataOf(desired)['resourceVersion'] ?? '') === '')
      throw versionRequired(request);
    checkUpdatePreconditions(request, before, metadataOf(desired), 'update');
    return {
      object: asResource(entry, yield* this.#change(request, entry, before, desired)),
      how: 'changed',
    };
  }

  /**
   * The stages of a patch: apply it; decode and admit; validate; store. `read` decodes the patched
   * object and rejects an invalid one.
   */
  *patch(
    request: ApiRequest,
    patch: Patch,
    read: (patched: JsonObject) => JsonObject = toWireObject,
  ): WriteStages<StoredObject> {
    yield patch.body;
    const entry = this.#entry(request);
    const before = this.#existing(request, entry);
    const current = asResource(entry, before);
    const patched = this.#patchApplier.apply(entry.resource.kind, current, patch);
    yield patched;
    this.#checkUnchanged(request, entry, before);
    const desired = asStored(entry, read(withoutEmptyFields(patched)));
    yield desired;
    this.#checkUnchanged(request, entry, before);
    // A resourceVersion or uid in the patch is a precondition.
    checkMatchesPath(request, metadataOf(desired));
    checkUpdatePreconditions(request, before, metadataOf(desired), 'patch');
    return asResource(entry, yield* this.#change(request, entry, before, desired));
  }

  delete(request: ApiRequest, options: DeleteOptions): Deleted {
    const entry = this.#entry(request);
    const before = this.#existing(request, entry);
    checkDeletePreconditions(request, before, options);
    const deletionRequest = request.writeMode === 'dry-run' ? {} : { deletion: options };
    const context = { ...this.#context(request, 'delete', before), ...deletionRequest };
    enforceNodeRestriction(request, before, undefined, this.#deps.store);
    entry.strategy.admit?.(before, context);
    const { object, how } = this.#carryOutDeletion(request, entry, before, options, context);
    return { object: asResource(entry, object), how };
  }

  #carryOutDeletion(
    request: ApiRequest,
    entry: ResourceEntry,
    before: StoredObject,
    options: DeleteOptions,
    context: WriteContext,
  ): Deleted {
    const { beginDeletion, blocksDeletion = () => false } = entry.strategy;
    const deletion = planDeletion(before, options, this.#deps.clock.now(), blocksDeletion);
    switch (deletion.do) {
      case 'nothing':
        return { object: before, how: 'kept' };
      case 'remove':
        return { object: this.#remove(request, entry, before), how: 'removed' };
      case 'mark-and-remove': {
        const marked = this.#store(request, entry, deletion.object, 'deletion');
        return { object: this.#remove(request, entry, marked), how: 'removed' };
      }
      case 'mark': {
        const marked = beginDeletion?.(deletion.object, context) ?? deletion.object;
        return { object: this.#store(request, entry, marked, 'deletion'), how: 'kept' };
      }
    }
  }

  *#change(
    request: ApiRequest,
    entry: ResourceEntry,
    before: StoredObject,
    desired: JsonObject,
  ): WriteStages<StoredObject> {
    const { strategy } = entry;
    const { subresource } = request;
    if (subresource !== undefined && !isWritableSubresource(strategy, subresource)) throw pathNotFound();
    const context = this.#context(request, 'update', before);
    const next = updatedObject(strategy, before, desired, subresource);
    const admitted = this.#admit(request, entry, next, context);
    const serverFields =
      subresource === 'status' ? [] : deletionTimestampCauses(before.metadata, metadataOf(desired));
    const holders = newFinalizerCauses(before.metadata, admitted.metadata);
    yield admitted;
    this.#validate(request, entry, admitted, context, [...serverFields, ...holders]);
    yield admitted;
    this.#checkUnchanged(request, entry, before);
    return this.#storeOrRemove(request, entry, before, admitted);
  }

  /** Runs the prepare and admit steps of the strategy; drops undefined fields. */
  #admit(
    request: ApiRequest,
    { strategy: { prepare, admit } }: ResourceEntry,
    object: StoredObject,
    context: WriteContext,
  ): StoredObject {
    const prepared = prepare?.(object, context) ?? object;
    enforceNodeRestriction(request, context.before, prepared, this.#deps.store);
    return withoutEmptyFields(admit?.(prepared, context) ?? prepared);
  }

  #validate(
    request: ApiRequest,
    { strategy, view }: ResourceEntry,
    object: StoredObject,
    context: WriteContext,
    found: readonly FieldCause[],
  ): void {
    const causes = [
      ...found,
      ...(strategy.validate?.(object, context) ?? []),
      ...(view?.validate(object, context.before) ?? []),
    ];
    // Error messages name the kind under which the object is stored.
    if (causes.length > 0) throw invalid({ ...request, resource: view?.of ?? request.resource }, causes);
  }

  /**
   * Skips the write of an unchanged object; removes a terminating object when nothing blocks its
   * removal any more.
   */
  #storeOrRemove(
    request: ApiRequest,
    entry: ResourceEntry,
    before: StoredObject,
    after: StoredObject,
  ): StoredObject {
    if (sameValue(before, after)) return before;
    if (!isRemovable(after, entry.strategy.blocksDeletion ?? (() => false)))
      return this.#store(request, entry, after);
    this.#remove(request, entry, before);
    return after;
  }

  /**
   * Setting the deletion timestamp makes an object larger, but is never rejected for lack of
   * storage.
   */
  #store(
    request: ApiRequest,
    entry: ResourceEntry,
    object: StoredObject,
    reason: 'write' | 'deletion' = 'write',
  ): StoredObject {
    if (request.writeMode === 'dry-run') return withoutEmptyVersion(object);
    const { store, budget } = this.#deps;
    const resource = storedResource(entry);
    if (budget !== undefined && reason === 'write') {
      const before = store.get(resource, object.metadata.namespace, object.metadata.name);
      budget.admit({ user: request.user, resource, before, after: object });
    }
    return store.put(resource, object, request.user.name);
  }

  #remove(request: ApiRequest, entry: ResourceEntry, object: StoredObject): StoredObject {
    if (request.writeMode === 'dry-run') return object;
    const { namespace, name } = object.metadata;
    return this.#deps.store.remove(storedResource(entry), namespace, name, request.user.name) ?? object;
  }

  *#createOnUpdate(request: ApiRequest, sent: JsonObject): WriteStages<StoredObject> {
    const { uid } = metadataOf(sent);
    if ((uid ?? '') !== '') throw uidMismatch(request, String(uid), '');
    return yield* this.create(request, sent);
  }

  #newObject(request: ApiRequest, entry: ResourceEntry, desired: JsonObject): StoredObject {
    const { clock, random } = this.#deps;
    const meta = metadataOf(desired);
    const isTaken = (name: string) => this.#find({ ...request, name }, entry) !== undefined;
    const name = chooseName(request, meta, random, isTaken);
    if ((meta['resourceVersion'] ?? '') !== '') throw versionOnCreate();
    return newStoredObject({ ...request, resource: storedResource(entry) }, desired, {
      name,
      uid: newUid(random),
      creationTimestamp: apiTime(clock.now()),
      generation: entry.strategy.generation === 'counted' ? 1 : undefined,
    });
  }

  #checkNameFree(named: ApiRequest, entry: ResourceEntry, meta: JsonObject): void {
    const taken = this.#find(named, entry);
    if (taken === undefined) return;
    if ((meta['name'] ?? '') === '') throw generatedNameConflict(named);
    throw alreadyExists(named, taken.metadata.deletionTimestamp === undefined ? 'there' : 'being-deleted');
  }

  #context(request: ApiRequest, verb: WriteContext['verb'], before: StoredObject | undefined): WriteContext {
    const { store, clock, random } = this.#deps;
    const { user, subresource, resource, warn = () => {} } = request;
    return { verb, before, user, subresource, resource, objects: store, clock, random, warn };
  }

  #entry({ resource }: ApiRequest): ResourceEntry {
    return this.#deps.catalogue.of(resource);
  }

  #find({ namespace, name = '' }: ApiRequest, entry: ResourceEntry): StoredObject | undefined {
    return this.#deps.store.get(storedResource(entry), namespace, name);
  }

  #checkUnchanged(request: ApiRequest, entry: ResourceEntry, before: StoredObject): void {
    if (this.#existing(request, entry) !== before) throw new ChangedBetweenStages();
  }

  #existing(request: ApiRequest, entry: ResourceEntry): StoredObject {
    const found = this.#find(request, entry);
    if (found === undefined) throw notFound(request);
    return found;
  }
}

/** A dry-run object has no resource version. */
function withoutEmptyVersion(object: StoredObject): StoredObject {
  const { resourceVersion, ...metadata } = object.metadata;
  return resourceVersion === '' ? { ...object, metadata: metadata as StoredMeta } : object;
}

/** Converts an object from a request to the form in which it is stored. */
function asStored({ view }: ResourceEntry, sent: JsonObject): JsonObject {
  return view === undefined ? sent : view.stored(sent);
}
