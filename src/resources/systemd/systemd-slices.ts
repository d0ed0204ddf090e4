import {
  abortable,
  type Clock,
  cancelledError,
  describeError,
  KubelingError,
  onAbort,
  withDeadline,
} from '../../lib/index.ts';
import type {
  DbusCall,
  DbusConnection,
  DbusMessage,
  DbusValue,
  DbusVariant,
} from '../../protocols/dbus/index.ts';
import { type Slice, type SliceManager, withoutSystemd } from '../cgroups/cgroup-manager.ts';
import type { CgroupValues } from '../cgroups/cgroup-values.ts';
import { startProperties, valueProperties } from './unit-properties.ts';

/** The methods of a message bus connection that the slice manager needs. */
export type SystemdBus = Pick<DbusConnection, 'call' | 'addMatch' | 'onMessage' | 'closed'> & Disposable;

export interface SystemdSlicesOptions {
  readonly clock: Clock;
  readonly openBus: (signal: AbortSignal) => Promise<SystemdBus>;
}

const manager = {
  destination: 'org.freedesktop.systemd1',
  path: '/org/freedesktop/systemd1',
  interface: 'org.freedesktop.systemd1.Manager',
};
const jobRemoved = 'JobRemoved';
const rejections = {
  exists: 'org.freedesktop.systemd1.UnitExists',
  unknown: 'org.freedesktop.systemd1.NoSuchUnit',
};
/**
 * The time limit of a systemd call, including the connection to systemd and the job that the call
 * starts.
 */
const workMs = 30_000;

/** An open connection to systemd. */
interface Systemd {
  readonly bus: SystemdBus;
  readonly version: number;
}

/** A connection to systemd, or an attempt to connect. */
interface Session {
  readonly systemd: Promise<Systemd>;
  /** Aborted when the connection to systemd is lost or closed. */
  readonly end: AbortController;
}

type Work = (systemd: Systemd, signal: AbortSignal) => Promise<void>;

/**
 * Manages slices through the D-Bus API of systemd. The first call opens one connection, which is
 * opened again if it is lost.
 */
export class SystemdSlices implements SliceManager {
  readonly #options: SystemdSlicesOptions;
  #session: Session | undefined;

  constructor(options: SystemdSlicesOptions) {
    this.#options = options;
  }

  async start(slice: Slice, signal: AbortSignal): Promise<void> {
    const { unit } = slice;
    const start: Work = async ({ bus }, inner) => {
      const body = [unit, 'replace', startProperties(slice), []];
      const fresh = { member: 'StartTransientUnit', signature: 'ssa(sv)a(sa(sv))', body };
      // An existing unit is started too: it may have a unit file or be left over from an earlier
      // kubelet, and may not be running.
      const again = { member: 'StartUnit', signature: 'ss', body: [unit, 'replace'] };
      const result =
        (await unless(rejections.exists, runJob(bus, fresh, unit, inner))) ??
        (await runJob(bus, again, unit, inner));
      if (result !== 'done') throw new Error(`the systemd job ended with ${JSON.stringify(result)}`);
    };
    await this.#ask(`start the unit ${unit}`, start, signal);
  }

  async set(slice: Slice, values: CgroupValues, signal: AbortSignal): Promise<void> {
    const set: Work = async ({ bus, version }, inner) => {
      const properties = valueProperties(values, slice.version, version);
      if (properties.length === 0) return;
      const body = [slice.unit, true, properties];
      await bus.call({ ...manager, member: 'SetUnitProperties', signature: 'sba(sv)', body }, inner);
    };
    await this.#ask(`set properties of the unit ${slice.unit}`, set, signal);
  }

  async stop(slice: Slice, signal: AbortSignal): Promise<void> {
    const stop: Work = async ({ bus }, inner) => {
      const call = { member: 'StopUnit', signature: 'ss', body: [slice.unit, 'replace'] };
      // The result of the job is ignored: the caller checks whether the cgroup still exists.
      await unless(rejections.unknown, runJob(bus, call, slice.unit, inner));
    };
    await this.#ask(`stop the unit ${slice.unit}`, stop, signal);
  }

  [Symbol.dispose](): void {
    this.#session?.end.abort(cancelledError('The connection to systemd was closed'));
    this.#session = undefined;
  }

  async #ask(what: string, work: Work, signal: AbortSignal): Promise<void> {
    this.#session ??= this.#begin();
    const session = this.#session;
    const whole = async (inner: AbortSignal) => {
      const systemd = await abortable(session.systemd, inner);
      await abortable(work(systemd, inner), session.end.signal);
    };
    try {
      await withDeadline({ clock: this.#options.clock, ms: workMs, what: 'have it done' }, whole, signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `Cannot ${what} by systemd: ${describeError(error)}`;
      throw new KubelingError('SYSTEMD_UNIT', message, { cause: error });
    }
  }

  /**
   * One connection attempt is shared by concurrent callers, so an aborted caller does not cancel it
   * for the others.
   */
  #begin(): Session {
    const end = new AbortController();
    const session = { end, systemd: this.#connect(end) };
    const forget = () => {
      if (this.#session === session) this.#session = undefined;
    };
    session.systemd.then(({ bus }) => bus.closed.then(forget), forget);
    return session;
  }

  async #connect(end: AbortController): Promise<Systemd> {
    try {
      const bus = await this.#options.openBus(end.signal);
      onAbort(end.signal, () => bus[Symbol.dispose]());
      void bus.closed.then(() => end.abort(lost()));
      return await meet(bus, end.signal);
    } catch (error) {
      end.abort(error);
      throw new KubelingError(
        'DBUS_UNAVAILABLE',
        `Cannot connect to systemd, which the runtime or cgroupDriver requires for cgroups: ${describeError(error)}; ${withoutSystemd}`,
        { cause: error },
      );
    }
  }
}

/** Subscribes to job signals, which systemd sends only to subscribers. */
async function meet(bus: SystemdBus, signal: AbortSignal): Promise<Systemd> {
  const from = `type='signal',sender='${manager.destination}',interface='${manager.interface}'`;
  await bus.addMatch(`${from},member='${jobRemoved}'`, signal);
  await bus.call({ ...manager, member: 'Subscribe' }, signal);
  const properties = { ...manager, interface: 'org.freedesktop.DBus.Properties' };
  const body = [manager.interface, 'Version'];
  const [answer] = await bus.call({ ...properties, member: 'Get', signature: 'ss', body }, signal);
  // The version of systemd is a text such as v245.4-1.fc32 or 257.
  const version = Number(/\d+/.exec(String((answer as DbusVariant).value))?.[0] ?? 0);
  return { bus, version };
}

/** Resolves with the result of the job, which may finish before the reply to the call. */
async function runJob(
  bus: SystemdBus,
  call: Omit<DbusCall, 'destination' | 'path' | 'interface'>,
  unit: string,
  signal: AbortSignal,
): Promise<string> {
  const ended = new Map<DbusValue, string>();
  let wake = () => {};
  using _news = bus.onMessage((message) => {
    const { job, of, result } = endedJob(message) ?? {};
    if (job === undefined || of !== unit) return;
    ended.set(job, String(result));
    wake();
  });
  const [job = ''] = await bus.call({ ...manager, ...call }, signal);
  for (;;) {
    const result = ended.get(job);
    if (result !== undefined) return result;
    const woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    await abortable(woken, signal);
  }
}

/** Whether a signal reports a finished job; the body of other signals is not decoded. */
export function isJobRemoved({ type, member, interface: from, signature }: DbusMessage): boolean {
  return type === 'signal' && member === jobRemoved && from === manager.interface && signature === 'uoss';
}

function endedJob(message: DbusMessage) {
  if (!isJobRemoved(message)) return undefined;
  const [, job, of, result] = message.body ?? [];
  return { job, of, result };
}

/** Returns the result of the call; undefined if systemd rejects it with the given D-Bus error. */
async function unless(rejection: string, work: Promise<string>): Promise<string | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof KubelingError && error.details['name'] === rejection) return undefined;
    throw error;
  }
}

function lost(): KubelingError {
  return new KubelingError('DBUS_UNAVAILABLE', 'The connection to the message bus was lost');
}
