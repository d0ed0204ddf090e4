import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  abortable,
  type Clock,
  formatDurationMs,
  KubelingError,
  withDeadline,
  writeFileAtomic,
} from '../../lib/index.ts';
import { DbusConnection, type DbusMessage, type DbusVariant } from '../../protocols/dbus/index.ts';
import type { ShutdownSource, ShutdownWatch } from './node-shutdown.ts';

export interface LogindOptions {
  readonly clock: Clock;
  /** The path of the D-Bus system socket. */
  readonly busPath: string;
  /** The directory of logind's configuration; set in tests only. */
  readonly configDirectory?: string;
}

const logind = {
  destination: 'org.freedesktop.login1',
  path: '/org/freedesktop/login1',
  interface: 'org.freedesktop.login1.Manager',
};
const systemd = {
  destination: 'org.freedesktop.systemd1',
  path: '/org/freedesktop/systemd1',
  interface: 'org.freedesktop.systemd1.Manager',
};
const sighup = 1;
/** The maximum number of reads of logind's delay until logind has reloaded its configuration. */
const polls = 5;
/** The wait after the first read of logind's delay; it doubles after each further read. */
const firstPollMs = 100;

/** Receives shutdowns that systemd-logind announces. */
export function logindShutdowns(options: LogindOptions): ShutdownSource {
  return {
    async open(delayMs, signal) {
      const { clock, busPath: path } = options;
      const uid = process.getuid?.() ?? 0;
      const bus = await DbusConnection.open(
        { path, clock, uid, acceptsSignal: isPrepareForShutdown },
        signal,
      );
      try {
        // Subscribes to PrepareForShutdown before the state is read, so that no announcement is
        // missed.
        const watch = new LogindInhibitor(bus, options);
        await bus.addMatch(
          `type='signal',sender='${logind.destination}',path='${logind.path}',interface='${logind.interface}',member='PrepareForShutdown'`,
          signal,
        );
        await allowDelay(bus, delayMs, options, signal);
        return watch;
      } catch (error) {
        bus[Symbol.dispose]();
        throw error;
      }
    },
  };
}

async function allowDelay(
  bus: DbusConnection,
  requestedMs: number,
  { clock, configDirectory = '/etc/systemd/logind.conf.d' }: LogindOptions,
  signal: AbortSignal,
): Promise<void> {
  if ((await longestDelayMs(bus, signal)) >= requestedMs) return;
  await mkdir(configDirectory, { recursive: true, mode: 0o755 });
  const text = `# Written by the kubelet, for the time its pods need to end\n[Login]\nInhibitDelayMaxSec=${Math.ceil(requestedMs / 1_000)}\n`;
  await writeFileAtomic(join(configDirectory, '99-kubelet.conf'), text, { mode: 0o644 });
  const body = ['systemd-logind.service', 'all', sighup];
  await bus.call({ ...systemd, member: 'KillUnit', signature: 'ssi', body }, signal);
  let nowMs = 0;
  for (let poll = 0; poll < polls; poll++) {
    nowMs = await longestDelayMs(bus, signal);
    if (nowMs >= requestedMs) return;
    await clock.sleep(firstPollMs * 2 ** poll, signal);
  }
  throw new KubelingError(
    'SHUTDOWN_DELAY',
    `Cannot delay shutdowns for ${formatDurationMs(requestedMs)}: logind's InhibitDelayMaxSec stays at ${formatDurationMs(nowMs)}`,
  );
}

async function longestDelayMs(bus: DbusConnection, signal: AbortSignal): Promise<number> {
  return Number(await property(bus, 'InhibitDelayMaxUSec', signal)) / 1_000;
}

async function property(bus: DbusConnection, name: string, signal: AbortSignal): Promise<unknown> {
  const body = [logind.interface, name];
  const properties = { ...logind, interface: 'org.freedesktop.DBus.Properties' };
  const [value] = await bus.call({ ...properties, member: 'Get', signature: 'ss', body }, signal);
  return (value as DbusVariant).value;
}

class LogindInhibitor implements ShutdownWatch {
  readonly #bus: DbusConnection;
  readonly #options: LogindOptions;
  #isHinted = false;
  #last: 'begins' | 'cancelled' | undefined;
  #wake = () => {};

  constructor(bus: DbusConnection, options: LogindOptions) {
    this.#bus = bus;
    this.#options = options;
    bus.onMessage(() => {
      this.#isHinted = true;
      this.#wake();
    });
  }

  /**
   * A PrepareForShutdown signal is only a hint, because every user may send one to this connection: the state is read from logind
   * itself. Repeated announcements of one state are reported once.
   */
  async next(signal: AbortSignal): Promise<'begins' | 'cancelled' | undefined> {
    const { closed } = this.#bus;
    let isOpen = true;
    void closed.then(() => {
      isOpen = false;
      this.#wake();
    });
    for (;;) {
      if (!isOpen) return undefined;
      if (this.#isHinted) {
        this.#isHinted = false;
        const state = (await this.isUnderWay(signal)) ? 'begins' : 'cancelled';
        if (state === this.#last) continue;
        this.#last = state;
        return state;
      }
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await abortable(woken, signal);
    }
  }

  async isUnderWay(signal: AbortSignal): Promise<boolean> {
    return (await property(this.#bus, 'PreparingForShutdown', signal)) === true;
  }

  hold(signal: AbortSignal): Promise<Disposable> {
    const deadline = { clock: this.#options.clock, ms: lockMs, what: 'delay shutdowns' };
    return withDeadline(deadline, (inner) => acquireLock(this.#options, inner), signal);
  }

  [Symbol.dispose](): void {
    this.#bus[Symbol.dispose]();
  }
}

function isPrepareForShutdown({ member, interface: from, signature }: DbusMessage): boolean {
  return member === 'PrepareForShutdown' && from === logind.interface && signature === 'b';
}

const lockMs = 10_000;
const held = 'held';
const lockArguments = [
  '--what=shutdown',
  '--mode=delay',
  '--who=kubelet',
  '--why=Pods need time to end before the machine shuts down',
  'sh',
  '-c',
  `echo ${held}; exec cat >/dev/null`,
];

/**
 * logind's inhibitor lock is a file descriptor, which this process can only acquire through
 * systemd-inhibit. That program holds the lock until its command exits: when its stdin is closed or
 * this process exits.
 */
async function acquireLock({ busPath }: LogindOptions, signal: AbortSignal): Promise<Disposable> {
  const env = { PATH: process.env['PATH'], DBUS_SYSTEM_BUS_ADDRESS: `unix:path=${busPath}` };
  const child = spawn('systemd-inhibit', lockArguments, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  const release = () => child.stdin.destroy();
  child.stdin.on('error', () => {});
  let output = '';
  child.stderr.on('data', (bytes: Buffer) => {
    output = `${output}${bytes.toString('utf8')}`.slice(0, 1_000);
  });
  const refused = Promise.race([
    once(child, 'error').then(([error]) => (error as Error).message),
    once(child, 'close').then(([code]) => output.trim() || `it exited with ${code}`),
  ]);
  const taken = once(child.stdout, 'data').then(([bytes]) =>
    String(bytes).trim() === held ? undefined : `it printed ${String(bytes)}`,
  );
  try {
    const problem = await abortable(Promise.race([taken, refused]), signal);
    if (problem === undefined) return { [Symbol.dispose]: release };
    throw new KubelingError('SHUTDOWN_LOCK', `Cannot delay shutdowns with systemd-inhibit: ${problem}`);
  } catch (error) {
    release();
    throw error;
  }
}
