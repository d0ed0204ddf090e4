import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import {
  type Clock,
  describeError,
  KubelingError,
  logSize,
  type ProcessTable,
  rotateLog,
  tailLog,
  withDeadline,
} from '../lib/index.ts';
import type { Layout } from './layout.ts';
import type { Environment } from './machine.ts';
import { containerdArguments, type OwnProcess, writePidFile } from './own-process.ts';

/** Checks whether containerd serves: resolves if it does, rejects otherwise. */
export type Probe = (signal: AbortSignal) => Promise<void>;

export interface LaunchDeps {
  readonly layout: Layout;
  readonly clock: Clock;
  readonly processes: ProcessTable;
  readonly probe: Probe;
  readonly readyDeadlineMs: number;
}

export interface Program {
  readonly file: string;
  readonly version: string;
  readonly env: Environment;
}

/**
 * A started containerd that may not serve yet, with the offset at which its new log messages begin.
 */
export interface Launched {
  readonly own: OwnProcess;
  readonly logStart: number;
}

export const probeDeadlineMs = 5000;
const firstPauseMs = 25;
const longestPauseMs = 500;
const shownLogLines = 15;

/**
 * Starts containerd in a separate session, so that it outlives this process, and writes its PID
 * file.
 */
export async function launch(program: Program, deps: LaunchDeps): Promise<Launched> {
  const { layout, processes } = deps;
  await rotateLog(layout.log, 'none');
  const logStart = await logSize(layout.log);
  const pid = await spawnDetached(program, layout);
  const info = await processes.find(pid);
  if (info === undefined) throw await startFailure('it ended at once', layout, logStart);
  const { startTime, bootId } = info;
  const own = { pid, startTime, bootId, version: program.version };
  await writePidFile(layout, own);
  return { own, logStart };
}

async function spawnDetached({ file, env }: Program, layout: Layout): Promise<number> {
  await using log = await open(layout.log, 'a', 0o640);
  const child: ChildProcess = spawn(file, containerdArguments(layout), {
    cwd: '/',
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
    env: { ...env },
  });
  try {
    await once(child, 'spawn');
  } catch (error) {
    throw new KubelingError('CONTAINERD_START', `Cannot start ${file}: ${describeError(error)}`, {
      cause: error,
    });
  }
  child.unref();
  return child.pid ?? 0;
}

/**
 * Waits until containerd serves. Fails with the end of its log when the process exits or at the
 * deadline.
 */
export async function waitReady(
  { own, logStart }: Launched,
  deps: LaunchDeps,
  signal: AbortSignal,
): Promise<void> {
  const { clock, layout, processes, readyDeadlineMs } = deps;
  const end = clock.monotonicMs() + readyDeadlineMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 2)) {
    const leftMs = Math.max(firstPauseMs, end - clock.monotonicMs());
    const failure = await tryProbe(deps, Math.min(probeDeadlineMs, leftMs), signal);
    if (failure === undefined) return;
    if (!(await processes.isAlive(own))) throw await startFailure('it ended', layout, logStart);
    if (clock.monotonicMs() >= end) {
      const why = `it does not answer within ${readyDeadlineMs} ms: ${describeError(failure)}`;
      throw await startFailure(why, layout, logStart);
    }
    await clock.sleep(pauseMs, signal);
  }
}

/** Returns why containerd does not serve; undefined if it does. */
export async function tryProbe(
  { clock, probe }: Pick<LaunchDeps, 'clock' | 'probe'>,
  ms: number,
  signal: AbortSignal,
): Promise<unknown> {
  try {
    await withDeadline({ clock, ms, what: 'get an answer from containerd' }, probe, signal);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return error;
  }
}

async function startFailure(why: string, layout: Layout, logStart: number): Promise<KubelingError> {
  const tail = await tailLog(layout.log, logStart, shownLogLines);
  const shown = tail === '' ? 'its log is empty' : `the end of ${layout.log}:\n${tail}`;
  return new KubelingError('CONTAINERD_START', `Cannot use the private containerd as ${why}; ${shown}`, {
    details: { log: layout.log },
  });
}
