import type { ApiResource } from '../../api/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { StoredChange } from '../api/api-types.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { frozen } from '../api/stored-object.ts';
import type { StoreClient } from './store-thread.ts';
import type { ChangeRow, LogRow, Opened } from './worker/messages.ts';

export interface RestoredObject {
  readonly resource: ApiResource;
  readonly object: StoredObject;
}

/** The content of the store when it was opened. */
export interface RestoredStore {
  /** The highest version that may have been assigned; the next assigned version is higher. */
  readonly version: number;
  /** The changes up to this version were removed by compaction; all later ones are in the log. */
  readonly compacted: number;
  readonly objects: readonly RestoredObject[];
  /** The retained changes, sorted by version. */
  readonly log: readonly StoredChange[];
}

/**
 * Reads the content of the file page by page. Throws STORE_CORRUPT; its message continues a
 * sentence after "as".
 */
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
  /**
   * The objects as of the current log position; the log is read from the newest to the oldest row.
   */
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

  async log(signal: AbortSignal): Promise<readonly StoredChange[]> {
    const newestFirst: StoredChange[] = [];
    for (let before = Number.MAX_SAFE_INTEGER; ; ) {
      const { rows } = await this.#thread.call({ do: 'log', before }, signal);
      for (const row of rows) newestFirst.push(this.#undo(row));
      const last = rows.at(-1);
      if (last === undefined) return newestFirst.reverse();
      before = last.rev;
    }
  }

  /** Returns the change of a log row, and restores the object before the change. */
  #undo({ rev, key, op, value, before }: LogRow): StoredChange {
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
      throw new KubelingError('STORE_CORRUPT', `no resource definition is stored for ${key}`);
    }
    return resource;
  }
}

/** The key under which a resource definition is stored. */
export function resourceName({ group, plural }: ApiResource): string {
  return `${group}/${plural}`;
}

/**
 * The database key of an object, which sorts objects by resource and namespace. Names contain no
 * slash.
 */
function rowKey(resource: ApiResource, { metadata }: StoredObject): string {
  return `${resourceName(resource)}/${metadata.namespace ?? ''}/${metadata.name}`;
}

function resourceNameOfKey(key: string): string {
  return key.split('/', 2).join('/');
}

export function rowOf({ version, type, resource, object }: StoredChange, ts: number): ChangeRow {
  return { rev: version, key: rowKey(resource, object), op: type, value: JSON.stringify(object), ts };
}

/** Rejects an invalid value, which the page checks of SQLite do not detect. */
function objectOf(key: string, value: string): StoredObject {
  try {
    const object = JSON.parse(value) as StoredObject | null;
    if (typeof object?.metadata?.name === 'string') return frozen(object);
  } catch {
    // Invalid JSON is handled like any other value that is not an object.
  }
  throw new KubelingError('STORE_CORRUPT', `the value of ${key} is not an object`);
}
