import { rm } from 'node:fs/promises';
import {
  type ProcessIdentity,
  type ProcessInfo,
  type ProcessTable,
  readJsonIfValid,
  writeJsonAtomic,
} from '../lib/index.ts';
import type { Layout } from './layout.ts';

/** What the pid file says: which process it was, and of which version. */
export interface OwnProcess extends ProcessIdentity {
  readonly version: string;
}

export async function writePidFile(layout: Layout, own: OwnProcess): Promise<void> {
  const { pid, startTime, bootId, version } = own;
  await writeJsonAtomic(layout.pidFile, { pid, startTime, bootId, version }, { mode: 0o644 });
}

/** Removes the pid file and the sockets, which a containerd that was killed leaves behind. */
export async function removeTraces(layout: Layout): Promise<void> {
  for (const path of [layout.pidFile, layout.socket, layout.ttrpcSocket]) await rm(path, { force: true });
}

/**
 * The containerd of this data directory, if it runs. The pid file, which only root writes, names it beyond doubt. Without
 * one, a process counts that has its program name and arguments and runs as root of this machine: any user and any
 * container can start a program of that name with those arguments.
 */
export async function findOwnProcess(
  layout: Layout,
  processes: ProcessTable,
): Promise<OwnProcess | undefined> {
  const written = await readPidFile(layout);
  if (written !== undefined && (await processes.isAlive(written))) {
    const info = await processes.find(written.pid);
    if (info !== undefined && (await isOurs(info, layout, processes))) return written;
  }
  // A crash between the start and the pid file leaves one that nothing but its command line tells of.
  for (const info of await processes.list()) {
    if (!(await isOurs(info, layout, processes))) continue;
    if (!(await processes.isHostRoot(info, ['user', 'pid', 'mnt']))) continue;
    return { pid: info.pid, startTime: info.startTime, bootId: info.bootId, version: '' };
  }
  return undefined;
}

export function containerdArguments(layout: Layout): readonly string[] {
  return ['--config', layout.config];
}

async function isOurs(info: ProcessInfo, layout: Layout, processes: ProcessTable): Promise<boolean> {
  const expected = containerdArguments(layout);
  const isSame = info.argv.length === 3 && expected.every((word, index) => info.argv[index + 1] === word);
  return isSame && /^containerd(?!-shim)/.test((await processes.programName(info.pid)) ?? '');
}

async function readPidFile(layout: Layout): Promise<OwnProcess | undefined> {
  const found = await readJsonIfValid(layout.pidFile);
  if (typeof found !== 'object' || found === null) return undefined;
  const { pid, startTime, bootId, version } = found as Record<string, unknown>;
  const isSound = typeof pid === 'number' && typeof startTime === 'number' && typeof bootId === 'string';
  return isSound
    ? { pid, startTime, bootId, version: typeof version === 'string' ? version : '' }
    : undefined;
}
