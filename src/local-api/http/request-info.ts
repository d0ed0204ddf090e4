import { type AccessAttributes, type ResourceVerb, resourceAccess } from '../api/index.ts';
import { selectedField } from '../selectors/selection.ts';

/** What a path names. Nothing is looked up for it: the resource may be one that nobody has. */
export type PathMeaning =
  | {
      readonly kind: 'resource';
      readonly group: string;
      readonly version: string;
      readonly resource: string;
      readonly namespace: string | undefined;
      readonly name: string | undefined;
      readonly subresource: string | undefined;
      /** What stands behind the subresource, with its slash and as it was written; empty if nothing does. */
      readonly rest: string;
    }
  | { readonly kind: 'other'; readonly path: string }
  /** A path that cannot be read at all. */
  | { readonly kind: 'garbled' };

export type ResourcePath = Extract<PathMeaning, { kind: 'resource' }>;

/** What a target such as `/api/v1/namespaces/a/pods?watch=1` asks for. */
export interface RequestTarget {
  readonly path: PathMeaning;
  readonly query: URLSearchParams;
}

export function readTarget(target: string): RequestTarget {
  const at = target.indexOf('?');
  const query = new URLSearchParams(at < 0 ? '' : target.slice(at + 1));
  return { path: readPath(at < 0 ? target : target.slice(0, at)), query };
}

const longestPath = 64 * 1024;

function readPath(written: string): PathMeaning {
  if (!written.startsWith('/') || written.length > longestPath) return { kind: 'garbled' };
  const segments = written.slice(1).split('/');
  // One slash at the end is nothing; an empty segment anywhere else names nothing that exists.
  const named = segments.at(-1) === '' ? segments.slice(0, -1) : segments;
  const decoded = named.map(decodedSegment);
  const clear = decoded.filter((segment) => segment !== undefined);
  if (clear.length < decoded.length) return { kind: 'garbled' };
  return readSegments(clear, segments) ?? { kind: 'other', path: `/${clear.join('/')}` };
}

/** Undefined when it is not UTF-8. */
function decodedSegment(segment: string): string | undefined {
  try {
    const text = decodeURIComponent(segment);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Undefined for a path too short to name a resource. */
function readSegments(segments: readonly string[], written: readonly string[]): ResourcePath | undefined {
  const [prefix, second = ''] = segments;
  if (prefix === 'api' && segments.length > 2) return readResource('', second, segments, written, 2);
  if (prefix !== 'apis' || segments.length < 4) return undefined;
  return readResource(second, segments[2] ?? '', segments, written, 3);
}

/** Parts of a namespace itself; anything else behind its name is a resource inside it. */
const partsOfNamespaces = new Set(['status', 'finalize']);

function readResource(
  group: string,
  version: string,
  segments: readonly string[],
  written: readonly string[],
  from: number,
): ResourcePath | undefined {
  const parts = segments.slice(from);
  if (parts.includes('') && !parts.includes('proxy')) return undefined;
  const isNamespace = parts[0] === 'namespaces' && parts.length > 1;
  const isInside = isNamespace && parts.length > 2 && !partsOfNamespaces.has(parts[2] ?? '');
  const start = from + (isInside ? 2 : 0);
  const [resource = '', name, subresource, ...rest] = segments.slice(start);
  // A slash that was hidden in a segment makes it no name of anything.
  if (segments.slice(0, start + 3).some((segment) => segment.includes('/'))) return undefined;
  // Only where a proxy leads may anything follow.
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

/** What is asked of a resource, or undefined for a method that asks for nothing. */
export function verbOf(method: string, path: ResourcePath, query: URLSearchParams): ResourceVerb | undefined {
  const verb = verbsOfMethods[method];
  if (path.name !== undefined) return verb;
  // Whoever wants no body does not want one without end.
  if (verb === 'get') return method === 'GET' && wantsWatch(query) ? 'watch' : 'list';
  return verb === 'delete' ? 'deletecollection' : verb;
}

/** Anything but a plain no means yes: who may watch may be less than who may list. */
function wantsWatch(query: URLSearchParams): boolean {
  const wanted = query.get('watch');
  return wanted !== null && !['false', '0', 'f', 'no'].includes(wanted.toLowerCase());
}

/** They run things and reach into pods: whoever may only look must not be able to, whatever method is used. */
const needCreate = new Set(['exec', 'attach', 'portforward', 'proxy']);

/** What somebody wants, as permissions speak of it. */
export function attributesOf(method: string, { path, query }: RequestTarget): AccessAttributes {
  if (path.kind !== 'resource')
    return { to: 'path', verb: method.toLowerCase(), path: path.kind === 'other' ? path.path : '/' };
  const asked = verbOf(method, path, query);
  const verb = needCreate.has(path.subresource ?? '') ? 'create' : (asked ?? method.toLowerCase());
  const selects = verb === 'list' || verb === 'watch' || verb === 'deletecollection';
  const fieldSelector = selects ? (query.get('fieldSelector') ?? undefined) : undefined;
  const labelSelector = selects ? (query.get('labelSelector') ?? undefined) : undefined;
  const name =
    path.name ?? (selects && verb !== 'deletecollection' ? selectedName(fieldSelector) : undefined);
  return resourceAccess({ ...path, verb, name, fieldSelector, labelSelector });
}

/**
 * Who may see one object by its name may list and watch it alone. Read by who will select by it: were it understood in
 * another way here, somebody could be let in for one object and be shown all.
 */
function selectedName(fieldSelector: string | undefined): string | undefined {
  try {
    const name = selectedField(fieldSelector, 'metadata.name');
    return name === undefined || /^\.{0,2}$|[/%]/.test(name) ? undefined : name;
  } catch {
    // It will be refused; until then it selects nothing in particular.
    return undefined;
  }
}
