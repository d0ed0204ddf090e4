import { join } from 'node:path';
import type { Clock } from '../clock.ts';
import { errnoOf } from '../errors.ts';
import type { CgroupHost } from './host.ts';

/** The removed cgroups, and the cgroups that could not be removed, each with the reason. */
export interface CgroupRemoval {
  readonly removed: readonly string[];
  readonly problems: readonly string[];
}

const killRounds = 5;
/**
 * The number of waits for killed processes to exit in each round: the first takes one millisecond,
 * each later one twice as long as the previous.
 */
const waitsPerRound = 9;
const removeAttempts = 10;

/**
 * The PIDs of the processes in the directories and below them, each once. The kernel lists a
 * process of another PID namespace as 0.
 */
export async function cgroupPids(host: CgroupHost, dirs: readonly string[]): Promise<number[]> {
  const found = new Set<number>();
  for (const dir of await descendantsOf(host, dirs)) {
    const text = await host.read(join(dir, 'cgroup.procs')).catch(() => '');
    for (const line of text.split('\n')) if (line !== '') found.add(Number(line));
  }
  return [...found].toSorted((a, b) => a - b);
}

/**
 * Kills every process in the directories and below; in rounds, because processes may fork while the
 * list is read. Returns the processes that are still alive. Never kills its own process or process
 * 1.
 */
export async function killCgroup(
  host: CgroupHost,
  dirs: readonly string[],
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly number[]> {
  for (let round = 0; round < killRounds; round++) {
    const pids = await cgroupPids(host, dirs);
    if (pids.length === 0) return [];
    for (const pid of pids) killProcess(host, pid);
    if (await emptied(host, dirs, clock, signal)) return [];
  }
  return await cgroupPids(host, dirs);
}

/**
 * Removes the directories and all below them, children first. Missing directories count as removed.
 */
export async function removeCgroup(
  host: CgroupHost,
  dirs: readonly string[],
  clock: Clock,
  signal: AbortSignal,
): Promise<CgroupRemoval> {
  const removed: string[] = [];
  const problems: string[] = [];
  for (const dir of dirs) {
    try {
      await removeTree(host, dir, { clock, removed, signal });
    } catch (error) {
      signal.throwIfAborted();
      problems.push(`Cannot remove the cgroup ${dir}: ${(error as Error).message}`);
    }
  }
  return { removed, problems };
}

/** Removes the directories that have neither processes nor children; returns the removed ones. */
export async function removeEmptyCgroup(host: CgroupHost, dirs: readonly string[]): Promise<string[]> {
  const removed: string[] = [];
  for (const dir of dirs) {
    const isRemoved = await host.rmdir(dir).then(
      () => true,
      () => false,
    );
    if (isRemoved) removed.push(dir);
  }
  return removed;
}

function killProcess(host: CgroupHost, pid: number): void {
  // PID 0 is skipped, because kill(2) would then signal kubeling's own process group.
  if (pid <= 1 || pid === process.pid) return;
  try {
    host.kill(pid);
  } catch {
    // The process has already exited, or kubeling is not permitted to kill it: the next round lists
    // it if it is still alive.
  }
}

async function emptied(
  host: CgroupHost,
  dirs: readonly string[],
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  for (let wait = 0; wait < waitsPerRound; wait++) {
    if ((await cgroupPids(host, dirs)).length === 0) return true;
    await clock.sleep(2 ** wait, signal);
  }
  return false;
}

interface RemovalState {
  readonly clock: Clock;
  readonly removed: string[];
  readonly signal: AbortSignal;
}

/**
 * Removes a cgroup and its descendants. Retries while the cgroup is busy: the kernel keeps it for
 * an instant after its last process has exited, and a runtime may still add a child cgroup.
 */
async function removeTree(host: CgroupHost, dir: string, state: RemovalState): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    for (const name of await childrenOf(host, dir)) await removeTree(host, join(dir, name), state);
    try {
      await host.rmdir(dir);
      state.removed.push(dir);
      return;
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return;
      if (errnoOf(error) !== 'EBUSY' || attempt >= removeAttempts) throw error;
    }
    await state.clock.sleep(2 ** attempt, state.signal);
  }
}

async function descendantsOf(host: CgroupHost, dirs: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  const waiting = dirs.toReversed();
  for (let dir = waiting.pop(); dir !== undefined; dir = waiting.pop()) {
    const at = dir;
    found.push(at);
    waiting.push(...(await childrenOf(host, at)).map((name) => join(at, name)).toReversed());
  }
  return found;
}

async function childrenOf(host: CgroupHost, dir: string): Promise<readonly string[]> {
  return await host.subdirectories(dir).catch(() => []);
}
