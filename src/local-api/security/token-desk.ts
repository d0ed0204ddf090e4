import { isJsonObject, type JsonObject } from '../../api/index.ts';
import { type Clock, LruMap } from '../../lib/index.ts';
import type { ObjectReader, TokenVerdict } from '../core/index.ts';
import type { TokenClaims, TokenDesk } from '../kinds/index.ts';
import { boundComplaint } from './token-bonds.ts';
import type { TokenKeys } from './token-keys.ts';
import { readWebToken, signWebToken } from './web-token.ts';

export interface TokenDeskOptions {
  readonly keys: TokenKeys;
  /** `https://kubernetes.default.svc.cluster.local` unless given. */
  readonly issuer?: string | undefined;
  readonly objects: Pick<ObjectReader, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
}

export const defaultIssuer = 'https://kubernetes.default.svc.cluster.local';

/** For clocks that differ; of this server's own tokens only one that was set back can. */
const leewaySeconds = 60;
const tokensKept = 1_000;

/** Tokens of service accounts. Each token's signature is looked at once, all else each time it is shown. */
export function makeTokenDesk(options: TokenDeskOptions): TokenDesk {
  const { keys, issuer = defaultIssuer, clock } = options;
  const known = new LruMap<string, TokenClaims>({ capacity: tokensKept });
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
      if (claims === undefined || claims.iss !== issuer) return refused('invalid bearer token');
      const wanted = audiences.length === 0 ? [issuer] : audiences;
      const shared = wanted.filter((audience) => claims.aud.includes(audience));
      if (shared.length === 0) {
        const named = (names: readonly string[]) => JSON.stringify(names);
        return refused(
          `token audiences ${named(claims.aud)} is invalid for the target audiences ${named(wanted)}`,
        );
      }
      const wrong = timeComplaint(claims, clock.now() / 1_000) ?? boundComplaint(claims, options);
      return wrong === undefined ? accepted(claims, shared) : refused(wrong);
    },
  };
}

function refused(error: string): TokenVerdict {
  return { authenticated: false, error };
}

function timeComplaint({ exp, nbf, iat }: TokenClaims, nowSeconds: number): string | undefined {
  if (nowSeconds > exp + leewaySeconds) return 'service account token has expired';
  if (nowSeconds < nbf - leewaySeconds) return 'service account token is not valid yet';
  return nowSeconds < iat - leewaySeconds ? 'service account token is issued in the future' : undefined;
}

function accepted(claims: TokenClaims, audiences: readonly string[]): TokenVerdict {
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

/** Only what we issue has all this; a token of ours that lacks some was made by nobody. */
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
