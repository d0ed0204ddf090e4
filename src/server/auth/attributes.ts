/** What a request asks for, in the words of the API: a verb on parts of the node. */
export interface NodeAccess {
  readonly verb: string;
  /** To be allowed one of them is enough. */
  readonly subresources: readonly string[];
}

const verbs: Readonly<Record<string, string>> = {
  POST: 'create',
  GET: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** The first that fits decides; a path takes what is below it too. */
const places: readonly (readonly [string, readonly string[]])[] = [
  ['/pods', ['pods', 'proxy']],
  ['/runningpods', ['pods', 'proxy']],
  ['/healthz', ['healthz', 'proxy']],
  ['/configz', ['configz', 'proxy']],
  ['/stats', ['stats']],
  ['/metrics', ['metrics']],
  ['/logs', ['log']],
  ['/checkpoint', ['checkpoint']],
  ['/statusz', ['statusz']],
  ['/flagz', ['configz']],
];

/** What runs something in a pod is no mere reading, whatever method the protocol needs it to be asked for with. */
const running = ['/exec', '/attach', '/run', '/portForward'];

export type StreamVerb = 'always-create' | 'by-method';

export function nodeAccess(method: string, path: string, streams: StreamVerb = 'always-create'): NodeAccess {
  const place = places.find(([prefix]) => isBelow(path, prefix));
  const creates = streams === 'always-create' && running.some((prefix) => isBelow(path, prefix));
  const verb = creates ? 'create' : Object.hasOwn(verbs, method) ? verbs[method] : undefined;
  return { verb: verb ?? '', subresources: place?.[1] ?? ['proxy'] };
}

function isBelow(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}
