import { sign, verify } from 'node:crypto';
import { type ApiResource, apiResources, isJsonObject, type JsonObject } from '../../api/index.ts';
import { type Clock, LruMap } from '../../lib/index.ts';
import type { ObjectReader, TokenCheckResult } from '../api/index.ts';
import type { BoundObject, TokenClaims, TokenIssuer } from '../kinds/index.ts';
import type { TokenKey, TokenKeys } from './token-keys.ts';

export interface TokenIssuerOptions {
  readonly keys: TokenKeys;
  /** The issuer URL in tokens; `https://kubernetes.default.svc.cluster.local` by default. */
  readonly issuer?: string | undefined;
  readonly objects: Pick<ObjectReader, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
}

export const defaultIssuer = 'https://kubernetes.default.svc.cluster.local';

/**
 * Tokens are valid from slightly before now, so that a verifier whose clock is behind accepts them,
 * and so that they stay valid when the clock of the issuer is set back.
 */
const leewaySeconds = 60;
const maxCachedTokens = 1_000;

/**
 * Issues and verifies service account tokens. The signature of a token is verified once, everything
 * else on each use.
 */
export function createTokenIssuer(options: TokenIssuerOptions): TokenIssuer {
  const { keys, issuer = defaultIssuer, clock } = options;
  const known = new LruMap<string, TokenClaims>({ capacity: maxCachedTokens });
  const read = (token: string): TokenClaims | undefined => {
    const before = known.get(token);
    if (before !== undefined) return before;
    const claims = asClaims(readWebToken(token, keys));
    if (claims !== undefined) known.set(token, claims);
    return claims;
  };
  return {
    issuer,
    issue: (claims) => signWebToken(claims, keys[0]),
    verify(token, audiences) {
      const claims = read(token);
      if (claims === undefined || claims.iss !== issuer) return rejected('invalid bearer token');
      const expected = audiences.length === 0 ? [issuer] : audiences;
      const issued = new Set(claims.aud);
      const shared = expected.filter((audience) => issued.has(audience));
      if (shared.length === 0) {
        const named = (names: readonly string[]) => JSON.stringify(names);
        return rejected(
          `token audiences ${named(claims.aud)} is invalid for the target audiences ${named(expected)}`,
        );
      }
      const problem = validityProblem(claims, clock.now() / 1_000) ?? boundObjectProblem(claims, options);
      return problem === undefined ? accepted(claims, shared) : rejected(problem);
    },
  };
}

function rejected(error: string): TokenCheckResult {
  return { authenticated: false, error };
}

function validityProblem({ exp, nbf, iat }: TokenClaims, nowSeconds: number): string | undefined {
  if (nowSeconds > exp + leewaySeconds) return 'service account token has expired';
  if (nowSeconds < nbf - leewaySeconds) return 'service account token is not valid yet';
  return nowSeconds < iat - leewaySeconds ? 'service account token is issued in the future' : undefined;
}

function accepted(claims: TokenClaims, audiences: readonly string[]): TokenCheckResult {
  const { namespace, serviceaccount, pod, node } = claims['kubernetes.io'];
  const named = (what: string, one: { readonly name: string; readonly uid: string } | undefined) =>
    one === undefined
      ? {}
      : {
          [`authentication.kubernetes.io/${what}-name`]: [one.name],
          [`authentication.kubernetes.io/${what}-uid`]: [one.uid],
        };
  return {
    authenticated: true,
    audiences,
    user: {
      username: claims.sub,
      uid: serviceaccount.uid,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
      extra: {
        'authentication.kubernetes.io/credential-id': [`JTI=${claims.jti}`],
        ...named('node', node),
        ...named('pod', pod),
      },
    },
  };
}

/** The claims of a token; undefined unless the token has all claims that issued tokens have. */
function asClaims(value: JsonObject | undefined): TokenClaims | undefined {
  const claims = value as Partial<TokenClaims> | undefined;
  const { namespace, serviceaccount } = claims?.['kubernetes.io'] ?? {};
  const isWhole =
    [claims?.exp, claims?.iat, claims?.nbf].every(Number.isFinite) &&
    Array.isArray(claims?.aud) &&
    isJsonObject(serviceaccount) &&
    claims?.sub === `system:serviceaccount:${namespace}:${serviceaccount.name}`;
  return isWhole ? (claims as TokenClaims) : undefined;
}

export interface BoundObjectDeps {
  readonly objects: Pick<ObjectReader, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
}

/** How long the token of a terminating object stays valid after the object's deletion timestamp. */
const graceMs = 60_000;
const invalidated = 'service account token has been invalidated';

/** Why a token is invalid although it has not expired; undefined if it is valid. */
function boundObjectProblem(claims: TokenClaims, deps: BoundObjectDeps): string | undefined {
  const { namespace, serviceaccount, pod, secret, node } = claims['kubernetes.io'];
  const state = (resource: ApiResource, within: string | undefined, bearer: BoundObject | undefined) =>
    bearer === undefined ? 'there' : stateOf(resource, within, bearer, deps);
  const account = state(apiResources.serviceAccounts, namespace, serviceaccount);
  if (account !== 'there') return `service account ${namespace}/${serviceaccount.name} ${account}`;
  const states = [
    state(apiResources.pods, namespace, pod),
    state(apiResources.secrets, namespace, secret),
    // The node in the claims of a pod token is not verified: the token is bound to the pod.
    pod === undefined ? state(apiResources.nodes, undefined, node) : 'there',
  ];
  return states.every((state) => state === 'there') ? undefined : invalidated;
}

function stateOf(
  resource: ApiResource,
  namespace: string | undefined,
  { name, uid }: BoundObject,
  { objects, clock }: BoundObjectDeps,
): 'there' | 'is not there' | 'is another one of its name' | 'has been deleted' {
  const found = objects.get(resource, namespace, name);
  if (found === undefined) return 'is not there';
  const { uid: foundUid, deletionTimestamp } = found.metadata;
  if (foundUid !== uid) return 'is another one of its name';
  const endMs = deletionTimestamp === undefined ? Number.POSITIVE_INFINITY : Date.parse(deletionTimestamp);
  return endMs < clock.now() - graceMs ? 'has been deleted' : 'there';
}

/** The maximum length of a token, longer than any issued one. */
const maxTokenLength = 16_384;

/** Signs a JSON Web Token in compact form. */
export function signWebToken(claims: object, { id, algorithm, privateKey }: TokenKey): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ alg: algorithm, kid: id })}.${part(claims)}`;
  const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

/**
 * The claims of a token that is signed with one of the keys; undefined for any other token. Does
 * not check the validity period.
 */
export function readWebToken(token: string, keys: TokenKeys): JsonObject | undefined {
  const parts = token.split('.');
  const [head = '', body = '', signature = ''] = parts;
  if (token.length > maxTokenLength || parts.length !== 3) return undefined;
  const header = jsonPart(head);
  const key = keys.find(({ id, algorithm }) => id === header?.['kid'] && algorithm === header['alg']);
  if (key === undefined || !isSigned(`${head}.${body}`, signature, key)) return undefined;
  return jsonPart(body);
}

function isSigned(text: string, signature: string, { publicKey }: TokenKey): boolean {
  const bytes = Buffer.from(signature, 'base64url');
  return verify('sha256', Buffer.from(text), { key: publicKey, dsaEncoding: 'ieee-p1363' }, bytes);
}

function jsonPart(part: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
