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
