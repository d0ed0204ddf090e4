import { mkdir, readFile, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { NodeEvent } from '../../journal/index.ts';

import {
  type Clock,
  describeError,
  KubelingError,
  type Logger,
  type Mount,
  mountArguments,
  mountOf,
  readMountTable,
  runChecked,
  umountArguments,
  untrustedDirectory,
} from '../../lib/index.ts';

export interface DataDirectories {
  readonly rootDir: string;
  readonly podLogsDir: string;
}

/**
 * The subdirectories of the root directory; plugins create sockets in some of them and expect them
 * to exist.
 */
const below = ['pods', 'plugins', 'plugins_registry', 'pod-resources', 'device-plugins'];
/** The mode of the directories: accessible to root and its group only. */
const mode = 0o750;

/**
 * Creates the directories of the kubelet. Existing ones are not changed. Returns events for users
 * of the node.
 */
export async function prepareDirectories(
  { rootDir, podLogsDir }: DataDirectories,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly NodeEvent[]> {
  await mkdir(rootDir, { recursive: true, mode });
  await checkRootDirectory(rootDir);
  for (const path of [...below.map((name) => join(rootDir, name)), podLogsDir])
    await mkdir(path, { recursive: true, mode });
  return await prepareRoot(rootDir, clock, signal);
}

/**
 * Rejects a root directory that another user can change, because that user could replace sockets
 * and volumes of pods, and so gain root privileges.
 */
async function checkRootDirectory(rootDir: string): Promise<void> {
  const why = await untrustedDirectory(await realpath(rootDir));
  if (why === undefined) return;
  throw new KubelingError(
    'ROOT_DIR_UNUSABLE',
    `Cannot use the root directory ${rootDir}: ${why}. Use a directory that only root can change`,
  );
}

/** Logs a warning if other users can change the manifests, which may contain privileged pods. */
export async function reportOpenManifests(path: string, logger: Pick<Logger, 'warn'>): Promise<void> {
  const real = path === '' ? undefined : await realpath(path).catch(() => undefined);
  const because = real === undefined ? undefined : await untrustedDirectory(real);
  if (because !== undefined) logger.warn('Other users can change the manifest directory', { path, because });
}

/** Creates the root directory and shares its mount. */
export async function prepareRoot(
  rootDir: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly NodeEvent[]> {
  await mkdir(rootDir, { recursive: true, mode });
  const problem = await shareRoot(rootDir, clock, signal);
  if (problem === undefined) return [];
  const message = `Mounts under the root directory ${rootDir} cannot be shared, so mounts of containers (mountPropagation) are not visible to others: ${problem}`;
  return [{ type: 'Warning', reason: 'RootDirectoryNotShared', message }];
}

const runWithinMs = 30_000;
/** The maximum number of bind mounts to remove: concurrent processes may have created several. */
const mostBinds = 8;

/**
 * Makes mounts of containers below the root directory visible to the host and to other containers
 * (`mountPropagation`). Unless the directory is on a shared mount already, it is bind-mounted onto
 * itself and shared. Safe to repeat, also after an interruption; the mount stays until the next
 * boot. Returns why sharing is impossible, in which case nothing has changed.
 */
async function shareRoot(rootDir: string, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  try {
    const path = await realpath(rootDir);
    const mounts = await mountTable();
    const plan = planSharing(path, mounts);
    if (plan.kind === 'shared') return undefined;
    if (plan.kind === 'refused') return plan.because;
    for (const args of plan.calls) await run('mount', args, clock, signal);
    const isShared = mountOf(path, await mountTable())?.isShared === true;
    return isShared ? undefined : 'the kernel does not list it as shared after "mount --make-rshared"';
  } catch (error) {
    signal.throwIfAborted();
    return describeError(error);
  }
}

export type SharingPlan =
  | { readonly kind: 'shared' }
  /** The arguments of successive calls of mount(8). */
  | { readonly kind: 'change'; readonly calls: readonly (readonly string[])[] }
  | { readonly kind: 'refused'; readonly because: string };

/** Plans the mount calls that share a directory, given by its canonical path. */
export function planSharing(path: string, mounts: readonly Mount[]): SharingPlan {
  const holder = mountOf(path, mounts);
  if (holder?.isShared === true) return { kind: 'shared' };
  const share = mountArguments({ flags: ['--make-rshared'], target: path });
  if (holder?.mountPoint === path) return { kind: 'change', calls: [share] };
  // A bind mount would cover mounts below the directory, which could then not be unmounted.
  const [covered, ...rest] = mounts.filter(({ mountPoint }) => mountPoint.startsWith(`${path}/`));
  if (covered === undefined)
    return {
      kind: 'change',
      calls: [mountArguments({ flags: ['--bind'], source: path, target: path }), share],
    };
  const more = rest.length === 0 ? '' : ` and ${rest.length} more`;
  const because = `${covered.mountPoint}${more} is mounted below it; unmount that, or restart the machine`;
  return { kind: 'refused', because };
}

/**
 * Removes the bind mount that `shareRoot` created; a disk mounted there by the user stays. Does
 * nothing without a mount.
 */
export async function unshareRoot(rootDir: string, clock: Clock, signal: AbortSignal): Promise<void> {
  const path = await realpath(rootDir).catch(() => undefined);
  if (path === undefined) return;
  for (let left = mostBinds; left > 0 && isSelfBind(path, await mountTable()); left--) {
    await run('umount', umountArguments([], path), clock, signal).catch(async () => {
      signal.throwIfAborted();
      // A lazy unmount works even while processes use the directory.
      await run('umount', umountArguments(['--lazy'], path), clock, signal);
    });
  }
}

/** Whether a directory is bind-mounted onto itself. */
export function isSelfBind(path: string, mounts: readonly Mount[]): boolean {
  const top = mounts.findLastIndex(({ mountPoint }) => mountPoint === path);
  const bind = mounts[top];
  const below = mounts.slice(0, Math.max(top, 0));
  const covered = below.findLast(({ mountPoint }) => mountPoint === path) ?? mountOf(dirname(path), mounts);
  if (bind === undefined || covered === undefined) return false;
  const shown = join(covered.root, relative(covered.mountPoint, path));
  return bind.device === covered.device && bind.root === shown;
}

function mountTable(): Promise<readonly Mount[]> {
  return readMountTable((path) => readFile(path, 'utf8'));
}

async function run(file: string, args: readonly string[], clock: Clock, signal: AbortSignal): Promise<void> {
  await runChecked({ file, args, clock, deadlineMs: runWithinMs }, signal);
}
