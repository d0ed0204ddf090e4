import { type ChildProcess, spawn } from 'node:child_process';
import { type FileHandle, open, readFile, stat } from 'node:fs/promises';
import type { LoadedConfig } from '../../config/index.ts';
import {
  type Clock,
  cancelledError,
  errnoOf,
  isKind,
  KubelingError,
  LinkedController,
  type Logger,
  onAbort,
} from '../../lib/index.ts';
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
  /** Additional checks that must pass for a watchdog notification. */
  readonly vitalChecks: readonly VitalCheck[];
}

/** How a service reports its state. */
export interface Service {
  /**
   * Reports that the service has started, and starts watchdog notifications. The service manager is
   * notified immediately, or once the readiness checks pass, as selected by a flag.
   */
  started(health: ServiceHealth): Promise<void>;
}

export interface ServiceHealth {
  readonly live: readonly VitalCheck[];
  readonly ready: readonly VitalCheck[];
}

const readyPollMs = 200;

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
  // Parsed before the start, because an invalid watchdog setting must fail the start.
  const watched = watchdogMs(env);
  const manager = serviceManager(env, clock);
  using ended = new LinkedController(context.signal);
  const { signal } = ended;
  try {
    await allowOpenFiles(loaded.config.maxOpenFiles, { clock, logger }, signal);
    await using _lock = await acquireLock(options, ended);
    const reporter = new StateReporter({ ...options, manager, watched, signal });
    await work(reporter, signal);
  } catch (error) {
    if (!signal.aborted || !isKind(error, 'Cancelled')) throw error;
  } finally {
    ended.abort(cancelledError('The work has ended'));
  }
}

/** Acquires the lock of the node; undefined if no lock file is configured. */
async function acquireLock(
  { loaded: { flags }, context: { clock }, logger }: ServiceOptions,
  ended: LinkedController,
): Promise<NodeLock | undefined> {
  if (flags.lockFile === '') return undefined;
  const lock = await NodeLock.acquire(flags.lockFile, { clock, logger }, ended.signal);
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
      await context.clock.sleep(readyPollMs, signal).catch(() => {});
    }
  }
}

export interface NodeLockDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

const pollMs = 1_000;

/**
 * An exclusive lock on a file, so that only one kubelet runs on the machine, of any implementation.
 * The lock belongs to the open file and ends with the process. The program `flock` acquires it
 * through an inherited file descriptor.
 */
export class NodeLock implements AsyncDisposable {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #clock: Clock;

  private constructor(path: string, file: FileHandle, clock: Clock) {
    this.#path = path;
    this.#file = file;
    this.#clock = clock;
  }

  /** Acquires the lock; waits until another process releases it. */
  static async acquire(
    path: string,
    { clock, logger }: NodeLockDeps,
    signal: AbortSignal,
  ): Promise<NodeLock> {
    const file = await openLock(path);
    try {
      logger.info('Acquiring lock of the node', { path });
      await flock(path, file.fd, signal);
      return new NodeLock(path, file, clock);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /**
   * Resolves with the reason to release the lock: another process waits for it, or the file was
   * deleted.
   */
  async contended(signal: AbortSignal): Promise<string> {
    const { ino } = await this.#file.stat();
    for (;;) {
      if (await isAwaited(this.#file.fd)) return 'another process waits for it';
      if ((await inodeOf(this.#path)) !== ino) return 'its file was deleted';
      await this.#clock.sleep(pollMs, signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}

async function openLock(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'a+', 0o600);
  } catch (cause) {
    throw new KubelingError('NODE_LOCK', `Cannot open the lock file ${path}`, { cause });
  }
}

async function flock(path: string, fd: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const child = spawn('flock', ['--exclusive', '3'], { stdio: ['ignore', 'ignore', 'pipe', fd] });
  using _end = onAbort(signal, () => void child.kill());
  const why = await endOf(child);
  signal.throwIfAborted();
  if (why !== undefined) throw new KubelingError('NODE_LOCK', `Cannot lock ${path}: ${why}`);
}

/** Waits for the process to exit; returns why it failed, or undefined. */
function endOf(child: ChildProcess): Promise<string | undefined> {
  let output = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    output = (output + chunk).slice(-1_000);
  });
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, by) =>
      resolve(code === 0 ? undefined : `flock ended with ${code ?? by}: ${output.trim()}`),
    );
  });
}

/**
 * Whether another process waits for the lock of the open file. /proc/locks marks waiters with an
 * arrow and identifies files by device and inode. The inode alone would also match files of other
 * file systems, which any user may lock.
 */
async function isAwaited(fd: number): Promise<boolean> {
  const info = await readFile(`/proc/self/fdinfo/${fd}`, 'utf8').catch(() => '');
  const file = /^lock:.* (?<file>[0-9a-f]+:[0-9a-f]+:\d+) /m.exec(info)?.groups?.['file'];
  if (file === undefined) return false;
  const locks = await readFile('/proc/locks', 'utf8').catch(() => '');
  return locks.split('\n').some((line) => /^\d+: ->/.test(line) && line.includes(` ${file} `));
}

async function inodeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).ino;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
