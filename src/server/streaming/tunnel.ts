import type { Duplex } from 'node:stream';
import { forwardedHeaders, type RelayOptions, tunnelUpgrade } from '../../protocols/upgrade/index.ts';
import { handshakeProblem } from '../../protocols/websocket/index.ts';
import { type Response, text, type UpgradeCall } from '../router.ts';
import type { DialUpgrade, UpgradeAnswer } from './dial-upgrade.ts';

/** `idleMs` is how long a stream may be idle. */
export interface TunnelDeps extends RelayOptions {
  readonly dial: DialUpgrade;
}

/**
 * Forwards the client's upgrade to the runtime and tunnels it byte for byte. After any response but a 101 the client gets
 * that response, and both connections are closed.
 */
export async function tunnel(
  call: UpgradeCall,
  url: URL,
  deps: TunnelDeps,
  signal: AbortSignal,
): Promise<Response | undefined> {
  const headers = [...forwardedHeaders(call.rawHeaders), ...forwardedFor(call.socket)];
  const answer = await deps.dial({ url, method: call.request.method, headers }, signal);
  if (answer.kind === 'answered') return refusal(answer);
  await tunnelUpgrade(call, answer, deps, signal);
  return undefined;
}

function forwardedFor(socket: Duplex): readonly string[] {
  const { remoteAddress } = socket as { readonly remoteAddress?: string };
  return remoteAddress === undefined ? [] : ['X-Forwarded-For', remoteAddress];
}

/** Passes an error of the runtime on; any other response, such as a redirect, becomes a 500. */
export function refusal({
  status,
  contentType,
  body,
}: Extract<UpgradeAnswer, { kind: 'answered' }>): Response {
  if (status >= 400 && status <= 599) return { status, contentType, body };
  return text(500, `invalid upgrade response: status code ${status}`);
}

/** The response to a WebSocket handshake that is not valid. */
export function handshakeRefusal({ request }: Pick<UpgradeCall, 'request'>): Response | undefined {
  const problem = handshakeProblem(request);
  if (problem === undefined) return undefined;
  const { status, message, headers } = problem;
  return { ...text(status, message), ...(headers === undefined ? {} : { headers }) };
}
