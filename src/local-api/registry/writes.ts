import {
  type DeleteOptions,
  type JsonObject,
  type Patch,
  sameValue,
  withoutEmptyFields,
} from '../../api/index.ts';
import { apiTime, type Clock, type Random } from '../../lib/index.ts';
import type { ApiRequest, FieldCause, ResourceEntry, WriteContext } from '../api/api-types.ts';
import { alreadyExists, conflict, invalid, noNameFound, noSuchPath, notFound } from '../api/status-errors.ts';
import { overTheWire, type StoredMeta, type StoredObject } from '../api/stored-object.ts';
import { admitWrite } from '../node-access/node-restriction.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { Catalogue } from './catalogue.ts';
import { deletionOf, isToBeRemoved } from './deletion.ts';
import { born, markedByHand, metaOf, nameFor, newHolders, newUid } from './object-meta.ts';
import { changed, hasPart, Patching } from './object-update.ts';
import { keptAs, shown } from './reads.ts';
import {
  admitHome,
  checkIdentity,
  checkPreconditions,
  checkSame,
  otherUid,
  versionOnCreate,
  versionRequired,
} from './write-preconditions.ts';

export interface WritesDeps {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly catalogue: Catalogue;
  /** Whether the namespace of a new object must be there. */
  readonly namespaces: 'checked' | 'unchecked';
}

export interface Written {
  readonly object: StoredObject;
  readonly how: 'created' | 'changed';
}

export interface Deleted {
  readonly object: StoredObject;
  readonly how: 'removed' | 'kept';
}

/** All that changes objects, each by the rules of its resource; who may do it was asked before. */
export class Writes {
  readonly #deps: WritesDeps;
  readonly #patching = new Patching();

  constructor(deps: WritesDeps) {
    this.#deps = deps;
  }

  create(request: ApiRequest, body: unknown): StoredObject {
    const entry = this.#entry(request);
    const wanted = kept(entry, overTheWire(body));
    admitHome(request, metaOf(wanted)['name'] as string | undefined, this.#deps);
    const object = this.#born(request, entry, wanted);
    const named = { ...request, name: object.metadata.name };
    const context = this.#context(named, 'create', undefined);
    const admitted = this.#admitted(named, entry, object, context);
    this.#validate(named, entry, admitted, context, []);
    this.#checkFree(named, entry, metaOf(wanted));
    return shown(entry, this.#stored(named, entry, admitted));
  }

  update(request: ApiRequest, body: unknown): Written {
    const entry = this.#entry(request);
    const { createByUpdate, updateWithoutVersion } = entry.rules;
    const sent = overTheWire(body);
    const wanted = kept(entry, sent);
    checkSame(request, metaOf(wanted));
    const before = this.#find(request, entry);
    if (before === undefined && createByUpdate === 'allowed' && request.subresource === undefined)
      return { object: this.#createdByUpdate(request, sent), how: 'created' };
    if (before === undefined) throw notFound(request);
    if (updateWithoutVersion === 'refused' && (metaOf(wanted)['resourceVersion'] ?? '') === '')
      throw versionRequired(request);
    checkIdentity(request, before, metaOf(wanted), 'update');
    return { object: shown(entry, this.#change(request, entry, before, wanted)), how: 'changed' };
  }

  /** `read` makes an object of its own of what the patch left, and refuses what cannot be one. */
  patch(
    request: ApiRequest,
    patch: Patch,
    read: (patched: JsonObject) => JsonObject = overTheWire,
  ): StoredObject {
    const entry = this.#entry(request);
    const before = this.#existing(request, entry);
    const face = shown(entry, before);
    const patched = this.#patching.apply(entry.resource.kind, face, patch);
    const wanted = kept(entry, read(withoutEmptyFields(patched)));
    // A version or uid in the patch is a condition, not a wish.
    checkSame(request, metaOf(wanted));
    checkIdentity(request, before, metaOf(wanted), 'patch');
    return shown(entry, this.#change(request, entry, before, wanted));
  }

  delete(request: ApiRequest, options: DeleteOptions): Deleted {
    const entry = this.#entry(request);
    const before = this.#existing(request, entry);
    checkPreconditions(request, before, options);
    const asked = request.mode === 'rehearsal' ? {} : { deletion: options };
    const context = { ...this.#context(request, 'delete', before), ...asked };
    admitWrite(request, before, undefined, this.#deps.store);
    entry.rules.admit?.(before, context);
    const { object, how } = this.#deleted(request, entry, before, options, context);
    return { object: shown(entry, object), how };
  }

  #deleted(
    request: ApiRequest,
    entry: ResourceEntry,
    before: StoredObject,
    options: DeleteOptions,
    context: WriteContext,
  ): Deleted {
    const { deleting, holds = () => false } = entry.rules;
    const deletion = deletionOf(before, options, this.#deps.clock.now(), holds);
    switch (deletion.do) {
      case 'nothing':
        return { object: before, how: 'kept' };
      case 'remove':
        return { object: this.#removed(request, entry, before), how: 'removed' };
      case 'mark-and-remove': {
        const marked = this.#stored(request, entry, deletion.object);
        return { object: this.#removed(request, entry, marked), how: 'removed' };
      }
      case 'mark': {
        const marked = deleting?.(deletion.object, context) ?? deletion.object;
        return { object: this.#stored(request, entry, marked), how: 'kept' };
      }
    }
  }

  /** Puts a pod on a node, as a scheduler does. */
  bind(request: ApiRequest, node: string): StoredObject {
    const entry = this.#entry(request);
    const before = this.#existing(request, entry);
    const { metadata, spec, status } = before;
    if (metadata.deletionTimestamp !== undefined) throw conflict(request, 'the pod is being deleted');
    if (spec?.['nodeName'] !== undefined)
      throw conflict(request, `pod ${metadata.name} is already assigned to node "${spec['nodeName']}"`);
    const scheduled = {
      type: 'PodScheduled',
      status: 'True',
      lastTransitionTime: apiTime(this.#deps.clock.now()),
    };
    const others = ((status?.['conditions'] ?? []) as readonly JsonObject[]).filter(
      ({ type }) => type !== 'PodScheduled',
    );
    const bound = { ...status, conditions: [...others, scheduled] };
    return this.#put(request, entry, before, {
      ...before,
      spec: { ...spec, nodeName: node },
      status: bound,
    });
  }

  /** Puts an object there as it is given, its status and all, whatever was there before: for whoever sets a scene. */
  place(request: ApiRequest, body: unknown): StoredObject {
    const entry = this.#entry(request);
    const wanted = overTheWire(body);
    const before = this.#find({ ...request, name: String(metaOf(wanted)['name'] ?? '') }, entry);
    return before === undefined
      ? this.#placeNew(request, entry, wanted)
      : this.#placeOver(request, entry, before, wanted);
  }

  /** A status that is not given stays as it was. */
  #placeOver(
    request: ApiRequest,
    entry: ResourceEntry,
    before: StoredObject,
    wanted: JsonObject,
  ): StoredObject {
    const status = before.status === undefined ? {} : { status: before.status };
    const rules = { ...entry.rules, status: 'along' } as const;
    return this.#put(request, entry, before, changed(rules, before, { ...status, ...wanted }, undefined));
  }

  #placeNew(request: ApiRequest, entry: ResourceEntry, wanted: JsonObject): StoredObject {
    const { resourceVersion: _, ...meta } = metaOf(wanted);
    const object = this.#born(request, entry, { ...wanted, metadata: meta });
    const begun = entry.rules.prepare?.(object, this.#context(request, 'create', undefined)) ?? object;
    const given = [
      'uid',
      'creationTimestamp',
      'generation',
      'deletionTimestamp',
      'deletionGracePeriodSeconds',
    ];
    const own = Object.fromEntries(
      given.flatMap((name) => (meta[name] === undefined ? [] : [[name, meta[name]]])),
    );
    const status =
      wanted['status'] === undefined
        ? {}
        : { status: { ...begun.status, ...(wanted['status'] as JsonObject) } };
    return this.#stored(request, entry, { ...begun, ...status, metadata: { ...begun.metadata, ...own } });
  }

  #change(request: ApiRequest, entry: ResourceEntry, before: StoredObject, wanted: JsonObject): StoredObject {
    const { rules } = entry;
    const { subresource } = request;
    if (subresource !== undefined && !hasPart(rules, subresource)) throw noSuchPath();
    const context = this.#context(request, 'update', before);
    const next = changed(rules, before, wanted, subresource);
    const admitted = this.#admitted(request, entry, next, context);
    const byHand = subresource === 'status' ? [] : markedByHand(before.metadata, metaOf(wanted));
    const holders = newHolders(before.metadata, admitted.metadata);
    this.#validate(request, entry, admitted, context, [...byHand, ...holders]);
    return this.#put(request, entry, before, admitted);
  }

  /** What its kind makes of an object; fields a rule left undefined are not there. */
  #admitted(
    request: ApiRequest,
    { rules: { prepare, admit } }: ResourceEntry,
    object: StoredObject,
    context: WriteContext,
  ): StoredObject {
    const prepared = prepare?.(object, context) ?? object;
    admitWrite(request, context.before, prepared, this.#deps.store);
    return withoutEmptyFields(admit?.(prepared, context) ?? prepared);
  }

  #validate(
    request: ApiRequest,
    { rules, view }: ResourceEntry,
    object: StoredObject,
    context: WriteContext,
    found: readonly FieldCause[],
  ): void {
    const causes = [
      ...found,
      ...(rules.validate?.(object, context) ?? []),
      ...(view?.validate(object, context.before) ?? []),
    ];
    // Whichever face was written to, the object is called by its own kind.
    if (causes.length > 0) throw invalid({ ...request, resource: view?.of ?? request.resource }, causes);
  }

  /** A change that changes nothing is none; one that frees a deleted object of its last holder removes it. */
  #put(request: ApiRequest, entry: ResourceEntry, before: StoredObject, after: StoredObject): StoredObject {
    if (sameValue(before, after)) return before;
    if (!isToBeRemoved(after, entry.rules.holds ?? (() => false))) return this.#stored(request, entry, after);
    this.#removed(request, entry, before);
    return after;
  }

  #stored(request: ApiRequest, entry: ResourceEntry, object: StoredObject): StoredObject {
    if (request.mode === 'rehearsal') return unstored(object);
    return this.#deps.store.put(keptAs(entry), object, request.user.name);
  }

  #removed(request: ApiRequest, entry: ResourceEntry, object: StoredObject): StoredObject {
    if (request.mode === 'rehearsal') return object;
    const { namespace, name } = object.metadata;
    return this.#deps.store.remove(keptAs(entry), namespace, name, request.user.name) ?? object;
  }

  #createdByUpdate(request: ApiRequest, sent: JsonObject): StoredObject {
    const { uid } = metaOf(sent);
    if ((uid ?? '') !== '') throw otherUid(request, String(uid), '');
    return this.create(request, sent);
  }

  #born(request: ApiRequest, entry: ResourceEntry, wanted: JsonObject): StoredObject {
    const { clock, random } = this.#deps;
    const meta = metaOf(wanted);
    const isTaken = (name: string) => this.#find({ ...request, name }, entry) !== undefined;
    const name = nameFor(request, meta, random, isTaken);
    if ((meta['resourceVersion'] ?? '') !== '') throw versionOnCreate();
    return born({ ...request, resource: keptAs(entry) }, wanted, {
      name,
      uid: newUid(random),
      creationTimestamp: apiTime(clock.now()),
      generation: entry.rules.generation === 'counted' ? 1 : undefined,
    });
  }

  #checkFree(named: ApiRequest, entry: ResourceEntry, meta: JsonObject): void {
    const taken = this.#find(named, entry);
    if (taken === undefined) return;
    if ((meta['name'] ?? '') === '') throw noNameFound(named);
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
    return this.#deps.store.get(keptAs(entry), namespace, name);
  }

  #existing(request: ApiRequest, entry: ResourceEntry): StoredObject {
    const found = this.#find(request, entry);
    if (found === undefined) throw notFound(request);
    return found;
  }
}

/** What was never stored has no version. */
function unstored(object: StoredObject): StoredObject {
  const { resourceVersion, ...metadata } = object.metadata;
  return resourceVersion === '' ? { ...object, metadata: metadata as StoredMeta } : object;
}

/** What a caller sent, in the form in which it is stored. */
function kept({ view }: ResourceEntry, sent: JsonObject): JsonObject {
  return view === undefined ? sent : view.kept(sent);
}
