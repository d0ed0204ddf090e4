import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { readlink, stat, statfs } from 'node:fs/promises';
import { release, uptime } from 'node:os';
import {
  type Clock,
  DiskWalker,
  detectCgroupLayout,
  realCgroupHost,
  type SilentMounts,
  spaceAt,
  spaceOf,
} from '../lib/index.ts';
import type { StatsMachine } from '../stats/index.ts';
import { RuntimeProcess } from './runtime-process.ts';

/** What this machine says of its use. Nothing is started before somebody asks. */
export function hostStatsMachine(clock: Clock, silent: Pick<SilentMounts, 'check' | 'whose'>): StatsMachine {
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
        if ((await silent.whose(path, signal)) === 'own')
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
