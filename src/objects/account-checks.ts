import { type ApiClient, apiResources, isApiCode } from '../api/index.ts';
import type { ServiceAccount } from '../kinds/index.ts';
import type { Clock, Logger } from '../lib/index.ts';
import type { TokenAsk } from './token-request.ts';

export interface AccountChecksDeps {
  readonly api: Pick<ApiClient, 'get'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Key `namespace/name`. */
export type AccountName = readonly [namespace: string, name: string];

const everyMs = 5 * 60_000;
/** Retry interval when the cluster does not let nodes read service accounts. */
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
    asks: readonly Pick<TokenAsk, 'namespace' | 'serviceAccount'>[],
    saw: (account: AccountName, uid: string) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const accounts = new Map(
      asks.map(({ namespace, serviceAccount }): [string, AccountName] => [
        `${namespace}/${serviceAccount}`,
        [namespace, serviceAccount],
      ]),
    );
    for (const key of this.#dueMs.keys()) if (!accounts.has(key)) this.#dueMs.delete(key);
    for (const [key, account] of accounts) if (this.#isDue(key)) await this.#look(key, account, saw, signal);
  }

  /** A new account is not checked immediately, because its tokens are new. */
  #isDue(key: string): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const dueMs = this.#dueMs.get(key);
    if (dueMs === undefined) this.#dueMs.set(key, nowMs + everyMs);
    return dueMs !== undefined && dueMs <= nowMs;
  }

  async #look(
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
