import { splitTarget } from '../../protocols/http1/index.ts';
import { type AccessAttributes, type ResourceVerb, resourceAccess } from '../api/index.ts';
import { requiredFieldValue } from '../selectors/selection.ts';

/** The parsed path. The resource may not exist. */
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
  /** A malformed path. */
  | { readonly kind: 'garbled' };

export type ResourcePath = Extract<ParsedPath, { kind: 'resource' }>;

/** A parsed request target such as `/api/v1/namespaces/a/pods?watch=1`. */
export interface ApiRequestTarget {
  readonly path: ParsedPath;
  /** Parsed when it is first read, which must be after authentication. */
  readonly query: URLSearchParams;
  /** In characters, path and query together. */
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
  // A trailing slash is ignored; other empty segments match no path.
  const named = segments.at(-1) === '' ? segments.slice(0, -1) : segments;
  const decoded = named.map(decodedSegment);
  const clear = decoded.filter((segment) => segment !== undefined);
  if (clear.length < decoded.length) return { kind: 'garbled' };
  return parseSegments(clear, segments) ?? { kind: 'other', path: `/${clear.join('/')}` };
}

/** Undefined for invalid UTF-8. */
function decodedSegment(segment: string): string | undefined {
  try {
    const text = decodeURIComponent(segment);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Undefined for a path too short for a resource. */
function parseSegments(segments: readonly string[], written: readonly string[]): ResourcePath | undefined {
  const [prefix, second = ''] = segments;
  if (prefix === 'api' && segments.length > 2) return parseResource('', second, segments, written, 2);
  if (prefix !== 'apis' || segments.length < 4) return undefined;
  return parseResource(second, segments[2] ?? '', segments, written, 3);
}

/** Subresources of namespaces; any other segment after the name is a resource in the namespace. */
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
  // An encoded slash in a name is rejected.
  if (segments.slice(0, start + 3).some((segment) => segment.includes('/'))) return undefined;
  // Only a proxy path may have further segments.
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
  // HEAD must not start a watch.
  if (verb === 'get') return method === 'GET' && isWatch(query) ? 'watch' : 'list';
  return verb === 'delete' ? 'deletecollection' : verb;
}

/** Strict about false: a watch must never be authorized as a list. */
function isWatch(query: URLSearchParams): boolean {
  const watch = query.get('watch');
  return watch !== null && !['false', '0', 'f', 'no'].includes(watch.toLowerCase());
}

/**
 * These subresources execute code or open connections: a user with only `get` must not use them,
 * whatever the method.
 */
const connectSubresources = new Set(['exec', 'attach', 'portforward', 'proxy']);

/** The attributes for authorization. */
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
 * A user who may get one object may also list and watch it by name. Uses the parser that also
 * selects the objects: otherwise a selector authorized for one object could return all.
 */
function selectedName(fieldSelector: string | undefined): string | undefined {
  try {
    const name = requiredFieldValue(fieldSelector, 'metadata.name');
    return name === undefined || /^\.{0,2}$|[/%]/.test(name) ? undefined : name;
  } catch {
    // The request is rejected later; until then it has no name.
    return undefined;
  }
}
