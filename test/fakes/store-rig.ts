import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ApiResource, apiResources } from '../../src/api/index.ts';
import { type Clock, collectLogs, realClock } from '../../src/lib/index.ts';
import type { StoredObject } from '../../src/local-api/api/stored-object.ts';
import { type OpenedStore, openStore, type StoreOptions } from '../../src/local-api/persistence/index.ts';
import { VersionedStore } from '../../src/local-api/storage/versioned-store.ts';

const { pods } = apiResources;

/** The objects in memory and the store on disk, combined as in the embedded API. */
export class StoreRig implements AsyncDisposable {
  readonly store: OpenedStore;
  readonly objects: VersionedStore;
  readonly #link: Disposable;

  constructor(store: OpenedStore) {
    this.store = store;
    this.objects = VersionedStore.restore(store.restored, { historyLimit: 100_000 });
    this.#link = this.objects.subscribe((change) => store.append(change));
  }

  static async open(path: string, options: Partial<StoreOptions> = {}): Promise<StoreRig> {
    const clock: Clock = options.clock ?? realClock();
    const logger = options.logger ?? collectLogs(clock).logger;
    return new StoreRig(await openStore({ ...options, path, clock, logger }, new AbortController().signal));
  }

  /** Writes an object; returns its new version without waiting until it is durable. */
  put(name: string, fields: object = {}, resource: ApiResource = pods): number {
    return Number(
      this.objects.put(resource, objectNamed(name, resource, fields), 'tester').metadata.resourceVersion,
    );
  }

  remove(name: string, resource: ApiResource = pods): number {
    return Number(this.objects.remove(resource, 'default', name, 'tester')?.metadata.resourceVersion);
  }

  /** Writes an object like a client; resolves when the write is durable. */
  async write(name: string, fields: object = {}, resource: ApiResource = pods): Promise<number> {
    const version = this.put(name, fields, resource);
    await this.store.whenCommitted(version, AbortSignal.timeout(60_000));
    return version;
  }

  get(name: string, resource: ApiResource = pods): StoredObject | undefined {
    return this.objects.get(resource, 'default', name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#link[Symbol.dispose]();
    await this.store[Symbol.asyncDispose]();
  }
}

export function objectNamed(name: string, { kind }: ApiResource, fields: object): StoredObject {
  const metadata = { name, namespace: 'default', uid: name, resourceVersion: '', creationTimestamp: '' };
  return { apiVersion: 'v1', kind, metadata, ...fields };
}

/** Creates a temporary directory, which is removed when the object is disposed. */
export async function ownDirectory(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'local-store-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/**
 * Checks the log: versions only increase, and each change begins with the result of the previous
 * one.
 */
export function assertLogIsWhole({ restored }: OpenedStore): void {
  const last = new Map<string, StoredObject | undefined>();
  let version = restored.compacted;
  for (const { version: next, type, resource, object, before } of restored.log) {
    assert.ok(next > version, `${next} comes after ${version}`);
    version = next;
    const key = `${resource.plural}/${object.metadata.name}`;
    if (last.has(key)) assert.deepEqual(before, last.get(key), `what was before version ${next}`);
    assert.equal(before === undefined, type === 'ADDED', `version ${next} is ${type}`);
    assert.equal(object.metadata.resourceVersion, String(next));
    last.set(key, type === 'DELETED' ? undefined : object);
  }
  assert.ok(restored.version >= version);
}
