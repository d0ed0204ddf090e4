import {
  type Clock,
  KubelingError,
  type Logger,
  type LogRate,
  type Random,
  rateLimitedErrors,
} from '../../lib/index.ts';
import type { ConnectionClass } from '../../protocols/http1/index.ts';
import { type Response, text } from '../router.ts';
import type { Authorizer } from './authorize.ts';
import { AccessWebhook, alwaysAllow, nodeAccess, type StreamVerb } from './authorize.ts';
import type { ClientCa } from './client-ca.ts';
import { x509Authenticator } from './client-ca.ts';
import type { RequestCaller, User } from './identity.ts';
import { type Authenticator, anonymousUser, withAuthenticatedGroup } from './identity.ts';
import type { AccessReviewer, ReviewDeps, TokenReviewer } from './reviews.ts';
import { TokenWebhook } from './token-webhook.ts';

/** The decision to admit or reject a request. */
export interface RequestAdmission {
  /** How the client was authenticated, which selects the limit for its connection. */
  readonly connection: ConnectionClass;
  /** The response to a rejected request; undefined when the request is admitted. */
  readonly rejection?: Response | undefined;
}

/**
 * Authenticates and authorizes a request before its route runs: for a rejected client nothing is
 * routed, read or started.
 */
export interface Gate {
  /** Decides about a request; an exception rejects the request as well. */
  admit(caller: RequestCaller, signal: AbortSignal): Promise<RequestAdmission>;
}

export interface NodeGateDeps {
  readonly authentication: AuthenticationPolicy;
  readonly authorizer: Authorizer;
  readonly nodeName: string;
  /** Whether requests that run a process in a pod need the verb `create` with every HTTP method. */
  readonly streams: StreamVerb;
  readonly logger: GateLogger;
}

function nodeGate(deps: NodeGateDeps): Gate {
  return {
    async admit(caller, signal) {
      const user = await authenticate(deps.authentication, caller, signal);
      if (user === undefined) return { connection: 'anonymous', rejection: unauthorized(caller) };
      return await authorizeUser(deps, user, caller, signal);
    },
  };
}

/**
 * The 401 response. With a client certificate the connection is closed, because only a new
 * connection can have another certificate or another verification result.
 */
function unauthorized({ certificate }: RequestCaller): Response {
  const refusal = text(401, 'Unauthorized');
  return certificate === undefined ? refusal : { ...refusal, headers: { connection: 'close' } };
}

async function authorizeUser(
  { authorizer, nodeName, streams, logger }: NodeGateDeps,
  user: User,
  { method, path }: RequestCaller,
  signal: AbortSignal,
): Promise<RequestAdmission> {
  const connection = connectionClass(user);
  const { verb, subresources } = nodeAccess(method, path, streams);
  const attributes = `user=${user.name}, verb=${verb}, resource=nodes`;
  for (const subresource of subresources) {
    try {
      const spec = { user, verb, subresource, name: nodeName };
      if ((await authorizer.authorize(spec, { path }, signal)) !== 'allowed') continue;
      // A client with access to `nodes/proxy` is trusted, because this subresource includes every
      // right on the node.
      return {
        connection: connection === 'unprivileged' && subresource === 'proxy' ? 'trusted' : connection,
      };
    } catch (error) {
      signal.throwIfAborted();
      logger.error('Failed to authorize request', error, { user: user.name, verb, subresource });
      return {
        connection,
        rejection: text(500, `Authorization error (${attributes}, subresource=${subresource})`),
      };
    }
  }
  logger.v(2)?.info('Forbidden', { user: user.name, verb, subresources });
  const rejection = text(403, `Forbidden (${attributes}, subresource(s)=[${subresources.join(' ')}])\n`);
  return { connection, rejection };
}

function connectionClass({ groups }: User): ConnectionClass {
  if (groups.includes('system:masters') || groups.includes('system:nodes')) return 'trusted';
  return groups.includes('system:authenticated') ? 'unprivileged' : 'anonymous';
}

export interface AuthenticationPolicy {
  /** Authentication methods in order; the first one that recognizes the client is used. */
  readonly methods: readonly Authenticator[];
  /** How to treat clients without credentials. Bad credentials are always rejected. */
  readonly anonymous: 'allowed' | 'refused';
  readonly logger: Pick<Logger, 'error'>;
}

/** Returns the client's identity; undefined when the client is rejected. */
export async function authenticate(
  { methods, anonymous, logger }: AuthenticationPolicy,
  caller: RequestCaller,
  signal: AbortSignal,
): Promise<User | undefined> {
  const errors: unknown[] = [];
  for (const method of methods) {
    const outcome = await method.authenticate(caller, signal);
    if (outcome.kind === 'user') return withAuthenticatedGroup(outcome.user);
    if (outcome.kind === 'failed') errors.push(outcome.error);
  }
  for (const error of errors) logger.error('Failed to authenticate request', error);
  return errors.length === 0 && anonymous === 'allowed' ? anonymousUser : undefined;
}

/** The `authentication` and `authorization` sections of the configuration. */
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
  /** The client CA bundle; undefined without `clientCAFile`. */
  readonly clientCa: ClientCa | undefined;
  /** Sends reviews to the API server; undefined on a node without an API server. */
  readonly reviews: (TokenReviewer & AccessReviewer) | undefined;
  readonly retry?: ReviewDeps['retry'];
}

/**
 * Rate limit of log messages about rejected credentials, because unauthenticated clients can cause
 * them.
 */
const rejectionRate: LogRate = { records: 20, perMs: 10_000 };

type GateLogger = Pick<Logger, 'error' | 'v'>;

/**
 * Creates the gate of the HTTPS server. Throws AUTH_CONFIG for settings with which no client could
 * be authenticated or authorized.
 */
export function createGate(settings: GateSettings, deps: GateDeps): Gate {
  const { anonymous, nodeName, streams = 'always-create' } = settings;
  const errors = rateLimitedErrors(deps.logger, deps.clock, rejectionRate);
  const logger: GateLogger = { error: errors.error, v: (level) => deps.logger.v(level) };
  const methods = authenticators(settings, deps);
  if (methods.length === 0 && anonymous === 'refused')
    throw invalidCredentials('no authentication method configured');
  const authorizer = createAuthorizer(settings, deps);
  return nodeGate({ authentication: { methods, anonymous, logger }, authorizer, nodeName, streams, logger });
}

function authenticators({ tokenWebhook }: GateSettings, deps: GateDeps): readonly Authenticator[] {
  const { clientCa, reviews, clock } = deps;
  const byCertificate = clientCa === undefined ? [] : [x509Authenticator({ ca: clientCa, clock })];
  if (tokenWebhook.kind === 'off') return byCertificate;
  if (reviews === undefined) {
    throw invalidCredentials('webhook authentication needs an API server, and none is configured');
  }
  const tokens = new TokenWebhook({ ...deps, reviewer: reviews, cacheMs: tokenWebhook.cacheMs });
  return [...byCertificate, tokens.byHeader, tokens.byWebSocket];
}

function createAuthorizer({ authorization }: GateSettings, deps: GateDeps): Authorizer {
  if (authorization.mode === 'AlwaysAllow') return alwaysAllow;
  const { reviews } = deps;
  if (reviews === undefined) {
    throw invalidCredentials('webhook authorization needs an API server, and none is configured');
  }
  const { allowedMs, deniedMs } = authorization;
  return new AccessWebhook({ ...deps, reviewer: reviews, allowedMs, deniedMs });
}

function invalidCredentials(why: string): KubelingError {
  return new KubelingError('AUTH_CONFIG', `Cannot serve the kubelet API: ${why}`);
}
