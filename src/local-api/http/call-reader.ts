import type { IncomingMessage } from 'node:http';
import type { JsonObject } from '../../api/index.ts';
import type { KindTable } from '../../kinds/index.ts';
import type { ApiCall, ApiUser, ResourceEntry, ResourceVerb } from '../api/index.ts';
import { methodNotAllowed, pathNotFound } from '../api/status-errors.ts';
import { BodyDecoder } from './body/decode-body.ts';
import { expectedKind, fieldValidation } from './body/expected-kind.ts';
import { patchKind, readPatch } from './body/json-body.ts';
import { readBody, yieldAfterLargeBody } from './body/read-body.ts';
import type { ResourcePath } from './request-info.ts';
import { requestVerb } from './request-info.ts';
import {
  checkDeleteOptions,
  checkWriteOptions,
  deleteOptionsOf,
  isDryRun,
  isWrite,
  optionsKind,
} from './request-options.ts';
import type { ResourceLookup, StreamProxy } from './server-deps.ts';

/** A request whose user is authorized. */
export interface AuthorizedCall {
  readonly incoming: IncomingMessage;
  readonly user: ApiUser;
  readonly route: ApiRoute;
  readonly query: URLSearchParams;
  readonly warn: (text: string) => void;
}

type CallBody = Pick<ApiCall, 'body' | 'patch' | 'decodePatched'>;

/** Parses requests into API calls: reads and decodes the body. */
export class CallReader {
  readonly #decoder: BodyDecoder;

  constructor(table: KindTable) {
    this.#decoder = new BodyDecoder(table);
  }

  /**
   * Reads the call of an authorized request; throws a StatusError for invalid options and bodies.
   */
  async read(request: AuthorizedCall, signal: AbortSignal): Promise<ApiCall> {
    const { user, route, query, warn, incoming } = request;
    const { verb, entry, namespace, name, subresource } = route;
    if (isWrite(verb)) checkWriteOptions(verb, query, incoming.headers['content-type']);
    const sent: CallBody = isWrite(verb)
      ? await this.#body(request, signal)
      : { body: undefined, patch: undefined };
    const dryRun = isDryRun(verb, query, sent.body);
    return { user, verb, entry, namespace, name, subresource, query, ...sent, dryRun, warn };
  }

  async #body(request: AuthorizedCall, signal: AbortSignal): Promise<CallBody> {
    const { verb } = request.route;
    if (verb === 'patch') return await this.#patch(request, signal);
    const isDelete = verb === 'delete' || verb === 'deletecollection';
    const body = isDelete ? await this.#deleteOptions(request, signal) : await this.#object(request, signal);
    return { body, patch: undefined };
  }

  async #patch({ incoming, route, query, warn }: AuthorizedCall, signal: AbortSignal): Promise<CallBody> {
    const patch = patchKind(incoming.headers['content-type']);
    const validation = fieldValidation(query, 'PatchOptions');
    const bytes = await readBody(incoming, signal);
    const { value: body, duplicates } = readPatch(patch, bytes);
    await yieldAfterLargeBody(bytes);
    const how = { body, duplicates, expected: route.entry.resource, validation, warn };
    return { body, patch, decodePatched: (patched) => this.#decoder.decodePatched(patched, how) };
  }

  async #object(request: AuthorizedCall, signal: AbortSignal): Promise<JsonObject> {
    const { incoming, route, query, warn } = request;
    const validation = fieldValidation(query, optionsKind(route.verb));
    const bytes = await readBody(incoming, signal);
    return await this.#decode(request, bytes, { validation, warn }, signal);
  }

  async #deleteOptions(request: AuthorizedCall, signal: AbortSignal): Promise<JsonObject | undefined> {
    const bytes = await readBody(request.incoming, signal);
    const options =
      bytes.length === 0
        ? deleteOptionsOf(request.query)
        : await this.#decode(request, bytes, { validation: 'Ignore', warn: request.warn }, signal);
    if (options !== undefined) checkDeleteOptions(options);
    return options;
  }

  async #decode(
    { incoming, route }: AuthorizedCall,
    bytes: Buffer,
    how: Pick<Parameters<BodyDecoder['decode']>[0], 'validation' | 'warn'>,
    signal: AbortSignal,
  ): Promise<JsonObject> {
    const expected = expectedKind(route.entry, route.subresource, route.verb);
    const contentType = incoming.headers['content-type'];
    return await this.#decoder.decode({ bytes, contentType, expected, ...how }, signal);
  }
}

/** The catalogue entry and the verb of a resource path. */
export interface ApiRoute {
  readonly entry: ResourceEntry;
  readonly verb: ResourceVerb;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  readonly kind: 'object' | 'stream';
}

export interface RouteDeps {
  readonly catalogue: ResourceLookup;
  readonly streams?: StreamProxy | undefined;
}

/**
 * The verbs whose request path has an object name. A resource that supports none of them has no
 * such paths.
 */
const objectVerbs: readonly ResourceVerb[] = ['get', 'update', 'patch', 'delete'];

/** Finds the route of a request; throws a StatusError for unknown paths and unsupported methods. */
export function routeRequest(
  method: string,
  path: ResourcePath,
  query: URLSearchParams,
  { catalogue, streams }: RouteDeps,
): ApiRoute {
  const entry = catalogue.find(path.group, path.version, path.resource);
  if (entry === undefined) throw pathNotFound();
  const namespace = namespaceOf(entry, path);
  const { name, subresource } = path;
  if (name !== undefined && !entry.verbs.some((verb) => objectVerbs.includes(verb))) throw pathNotFound();
  if (subresource !== undefined && streams?.serves(entry, subresource) === true)
    return {
      entry,
      verb: requestVerb(method, path, query) ?? 'get',
      ...namespace,
      name,
      subresource,
      kind: 'stream',
    };
  const verb = requestVerb(method, path, query);
  const verbs = verbsOf(entry, subresource);
  if (verb === undefined || !verbs.includes(verb) || !verbFitsPath(verb, path)) throw methodNotAllowed();
  // Only list and watch are possible in all namespaces together.
  const isEverywhere = entry.resource.scope === 'namespace' && namespace.namespace === undefined;
  if (isEverywhere && verb !== 'list' && verb !== 'watch') throw methodNotAllowed();
  return { entry, verb, ...namespace, name, subresource, kind: 'object' };
}

/** A create has no name in its path; updates and patches require one. */
function verbFitsPath(verb: ResourceVerb, { name, subresource }: ResourcePath): boolean {
  if (verb === 'create') return (name === undefined) === (subresource === undefined);
  return name !== undefined || (verb !== 'update' && verb !== 'patch');
}

function namespaceOf({ resource }: ResourceEntry, path: ResourcePath): Pick<ApiRoute, 'namespace'> {
  if (resource.scope === 'namespace') {
    if (path.namespace === undefined && path.name !== undefined) throw pathNotFound();
    return { namespace: path.namespace };
  }
  // The path of a Namespace object, /api/v1/namespaces/NAME, is parsed with NAME also as the
  // namespace.
  const isOwn = resource.plural === 'namespaces' && resource.group === '' && path.namespace === path.name;
  if (path.namespace !== undefined && !isOwn) throw pathNotFound();
  return { namespace: undefined };
}

function verbsOf(entry: ResourceEntry, subresource: string | undefined): readonly ResourceVerb[] {
  if (subresource === undefined) return entry.verbs;
  const part = entry.subresources.find(({ name }) => name === subresource);
  if (part === undefined) throw pathNotFound();
  return part.verbs;
}
