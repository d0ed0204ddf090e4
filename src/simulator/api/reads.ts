import type { ApiList, GetOptions, ListQuery } from '../../api/index.ts';
import type { ObjectStore } from './object-store.ts';
import { type ApiRequest, badRequest, expired, notFound, refusal } from './request.ts';
import { selection } from './selectors.ts';
import { keyOf, type StoredObject } from './stored-object.ts';

/** How far behind the newest the answer to who takes anything may be, in changes. */
export interface Freshness {
  readonly behind: number;
}

interface Position {
  readonly version: number;
  /** The key of the last object that was told. */
  readonly after: string;
}

/** Answers to get and list. */
export class Reads {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  get(request: ApiRequest, options: GetOptions, freshness: Freshness): StoredObject {
    const { resource, namespace, name = '' } = request;
    this.#checkVersion(request, options.resourceVersion);
    const all = this.#stale(request, options.resourceVersion, freshness);
    const found =
      all === undefined
        ? this.#store.get(resource, namespace, name)
        : all.objects.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
    if (found === undefined) throw notFound(request);
    return found;
  }

  list(request: ApiRequest, query: ListQuery, freshness: Freshness): ApiList<StoredObject> {
    const wanted = selection(request);
    const { objects, version, after } = this.#page(request, query, freshness);
    const left = objects.filter((object) => keyOfObject(object) > after && wanted(object));
    const items = query.limit === undefined || query.limit <= 0 ? left : left.slice(0, query.limit);
    const last = items.at(-1);
    const more =
      last === undefined || items.length === left.length
        ? {}
        : { continue: encode({ version, after: keyOfObject(last) }) };
    return { metadata: { resourceVersion: String(version), ...more }, items };
  }

  #page(request: ApiRequest, query: ListQuery, freshness: Freshness): Snapshot & { readonly after: string } {
    if (query.continue !== undefined && query.continue !== '')
      return this.#continued(request, query.continue);
    this.#checkVersion(request, query.resourceVersion);
    const stale = this.#stale(request, query.resourceVersion, freshness);
    const newest = { objects: this.#store.all(request.resource), version: this.#store.version };
    return { ...(stale ?? newest), after: '' };
  }

  /** All pages of a list are of one moment. */
  #continued(request: ApiRequest, token: string): Snapshot & { readonly after: string } {
    const position = decode(token);
    if (position === undefined) throw badRequest(request, 'continue key is not valid');
    const objects = this.#store.allAt(request.resource, position.version);
    if (objects === undefined) throw expired(request, String(position.version));
    return { objects, ...position };
  }

  #stale(request: ApiRequest, asked: string | undefined, { behind }: Freshness): Snapshot | undefined {
    if (asked !== '0' || behind <= 0) return undefined;
    const version = Math.max(1, this.#store.version - behind);
    const objects = this.#store.allAt(request.resource, version);
    return objects && { objects, version };
  }

  #checkVersion(request: ApiRequest, asked: string | undefined): void {
    if (asked === undefined || asked === '') return;
    const version = Number(asked);
    if (!/^\d+$/.test(asked)) throw badRequest(request, `resourceVersion: Invalid value: "${asked}"`);
    if (version <= this.#store.version) return;
    const message = `Too large resource version: ${asked}, current: ${this.#store.version}`;
    throw refusal(request, { status: 504, reason: 'Timeout', message, retryAfterMs: 1_000 });
  }
}

interface Snapshot {
  readonly objects: readonly StoredObject[];
  readonly version: number;
}

function keyOfObject({ metadata }: StoredObject): string {
  return keyOf(metadata.namespace, metadata.name);
}

function encode({ version, after }: Position): string {
  return Buffer.from(`${version} ${after}`).toString('base64url');
}

function decode(token: string): Position | undefined {
  const parts = /^(\d+) (.+)$/.exec(Buffer.from(token, 'base64url').toString());
  return parts === null ? undefined : { version: Number(parts[1]), after: parts[2] ?? '' };
}
