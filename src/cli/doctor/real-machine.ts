import { constants } from 'node:fs';
import { access, open, readdir, readFile, stat, statfs } from 'node:fs/promises';
import { release } from 'node:os';
import { join } from 'node:path';
import { type Clock, type Random, runCommand } from '../../lib/index.ts';
import type { FileKind, Machine, RuntimeResponse, Space } from './check.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const runLimitMs = 5_000;
const queryLimitMs = 3_000;

export function realMachine(clock: Clock, random: Random, env: Environment): Machine {
  return {
    platform: process.platform,
    arch: process.arch,
    nodeVersion: process.versions.node,
    kernelRelease: release(),
    uid: process.getuid?.() ?? -1,
    now: () => clock.now(),
    readText: (path) => unlessMissing(readFile(path, 'utf8')),
    list: (path) => unlessMissing(readdir(path)),
    kindOf,
    tryOpen,
    spaceAt,
    findCommand: (name) => findCommand(name, env),
    run: async (file, args, signal) => {
      const { end, stdout, stderr } = await runCommand({ file, args, clock, deadlineMs: runLimitMs }, signal);
      return { code: end.kind === 'exited' ? end.code : 128, output: stdout + stderr };
    },
    queryRuntime: (endpoint, signal) => queryRuntime({ endpoint, clock, random }, signal),
  };
}

async function unlessMissing<T>(content: Promise<T>): Promise<T | undefined> {
  try {
    return await content;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

async function kindOf(path: string): Promise<FileKind | undefined> {
  const stats = await unlessMissing(stat(path));
  if (stats === undefined) return undefined;
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'directory';
  if (stats.isSocket()) return 'socket';
  return stats.isCharacterDevice() || stats.isBlockDevice() ? 'device' : 'other';
}

async function tryOpen(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  await handle.close();
}

async function spaceAt(path: string): Promise<Space> {
  const { type, bsize, blocks, bavail, files, ffree } = await statfs(path);
  return {
    type,
    totalBytes: blocks * bsize,
    availableBytes: bavail * bsize,
    totalInodes: files,
    freeInodes: ffree,
  };
}

// Directories that are searched in addition to PATH, which often lacks them under a service manager
// or for an ordinary user.
const administratorDirectories = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

async function findCommand(name: string, env: Environment): Promise<string | undefined> {
  const directories = [...(env['PATH'] ?? '').split(':'), ...administratorDirectories];
  for (const directory of directories.filter((candidate) => candidate.startsWith('/'))) {
    const path = join(directory, name);
    try {
      await access(path, constants.X_OK);
      if ((await stat(path)).isFile()) return path;
    } catch {
      // The command is not in this directory: try the next one.
    }
  }
  return undefined;
}

interface RuntimeQuery {
  readonly endpoint: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** Queries the runtime; loads the CRI client only if there is a socket to check. */
async function queryRuntime(question: RuntimeQuery, signal: AbortSignal): Promise<RuntimeResponse> {
  const { createCriClient, wireTransport } = await import('../../cri/index.ts');
  const client = createCriClient({
    transport: wireTransport(question),
    clock: question.clock,
    requestTimeoutMs: queryLimitMs,
  });
  try {
    const { runtimeName, runtimeVersion } = await client.checkVersion(signal);
    return { name: runtimeName, version: runtimeVersion };
  } finally {
    client.close();
  }
}
