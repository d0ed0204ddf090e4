import { isJsonObject } from '../../api/index.ts';
import type { ApiRequest, ResourceEntry } from '../api/api-types.ts';
import { badRequest, expired, notFound, resourceVersionTooLarge } from '../api/status-errors.ts';
import { type StoredObject, storedObjectKey } from '../api/stored-object.ts';
import { selection } from '../selectors/selection.ts';
import type { VersionedStore } from '../storage/versioned-store.ts';
import type { Catalogue } from './catalogue.ts';
import { type ListOptions, versionOf } from './list-options.ts';

/**
 * How many changes a read with resourceVersion 0 may be behind. Only the simulated API of the tests
 * uses values above 0.
 */
export interface Freshness {
  readonly behind: number;
}

export const newest: Freshness = { behind: 0 };

/** A list or a page of it. */
export interface ListPage {
  readonly items: readonly StoredObject[];
  readonly version: number;
  readonly continue?: string;
  /** remainingItemCount; undefined for a list with selectors. */
  readonly remaining?: number;
}

interface Snapshot {
  readonly objects: IteratorObject<StoredObject>;
  readonly version: number;
}

/** Executes get and list. */
export class Reads {
  readonly #store: VersionedStore;
  readonly #catalogue: Catalogue;

  constructor(store: VersionedStore, catalogue: Catalogue) {
    this.#store = store;
    this.#catalogue = catalogue;
  }

  get(request: ApiRequest, resourceVersion: string, freshness: Freshness): StoredObject {
    const entry = this.#catalogue.of(request.resource);
    const { namespace, name = '' } = request;
    const requested = this.#checkedVersion(resourceVersion);
    const stale = requested === 0 ? this.#stale(request, entry, freshness) : undefined;
    const found =
      stale === undefined
        ? this.#store.get(storedResource(entry), namespace, name)
        : stale.objects.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
    if (found === undefined) throw notFound(request);
    return asResource(entry, found);
  }

  list(request: ApiRequest, options: ListOptions, freshness: Freshness): ListPage {
    const entry = this.#catalogue.of(request.resource);
    const { test, matches } = selection(request, entry);
    const { objects, version } = this.#snapshot(request, entry, options, freshness);
    const selected = matches === 'all' ? objects : objects.filter(test);
    // The limit of a list is ignored for resourceVersion 0.
    const limit = options.resourceVersion === '0' || options.limit <= 0 ? undefined : options.limit;
    if (limit === undefined)
      return { items: selected.map((object) => asResource(entry, object)).toArray(), version };
    const items = takeUpTo(selected, limit);
    const last = items.at(-1);
    const isMore = last !== undefined && selected.next().done !== true;
    if (!isMore) return { items: items.map((object) => asResource(entry, object)), version };
    const remaining = matches === 'all' ? { remaining: 1 + count(selected) } : {};
    const start = `${this.#keyFor(request, last)}\0`;
    return {
      items: items.map((object) => asResource(entry, object)),
      version,
      continue: encodeContinue({ version, start }),
      ...remaining,
    };
  }

  /** The keys in continue tokens omit the namespace of the request path. */
  #keyFor({ namespace, resource }: ApiRequest, { metadata }: StoredObject): string {
    const isPlain = namespace !== undefined || resource.scope === 'cluster';
    return isPlain ? metadata.name : storedObjectKey(metadata.namespace, metadata.name);
  }

  #snapshot(request: ApiRequest, entry: ResourceEntry, options: ListOptions, freshness: Freshness): Snapshot {
    if (options.continue !== '') return this.#continued(request, entry, options);
    const requested = this.#checkedVersion(options.resourceVersion, 'invalid resource version: ');
    const isExact =
      options.match === 'Exact' || (options.match === '' && options.limit > 0 && (requested ?? 0) > 0);
    if (isExact && requested !== undefined) return this.#exact(request, entry, requested);
    const stale = requested === 0 ? this.#stale(request, entry, freshness) : undefined;
    return stale ?? this.#latest(request, entry, '');
  }

  #latest({ namespace }: ApiRequest, entry: ResourceEntry, start: string): Snapshot {
    const objects = this.#store.from(storedResource(entry), namespace, start);
    return { objects, version: this.#store.version };
  }

  #exact({ namespace }: ApiRequest, entry: ResourceEntry, version: number): Snapshot {
    const objects = this.#store.fromAt(storedResource(entry), namespace, '', version);
    if (objects === undefined) throw expired('The resourceVersion for the provided list is too old.');
    return { objects, version };
  }

  /** All pages of a list have the same version. */
  #continued(request: ApiRequest, entry: ResourceEntry, options: ListOptions): Snapshot {
    if (options.resourceVersion !== '' && options.resourceVersion !== '0')
      throw badRequest('specifying resource version is not allowed when using continue');
    const { namespace, resource } = request;
    const { version, start } = decodeContinue(options.continue);
    const namespaceKey = resource.scope === 'cluster' ? '' : namespace;
    const key = namespaceKey === undefined ? start : storedObjectKey(namespaceKey, start);
    if (version === undefined) return this.#latest(request, entry, key);
    if (version > this.#store.version) throw resourceVersionTooLarge(String(version), this.#store.version);
    const objects = this.#store.fromAt(storedResource(entry), namespace, key, version);
    if (objects === undefined) throw expiredContinueToken(start);
    return { objects, version };
  }

  #stale({ namespace }: ApiRequest, entry: ResourceEntry, { behind }: Freshness): Snapshot | undefined {
    if (behind <= 0) return undefined;
    const version = Math.max(1, this.#store.version - behind);
    const objects = this.#store.fromAt(storedResource(entry), namespace, '', version);
    return objects && { objects, version };
  }

  #checkedVersion(text: string, prefix = ''): number | undefined {
    const version = versionOf(text, prefix);
    if (version !== undefined && version > this.#store.version)
      throw resourceVersionTooLarge(text, this.#store.version);
    return version;
  }
}

/** The resource under which the objects are stored. */
export function storedResource({ resource, view }: ResourceEntry): ResourceEntry['resource'] {
  return view?.of ?? resource;
}

/** Converts a stored object to the resource under which it is requested. */
export function asResource({ view }: ResourceEntry, object: StoredObject): StoredObject {
  return view === undefined ? object : view.toView(object);
}

function takeUpTo(objects: IteratorObject<StoredObject>, limit: number): readonly StoredObject[] {
  const items: StoredObject[] = [];
  while (items.length < limit) {
    const next = objects.next();
    if (next.done === true) break;
    items.push(next.value);
  }
  return items;
}

function count(objects: IteratorObject<unknown>): number {
  return objects.reduce((sum: number) => sum + 1, 0);
}

function expiredContinueToken(start: string): Error {
  return expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list ' +
      'without the continue parameter, or use the continue token in this response to retrieve the remainder of the ' +
      'results. Continuing with the provided token results in an inconsistent list - objects that were created, ' +
      'modified, or deleted between the time the first chunk was returned and now may show up in the list.',
    { continue: encodeContinue({ version: undefined, start }) },
  );
}

/** The position in a continue token. */
export interface ListPosition {
  /**
   * The resource version of all pages; undefined to continue an expired list at the current
   * version.
   */
  readonly version: number | undefined;
  /** The key of the first object on the page. */
  readonly start: string;
}

const tokenVersion = 'meta.k8s.io/v1';

function encodeContinue({ version, start }: ListPosition): string {
  return Buffer.from(JSON.stringify({ v: tokenVersion, rv: version ?? -1, start })).toString('base64url');
}

/** Parses a continue token. Throws a StatusError if it is malformed. */
function decodeContinue(token: string): ListPosition {
  const { v, rv, start } = parsed(token);
  if (v !== tokenVersion) throw invalidToken(`: server does not recognize this encoded version ${v ?? ''}`);
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0 || rv < -1)
    throw invalidToken(`: incorrect encoded start resourceVersion (version ${tokenVersion})`);
  if (typeof start !== 'string' || start === '')
    throw invalidToken(`: encoded start key empty (version ${tokenVersion})`);
  if (start.split('/').some((part) => part === '..' || part === '.' || part === ''))
    throw invalidToken(`: ${start}`);
  return { version: rv === -1 ? undefined : rv, start };
}

function parsed(token: string): { readonly v?: unknown; readonly rv?: unknown; readonly start?: unknown } {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (isJsonObject(value)) return value;
  } catch {
    // A token that cannot be parsed is reported below.
  }
  throw invalidToken('');
}

function invalidToken(why: string): Error {
  return badRequest(`invalid continue token: continue key is not valid${why}`);
}
