import { open, readdir, readFile, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Clock } from './clock.ts';
import { KubelingError } from './errors.ts';

/**
 * Identifies one process uniquely: PIDs are reused, and the boot ID distinguishes equal start times
 * in different boots.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** The start time of the process in clock ticks since boot. */
  readonly startTime: number;
  readonly bootId: string;
}

export interface ProcessInfo extends ProcessIdentity {
  readonly parent: number;
  readonly argv: readonly string[];
}

/**
 * The namespaces that a process must share with kubeling so that user IDs and paths have the same
 * meaning for both.
 */
type Namespace = 'user' | 'pid' | 'mnt';

/** Reads processes from /proc. Zombies are treated as exited. */
export class ProcessTable {
  readonly #procDir: string;

  constructor(procDir = '/proc') {
    this.#procDir = procDir;
  }

  async bootId(): Promise<string> {
    return (await readFile(join(this.#procDir, 'sys/kernel/random/boot_id'), 'utf8')).trim();
  }

  async self(): Promise<ProcessIdentity> {
    const info = await this.find(process.pid);
    if (info === undefined) throw new KubelingError('BUG', 'Cannot find our own process in /proc');
    return { pid: info.pid, startTime: info.startTime, bootId: info.bootId };
  }

  async find(pid: number): Promise<ProcessInfo | undefined> {
    return await this.#read(pid, await this.bootId());
  }

  async list(): Promise<readonly ProcessInfo[]> {
    const bootId = await this.bootId();
    const pids = (await readdir(this.#procDir)).filter((name) => /^\d+$/.test(name)).map(Number);
    const found: ProcessInfo[] = [];
    for (const pid of pids) {
      const info = await this.#read(pid, bootId);
      if (info !== undefined) found.push(info);
    }
    return found;
  }

  async isAlive({ pid, startTime, bootId }: ProcessIdentity): Promise<boolean> {
    const now = await this.find(pid);
    return now !== undefined && now.startTime === startTime && now.bootId === bootId;
  }

  /**
   * The name of the program file, without the suffix ` (deleted)` that the kernel adds for a
   * deleted file.
   */
  async programName(pid: number): Promise<string | undefined> {
    const target = await readlink(join(this.#procDir, String(pid), 'exe')).catch(() => undefined);
    return target === undefined ? undefined : basename(target.replace(/ \(deleted\)$/, ''));
  }

  /**
   * Whether the process runs as root of this machine: all its user IDs are 0, and it shares the
   * namespaces with kubeling. Arguments and program names prove nothing, because any user and any
   * container may choose them.
   */
  async isHostRoot(identity: ProcessIdentity, namespaces: readonly Namespace[]): Promise<boolean> {
    const dir = join(this.#procDir, String(identity.pid));
    const status = await readFile(join(dir, 'status'), 'utf8').catch(() => '');
    if (!/^Uid:\t0\t0\t0\t0$/m.test(status)) return false;
    for (const namespace of namespaces) {
      const own = await readlink(join(this.#procDir, 'self/ns', namespace)).catch(() => undefined);
      const its = await readlink(join(dir, 'ns', namespace)).catch(() => undefined);
      if (own === undefined || own !== its) return false;
    }
    // Checks the identity again, because the PID may have been reused while the files of the
    // process were read.
    return await this.isAlive(identity);
  }

  /** Sends the signal if the PID still belongs to the same process; returns whether it was sent. */
  async signal(identity: ProcessIdentity, name: NodeJS.Signals): Promise<boolean> {
    if (!(await this.isAlive(identity))) return false;
    try {
      process.kill(identity.pid, name);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
      throw error;
    }
  }

  /**
   * Waits until all processes have exited; returns those that are still running at the time limit.
   */
  async waitForExit(
    identities: readonly ProcessIdentity[],
    { clock, ms }: { readonly clock: Clock; readonly ms: number },
    signal: AbortSignal,
  ): Promise<readonly ProcessIdentity[]> {
    const end = clock.monotonicMs() + ms;
    for (let left = identities; ; ) {
      const alive: ProcessIdentity[] = [];
      for (const identity of left) if (await this.isAlive(identity)) alive.push(identity);
      if (alive.length === 0 || clock.monotonicMs() >= end) return alive;
      left = alive;
      await clock.sleep(20, signal);
    }
  }

  async #read(pid: number, bootId: string): Promise<ProcessInfo | undefined> {
    const dir = join(this.#procDir, String(pid));
    // The process may exit between any two reads; then it counts as exited.
    const stat = await readFile(join(dir, 'stat'), 'utf8').catch(() => undefined);
    const argv = await readStart(join(dir, 'cmdline')).catch(() => undefined);
    if (stat === undefined || argv === undefined) return undefined;
    const { state, parent, startTime } = parseStat(stat);
    if (state === 'Z' || state === 'X') return undefined;
    return { pid, bootId, startTime, parent, argv: argv.split('\0').slice(0, -1) };
  }
}

/**
 * The maximum number of bytes that are read from a command line. It is enough for the programs that
 * kubeling starts and searches; other users may write longer ones.
 */
const maxCommandLine = 16 * 1024;

/**
 * Reads the first bytes of a file of /proc; a truncated argument at the end is dropped, because it
 * does not end with a zero byte.
 */
async function readStart(path: string): Promise<string> {
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(maxCommandLine));
  return buffer.toString('utf8', 0, bytesRead);
}

/**
 * Returns the fields of a stat file after the program name, which is in brackets and may contain
 * any character, even brackets.
 */
export function parseStat(text: string): { state: string; parent: number; startTime: number } {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', parent: Number(fields[1]), startTime: Number(fields[19]) };
}

/** Returns all descendants of the given processes, without these themselves. */
export function descendants(all: readonly ProcessInfo[], roots: readonly ProcessInfo[]): ProcessInfo[] {
  const found: ProcessInfo[] = [];
  for (let parents = new Set(roots.map((root) => root.pid)); parents.size > 0; ) {
    const children = all.filter((process) => parents.has(process.parent) && !found.includes(process));
    found.push(...children);
    parents = new Set(children.map((child) => child.pid));
  }
  return found.filter((process) => !roots.some((root) => root.pid === process.pid));
}
