import type { ApiResource, JsonObject } from '../../../api/index.ts';
import {
  type ApiCall,
  type ResourceEntry,
  StatusError,
  type StoredObject,
  type World,
} from '../../core/index.ts';
import { serverUser } from '../server-user.ts';

/** Whether something was refused for this reason, such as `NotFound`. */
export function isRefusal(error: unknown, reason: string): boolean {
  return error instanceof StatusError && error.status.reason === reason;
}

/** What the server does by itself goes the way of everybody's calls: admitted, validated, told to who watches. */
export class ServerHand {
  readonly #world: World;
  readonly #entryOf: (resource: ApiResource) => ResourceEntry;

  constructor(world: World, entryOf: (resource: ApiResource) => ResourceEntry) {
    this.#world = world;
    this.#entryOf = entryOf;
  }

  /** One that is there already stays as it is. */
  ensure(resource: ApiResource, namespace: string | undefined, object: NamedObject): void {
    if (this.#world.objects.get(resource, namespace, object.metadata.name) !== undefined) return;
    try {
      this.#call('create', resource, { namespace, name: undefined }, object);
    } catch (error) {
      if (!isRefusal(error, 'AlreadyExists')) throw error;
    }
  }

  /** The object is one that was read: if it is another one by now, this is refused. */
  update(resource: ApiResource, object: StoredObject, subresource?: string): StoredObject {
    const { namespace, name } = object.metadata;
    return this.#call('update', resource, { namespace, name, subresource }, object);
  }

  /** Of one that is gone, or was replaced by another one of its name, there is nothing to delete. */
  delete(resource: ApiResource, { metadata }: StoredObject, options: JsonObject = {}): void {
    const { namespace, name, uid } = metadata;
    try {
      this.#call('delete', resource, { namespace, name }, { ...options, preconditions: { uid } });
    } catch (error) {
      if (!isRefusal(error, 'NotFound') && !isRefusal(error, 'Conflict')) throw error;
    }
  }

  #call(
    verb: ApiCall['verb'],
    resource: ApiResource,
    target: {
      readonly namespace: string | undefined;
      readonly name: string | undefined;
      readonly subresource?: string | undefined;
    },
    body: JsonObject,
  ): StoredObject {
    const { namespace, name, subresource } = target;
    return this.#world.carryOut({
      user: serverUser,
      verb,
      entry: this.#entryOf(resource),
      namespace,
      name,
      subresource,
      query: new URLSearchParams(),
      body,
      patch: undefined,
      dryRun: false,
      warn: () => {},
    });
  }
}

export interface NamedObject extends JsonObject {
  readonly metadata: JsonObject & { readonly name: string };
}
