import type { Container, HTTPGetAction } from '../kinds/index.ts';
import { type HttpRequest, KubelingError, requestTarget } from '../lib/index.ts';

type Ports = Pick<Container, 'ports'>;

/** The port of an HTTP action: a number, the name of a container port, or a number as text. */
export function actionPort(port: number | string, { ports = [] }: Ports): number {
  const named = typeof port === 'string' ? ports.find(({ name }) => name === port)?.containerPort : undefined;
  const number = named ?? (typeof port === 'number' || /^[+-]?\d+$/.test(port) ? Number(port) : undefined);
  if (number === undefined) throw new KubelingError('ACTION_PORT', `port ${port} not found`);
  if (number > 0 && number < 65_536) return number;
  throw new KubelingError('ACTION_PORT', `invalid port number: ${number}`);
}

/** The request of an HTTP action; `podIp` is used if the action names no host. */
export function actionRequest(
  action: HTTPGetAction,
  container: Ports,
  podIp: string,
  userAgent: string,
): HttpRequest {
  return {
    scheme: action.scheme?.toLowerCase() === 'https' ? 'https' : 'http',
    host: action.host || podIp,
    port: actionPort(action.port, container),
    target: requestTarget(action.path ?? ''),
    headers: actionHeaders(action, userAgent),
  };
}

/**
 * The headers of the action with defaults; an empty `Accept` or `User-Agent` removes the header.
 */
function actionHeaders({ httpHeaders = [] }: HTTPGetAction, userAgent: string): HttpRequest['headers'] {
  const given = httpHeaders.map(({ name, value }) => [name, value] as const);
  const first = (requestedPort: string) => given.find(([name]) => name.toLowerCase() === requestedPort)?.[1];
  const defaults = [
    ['User-Agent', userAgent],
    ['Accept', '*/*'],
  ] as const;
  const added = defaults.filter(([name]) => first(name.toLowerCase()) === undefined);
  const removed = ['host', 'accept', 'user-agent'].filter((name) => first(name) === '');
  return [...given.filter(([name]) => !removed.includes(name.toLowerCase())), ...added];
}
