import { rm } from 'node:fs/promises';
import {
  type ProcessIdentity,
  type ProcessInfo,
  type ProcessTable,
  readJsonIfValid,
  writeJsonAtomic,
} from '../lib/index.ts';
import type { Layout } from './layout.ts';

/** The content of the PID file: the process and the version of containerd. */
export interface OwnProcess extends ProcessIdentity {
  readonly version: string;
}

export async function writePidFile(layout: Layout, own: OwnProcess): Promise<void> {
  const { pid, startTime, bootId, version } = own;
  await writeJsonAtomic(layout.pidFile, { pid, startTime, bootId, version }, { mode: 0o644 });
}

/** Removes the PID file and the sockets of a killed containerd. */
export async function removeTraces(layout: Layout): Promise<void> {
  for (const path of [layout.pidFile, layout.socket, layout.ttrpcSocket]) await rm(path, { force: true });
}

/**
 * Returns the running containerd of this data directory. It is identified by the PID file, which
 * only root can write. Without a PID file, a process counts only if its program name and arguments
 * match and it runs as root in the namespaces of this machine, because any user or container can
 * start such a program.
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
  // After a crash before the PID file was written, only the command line identifies the process.
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
