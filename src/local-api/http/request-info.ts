import { splitTarget } from '../../protocols/http1/index.ts';
import { type AccessAttributes, type ResourceVerb, resourceAccess } from '../api/index.ts';
import { requiredFieldValue } from '../selectors/selection.ts';

/** The parsed request path. The resource in it may not exist. */
export type ParsedPath =
  | {
      readonly kind: 'resource';
      readonly group: string;
      readonly version: string;
      readonly resource: string;
      readonly namespace: string | undefined;
      readonly name: string | undefined;
      readonly subresource: string | undefined;
      /** The path after the `proxy` subresource, with its slash and undecoded; otherwise empty. */
      readonly rest: string;
    }
  | { readonly kind: 'other'; readonly path: string }
  /** A request path that cannot be decoded. */
  | { readonly kind: 'garbled' };

export type ResourcePath = Extract<ParsedPath, { kind: 'resource' }>;

/** A parsed request target such as `/api/v1/namespaces/a/pods?watch=1`. */
export interface ApiRequestTarget {
  readonly path: ParsedPath;
  /**
   * The query parameters. They are parsed when they are first read, which must be after
   * authentication.
   */
  readonly query: URLSearchParams;
  /** The length of path and query in characters. */
  readonly length: number;
}

export function parseTarget(url: string): ApiRequestTarget {
  const target = splitTarget(url);
  return {
    path: parsePath(target.writtenPath),
    length: target.length,
    get query() {
      return target.query;
    },
  };
}

const maxPathLength = 64 * 1024;

function parsePath(rawPath: string): ParsedPath {
  if (!rawPath.startsWith('/') || rawPath.length > maxPathLength) return { kind: 'garbled' };
  const segments = rawPath.slice(1).split('/');
  // A trailing slash is ignored; a path with other empty segments matches no resource.
  const named = segments.at(-1) === '' ? segments.slice(0, -1) : segments;
  const decoded = named.map(decodedSegment);
  const clear = decoded.filter((segment) => segment !== undefined);
  if (clear.length < decoded.length) return { kind: 'garbled' };
  return parseSegments(clear, segments) ?? { kind: 'other', path: `/${clear.join('/')}` };
}

/** Decodes a path segment; undefined for invalid UTF-8. */
function decodedSegment(segment: string): string | undefined {
  try {
    const text = decodeURIComponent(segment);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Parses a resource path; undefined for a path that is too short. */
function parseSegments(segments: readonly string[], written: readonly string[]): ResourcePath | undefined {
  const [prefix, second = ''] = segments;
  if (prefix === 'api' && segments.length > 2) return parseResource('', second, segments, written, 2);
  if (prefix !== 'apis' || segments.length < 4) return undefined;
  return parseResource(second, segments[2] ?? '', segments, written, 3);
}

/**
 * The subresources of a namespace; any other segment after its name is a resource in the namespace.
 */
const namespaceSubresources = new Set(['status', 'finalize']);

function parseResource(
  group: string,
  version: string,
  segments: readonly string[],
  written: readonly string[],
  from: number,
): ResourcePath | undefined {
  const parts = segments.slice(from);
  if (parts.includes('') && !parts.includes('proxy')) return undefined;
  const isNamespace = parts[0] === 'namespaces' && parts.length > 1;
  const isInside = isNamespace && parts.length > 2 && !namespaceSubresources.has(parts[2] ?? '');
  const start = from + (isInside ? 2 : 0);
  const [resource = '', name, subresource, ...rest] = segments.slice(start);
  // A path with an encoded slash in a name matches no resource.
  if (segments.slice(0, start + 3).some((segment) => segment.includes('/'))) return undefined;
  // Only the path of a proxy subresource may have further segments.
  if (rest.length > 0 && subresource !== 'proxy') return undefined;
  const namespace = isNamespace ? parts[1] : undefined;
  const behind = subresource === 'proxy' ? written.slice(start + 3).map((part) => `/${part}`) : [];
  return {
    kind: 'resource',
    group,
    version,
    resource,
    namespace,
    name,
    subresource,
    rest: behind.join(''),
  };
}

const verbsOfMethods: Readonly<Record<string, ResourceVerb>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** The verb of a resource request; undefined for unsupported methods. */
export function requestVerb(
  method: string,
  path: ResourcePath,
  query: URLSearchParams,
): ResourceVerb | undefined {
  const verb = verbsOfMethods[method];
  if (path.name !== undefined) return verb;
  // A HEAD request must not start a watch.
  if (verb === 'get') return method === 'GET' && isWatch(query) ? 'watch' : 'list';
  return verb === 'delete' ? 'deletecollection' : verb;
}

/** Any value except an explicit false is a watch, so that a watch is never authorized as a list. */
function isWatch(query: URLSearchParams): boolean {
  const watch = query.get('watch');
  return watch !== null && !['false', '0', 'f', 'no'].includes(watch.toLowerCase());
}

/**
 * Subresources that execute code or open connections. Their verb is `create` for every method, so
 * that a user with only `get` cannot use them.
 */
const connectSubresources = new Set(['exec', 'attach', 'portforward', 'proxy']);

/** The attributes of a request for its authorization. */
export function authorizationAttributes(method: string, target: ApiRequestTarget): AccessAttributes {
  const { path } = target;
  if (path.kind !== 'resource')
    return { to: 'path', verb: method.toLowerCase(), path: path.kind === 'other' ? path.path : '/' };
  const { query } = target;
  const requested = requestVerb(method, path, query);
  const verb = connectSubresources.has(path.subresource ?? '')
    ? 'create'
    : (requested ?? method.toLowerCase());
  const selects = verb === 'list' || verb === 'watch' || verb === 'deletecollection';
  const fieldSelector = selects ? (query.get('fieldSelector') ?? undefined) : undefined;
  const labelSelector = selects ? (query.get('labelSelector') ?? undefined) : undefined;
  const name =
    path.name ?? (selects && verb !== 'deletecollection' ? selectedName(fieldSelector) : undefined);
  return resourceAccess({ ...path, verb, name, fieldSelector, labelSelector });
}

/**
 * A user who may get one object may also list and watch it by a metadata.name selector. The name is
 * read by the parser that also selects the objects: otherwise a selector that was authorized for
 * one object could return all.
 */
function selectedName(fieldSelector: string | undefined): string | undefined {
  try {
    const name = requiredFieldValue(fieldSelector, 'metadata.name');
    return name === undefined || /^\.{0,2}$|[/%]/.test(name) ? undefined : name;
  } catch {
    // A malformed selector is rejected later; until then the request has no name.
    return undefined;
  }
}
