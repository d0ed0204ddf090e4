import { type ApiClient, apiResources, Reflector } from '../api/index.ts';
import type { RuntimeClass } from '../kinds/index.ts';
import {
  type Clock,
  KubelingError,
  type Logger,
  type Random,
  untilAborted,
  withDeadline,
} from '../lib/index.ts';
import type { FoundClass, RuntimeClasses } from '../runtime/index.ts';

export interface ApiRuntimeClassesDeps {
  readonly api: Pick<ApiClient, 'list' | 'watch' | 'onReturn'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/**
 * Thrown while a pod waits for RuntimeClasses that were never listed; the sync is retried later.
 */
const readWithinMs = 5_000;

/** The RuntimeClasses of the cluster: each names the runtime handler of its pods. */
export class ApiRuntimeClasses implements RuntimeClasses {
  readonly #deps: ApiRuntimeClassesDeps;
  readonly #reflector: Reflector<RuntimeClass>;

  constructor(deps: ApiRuntimeClassesDeps) {
    this.#deps = deps;
    const { api: client, clock, random, logger } = deps;
    const query = { resource: apiResources.runtimeClasses };
    this.#reflector = new Reflector<RuntimeClass>({ client, clock, random, logger, query });
  }

  /** The classes of the last list, which are served however long the API server is unavailable. */
  async find(name: string, signal: AbortSignal): Promise<FoundClass> {
    await this.#read(signal);
    const found = this.#reflector.get(name);
    if (found === undefined)
      return { found: false, because: `runtimeclass.node.k8s.io ${JSON.stringify(name)} not found` };
    return { found: true, handler: found.handler };
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#reflector.start();
    try {
      await untilAborted(signal);
    } finally {
      await this.#reflector.stop();
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    if (this.#reflector.hasSynced) return;
    const deadline = { clock: this.#deps.clock, ms: readWithinMs, what: 'read the runtime classes' };
    try {
      await withDeadline(deadline, (inner) => this.#reflector.waitForSync(inner), signal);
    } catch (cause) {
      signal.throwIfAborted();
      throw new KubelingError('SANDBOX_CONFIG', 'the runtime classes have not yet been read', { cause });
    }
  }
}
