import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { type CgroupHost, type CgroupLayout, cgroupRoots, errnoOf } from '../../src/lib/index.ts';
import {
  type DbusMessage,
  DbusMessageReader,
  type DbusValue,
  type DbusVariant,
  encodeMessage,
} from '../../src/protocols/dbus/index.ts';

/*
 * A fake of systemd on a real D-Bus daemon for the management of slices: checks the types of
 * properties, creates and removes the cgroups of units, and reports the end of jobs alternately
 * before and after the reply to the call.
 */

export interface StandInSystemdOptions {
  readonly busPath: string;
  readonly host: CgroupHost;
  readonly layout: CgroupLayout;
}

/**
 * The D-Bus types of slice properties, as documented in systemd.resource-control(5) and
 * org.freedesktop.systemd1(5).
 */
const types: Readonly<Record<string, string>> = {
  Description: 's',
  Wants: 'as',
  DefaultDependencies: 'b',
  MemoryAccounting: 'b',
  CPUAccounting: 'b',
  TasksAccounting: 'b',
  IOAccounting: 'b',
  BlockIOAccounting: 'b',
  MemoryLimit: 't',
  CPUShares: 't',
  MemoryMax: 't',
  MemorySwapMax: 't',
  CPUWeight: 't',
  CPUQuotaPerSecUSec: 't',
  CPUQuotaPeriodUSec: 't',
  TasksMax: 't',
  AllowedCPUs: 'ay',
};

const managerName = 'org.freedesktop.systemd1.Manager';
const busName = { destination: 'org.freedesktop.DBus', path: '/org/freedesktop/DBus' };

class Refusal extends Error {
  readonly errorName: string;

  constructor(errorName: string, message: string) {
    super(message);
    this.errorName = errorName;
  }
}

export class StandInSystemd implements AsyncDisposable {
  /** The properties of each existing unit. */
  readonly units = new Map<string, Map<string, DbusValue>>();
  /** All calls, each with the name of its unit. */
  readonly asked: string[] = [];
  readonly #options: StandInSystemdOptions;
  readonly #socket: Socket;
  readonly #reader = new DbusMessageReader();
  readonly #subscribers = new Set<string>();
  #serial = 0;
  #jobs = 0;

  static async open(options: StandInSystemdOptions): Promise<StandInSystemd> {
    const socket = connect(options.busPath);
    await once(socket, 'connect');
    const uid = Buffer.from(String(process.getuid?.() ?? 0)).toString('hex');
    socket.write(`\0AUTH EXTERNAL ${uid}\r\n`);
    await once(socket, 'data');
    socket.write('BEGIN\r\n');
    const systemd = new StandInSystemd(options, socket);
    await systemd.#enter();
    return systemd;
  }

  private constructor(options: StandInSystemdOptions, socket: Socket) {
    this.#options = options;
    this.#socket = socket;
    socket.on('error', () => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
  }

  async #enter(): Promise<void> {
    const named = Promise.withResolvers<void>();
    this.#socket.on('data', (bytes: Buffer) => {
      for (const message of this.#reader.push(bytes)) {
        if (message.type === 'call') void this.#called(message);
        else if (message.replySerial === 2) named.resolve();
      }
    });
    const call = { type: 'call' as const, ...busName, interface: 'org.freedesktop.DBus' };
    this.#send({ ...call, member: 'Hello' });
    const body = ['org.freedesktop.systemd1', 0];
    this.#send({ ...call, member: 'RequestName', signature: 'su', body });
    await named.promise;
  }

  async #called(call: DbusMessage): Promise<void> {
    const to = { replySerial: call.serial, destination: call.sender };
    try {
      const response = await this.#answer(call);
      this.#send({ type: 'return', ...to, ...response });
    } catch (error) {
      const { message, errorName = 'org.freedesktop.DBus.Error.Failed' } = error as Partial<Refusal>;
      this.#send({ type: 'error', ...to, errorName, signature: 's', body: [String(message)] });
    }
  }

  async #answer({
    member = '',
    body = [],
    sender = '',
    signature,
  }: DbusMessage): Promise<Partial<DbusMessage>> {
    const [unit = ''] = body as readonly string[];
    switch (member) {
      case 'Get':
        return { signature: 'v', body: [{ signature: 's', value: '257.9-1' }] };
      case 'Subscribe':
        this.#subscribers.add(sender);
        return {};
      case 'StartTransientUnit':
        this.asked.push(`start ${unit}`);
        mustBe(signature, 'ssa(sv)a(sa(sv))');
        return await this.#start(unit, body[2]);
      case 'StartUnit':
        mustBe(signature, 'ss');
        this.#unit(unit);
        return this.#job(unit);
      case 'SetUnitProperties':
        this.asked.push(`set ${unit}`);
        mustBe(signature, 'sba(sv)');
        give(this.#unit(unit), body[2]);
        return {};
      case 'StopUnit':
        this.asked.push(`stop ${unit}`);
        mustBe(signature, 'ss');
        return await this.#stop(unit);
      default:
        throw new Refusal('org.freedesktop.DBus.Error.UnknownMethod', member);
    }
  }

  async #start(unit: string, properties: DbusValue | undefined): Promise<Partial<DbusMessage>> {
    if (this.units.has(unit))
      throw new Refusal('org.freedesktop.systemd1.UnitExists', `Unit ${unit} already exists`);
    const given = new Map<string, DbusValue>();
    give(given, properties);
    this.units.set(unit, given);
    for (const dir of this.#directories(unit)) await makeAll(this.#options.host, dir);
    return this.#job(unit);
  }

  async #stop(unit: string): Promise<Partial<DbusMessage>> {
    this.#unit(unit);
    this.units.delete(unit);
    for (const dir of this.#directories(unit)) await this.#options.host.rmdir(dir).catch(() => undefined);
    return this.#job(unit);
  }

  #job(unit: string): Partial<DbusMessage> {
    const id = ++this.#jobs;
    const job = `/org/freedesktop/systemd1/job/${id}`;
    const news = () => {
      // Signals are only sent if a client has subscribed.
      if (this.#subscribers.size === 0) return;
      const from = { path: '/org/freedesktop/systemd1', interface: managerName, member: 'JobRemoved' };
      this.#send({ type: 'signal', ...from, signature: 'uoss', body: [id, job, unit, 'done'] });
    };
    if (id % 2 === 0) news();
    else setImmediate(news);
    return { signature: 'o', body: [job] };
  }

  #unit(unit: string): Map<string, DbusValue> {
    const found = this.units.get(unit);
    if (found === undefined)
      throw new Refusal('org.freedesktop.systemd1.NoSuchUnit', `Unit ${unit} not loaded.`);
    return found;
  }

  /** The cgroup directories of a unit, one for each controller that systemd uses. */
  #directories(unit: string): readonly string[] {
    const { layout } = this.#options;
    const parts = unit.replace(/\.slice$/, '').split('-');
    const path = parts.map((_, at) => `/${parts.slice(0, at + 1).join('-')}.slice`).join('');
    const own = ['systemd', 'cpu', 'memory', 'pids'];
    const roots =
      layout.version === 2 ? cgroupRoots(layout) : own.flatMap((name) => layout.controllers.get(name) ?? []);
    return [...new Set(roots)].map((root) => `${root}${path}`);
  }

  #send(message: Omit<DbusMessage, 'serial'>): void {
    this.#socket.write(encodeMessage({ ...message, serial: ++this.#serial }));
  }
}

function mustBe(signature: string | undefined, expected: string): void {
  if (signature !== expected) throw new Refusal('org.freedesktop.DBus.Error.InvalidArgs', String(signature));
}

function give(unit: Map<string, DbusValue>, properties: DbusValue | undefined): void {
  for (const [name, { signature, value }] of properties as unknown as readonly (readonly [
    string,
    DbusVariant,
  ])[]) {
    if (types[name] !== signature)
      throw new Refusal(
        'org.freedesktop.DBus.Error.InvalidArgs',
        `property ${name} does not have type ${signature}`,
      );
    unit.set(name, value);
  }
}

async function makeAll(host: CgroupHost, dir: string): Promise<void> {
  try {
    await host.mkdir(dir);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return;
    if (errnoOf(error) !== 'ENOENT') throw error;
    await makeAll(host, dirname(dir));
    await makeAll(host, dir);
  }
}
