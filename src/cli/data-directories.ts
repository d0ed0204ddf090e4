import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Logger, mountOf, readMountTable } from '../lib/index.ts';

export interface DataDirectories {
  readonly rootDir: string;
  readonly podLogsDir: string;
}

/** Below the root directory; others put their sockets into some of them and expect them to be there. */
const below = ['pods', 'plugins', 'plugins_registry', 'pod-resources', 'device-plugins'];
/** Nobody but root and its group has any business there. */
const mode = 0o750;

/** Makes what the kubelet keeps its files in, where it is not there yet. Those there are stay as they are. */
export async function prepareDirectories(
  { rootDir, podLogsDir }: DataDirectories,
  logger: Logger,
): Promise<void> {
  await mkdir(rootDir, { recursive: true, mode });
  for (const path of [...below.map((name) => join(rootDir, name)), podLogsDir])
    await mkdir(path, { recursive: true, mode });
  const mounts = await readMountTable((path) => readFile(path, 'utf8')).catch(() => []);
  if (mountOf(rootDir, mounts)?.isShared === true) return;
  logger.warn(
    'Mounts under the root directory are not shared: what pods mount for others stays with them. Run "mount --make-rshared /"',
    { rootDir },
  );
}
