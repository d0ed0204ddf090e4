import { type ApiClient, apiResources, isApiCode } from '../api/index.ts';
import type { ServiceAccount } from '../kinds/index.ts';
import type { Clock, Logger } from '../lib/index.ts';
import type { TokenAsk } from './token-request.ts';

export interface AccountChecksDeps {
  readonly api: Pick<ApiClient, 'get'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Namespace and name. */
export type AccountName = readonly [namespace: string, name: string];

const everyMs = 5 * 60_000;
/** A cluster that does not let nodes read service accounts is asked rarely. */
const afterRefusalMs = 60 * 60_000;

/** Looks now and then whether service accounts are still those that tokens were got of. */
export class AccountChecks {
  readonly #deps: AccountChecksDeps;
  readonly #dueMs = new Map<string, number>();

  constructor(deps: AccountChecksDeps) {
    this.#deps = deps;
  }

  /** Looks at those of the accounts that are due, one after the other, and forgets all others. */
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

  /** Not at its first sight: then its tokens are new. */
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
      logger.v(4)?.info('A service account cannot be looked at', { account: key, err: error });
    }
  }
}
