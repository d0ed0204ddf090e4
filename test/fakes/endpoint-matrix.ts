import type { RequestOptions } from 'node:https';

/** A request to the kubelet's server with the permissions that it requires. */
export interface Endpoint {
  readonly method: string;
  readonly path: string;
  readonly upgrade?: 'SPDY/3.1' | 'websocket';
  /** The HTTP status for an authorized client while no container runtime listens. */
  readonly status: number;
  readonly subresources: readonly string[];
  readonly verb: string;
}

function get(path: string, subresources: readonly string[], status = 200): Endpoint {
  return { method: 'GET', path, status, subresources, verb: 'get' };
}

/** The paths of streaming requests into pods, which always require the verb `create`. */
export const streamPaths = [
  '/exec/default/web/main?output=1&command=id',
  '/attach/default/web/main?output=1',
  '/portForward/default/web',
];

/**
 * Requests with every path, method and upgrade, for a pod `web` in the namespace `default` with a
 * container `main`.
 */
export const endpoints: readonly Endpoint[] = [
  get('/healthz', ['healthz', 'proxy']),
  get('/healthz/ping', ['healthz', 'proxy']),
  get('/livez', ['proxy']),
  get('/readyz', ['proxy']),
  get('/pods', ['pods', 'proxy']),
  get('/runningpods/', ['pods', 'proxy']),
  get('/metrics', ['metrics']),
  get('/metrics/slis', ['metrics']),
  { ...get('/metrics/slis', ['metrics']), method: 'DELETE', verb: 'delete' },
  get('/metrics/probes', ['metrics']),
  get('/metrics/resource', ['metrics']),
  get('/metrics/cadvisor', ['metrics']),
  get('/stats/summary', ['stats']),
  { ...get('/stats/summary', ['stats']), method: 'POST', verb: 'create' },
  get('/configz', ['configz', 'proxy']),
  get('/statusz', ['statusz']),
  get('/flagz', ['configz']),
  get('/logs/', ['log']),
  get('/logs/sys.log', ['log']),
  get('/logs/?query=kubelet', ['log']),
  get('/debug/flight', ['proxy']),
  get('/debug/images', ['proxy']),
  get('/containerLogs/default/web/main', ['proxy'], 400),
  { ...get('/debug/flags/v', ['proxy'], 400), method: 'PUT', verb: 'update' },
  { ...get('/checkpoint/default/web/main', ['checkpoint']), method: 'POST', verb: 'create' },
  { ...get('/run/default/web/main?cmd=id', ['proxy']), method: 'POST', verb: 'create' },
  get('/nothing', ['proxy'], 404),
  { ...get('/pods', ['pods', 'proxy'], 405), method: 'PATCH', verb: 'patch' },
  { ...get('/pods', ['pods', 'proxy'], 405), method: 'OPTIONS', verb: '' },
  // No runtime listens behind these endpoints; the status only shows that the server tried to
  // connect.
  ...streamPaths.flatMap((path) => [
    { ...get(path, ['proxy'], 500), verb: 'create' },
    { ...get(path, ['proxy'], 500), method: 'POST', verb: 'create' },
    { ...get(path, ['proxy'], 500), method: 'POST', verb: 'create', upgrade: 'SPDY/3.1' as const },
    { ...get(path, ['proxy'], 500), verb: 'create', upgrade: 'SPDY/3.1' as const },
    {
      ...get(`${path}${path.includes('?') ? '&' : '?'}port=80`, ['proxy'], 500),
      verb: 'create',
      upgrade: 'websocket' as const,
    },
  ]),
  // These endpoints ignore an upgrade and return an ordinary response.
  { ...get('/pods', ['pods', 'proxy']), upgrade: 'SPDY/3.1' },
  { ...get('/nothing', ['proxy'], 404), upgrade: 'websocket' },
];

export function optionsOf({ method, path, upgrade }: Endpoint, more: Credential): RequestOptions {
  const { headers = {}, ...rest } = more;
  return { method, ...rest, headers: { ...upgradeHeaders(path, upgrade), ...headers } };
}

function upgradeHeaders(path: string, upgrade: Endpoint['upgrade']): Readonly<Record<string, string>> {
  if (upgrade === undefined) return {};
  const wish = { Connection: 'Upgrade', Upgrade: upgrade };
  const spoken = path.startsWith('/portForward/') ? 'portforward.k8s.io' : 'v4.channel.k8s.io';
  if (upgrade === 'SPDY/3.1') return { ...wish, 'X-Stream-Protocol-Version': spoken };
  return {
    ...wish,
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    'sec-websocket-protocol': 'v4.channel.k8s.io',
  };
}

/** The credentials of a client. */
export type Credential = RequestOptions & { readonly headers?: Readonly<Record<string, string>> };

export const bearer = (token: string): Credential => ({ headers: { authorization: `Bearer ${token}` } });
/** A token as a WebSocket subprotocol, for clients that cannot set other headers. */
export const encodedToken = (token: string) =>
  `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`;

export function nameOf({ method, path, upgrade }: Endpoint): string {
  return `${method} ${path}${upgrade === undefined ? '' : ` to ${upgrade}`}`;
}
