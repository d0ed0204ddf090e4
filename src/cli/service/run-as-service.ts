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
  /** What must hold, beside what the work itself knows, for the service manager to hear of us. */
  readonly vitalChecks: readonly VitalCheck[];
}

/** How the work tells whoever runs it where it has got to. */
export interface Service {
  /** It serves: the manager is told, now or once it is ready too, and hears of it from then on. Ends with the work. */
  started(health: ServiceHealth): Promise<void>;
}

export interface ServiceHealth {
  readonly live: readonly VitalCheck[];
  readonly ready: readonly VitalCheck[];
}

const readyLookMs = 200;

/**
 * Runs the work the way the machine's service manager expects it: alone if there is a lock to hold, told of when it has
 * started, and with signs of life. Being told to end, or to make room for another, is a good end.
 */
export async function runAsService(
  options: ServiceOptions,
  work: (service: Service, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { loaded, context, logger } = options;
  const { clock, env } = context;
  // Before anything is begun: with a watchdog that makes no sense nothing is to start.
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

/** Undefined where there is none to take. */
async function acquireLock(
  { loaded: { flags }, context: { clock }, logger }: ServiceOptions,
  ended: LinkedController,
): Promise<NodeLock | undefined> {
  if (flags.lockFile === '') return undefined;
  const lock = await NodeLock.take(flags.lockFile, { clock, logger }, ended.signal);
  if (flags.exitOnLockContention) {
    lock.contended(ended.signal).then(
      (why) => {
        logger.info('Ending to give up the lock of the node', { because: why });
        ended.abort(cancelledError(`The lock of the node is given up as ${why}`));
      },
      (error) => ended.signal.aborted || logger.error('Cannot watch the lock of the node', error),
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
        .catch(
          (error) => signal.aborted || logger.error('Cannot tell the service manager of the start', error),
        );
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
