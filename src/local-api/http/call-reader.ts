import type { IncomingMessage } from 'node:http';
import type { JsonObject } from '../../api/index.ts';
import type { KindTable } from '../../kinds/index.ts';
import type { ApiCall, ApiUser, ResourceEntry, ResourceVerb } from '../api/index.ts';
import { methodNotAllowed, noSuchPath } from '../api/status-errors.ts';
import { BodyDecoder } from './body/decode-body.ts';
import { expectedKind, fieldValidation } from './body/expected-kind.ts';
import { patchKind, readPatch } from './body/json-body.ts';
import { readBytes, turnAfter } from './body/read-body.ts';
import type { ResourcePath } from './request-info.ts';
import { verbOf } from './request-info.ts';
import {
  checkDeleteOptions,
  checkWriteOptions,
  deleteOptionsOf,
  isDryRun,
  isWrite,
  optionsKind,
} from './request-options.ts';
import type { FrontCatalogue, FrontStreams } from './server-deps.ts';

/** A request whose caller may do what it asks. */
export interface AdmittedRequest {
  readonly incoming: IncomingMessage;
  readonly user: ApiUser;
  readonly route: Route;
  readonly query: URLSearchParams;
  readonly warn: (text: string) => void;
}

type CallBody = Pick<ApiCall, 'body' | 'patch' | 'readPatched'>;

/** Makes calls of requests: reads and decodes what came along. */
export class CallReader {
  readonly #decoder: BodyDecoder;

  constructor(table: KindTable) {
    this.#decoder = new BodyDecoder(table);
  }

  /** Throws a refusal for options and bodies that cannot be understood. */
  async read(request: AdmittedRequest, signal: AbortSignal): Promise<ApiCall> {
    const { user, route, query, warn, incoming } = request;
    const { verb, entry, namespace, name, subresource } = route;
    if (isWrite(verb)) checkWriteOptions(verb, query, incoming.headers['content-type']);
    const sent: CallBody = isWrite(verb)
      ? await this.#body(request, signal)
      : { body: undefined, patch: undefined };
    const dryRun = isDryRun(verb, query, sent.body);
    return { user, verb, entry, namespace, name, subresource, query, ...sent, dryRun, warn };
  }

  async #body(request: AdmittedRequest, signal: AbortSignal): Promise<CallBody> {
    const { verb } = request.route;
    if (verb === 'patch') return await this.#patch(request, signal);
    const isDelete = verb === 'delete' || verb === 'deletecollection';
    const body = isDelete ? await this.#deletion(request, signal) : await this.#object(request, signal);
    return { body, patch: undefined };
  }

  async #patch({ incoming, route, query, warn }: AdmittedRequest, signal: AbortSignal): Promise<CallBody> {
    const patch = patchKind(incoming.headers['content-type']);
    const validation = fieldValidation(query, 'PatchOptions');
    const bytes = await readBytes(incoming, signal);
    const { value: body, duplicates } = readPatch(patch, bytes);
    await turnAfter(bytes);
    const how = { body, duplicates, expected: route.entry.resource, validation, warn };
    return { body, patch, readPatched: (patched) => this.#decoder.decodePatched(patched, how) };
  }

  async #object(request: AdmittedRequest, signal: AbortSignal): Promise<JsonObject> {
    const { incoming, route, query, warn } = request;
    const validation = fieldValidation(query, optionsKind(route.verb));
    const bytes = await readBytes(incoming, signal);
    return await this.#decode(request, bytes, { validation, warn }, signal);
  }

  async #deletion(request: AdmittedRequest, signal: AbortSignal): Promise<JsonObject | undefined> {
    const bytes = await readBytes(request.incoming, signal);
    const options =
      bytes.length === 0
        ? deleteOptionsOf(request.query)
        : await this.#decode(request, bytes, { validation: 'Ignore', warn: request.warn }, signal);
    if (options !== undefined) checkDeleteOptions(options);
    return options;
  }

  async #decode(
    { incoming, route }: AdmittedRequest,
    bytes: Buffer,
    how: Pick<Parameters<BodyDecoder['decode']>[0], 'validation' | 'warn'>,
    signal: AbortSignal,
  ): Promise<JsonObject> {
    const expected = expectedKind(route.entry, route.subresource, route.verb);
    const contentType = incoming.headers['content-type'];
    return await this.#decoder.decode({ bytes, contentType, expected, ...how }, signal);
  }
}

/** What a path of a resource leads to, once it is known that it leads somewhere. */
export interface Route {
  readonly entry: ResourceEntry;
  readonly verb: ResourceVerb;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  readonly kind: 'object' | 'stream';
}

export interface RouteDeps {
  readonly catalogue: FrontCatalogue;
  readonly streams?: FrontStreams | undefined;
}

/** Without any of these nothing of a resource has a path of its own. */
const aboutOne: readonly ResourceVerb[] = ['get', 'update', 'patch', 'delete'];

/** Throws a refusal for a path nobody has, and for a method it does not take. */
export function routeOf(
  method: string,
  path: ResourcePath,
  query: URLSearchParams,
  { catalogue, streams }: RouteDeps,
): Route {
  const entry = catalogue.find(path.group, path.version, path.resource);
  if (entry === undefined) throw noSuchPath();
  const place = placeOf(entry, path);
  const { name, subresource } = path;
  if (name !== undefined && !entry.verbs.some((verb) => aboutOne.includes(verb))) throw noSuchPath();
  if (subresource !== undefined && streams?.serves(entry, subresource) === true)
    return { entry, verb: verbOf(method, path, query) ?? 'get', ...place, name, subresource, kind: 'stream' };
  const verb = verbOf(method, path, query);
  const verbs = verbsOf(entry, subresource);
  if (verb === undefined || !verbs.includes(verb) || !fitsPath(verb, path)) throw methodNotAllowed();
  // Objects are made and removed together inside one namespace only.
  const isEverywhere = entry.resource.scope === 'namespace' && place.namespace === undefined;
  if (isEverywhere && verb !== 'list' && verb !== 'watch') throw methodNotAllowed();
  return { entry, verb, ...place, name, subresource, kind: 'object' };
}

/** A new object has no path yet, and only one that has may be changed. */
function fitsPath(verb: ResourceVerb, { name, subresource }: ResourcePath): boolean {
  if (verb === 'create') return (name === undefined) === (subresource === undefined);
  return name !== undefined || (verb !== 'update' && verb !== 'patch');
}

function placeOf({ resource }: ResourceEntry, path: ResourcePath): Pick<Route, 'namespace'> {
  if (resource.scope === 'namespace') {
    if (path.namespace === undefined && path.name !== undefined) throw noSuchPath();
    return { namespace: path.namespace };
  }
  // The path of a namespace has its own name where others have theirs.
  const isOwn = resource.plural === 'namespaces' && resource.group === '' && path.namespace === path.name;
  if (path.namespace !== undefined && !isOwn) throw noSuchPath();
  return { namespace: undefined };
}

function verbsOf(entry: ResourceEntry, subresource: string | undefined): readonly ResourceVerb[] {
  if (subresource === undefined) return entry.verbs;
  const part = entry.subresources.find(({ name }) => name === subresource);
  if (part === undefined) throw noSuchPath();
  return part.verbs;
}
