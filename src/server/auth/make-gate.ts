import { type Clock, KubelingError, type Logger, type Random } from '../../lib/index.ts';
import type { StreamVerb } from './attributes.ts';
import { AccessWebhook, type Authorizer, alwaysAllow } from './authorize.ts';
import type { ClientCa } from './client-ca.ts';
import { type Gate, nodeGate } from './gate.ts';
import type { Authenticator } from './identity.ts';
import type { AccessReviewer, ReviewDeps, TokenReviewer } from './reviews.ts';
import { TokenWebhook } from './token-webhook.ts';
import { x509Authenticator } from './x509.ts';

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
export function makeGate(settings: GateSettings, deps: GateDeps): Gate {
  const { anonymous, nodeName, streams = 'always-create' } = settings;
  const { logger } = deps;
  const methods = authenticators(settings, deps);
  if (methods.length === 0 && anonymous === 'refused') throw wrong('no authentication method configured');
  const authorizer = makeAuthorizer(settings, deps);
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

function makeAuthorizer({ authorization }: GateSettings, deps: GateDeps): Authorizer {
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
