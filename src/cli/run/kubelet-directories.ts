import { mkdir, readFile, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { NodeEvent } from '../../journal/index.ts';

import type { Clock } from '../../lib/index.ts';
import {
  describeError,
  type Mount,
  mountArguments,
  mountOf,
  readMountTable,
  runChecked,
  umountArguments,
} from '../../lib/index.ts';

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

const runWithinMs = 30_000;
/** Should others have done the same. */
const mostBinds = 8;

/**
 * Sees to it that what containers mount below the root directory reaches the machine and other containers
 * (`mountPropagation`): unless it is on a mount that is shared already, the directory becomes a mount of its own that is.
 * May be repeated, and goes on where an earlier attempt was killed; the mount stays until the machine is started anew.
 * Answers why it cannot be done; then nothing has changed that anybody would notice.
 */
export async function shareRoot(
  rootDir: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const place = await realpath(rootDir);
    const mounts = await mountTable();
    const plan = planSharing(place, mounts);
    if (plan.kind === 'shared') return undefined;
    if (plan.kind === 'refused') return plan.because;
    for (const args of plan.calls) await run('mount', args, clock, signal);
    const isShared = mountOf(place, await mountTable())?.isShared === true;
    return isShared ? undefined : 'the kernel does not list it as shared after "mount --make-rshared"';
  } catch (error) {
    signal.throwIfAborted();
    return describeError(error);
  }
}

export type SharingPlan =
  | { readonly kind: 'shared' }
  /** Arguments of mount(8), one call after the other. */
  | { readonly kind: 'change'; readonly calls: readonly (readonly string[])[] }
  | { readonly kind: 'refused'; readonly because: string };

/** What is to be done to a directory, named as the kernel names it. */
export function planSharing(place: string, mounts: readonly Mount[]): SharingPlan {
  const holder = mountOf(place, mounts);
  if (holder?.isShared === true) return { kind: 'shared' };
  const share = mountArguments({ flags: ['--make-rshared'], target: place });
  if (holder?.mountPoint === place) return { kind: 'change', calls: [share] };
  // A bind would cover what is mounted below: nobody could see or unmount it any more.
  const [covered, ...others] = mounts.filter(({ mountPoint }) => mountPoint.startsWith(`${place}/`));
  if (covered === undefined)
    return {
      kind: 'change',
      calls: [mountArguments({ flags: ['--bind'], source: place, target: place }), share],
    };
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  const because = `${covered.mountPoint}${more} is mounted below it already: it can be done once nothing is, as after a start of the machine`;
  return { kind: 'refused', because };
}

/** Takes away what `shareRoot` has made; a disk that somebody mounted there stays. Fine when there is nothing. */
export async function unshareRoot(rootDir: string, clock: Clock, signal: AbortSignal): Promise<void> {
  const place = await realpath(rootDir).catch(() => undefined);
  if (place === undefined) return;
  for (let left = mostBinds; left > 0 && isSelfBind(place, await mountTable()); left--) {
    await run('umount', umountArguments([], place), clock, signal).catch(async () => {
      signal.throwIfAborted();
      // Whoever is in there stays in the same directory without it.
      await run('umount', umountArguments(['--lazy'], place), clock, signal);
    });
  }
}

/** Whether a directory is a mount that shows the very same directory. */
export function isSelfBind(place: string, mounts: readonly Mount[]): boolean {
  const top = mounts.findLastIndex(({ mountPoint }) => mountPoint === place);
  const bind = mounts[top];
  const below = mounts.slice(0, Math.max(top, 0));
  const covered = below.findLast(({ mountPoint }) => mountPoint === place) ?? mountOf(dirname(place), mounts);
  if (bind === undefined || covered === undefined) return false;
  const shown = join(covered.root, relative(covered.mountPoint, place));
  return bind.device === covered.device && bind.root === shown;
}

function mountTable(): Promise<readonly Mount[]> {
  return readMountTable((path) => readFile(path, 'utf8'));
}

async function run(file: string, args: readonly string[], clock: Clock, signal: AbortSignal): Promise<void> {
  await runChecked({ file, args, clock, deadlineMs: runWithinMs }, signal);
}
