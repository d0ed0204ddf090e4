import { basename } from 'node:path';
import {
  type Clock,
  cgroupPids,
  descendants,
  type ProcessInfo,
  type ProcessTable,
  realCgroupHost,
  stripControls,
} from '../lib/index.ts';
import { cgroupDirectories } from './cgroups.ts';
import type { Layout } from './layout.ts';
import type { Removal } from './mounts.ts';

export interface KillDeps {
  readonly layout: Layout;
  readonly processes: ProcessTable;
  readonly clock: Clock;
  readonly hierarchies: readonly string[];
}

const rounds = 5;
const roundMs = 3000;

interface Victims {
  readonly contained: readonly ProcessInfo[];
  readonly shims: readonly ProcessInfo[];
}

/**
 * Kills the shims of this containerd, their descendants and the processes in its cgroups. Processes
 * may fork in the meantime, so this is repeated a few times until none is left.
 */
export async function killRemaining(
  cgroups: readonly string[],
  deps: KillDeps,
  signal: AbortSignal,
): Promise<Removal> {
  const killed = new Map<number, string>();
  for (let round = 0; round < rounds; round++) {
    const { contained, shims } = await findVictims(cgroups, deps);
    // Containers are killed before their shims, which reap them.
    const victims = contained.length > 0 ? contained : shims;
    if (victims.length === 0) return { removed: [...killed.values()], problems: [] };
    for (const victim of victims) {
      if (await deps.processes.signal(victim, 'SIGKILL')) killed.set(victim.pid, describe(victim));
    }
    await deps.processes.waitForExit(victims, { clock: deps.clock, ms: roundMs }, signal);
  }
  const { contained, shims } = await findVictims(cgroups, deps);
  const problems = [...contained, ...shims].map((left) => `Cannot kill ${describe(left)}: it does not end`);
  return { removed: [...killed.values()], problems };
}

async function findVictims(cgroups: readonly string[], deps: KillDeps): Promise<Victims> {
  const all = await deps.processes.list();
  const shims: ProcessInfo[] = [];
  for (const info of all) {
    if (!isShimOf(info, deps.layout.socket)) continue;
    // Only processes of root count as shims: any user can start a program with the same arguments,
    // and the children of that program would be killed too.
    if (await deps.processes.isHostRoot(info, ['user', 'pid'])) shims.push(info);
  }
  const inside = new Set(descendants(all, shims).map((info) => info.pid));
  // If a shim exited before its container, only the cgroup identifies the remaining processes.
  for (const cgroup of cgroups) {
    for (const pid of await cgroupPids(realCgroupHost(), cgroupDirectories(deps.hierarchies, cgroup)))
      inside.add(pid);
  }
  const contained = all.filter((info) => inside.has(info.pid) && info.pid !== 1 && info.pid !== process.pid);
  return { contained, shims: shims.filter((shim) => !inside.has(shim.pid)) };
}

/**
 * Whether a process is a shim of the containerd with this socket, which is an argument of every
 * shim.
 */
export function isShimOf({ argv }: ProcessInfo, socket: string): boolean {
  const isShim = basename(argv[0] ?? '').startsWith('containerd-shim');
  return isShim && argv.some((word, index) => word === '-address' && argv[index + 1] === socket);
}

function describe({ pid, argv }: ProcessInfo): string {
  const line = stripControls(argv.join(' '));
  return `${pid} ${line.length > 120 ? `${line.slice(0, 120)}...` : line}`;
}
