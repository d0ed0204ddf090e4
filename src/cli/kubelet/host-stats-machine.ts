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

/** What this machine says of its use. Nothing is started before somebody asks. */
export function hostStatsMachine(
  clock: Clock,
  silent: Pick<UnresponsiveMounts, 'check' | 'mountsOf'>,
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
    directories: new DiskWalker({ clock, check: (path, signal) => silent.check(path, signal) }),
    async space(path, signal) {
      try {
        // What the kernel answers by itself it answers at once.
        if ((await silent.mountsOf(path, signal)) === 'own')
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

/** So many are looked at without waiting for each: the kernel answers from memory. */
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

/** The process may be gone, or the file be closed by now. */
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
  /** The socket the runtime is reached by. */
  readonly socket: string;
  readonly monotonicMs: () => number;
  /** In milliseconds since 1970. */
  readonly bootMs: number;
  readonly layout: () => Promise<CgroupLayout>;
  readonly procDir?: string;
}

const names: ReadonlySet<string> = new Set(['containerd', 'crio', 'cri-dockerd']);
/** Whoever is not found is looked for again after this. */
const lookAgainMs = 300_000;
const ticksPerSecond = 100;
const pageBytes = 4_096;

/** The process that serves the runtime's socket: of several runtimes on a machine the one that is ours. */
export class RuntimeProcess {
  readonly #deps: RuntimeProcessDeps;
  readonly #proc: string;
  readonly #host = realCgroupHost();
  /** Asked for once: it stays as the machine has started with it. */
  #layout: CgroupLayout | undefined;
  #pid: number | undefined;
  #locatedMs = Number.NEGATIVE_INFINITY;

  constructor(deps: RuntimeProcessDeps) {
    this.#deps = deps;
    this.#proc = deps.procDir ?? '/proc';
  }

  /** Its cgroup, or the process alone where it shares that of the machine; undefined when it cannot be found. */
  async part(): Promise<SystemPart | undefined> {
    const known = this.#pid === undefined ? undefined : await this.#partOf(this.#pid);
    if (known !== undefined) return known;
    const nowMs = this.#deps.monotonicMs();
    if (nowMs - this.#locatedMs < lookAgainMs) return undefined;
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
    // The name, which may have blanks, is in brackets.
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

  /** The kernel answers from memory. */
  #locate(path: string): string | undefined {
    return this.#host.readSync(`${this.#proc}/${path}`);
  }
}

/** From the text of a process's `cgroup`. */
function memoryCgroup(text: string, { version }: CgroupLayout): string | undefined {
  const rows = text.split('\n').map((line) => /^\d+:([^:]*):(.*)$/.exec(line));
  const isMeant = (controllers = '') =>
    version === 2 ? controllers === '' : controllers.split(',').includes('memory');
  return rows.find((row) => row !== null && isMeant(row[1]))?.[2];
}
