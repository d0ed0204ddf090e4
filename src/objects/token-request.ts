import type { ApiObject } from '../api/index.ts';
import { type ApiClient, apiResources, isApiCode } from '../api/index.ts';
import type { ServiceAccount } from '../kinds/index.ts';
import type { Clock, Logger } from '../lib/index.ts';
import { KubelingError } from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';

/** The parameters of a requested token. Equal requests share one token. */
export interface TokenSpec {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** The requested audiences; the default audience of the API server when omitted or empty. */
  readonly audience?: string | undefined;
  /** The requested lifetime; the default of the API server when omitted. */
  readonly expirationSeconds?: number | undefined;
  /** The pod to which the token is bound: the token becomes invalid when the pod is deleted. */
  readonly pod: { readonly name: string; readonly uid: PodUid };
  /**
   * The UID that the service account must have, so that no token of a recreated account is used.
   */
  readonly serviceAccountUid?: string | undefined;
}

/** The TokenRequest object that the API server returns with its status. */
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
  /** The lifetime that the API server granted; undefined when the response has none. */
  readonly expirationSeconds: number | undefined;
  /** The UID of the service account, if the token contains it. */
  readonly serviceAccountUid: string | undefined;
}

export function tokenSpecKey(spec: TokenSpec): string {
  const {
    serviceAccount,
    namespace,
    audience = '',
    expirationSeconds = 0,
    pod,
    serviceAccountUid = '',
  } = spec;
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

export function tokenRequest(spec: TokenSpec): TokenRequest {
  const { audience = '', expirationSeconds, pod, serviceAccountUid } = spec;
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

/**
 * Parses the response to a token request. Throws API_BAD_ANSWER if it has no token or no expiration
 * time.
 */
export function issuedToken({ spec, status }: TokenRequest): IssuedToken {
  const { token = '', expirationTimestamp = '' } = status ?? {};
  const expiresMs = Date.parse(expirationTimestamp);
  if (token === '' || Number.isNaN(expiresMs)) {
    const lacks = token === '' ? 'token' : 'expiration time';
    throw new KubelingError(
      'API_BAD_ANSWER',
      `Cannot use the response to a token request: it has no ${lacks}`,
    );
  }
  return {
    token,
    expiresMs,
    expirationSeconds: spec?.expirationSeconds,
    serviceAccountUid: serviceAccountUidIn(token),
  };
}

/**
 * Kubernetes' own tokens contain the UID of the service account. Tokens in another format do not,
 * which is no error.
 */
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
 * The time from which the token is renewed: after 24 hours or at 80% of its lifetime, whichever is
 * first. `chance` in [0, 1) makes that up to ten seconds earlier, so that not all pods request
 * tokens at once.
 */
export function refreshAtMs({ expiresMs, expirationSeconds }: IssuedToken, chance: number): number {
  if (expirationSeconds === undefined) return expiresMs;
  const lifeMs = expirationSeconds * 1_000;
  const issuedMs = expiresMs - lifeMs;
  return Math.min(issuedMs + longestUseMs, expiresMs - lifeMs / 5) - chance * largestEarlyMs;
}

export interface AccountChecksDeps {
  readonly api: Pick<ApiClient, 'get'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The namespace and the name of a service account. */
export type AccountName = readonly [namespace: string, name: string];

const everyMs = 5 * 60_000;
/**
 * The interval of attempts to read a service account when the cluster forbids nodes to read service
 * accounts.
 */
const afterRefusalMs = 60 * 60_000;

/**
 * Periodically checks that the service accounts still have the UIDs for which tokens were issued.
 */
export class AccountChecks {
  readonly #deps: AccountChecksDeps;
  readonly #dueMs = new Map<string, number>();

  constructor(deps: AccountChecksDeps) {
    this.#deps = deps;
  }

  /**
   * Checks the accounts that are due sequentially, and drops all accounts that are not in the list.
   */
  async check(
    specs: readonly Pick<TokenSpec, 'namespace' | 'serviceAccount'>[],
    saw: (account: AccountName, uid: string) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const accounts = new Map(
      specs.map(({ namespace, serviceAccount }): [string, AccountName] => [
        `${namespace}/${serviceAccount}`,
        [namespace, serviceAccount],
      ]),
    );
    for (const key of this.#dueMs.keys()) if (!accounts.has(key)) this.#dueMs.delete(key);
    for (const [key, account] of accounts) if (this.#isDue(key)) await this.#check(key, account, saw, signal);
  }

  /** The first check of an account is one interval later, because its tokens are new. */
  #isDue(key: string): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const dueMs = this.#dueMs.get(key);
    if (dueMs === undefined) this.#dueMs.set(key, nowMs + everyMs);
    return dueMs !== undefined && dueMs <= nowMs;
  }

  async #check(
    key: string,
    account: AccountName,
    saw: (account: AccountName, uid: string) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { api, clock, logger } = this.#deps;
    const [namespace, name] = account;
    const ref = { resource: apiResources.serviceAccounts, namespace, name };
    this.#dueMs.set(key, clock.monotonicMs() + everyMs);
    try {
      const found = await api.get<ServiceAccount>(ref, { resourceVersion: '0' }, signal);
      const uid = found.metadata?.uid ?? '';
      if (uid !== '') saw(account, uid);
    } catch (error) {
      signal.throwIfAborted();
      if (isApiCode(error, 'API_FORBIDDEN')) this.#dueMs.set(key, clock.monotonicMs() + afterRefusalMs);
      logger.v(4)?.info('Failed to check service account', { account: key, err: error });
    }
  }
}
