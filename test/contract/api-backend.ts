import type { ApiClient } from '../../src/api/index.ts';

/** An API server to be tested by the contract suite, with the helpers that the suite needs. */
export interface ApiBackend extends AsyncDisposable {
  readonly name: string;
  /** A client with all permissions. */
  readonly admin: ApiClient;
  /**
   * Returns a client authenticated as `system:node:<nodeName>` of the group `system:nodes`, under
   * the Node authorizer and NodeRestriction.
   */
  readonly node: ApiClient;
  readonly nodeName: string;
  /**
   * An existing namespace with a service account `default`, in which only the test creates objects.
   */
  readonly namespace: string;
  /** Settles like the promise; if the back end has a virtual clock, advances it until then. */
  done<T>(promise: Promise<T>): Promise<T>;
  /**
   * Waits until the check returns a value, in virtual time if the back end has a virtual clock;
   * throws after a generous timeout.
   */
  until<T>(what: string, check: () => T | undefined): Promise<T>;
}
