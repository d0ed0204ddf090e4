import type { Logger } from '../../lib/index.ts';
import { type Response, text } from '../router.ts';
import { nodeAccess, type StreamVerb } from './attributes.ts';
import { type AuthenticationPolicy, authenticate } from './authenticate.ts';
import type { Authorizer } from './authorize.ts';
import type { Caller, User } from './identity.ts';

/** Stands before every route: nothing is chosen, read or begun for a caller it does not admit. */
export interface Gate {
  /** Answers how to refuse, or nothing for who may pass. What it throws refuses as well. */
  admit(caller: Caller, signal: AbortSignal): Promise<Response | undefined>;
}

export interface NodeGateDeps {
  readonly authentication: AuthenticationPolicy;
  readonly authorizer: Authorizer;
  readonly nodeName: string;
  /** Whether what runs something in pods needs `create` however it is asked for. */
  readonly streams: StreamVerb;
  readonly logger: Logger;
}

export function nodeGate(deps: NodeGateDeps): Gate {
  return {
    async admit(caller, signal) {
      const user = await authenticate(deps.authentication, caller, signal);
      return user === undefined ? unauthorized(caller) : await authorizeUser(deps, user, caller, signal);
    },
  };
}

/** A certificate belongs to its connection: only on a new one can another, or another verdict on this one, be had. */
function unauthorized({ certificate }: Caller): Response {
  const refusal = text(401, 'Unauthorized');
  return certificate === undefined ? refusal : { ...refusal, headers: { connection: 'close' } };
}

async function authorizeUser(
  { authorizer, nodeName, streams, logger }: NodeGateDeps,
  user: User,
  { method, path }: Caller,
  signal: AbortSignal,
): Promise<Response | undefined> {
  const { verb, subresources } = nodeAccess(method, path, streams);
  const who = `user=${user.name}, verb=${verb}, resource=nodes`;
  for (const subresource of subresources) {
    try {
      const spec = { user, verb, subresource, name: nodeName };
      if ((await authorizer.authorize(spec, { path }, signal)) === 'allowed') return undefined;
    } catch (error) {
      signal.throwIfAborted();
      logger.error('Cannot tell whether a request is allowed', error, { user: user.name, verb, subresource });
      return text(500, `Authorization error (${who}, subresource=${subresource})`);
    }
  }
  logger.v(2)?.info('Forbidden', { user: user.name, verb, subresources });
  return text(403, `Forbidden (${who}, subresource(s)=[${subresources.join(' ')}])\n`);
}
