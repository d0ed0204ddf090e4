import { link, rename, rm, writeFile } from 'node:fs/promises';
import type { Clock } from './clock.ts';
import { KubelingError } from './errors.ts';
import { readFileIfExists } from './files.ts';
import type { ProcessIdentity, ProcessTable } from './processes.ts';
import { jitter, type Random, randomHex } from './random.ts';

export interface LockDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly processes: ProcessTable;
  /** The maximum time to wait for the current holder of the lock. */
  readonly waitMs: number;
}

/** The content of a lock file. The token distinguishes two locks of the same process. */
interface Owner extends ProcessIdentity {
  readonly token: string;
}

const pollMs = 50;

/**
 * Runs the work while this call holds the lock file exclusively. The file names its owner, and the
 * lock of a dead owner is replaced.
 *
 * Replacing must not race: two processes that find the same dead owner could each remove the
 * other's new lock. So the right to replace the lock of one dead owner is itself a lock, named
 * after that owner's token, and its holder reads the lock again before replacing it.
 */
export async function withLockFile<T>(
  path: string,
  deps: LockDeps,
  work: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const owner: Owner = { ...(await deps.processes.self()), token: newToken(deps.random) };
  await waitForLock(path, owner, deps, signal);
  try {
    return await work();
  } finally {
    await rm(path, { force: true });
  }
}

/**
 * Starts the token with the PID: two processes may generate the same random number, but cannot have
 * the same PID at the same time.
 */
function newToken(random: Random): string {
  return process.pid.toString(16) + randomHex(random, 16);
}

async function waitForLock(path: string, owner: Owner, deps: LockDeps, signal: AbortSignal): Promise<void> {
  const end = deps.clock.monotonicMs() + deps.waitMs;
  for (;;) {
    signal.throwIfAborted();
    const holder = await tryLock(path, owner, deps.processes);
    if (holder === undefined) return;
    if (deps.clock.monotonicMs() >= end) {
      throw new KubelingError(
        'LOCK_HELD',
        `Cannot acquire the lock ${path} within ${deps.waitMs} ms as process ${holder.pid} holds it`,
        { details: { pid: holder.pid } },
      );
    }
    await deps.clock.sleep(jitter(deps.random, pollMs, 1), signal);
  }
}

/** Acquires the lock and returns undefined, or returns the current holder. */
async function tryLock(path: string, owner: Owner, processes: ProcessTable): Promise<Owner | undefined> {
  if (await createExclusive(path, owner)) return undefined;
  const holder = await readLockOwner(path);
  // The lock file was removed between the attempts to create and to read it, so the caller tries
  // again.
  if (holder === undefined) return owner;
  if (await processes.isAlive(holder)) return holder;
  return await replaceDeadOwner(path, { dead: holder, owner }, processes);
}

interface DeadOwner {
  readonly dead: Owner;
  readonly owner: Owner;
}

async function replaceDeadOwner(
  path: string,
  { dead, owner }: DeadOwner,
  processes: ProcessTable,
): Promise<Owner | undefined> {
  const right = `${path}.${dead.token}`;
  const rival = await tryLock(right, owner, processes);
  if (rival !== undefined) return rival;
  try {
    const now = await readLockOwner(path);
    if (now?.token !== dead.token) return now ?? owner;
    const mine = `${path}.${owner.token}.own`;
    await writeFile(mine, JSON.stringify(owner), { mode: 0o600 });
    await rename(mine, path);
    return undefined;
  } finally {
    await rm(right, { force: true });
  }
}

/** Creates the file with its content atomically; does nothing if the file exists. */
async function createExclusive(path: string, owner: Owner): Promise<boolean> {
  const mine = `${path}.${owner.token}.own`;
  try {
    await writeFile(mine, JSON.stringify(owner), { mode: 0o600 });
    await link(mine, path);
    return true;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw new KubelingError('FILE_WRITE', `Cannot write the lock file ${path}`, { cause, details: { path } });
  } finally {
    await rm(mine, { force: true });
  }
}

/**
 * A lock file is created with its content, so an unreadable lock file was damaged by a crash of the
 * machine, and its owner is dead.
 */
export async function readLockOwner(path: string): Promise<Owner | undefined> {
  const text = await readFileIfExists(path);
  if (text === undefined) return undefined;
  try {
    const { pid, startTime, bootId, token } = JSON.parse(text) as Owner;
    if (/^[0-9a-f]+$/.test(token)) return { pid, startTime, bootId, token };
  } catch {
    // Invalid JSON is handled below like a lock without a valid token.
  }
  return { pid: 0, startTime: 0, bootId: '', token: 'damaged' };
}
