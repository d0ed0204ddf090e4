import type { ApiClient } from '../../src/api/index.ts';

/** An API server under the contract, and what the suite needs around it. */
export interface ApiBackend extends AsyncDisposable {
  readonly name: string;
  /** May do everything. */
  readonly admin: ApiClient;
  /** As `system:node:<nodeName>` of the group `system:nodes`, under the Node authorizer and NodeRestriction. */
  readonly node: ApiClient;
  readonly nodeName: string;
  /** A namespace that is there, in which nobody else makes objects, with a service account `default`. */
  readonly namespace: string;
  /** Settles as the promise does, in the time of this back end. */
  done<T>(promise: Promise<T>): Promise<T>;
  /** Waits until the check answers something, in the time of this back end; throws after a generous limit. */
  until<T>(what: string, check: () => T | undefined): Promise<T>;
}
