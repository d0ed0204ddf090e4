import type { ApiObject } from '../api/index.ts';
import { KubelingError } from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';

/** A token somebody wants. Asks that say the same share one token. */
export interface TokenAsk {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** The server's own audience when left out or empty. */
  readonly audience?: string | undefined;
  /** How long it should be good; the server's choice when left out. */
  readonly expirationSeconds?: number | undefined;
  /** The token is good no longer than this pod is there. */
  readonly pod: { readonly name: string; readonly uid: PodUid };
  /** The service account must be this one, not a later one of its name. */
  readonly serviceAccountUid?: string | undefined;
}

/** What goes to the server and comes back filled in. */
export interface TokenRequest extends ApiObject {
  readonly spec: {
    readonly audiences: readonly string[];
    readonly expirationSeconds?: number | undefined;
    readonly boundObjectRef: {
      readonly apiVersion: string;
      readonly kind: string;
      readonly name: string;
      readonly uid: string;
    };
  };
  readonly status?: {
    readonly token?: string | undefined;
    readonly expirationTimestamp?: string | undefined;
  };
}

export interface IssuedToken {
  readonly token: string;
  readonly expiresMs: number;
  /** What the server made of the time asked for; undefined when it does not say. */
  readonly expirationSeconds: number | undefined;
  /** Of the service account, as far as the token itself tells. */
  readonly serviceAccountUid: string | undefined;
}

export function askKey(ask: TokenAsk): string {
  const {
    serviceAccount,
    namespace,
    audience = '',
    expirationSeconds = 0,
    pod,
    serviceAccountUid = '',
  } = ask;
  const parts = [
    serviceAccount,
    namespace,
    audience,
    expirationSeconds,
    pod.name,
    pod.uid,
    serviceAccountUid,
  ];
  return JSON.stringify(parts);
}

export function tokenRequest(ask: TokenAsk): TokenRequest {
  const { audience = '', expirationSeconds, pod, serviceAccountUid } = ask;
  return {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { ...(serviceAccountUid === undefined ? {} : { uid: serviceAccountUid }) },
    spec: {
      audiences: audience === '' ? [] : [audience],
      ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
      boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid },
    },
  };
}

/** Throws API_BAD_ANSWER for an answer without a token or without a time. */
export function issuedToken({ spec, status }: TokenRequest): IssuedToken {
  const { token = '', expirationTimestamp = '' } = status ?? {};
  const expiresMs = Date.parse(expirationTimestamp);
  if (token === '' || Number.isNaN(expiresMs)) {
    const lacks = token === '' ? 'token' : 'time of expiry';
    throw new KubelingError('API_BAD_ANSWER', `Cannot use the answer to a token request: it has no ${lacks}`);
  }
  return {
    token,
    expiresMs,
    expirationSeconds: spec?.expirationSeconds,
    serviceAccountUid: serviceAccountUidIn(token),
  };
}

/** Tokens of Kubernetes tell whom they are of. One that is of another make tells nothing, which is no mistake. */
function serviceAccountUidIn(token: string): string | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const own = field(field(claims, 'kubernetes.io'), 'serviceaccount');
    const uid = field(own, 'uid');
    return typeof uid === 'string' ? uid : undefined;
  } catch {
    return undefined;
  }
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

const longestUseMs = 24 * 60 * 60_000;
const largestEarlyMs = 10_000;

/**
 * The moment from which a new token is to be got: when it is a day old, or when a fifth of its life is left, whichever
 * is first. `chance` in [0, 1) makes that up to ten seconds earlier, so that not all pods ask at once.
 */
export function refreshAtMs({ expiresMs, expirationSeconds }: IssuedToken, chance: number): number {
  if (expirationSeconds === undefined) return expiresMs;
  const lifeMs = expirationSeconds * 1_000;
  const issuedMs = expiresMs - lifeMs;
  return Math.min(issuedMs + longestUseMs, expiresMs - lifeMs / 5) - chance * largestEarlyMs;
}
