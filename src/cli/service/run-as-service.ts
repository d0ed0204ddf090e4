import type { LoadedConfig } from '../../config/index.ts';
import { type Clock, cancelledError, isKind, LinkedController, type Logger } from '../../lib/index.ts';
import { NodeLock } from './node-lock.ts';
import {
  allowOpenFiles,
  feedWatchdog,
  type ServiceManager,
  serviceManager,
  type VitalCheck,
  watchdogMs,
} from './service-manager.ts';

export interface ServiceOptions {
  readonly loaded: Pick<LoadedConfig, 'config' | 'flags'>;
  readonly context: {
    readonly clock: Clock;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
  };
  readonly logger: Logger;
  /** Checks for the watchdog, besides those of the work itself. */
  readonly vitalChecks: readonly VitalCheck[];
}

/** How the work reports its state. */
export interface Service {
  /**
   * Reports that the work serves: the service manager is notified now or once it is ready too, and
   * gets watchdog notifications from then on.
   */
  started(health: ServiceHealth): Promise<void>;
}

export interface ServiceHealth {
  readonly live: readonly VitalCheck[];
  readonly ready: readonly VitalCheck[];
}

const readyLookMs = 200;

/**
 * Runs the work as a service: exclusively if a lock file is configured, with readiness and watchdog
 * notifications. SIGTERM and the release of the lock are regular exits.
 */
export async function runAsService(
  options: ServiceOptions,
  work: (service: Service, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { loaded, context, logger } = options;
  const { clock, env } = context;
  // Before the start: an invalid watchdog setting fails the start.
  const watched = watchdogMs(env);
  const manager = serviceManager(env, clock);
  using ended = new LinkedController(context.signal);
  const { signal } = ended;
  try {
    await allowOpenFiles(loaded.config.maxOpenFiles, { clock, logger }, signal);
    await using _lock = await acquireLock(options, ended);
    const told = new StateReporter({ ...options, manager, watched, signal });
    await work(told, signal);
  } catch (error) {
    if (!signal.aborted || !isKind(error, 'Cancelled')) throw error;
  } finally {
    ended.abort(cancelledError('The work has ended'));
  }
}

/** Undefined without a lock file. */
async function acquireLock(
  { loaded: { flags }, context: { clock }, logger }: ServiceOptions,
  ended: LinkedController,
): Promise<NodeLock | undefined> {
  if (flags.lockFile === '') return undefined;
  const lock = await NodeLock.take(flags.lockFile, { clock, logger }, ended.signal);
  if (flags.exitOnLockContention) {
    lock.contended(ended.signal).then(
      (why) => {
        logger.info('Stopping to release lock of the node', { because: why });
        ended.abort(cancelledError(`The lock of the node is released because ${why}`));
      },
      (error) => ended.signal.aborted || logger.error('Failed to watch lock of the node', error),
    );
  }
  return lock;
}

interface StateReporterOptions extends ServiceOptions {
  readonly manager: ServiceManager | undefined;
  readonly watched: number | undefined;
  readonly signal: AbortSignal;
}

class StateReporter implements Service {
  readonly #options: StateReporterOptions;

  constructor(options: StateReporterOptions) {
    this.#options = options;
  }

  async started({ live, ready }: ServiceHealth): Promise<void> {
    const { manager, watched, signal, logger, vitalChecks, loaded } = this.#options;
    const { clock } = this.#options.context;
    if (manager === undefined) return;
    const checks = [...live, ...vitalChecks];
    const feeding =
      watched === undefined
        ? Promise.resolve()
        : feedWatchdog({ manager, watchdogMs: watched, checks, clock, logger }, signal);
    if (loaded.flags.notifyReady === 'ready') await this.#untilWell(ready);
    if (!signal.aborted) {
      await manager
        .notify('READY=1', signal)
        .catch((error) => signal.aborted || logger.error('Failed to notify service manager of start', error));
    }
    await feeding;
  }

  async #untilWell(checks: readonly VitalCheck[]): Promise<void> {
    const { signal, context } = this.#options;
    while (!signal.aborted && checks.some((check) => check.problem() !== undefined)) {
      await context.clock.sleep(readyLookMs, signal).catch(() => {});
    }
  }
}
