import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { NodeEvent } from '../kubelet/index.ts';
import type { Clock } from '../lib/index.ts';
import { shareRoot } from './shared-root.ts';

export interface DataDirectories {
  readonly rootDir: string;
  readonly podLogsDir: string;
}

/** Below the root directory; others put their sockets into some of them and expect them to be there. */
const below = ['pods', 'plugins', 'plugins_registry', 'pod-resources', 'device-plugins'];
/** Nobody but root and its group has any business there. */
const mode = 0o750;

/**
 * Makes what the kubelet keeps its files in, where it is not there yet. Those there are stay as they are. Answers what
 * users of the node have to know of them.
 */
export async function prepareDirectories(
  { rootDir, podLogsDir }: DataDirectories,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly NodeEvent[]> {
  await mkdir(rootDir, { recursive: true, mode });
  for (const path of [...below.map((name) => join(rootDir, name)), podLogsDir])
    await mkdir(path, { recursive: true, mode });
  return await prepareRoot(rootDir, clock, signal);
}

/** The root directory alone. */
export async function prepareRoot(
  rootDir: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly NodeEvent[]> {
  await mkdir(rootDir, { recursive: true, mode });
  const problem = await shareRoot(rootDir, clock, signal);
  if (problem === undefined) return [];
  const message = `Mounts under the root directory ${rootDir} cannot be shared, so what containers mount there (mountPropagation) stays with them: ${problem}`;
  return [{ type: 'Warning', reason: 'RootDirectoryNotShared', message }];
}
