import { readFile } from 'node:fs/promises';
import { type Clock, describeError, KubelingError, type Logger, runChecked } from '../../lib/index.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The service manager that started the process: systemd, or one with the same protocol. */
export interface ServiceManager {
  /** Sends a state such as `READY=1`; rejects if it cannot be sent. */
  notify(state: string, signal: AbortSignal): Promise<void>;
}

const notifyTimeoutMs = 10_000;

/**
 * Returns access to the service manager; undefined without one. Notifications are sent by the
 * program systemd-notify, which can send them on behalf of this process if it runs as root.
 */
export function serviceManager(environment: Environment, clock: Clock): ServiceManager | undefined {
  const { NOTIFY_SOCKET: socket, PATH: path } = environment;
  if (socket === undefined || socket === '') return undefined;
  return {
    async notify(state, signal) {
      const env = { NOTIFY_SOCKET: socket, PATH: path };
      const command = { file: 'systemd-notify', env, clock, deadlineMs: notifyTimeoutMs };
      try {
        // Does not wait for an acknowledgement, which not every service manager sends.
        await runChecked({ ...command, args: ['--no-block', state] }, signal);
      } catch (error) {
        // systemd-notify before version 246 rejects the option --no-block and never waits.
        if (!/unrecognized option/.test(describeError(error))) throw error;
        await runChecked({ ...command, args: [state] }, signal);
      }
    },
  };
}

/** The minimum watchdog interval: health checks take some time. */
const minWatchdogMs = 1_000;

/**
 * Returns the watchdog interval; undefined without a watchdog. Throws SERVICE_WATCHDOG for an
 * invalid value.
 */
export function watchdogMs({ WATCHDOG_USEC: written, WATCHDOG_PID: pid }: Environment): number | undefined {
  if (written === undefined || written === '') return undefined;
  const ms = readNumber('WATCHDOG_USEC', written) / 1_000;
  if (pid !== undefined && pid !== '' && readNumber('WATCHDOG_PID', pid) !== process.pid) return undefined;
  if (ms <= minWatchdogMs) {
    throw new KubelingError(
      'SERVICE_WATCHDOG',
      `Cannot start the watchdog: WATCHDOG_USEC must be over ${minWatchdogMs * 1_000}; current value is ${written}`,
    );
  }
  return ms;
}

function readNumber(name: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const value = JSON.stringify(text);
  throw new KubelingError(
    'SERVICE_WATCHDOG',
    `Cannot start the watchdog: ${name} must be a number; current value is ${value}`,
  );
}

/** A check that must pass for a watchdog notification. */
export interface VitalCheck {
  readonly name: string;
  problem(): string | undefined;
}

export interface WatchdogFeedOptions {
  readonly manager: ServiceManager;
  readonly watchdogMs: number;
  readonly checks: readonly VitalCheck[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Notifies the watchdog twice per interval while all checks pass. Returns when aborted. */
export async function feedWatchdog(options: WatchdogFeedOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger, checks, manager } = options;
  while (!signal.aborted) {
    const problems = checks
      .map(({ name, problem }) => ({ name, problem: problem() }))
      .filter((found) => found.problem !== undefined);
    if (problems.length === 0) {
      await manager
        .notify('WATCHDOG=1', signal)
        .catch((error) => signal.aborted || logger.error('Failed to notify systemd watchdog', error));
    } else {
      logger.error('Skipped watchdog notification', undefined, { problems });
    }
    await clock.sleep(options.watchdogMs / 2, signal).catch(() => {});
  }
}

export interface OpenFilesDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

const withinMs = 10_000;

/**
 * Raises the limit of open files of this process (`maxOpenFiles`). A failure is only logged,
 * because fewer files suffice for most nodes.
 */
export async function allowOpenFiles(
  required: number,
  { clock, logger }: OpenFilesDeps,
  signal: AbortSignal,
): Promise<void> {
  try {
    const { soft, hard } = openFileLimits(await readFile('/proc/self/limits', 'utf8'));
    if (required === 0 || (soft >= required && hard >= required)) return;
    const limits = `--nofile=${required}:${Math.max(required, hard)}`;
    const args = ['--pid', String(process.pid), limits];
    await runChecked({ file: 'prlimit', args, clock, deadlineMs: withinMs }, signal);
  } catch (error) {
    if (!signal.aborted) logger.error('Failed to raise limit of open files', error, { wanted: required });
  }
}

/** Parses the open file limits in /proc/self/limits. */
export function openFileLimits(text: string): { readonly soft: number; readonly hard: number } {
  const [, soft, hard] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(text) ?? [];
  return { soft: limitOf(soft), hard: limitOf(hard) };
}

function limitOf(word: string | undefined): number {
  return word === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(word ?? 0);
}
