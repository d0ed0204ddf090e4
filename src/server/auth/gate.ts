import type { Logger } from '../../lib/index.ts';
import { type Clock, KubelingError, type Random } from '../../lib/index.ts';
import { type Response, text } from '../router.ts';
import type { Authorizer } from './authorize.ts';
import { AccessWebhook, alwaysAllow, nodeAccess, type StreamVerb } from './authorize.ts';
import type { ClientCa } from './client-ca.ts';
import { x509Authenticator } from './client-ca.ts';
import type { Caller, User } from './identity.ts';
import { type Authenticator, anonymousUser, withAuthenticatedGroup } from './identity.ts';
import type { AccessReviewer, ReviewDeps, TokenReviewer } from './reviews.ts';
import { TokenWebhook } from './token-webhook.ts';

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

export interface AuthenticationPolicy {
  /** In order; the first that knows the caller decides. */
  readonly methods: readonly Authenticator[];
  /** What becomes of who shows nothing at all. Who shows something bad is refused in any case. */
  readonly anonymous: 'allowed' | 'refused';
  readonly logger: Logger;
}

/** Who calls; undefined for who is to be refused. */
export async function authenticate(
  { methods, anonymous, logger }: AuthenticationPolicy,
  caller: Caller,
  signal: AbortSignal,
): Promise<User | undefined> {
  const errors: unknown[] = [];
  for (const method of methods) {
    const outcome = await method.authenticate(caller, signal);
    if (outcome.kind === 'user') return withAuthenticatedGroup(outcome.user);
    if (outcome.kind === 'failed') errors.push(outcome.error);
  }
  for (const error of errors) logger.error('Cannot tell who sent a request', error);
  return errors.length === 0 && anonymous === 'allowed' ? anonymousUser : undefined;
}

/** As the configuration has it: `authentication` and `authorization`. */
export interface GateSettings {
  readonly anonymous: 'allowed' | 'refused';
  readonly tokenWebhook: { readonly kind: 'on'; readonly cacheMs: number } | { readonly kind: 'off' };
  readonly authorization:
    | { readonly mode: 'Webhook'; readonly allowedMs: number; readonly deniedMs: number }
    | { readonly mode: 'AlwaysAllow' };
  readonly nodeName: string;
  readonly streams?: StreamVerb | undefined;
}

export interface GateDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Undefined without `clientCAFile`. */
  readonly clientCa: ClientCa | undefined;
  /** Undefined without an API server. */
  readonly reviews: (TokenReviewer & AccessReviewer) | undefined;
  readonly retry?: ReviewDeps['retry'];
}

/** The gate of the HTTPS server. Throws AUTH_CONFIG for settings under which nobody could be known or judged. */
export function createGate(settings: GateSettings, deps: GateDeps): Gate {
  const { anonymous, nodeName, streams = 'always-create' } = settings;
  const { logger } = deps;
  const methods = authenticators(settings, deps);
  if (methods.length === 0 && anonymous === 'refused') throw wrong('no authentication method configured');
  const authorizer = createAuthorizer(settings, deps);
  return nodeGate({ authentication: { methods, anonymous, logger }, authorizer, nodeName, streams, logger });
}

function authenticators({ tokenWebhook }: GateSettings, deps: GateDeps): readonly Authenticator[] {
  const { clientCa, reviews, clock } = deps;
  const byCertificate = clientCa === undefined ? [] : [x509Authenticator({ ca: clientCa, clock })];
  if (tokenWebhook.kind === 'off') return byCertificate;
  if (reviews === undefined) {
    throw wrong('webhook authentication needs an API server to ask, and there is none');
  }
  const tokens = new TokenWebhook({ ...deps, reviewer: reviews, cacheMs: tokenWebhook.cacheMs });
  return [...byCertificate, tokens.byHeader, tokens.byWebSocket];
}

function createAuthorizer({ authorization }: GateSettings, deps: GateDeps): Authorizer {
  if (authorization.mode === 'AlwaysAllow') return alwaysAllow;
  const { reviews } = deps;
  if (reviews === undefined) {
    throw wrong('webhook authorization needs an API server to ask, and there is none');
  }
  const { allowedMs, deniedMs } = authorization;
  return new AccessWebhook({ ...deps, reviewer: reviews, allowedMs, deniedMs });
}

function wrong(why: string): KubelingError {
  return new KubelingError('AUTH_CONFIG', `Cannot serve the API of the node: ${why}`);
}
