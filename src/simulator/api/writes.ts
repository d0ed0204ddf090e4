import {
  apiVersionOf,
  applyPatch,
  type DeleteOptions,
  type JsonObject,
  type Patch,
  PatchSchema,
  sameValue,
} from '../../api/index.ts';
import { apiTime, type Clock, type Random, randomHex, randomInt } from '../../lib/index.ts';
import { deletionOf, isToBeRemoved } from './deletion.ts';
import { admitWrite } from './node-restriction.ts';
import type { ObjectStore } from './object-store.ts';
import { keptPodStatus, podStatusComplaints } from './pod-status-rules.ts';
import { type ApiRequest, badRequest, conflict, notFound, refusal, unprocessable } from './request.ts';
import { overTheWire, type StoredObject } from './stored-object.ts';
import { changed, strategyOf } from './strategies.ts';

export interface WritesDeps {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
}

/** Letters and digits that cannot be mistaken for each other or make words. */
const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789';

/** All that changes objects, each by the rules of its resource; who may do it was asked before. */
export class Writes {
  readonly #deps: WritesDeps;
  readonly #schema = new PatchSchema();

  constructor(deps: WritesDeps) {
    this.#deps = deps;
  }

  create(request: ApiRequest, body: unknown): StoredObject {
    const { store } = this.#deps;
    const wanted = overTheWire(body);
    const object = this.#named(request, wanted);
    const named = { ...request, name: object.metadata.name };
    const begun = strategyOf(request.resource.plural).begin(object, request.user);
    admitWrite(named, undefined, begun, store);
    if (store.get(request.resource, object.metadata.namespace, object.metadata.name) !== undefined)
      throw alreadyExists(named);
    checkObject(named, begun);
    return store.put(request.resource, begun, request.user.name);
  }

  update(request: ApiRequest, body: unknown): StoredObject {
    const wanted = overTheWire(body);
    const { createByUpdate, updateWithoutVersion } = strategyOf(request.resource.plural);
    const before = this.#find(request);
    if (before === undefined && createByUpdate === 'allowed' && request.subresource === undefined)
      return this.create(request, { ...wanted, metadata: { ...metaOf(wanted), name: request.name } });
    if (before === undefined) throw notFound(request);
    if (updateWithoutVersion === 'refused' && metaOf(wanted)['resourceVersion'] === undefined)
      throw unprocessable(request, [
        'metadata.resourceVersion: Invalid value: 0x0: must be specified for an update',
      ]);
    return this.#change(request, before, wanted);
  }

  patch(request: ApiRequest, { kind, body }: Patch): StoredObject {
    const before = this.#existing(request);
    // A version or uid in the patch is a condition, not a wish: it is compared when the object is changed.
    const patched = applyPatch(this.#schema, request.resource.kind, before, { kind, body });
    return this.#change(request, before, overTheWire(patched));
  }

  delete(request: ApiRequest, options: DeleteOptions): void {
    const { store, clock } = this.#deps;
    const before = this.#existing(request);
    this.#checkPreconditions(request, before, options);
    admitWrite(request, before, undefined, store);
    const deletion = deletionOf(before, options, clock.now());
    if (deletion.do === 'remove') store.remove(request.resource, deletion.object, request.user.name);
    else if (deletion.do === 'mark') this.#put(request, before, deletion.object);
  }

  /** Puts a pod on a node, as a scheduler does. */
  bind(request: ApiRequest, node: string): StoredObject {
    const before = this.#existing(request);
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
    return this.#put(request, before, { ...before, spec: { ...spec, nodeName: node }, status: bound });
  }

  /** Puts an object there as it is given, its status and all, whatever was there before: for whoever sets a scene. */
  place(request: ApiRequest, body: unknown): StoredObject {
    const wanted = overTheWire(body);
    const before = this.#find({ ...request, name: String(metaOf(wanted)['name'] ?? '') });
    return before === undefined ? this.#placeNew(request, wanted) : this.#placeOver(request, before, wanted);
  }

  /** A status that is not given stays as it was. */
  #placeOver(request: ApiRequest, before: StoredObject, wanted: JsonObject): StoredObject {
    const strategy = strategyOf(request.resource.plural);
    const kept = before.status === undefined ? {} : { status: before.status };
    return this.#put(
      request,
      before,
      changed({ ...strategy, status: 'along' }, before, { ...kept, ...wanted }, undefined),
    );
  }

  #placeNew(request: ApiRequest, wanted: JsonObject): StoredObject {
    const { resourceVersion: _, ...meta } = metaOf(wanted);
    const begun = strategyOf(request.resource.plural).begin(
      this.#named(request, { ...wanted, metadata: meta }),
      request.user,
    );
    const given = [
      'uid',
      'creationTimestamp',
      'generation',
      'deletionTimestamp',
      'deletionGracePeriodSeconds',
    ];
    const kept = Object.fromEntries(
      given.flatMap((name) => (meta[name] === undefined ? [] : [[name, meta[name]]])),
    );
    const status =
      wanted['status'] === undefined
        ? {}
        : { status: { ...begun.status, ...(wanted['status'] as JsonObject) } };
    const object = { ...begun, ...status, metadata: { ...begun.metadata, ...kept } };
    return this.#deps.store.put(request.resource, object, request.user.name);
  }

  #change(request: ApiRequest, before: StoredObject, wanted: JsonObject): StoredObject {
    const strategy = strategyOf(request.resource.plural);
    this.#checkIdentity(request, before, metaOf(wanted));
    const isPodStatus = request.resource.plural === 'pods' && request.subresource === 'status';
    const next = changed(strategy, before, wanted, request.subresource);
    const after = isPodStatus ? keptPodStatus(before, next) : next;
    admitWrite(request, before, after, this.#deps.store);
    const complaints = [
      ...(isPodStatus ? podStatusComplaints(before, after) : []),
      ...immutableComplaints(before, after),
    ];
    if (complaints.length > 0) throw unprocessable(request, complaints);
    return this.#put(request, before, after);
  }

  /** A change that changes nothing is none; one that frees a deleted object of its last holder removes it. */
  #put(request: ApiRequest, before: StoredObject, after: StoredObject): StoredObject {
    const { store } = this.#deps;
    if (sameValue(before, after)) return before;
    if (!isToBeRemoved(after.metadata)) return store.put(request.resource, after, request.user.name);
    store.remove(request.resource, after, request.user.name);
    return after;
  }

  #find({ resource, namespace, name = '' }: ApiRequest): StoredObject | undefined {
    return this.#deps.store.get(resource, namespace, name);
  }

  #existing(request: ApiRequest): StoredObject {
    const found = this.#find(request);
    if (found === undefined) throw notFound(request);
    return found;
  }

  #checkIdentity(request: ApiRequest, { metadata }: StoredObject, wanted: JsonObject): void {
    const { name, namespace, uid, resourceVersion } = wanted;
    if (name !== undefined && name !== metadata.name)
      throw badRequest(
        request,
        `the name of the object (${name}) does not match the name on the URL (${metadata.name})`,
      );
    if (namespace !== undefined && namespace !== metadata.namespace)
      throw badRequest(
        request,
        'the namespace of the provided object does not match the namespace sent on the request',
      );
    if (uid !== undefined && uid !== metadata.uid)
      throw conflict(
        request,
        `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`,
      );
    if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
      throw conflict(
        request,
        'the object has been modified; please apply your changes to the latest version and try again',
      );
  }

  #checkPreconditions(request: ApiRequest, { metadata }: StoredObject, options: DeleteOptions): void {
    for (const [what, wanted, actual] of [
      ['UID', options.uid, metadata.uid],
      ['ResourceVersion', options.resourceVersion, metadata.resourceVersion],
    ] as const) {
      if (wanted !== undefined && wanted !== actual)
        throw conflict(
          request,
          `the ${what} in the precondition (${wanted}) does not match the ${what} in record (${actual})`,
        );
    }
  }

  /** The object with all that the server itself gives to a new one. */
  #named(request: ApiRequest, wanted: JsonObject): StoredObject {
    const { resource } = request;
    const { clock } = this.#deps;
    const meta = metaOf(wanted);
    const place = placeOf(request, meta);
    const name = this.#nameFor(request, meta);
    if (meta['resourceVersion'] !== undefined && meta['resourceVersion'] !== '')
      throw refusal(request, {
        status: 500,
        reason: 'InternalError',
        message: 'resourceVersion should not be set on objects to be created',
      });
    const { deletionTimestamp: _, deletionGracePeriodSeconds: __, ...own } = meta;
    const counts = strategyOf(resource.plural).generation === 'counted' ? { generation: 1 } : {};
    return {
      ...wanted,
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: {
        ...own,
        ...place,
        ...counts,
        name,
        uid: this.newUid(),
        resourceVersion: '',
        creationTimestamp: apiTime(clock.now()),
      },
    };
  }

  #nameFor(request: ApiRequest, meta: JsonObject): string {
    const { name, generateName } = meta;
    if (typeof name === 'string' && name !== '') return name;
    if (typeof generateName !== 'string' || generateName === '')
      throw unprocessable(request, ['metadata.name: Required value: name or generateName is required']);
    const { random } = this.#deps;
    const letter = () => suffixLetters[randomInt(random, suffixLetters.length)];
    return generateName + Array.from({ length: 5 }, letter).join('');
  }

  newUid(): string {
    const hex = randomHex(this.#deps.random, 31);
    return [
      hex.slice(0, 8),
      hex.slice(8, 12),
      `4${hex.slice(12, 15)}`,
      `a${hex.slice(15, 18)}`,
      hex.slice(18, 30),
    ].join('-');
  }
}

function metaOf(object: JsonObject): JsonObject {
  return (object['metadata'] ?? {}) as JsonObject;
}

function placeOf(request: ApiRequest, meta: JsonObject): { namespace?: string } {
  const { resource, namespace } = request;
  const own = meta['namespace'];
  if (resource.scope === 'cluster') {
    if (own !== undefined) throw badRequest(request, 'an object of the cluster must have no namespace');
    return {};
  }
  if (namespace === undefined) throw badRequest(request, 'an empty namespace may not be set during creation');
  if (own !== undefined && own !== namespace)
    throw badRequest(
      request,
      'the namespace of the provided object does not match the namespace sent on the request',
    );
  return { namespace };
}

function alreadyExists(request: ApiRequest): Error {
  const { resource, name } = request;
  const message = `${resource.plural} "${name}" already exists`;
  return refusal(request, { status: 409, reason: 'AlreadyExists', message });
}

/** What is wrong with a new object by itself. */
function checkObject(request: ApiRequest, object: StoredObject): void {
  if (object.kind !== 'Event') return;
  const involved = (object['involvedObject'] ?? {}) as JsonObject;
  const homes: readonly unknown[] =
    involved['namespace'] === undefined ? ['default', 'kube-system'] : [involved['namespace']];
  if (!homes.includes(object.metadata.namespace))
    throw unprocessable(request, ['involvedObject.namespace: Invalid value: does not match event.namespace']);
}

/** Secrets and config maps may be sealed for good. */
function immutableComplaints(before: StoredObject, after: StoredObject): readonly string[] {
  if (before['immutable'] !== true) return [];
  const fields = ['immutable', 'data', 'binaryData', 'stringData'];
  return fields
    .filter((name) => !sameValue(before[name], after[name]))
    .map((name) => `${name}: Forbidden: field is immutable when \`immutable\` is set`);
}
