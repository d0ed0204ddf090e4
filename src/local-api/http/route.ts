import type { ResourceEntry, ResourceVerb } from '../core/index.ts';
import { methodNotAllowed, noSuchPath } from '../core/refusals.ts';
import { verbOf } from './attributes.ts';
import type { FrontCatalogue, FrontStreams } from './front-deps.ts';
import type { ResourcePath } from './paths.ts';

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
