import { isDeepStrictEqual } from 'node:util';
import { type Clock, type Logger, SingleFlight } from '../../lib/index.ts';
import type { ApiFiles, KubeContext } from '../kubeconfig/kubeconfig.ts';
import { ExpiringValue } from './cached.ts';
import type { ExecDeps } from './exec.ts';
import { ContextCredentials } from './exec-context.ts';
import type { TlsIdentity } from './identity.ts';

/** The address of a server and the credentials for it. */
export interface Access {
  readonly context: KubeContext;
  /** The TLS identity; the same object until one of its fields changes. */
  readonly identity: TlsIdentity;
  /**
   * The value of the Authorization header; undefined for an anonymous user, and for a user with
   * only a client certificate.
   */
  readonly authorization: string | undefined;
}

export interface CredentialDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly files: ApiFiles;
  readonly exec: Pick<ExecDeps, 'run' | 'environment'>;
}

const contextAgeMs = 300_000;

/**
 * The current credentials of a kubeconfig: kubeconfig and certificates are read again every five
 * minutes, a token file every minute, an exec plugin is run again when its credential expires, and
 * all of them after an invalidation or a rejection by the server. Checked when a request is made:
 * there is no timer.
 */
export class Credentials {
  readonly #deps: CredentialDeps;
  readonly #context: ExpiringValue<KubeContext>;
  readonly #reads = new SingleFlight<'access', Access>();
  #of: ContextCredentials | undefined;
  #last: Access | undefined;

  /** Calls `load` whenever the kubeconfig must be read again. */
  constructor(load: () => Promise<KubeContext>, deps: CredentialDeps) {
    this.#deps = deps;
    this.#context = new ExpiringValue({
      what: 'the kubeconfig',
      read: async () => ({ value: await load(), forMs: contextAgeMs }),
      clock: deps.clock,
      logger: deps.logger,
    });
  }

  /**
   * Returns the current credentials. Rejects if none were ever loaded; a failed reload is only
   * logged.
   */
  async current(signal: AbortSignal): Promise<Access> {
    if (this.#last !== undefined && this.#isFresh()) return this.#last;
    return await this.#reads.run('access', (shared) => this.#read(shared), signal);
  }

  /** Makes the next request reload all credentials. */
  expire(): void {
    this.#context.expire();
    this.#of?.expire();
  }

  /**
   * Handles credentials that the server rejected: the next request reloads the files, which may
   * have changed.
   */
  refused(access: Access): void {
    if (access === this.#last) this.#of?.refused();
  }

  #isFresh(): boolean {
    return this.#context.isFresh && this.#of?.isFresh === true;
  }

  async #read(signal: AbortSignal): Promise<Access> {
    const context = await this.#context.get(signal);
    if (this.#of === undefined || !isDeepStrictEqual(this.#of.context, context)) {
      this.#of = new ContextCredentials(context, this.#deps);
    }
    const { identity, authorization } = await this.#of.get(signal);
    this.#last = this.#renewed({ context: this.#of.context, identity, authorization });
    return this.#last;
  }

  #renewed(access: Access): Access {
    const last = this.#last;
    const same =
      last?.context === access.context &&
      last.identity === access.identity &&
      last.authorization === access.authorization;
    return same ? last : access;
  }
}
