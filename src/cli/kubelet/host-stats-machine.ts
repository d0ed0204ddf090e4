import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { readdir, readlink, stat, statfs } from 'node:fs/promises';
import { release, uptime } from 'node:os';
import {
  type CgroupLayout,
  type Clock,
  DiskWalker,
  detectCgroupLayout,
  realCgroupHost,
  spaceAt,
  spaceOf,
  type UnresponsiveMounts,
} from '../../lib/index.ts';
import type { ProcessUsage, StatsMachine, SystemPart } from '../../stats/index.ts';

/** Provides usage statistics of this machine. Starts nothing before the first request. */
export function hostStatsMachine(
  clock: Clock,
  unresponsive: Pick<UnresponsiveMounts, 'check' | 'mountsOf'>,
): StatsMachine {
  const startMs = clock.now() - process.uptime() * 1_000;
  const runtimes = new Map<string, RuntimeProcess>();
  const runtimeAt = (socket: string) => {
    const found =
      runtimes.get(socket) ??
      new RuntimeProcess({
        socket,
        monotonicMs: () => clock.monotonicMs(),
        bootMs: clock.now() - uptime() * 1_000,
        layout: () => detectCgroupLayout(realCgroupHost()),
      });
    runtimes.set(socket, found);
    return found.part();
  };
  return {
    kernel: release(),
    directories: new DiskWalker({ clock, check: (path, signal) => unresponsive.check(path, signal) }),
    async space(path, signal) {
      try {
        // Files in /proc and /sys are read synchronously, because the kernel serves them from
        // memory.
        if ((await unresponsive.mountsOf(path, signal)) === 'own')
          return { device: `${statSync(path).dev}`, ...spaceAt(path) };
        const [{ dev }, space] = await Promise.all([stat(path), statfs(path)]);
        return { device: `${dev}`, ...spaceOf(space) };
      } catch {
        signal.throwIfAborted();
        return undefined;
      }
    },
    self() {
      const { user, system } = process.cpuUsage();
      const { minorPageFault, majorPageFault } = process.resourceUsage();
      return {
        cpuNanos: (user + system) * 1_000,
        rssBytes: process.memoryUsage.rss(),
        startMs,
        pageFaults: minorPageFault + majorPageFault,
        majorPageFaults: majorPageFault,
      };
    },
    runtimeAt,
    openFiles,
  };
}

/**
 * Up to this many links in /proc are read synchronously, because the kernel serves them from
 * memory; a longer list is read asynchronously.
 */
const fewFiles = 64;

async function openFiles(pid: number): Promise<{ readonly all: number; readonly sockets: number }> {
  const directory = `/proc/${pid}/fd`;
  const names = namesIn(directory);
  const targets =
    names.length <= fewFiles
      ? names.map((name) => targetOf(`${directory}/${name}`))
      : await Promise.all(names.map((name) => readlink(`${directory}/${name}`).catch(() => '')));
  const sockets = targets.filter((target) => target.startsWith('socket:'));
  return { all: names.length, sockets: sockets.length };
}

/** Returns no names if the process has exited. */
function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function targetOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

export interface RuntimeProcessDeps {
  /** The path of the runtime's socket. */
  readonly socket: string;
  readonly monotonicMs: () => number;
  /** The boot time in milliseconds since 1970. */
  readonly bootMs: number;
  readonly layout: () => Promise<CgroupLayout>;
  readonly procDir?: string;
}

const names: ReadonlySet<string> = new Set(['containerd', 'crio', 'cri-dockerd']);
/** The minimum interval between two searches for a process that was not found. */
const relocateMs = 300_000;
const ticksPerSecond = 100;
const pageBytes = 4_096;

/** Finds the process that serves the runtime's socket; a machine may run several runtimes. */
export class RuntimeProcess {
  readonly #deps: RuntimeProcessDeps;
  readonly #proc: string;
  readonly #host = realCgroupHost();
  /** The cgroup layout, read once because it does not change before a reboot. */
  #layout: CgroupLayout | undefined;
  #pid: number | undefined;
  #locatedMs = Number.NEGATIVE_INFINITY;

  constructor(deps: RuntimeProcessDeps) {
    this.#deps = deps;
    this.#proc = deps.procDir ?? '/proc';
  }

  /**
   * Returns the cgroup of the runtime, or only its process if that is in the root cgroup; undefined
   * if the process is not found.
   */
  async part(): Promise<SystemPart | undefined> {
    const known = this.#pid === undefined ? undefined : await this.#partOf(this.#pid);
    if (known !== undefined) return known;
    const nowMs = this.#deps.monotonicMs();
    if (nowMs - this.#locatedMs < relocateMs) return undefined;
    this.#locatedMs = nowMs;
    this.#pid = await this.#find();
    return this.#pid === undefined ? undefined : await this.#partOf(this.#pid);
  }

  async #find(): Promise<number | undefined> {
    const sockets = this.#locate('net/unix');
    const lines = sockets?.split('\n').filter((line) => line.endsWith(` ${this.#deps.socket}`)) ?? [];
    const inodes = new Set(lines.map((line) => `socket:[${line.trim().split(/\s+/)[6]}]`));
    const pids = (await readdir(this.#proc)).filter((name) => /^\d+$/.test(name));
    for (const pid of pids) {
      if (!names.has(this.#locate(`${pid}/comm`)?.trim() ?? '')) continue;
      const files = await readdir(`${this.#proc}/${pid}/fd`).catch(() => []);
      for (const file of files) {
        const target = await readlink(`${this.#proc}/${pid}/fd/${file}`).catch(() => '');
        if (inodes.has(target)) return Number(pid);
      }
    }
    return undefined;
  }

  async #partOf(pid: number): Promise<SystemPart | undefined> {
    const [stat, cgroups] = [this.#locate(`${pid}/stat`), this.#locate(`${pid}/cgroup`)];
    if (stat === undefined || cgroups === undefined) return undefined;
    this.#layout ??= await this.#deps.layout();
    const cgroup = memoryCgroup(cgroups, this.#layout);
    return cgroup === undefined || cgroup === '/' ? { process: this.#usage(stat) } : { cgroup };
  }

  #usage(stat: string): ProcessUsage {
    // The process name is in parentheses and may contain spaces, so fields are counted from the
    // last parenthesis.
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [minor = 0, major = 0] = [fields[7], fields[9]];
    const ticks = (fields[11] ?? 0) + (fields[12] ?? 0);
    return {
      cpuNanos: (ticks * 1e9) / ticksPerSecond,
      rssBytes: (fields[21] ?? 0) * pageBytes,
      startMs: this.#deps.bootMs + ((fields[19] ?? 0) * 1_000) / ticksPerSecond,
      pageFaults: minor + major,
      majorPageFaults: major,
    };
  }

  /** Reads a file of the process synchronously; the kernel serves it from memory. */
  #locate(path: string): string | undefined {
    return this.#host.readSync(`${this.#proc}/${path}`);
  }
}

/** Returns the memory cgroup from the text of /proc/PID/cgroup. */
function memoryCgroup(text: string, { version }: CgroupLayout): string | undefined {
  const rows = text.split('\n').map((line) => /^\d+:([^:]*):(.*)$/.exec(line));
  const isMeant = (controllers = '') =>
    version === 2 ? controllers === '' : controllers.split(',').includes('memory');
  return rows.find((row) => row !== null && isMeant(row[1]))?.[2];
}
