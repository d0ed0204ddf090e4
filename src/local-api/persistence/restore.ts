import type { ApiResource } from '../../api/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { ObjectChange } from '../api/api-types.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { frozen } from '../api/stored-object.ts';
import type { StoreClient } from './store-thread.ts';
import type { ChangeRow, LogRow, Opened } from './worker/messages.ts';

export interface RestoredObject {
  readonly resource: ApiResource;
  readonly object: StoredObject;
}

/** All that the store knows when it is opened. */
export interface RestoredStore {
  /** The newest that may ever have been given; the next one is above it. */
  readonly version: number;
  /** Changes up to this version are forgotten; all later ones are in the log. */
  readonly compacted: number;
  readonly objects: readonly RestoredObject[];
  /** In the order of versions. */
  readonly log: readonly ObjectChange[];
}

/** Reads everything, a page at a time. Throws STORE_CORRUPT with a message that goes on after "as". */
export async function restore(
  thread: StoreClient,
  opened: Opened,
  signal: AbortSignal,
): Promise<RestoredStore> {
  const reader = new Reader(thread, resourcesOf(opened));
  const objects = await reader.objects(signal);
  const log = await reader.log(signal);
  return { version: Math.max(1, opened.revision), compacted: opened.compacted, objects, log };
}

function resourcesOf({ facts }: Opened): ReadonlyMap<string, ApiResource> {
  return new Map(facts.map(([name, value]) => [name, JSON.parse(value) as ApiResource]));
}

class Reader {
  readonly #thread: StoreClient;
  readonly #resources: ReadonlyMap<string, ApiResource>;
  /** As each object was at the place in the log that is being read, which goes from the newest to the oldest. */
  readonly #at = new Map<string, StoredObject>();

  constructor(thread: StoreClient, resources: ReadonlyMap<string, ApiResource>) {
    this.#thread = thread;
    this.#resources = resources;
  }

  async objects(signal: AbortSignal): Promise<readonly RestoredObject[]> {
    const found: RestoredObject[] = [];
    for (let after = ''; ; ) {
      const { rows } = await this.#thread.call({ do: 'objects', after }, signal);
      for (const { key, value } of rows) {
        const object = objectOf(key, value);
        this.#at.set(key, object);
        found.push({ resource: this.#resource(key), object });
      }
      const last = rows.at(-1);
      if (last === undefined) return found;
      after = last.key;
    }
  }

  async log(signal: AbortSignal): Promise<readonly ObjectChange[]> {
    const newestFirst: ObjectChange[] = [];
    for (let before = Number.MAX_SAFE_INTEGER; ; ) {
      const { rows } = await this.#thread.call({ do: 'log', before }, signal);
      for (const row of rows) newestFirst.push(this.#undo(row));
      const last = rows.at(-1);
      if (last === undefined) return newestFirst.reverse();
      before = last.rev;
    }
  }

  /** The change of a row, and a step back in time. */
  #undo({ rev, key, op, value, before }: LogRow): ObjectChange {
    const object = value === null ? this.#at.get(key) : objectOf(key, value);
    if (object === undefined)
      throw new KubelingError('STORE_CORRUPT', `change ${rev} of ${key} has no object`);
    const was = before === null ? undefined : objectOf(key, before);
    if (was === undefined) this.#at.delete(key);
    else this.#at.set(key, was);
    return { version: rev, type: op, resource: this.#resource(key), object, before: was };
  }

  #resource(key: string): ApiResource {
    const resource = this.#resources.get(resourceNameOfKey(key));
    if (resource === undefined) {
      throw new KubelingError('STORE_CORRUPT', `nothing is known of the resource of ${key}`);
    }
    return resource;
  }
}

/** Under which the store remembers what there is to know of a resource. */
export function resourceName({ group, plural }: ApiResource): string {
  return `${group}/${plural}`;
}

/** Objects of one resource, and in it of one namespace, lie beside each other. Names have no slash in them. */
export function rowKey(resource: ApiResource, { metadata }: StoredObject): string {
  return `${resourceName(resource)}/${metadata.namespace ?? ''}/${metadata.name}`;
}

export function resourceNameOfKey(key: string): string {
  return key.split('/', 2).join('/');
}

export function rowOf({ version, type, resource, object }: ObjectChange, ts: number): ChangeRow {
  return { rev: version, key: rowKey(resource, object), op: type, value: JSON.stringify(object), ts };
}

/** What is not an object is damage that the pages of the file do not show. */
export function objectOf(key: string, value: string): StoredObject {
  try {
    const object = JSON.parse(value) as StoredObject | null;
    if (typeof object?.metadata?.name === 'string') return frozen(object);
  } catch {
    // Falls through to the same answer as any other value that is no object.
  }
  throw new KubelingError('STORE_CORRUPT', `what is stored for ${key} is no object`);
}
