import { readFile } from 'node:fs/promises';
import { release } from 'node:os';
import type { NodeEvent } from '../../journal/index.ts';

import { type Clock, describeError, runChecked } from '../../lib/index.ts';
import type { SelinuxFacts } from '../../volumes/index.ts';
import { isAtLeast } from '../doctor/check.ts';

/** Kernels since this version support tmpfs with noswap; distributions have backported it. */
const noswapSince = [6, 4] as const;
const tryWithinMs = 30_000;
/** Matches the uid_map of a process in the initial user namespace. */
const allUsers = /^\s*0\s+0\s+4294967295\s*$/;

export interface SwapProbe {
  readonly kernel: string;
  /** Returns the text of /proc/self/uid_map. */
  uidMap(): Promise<string>;
  /**
   * Mounts a tmpfs with noswap in a private mount namespace. Rejects if the kernel does not support
   * noswap.
   */
  tryNoswap(signal: AbortSignal): Promise<void>;
}

/**
 * Returns the events for a node with swap whose kernel cannot exclude tmpfs from swap: secrets may
 * then be written to a disk.
 */
export async function swapWarnings(machine: SwapProbe, signal: AbortSignal): Promise<readonly NodeEvent[]> {
  const because = await whySwappable(machine, signal);
  if (because === undefined) return [];
  const message = `Secrets, tokens and empty directories in memory may be written to the swap of this node: ${because}`;
  return [{ type: 'Warning', reason: 'PossibleMemoryBackedVolumesOnDisk', message }];
}

/** Returns why tmpfs may be swapped; undefined if the kernel excludes it from swap. */
async function whySwappable(machine: SwapProbe, signal: AbortSignal): Promise<string | undefined> {
  if (!allUsers.test(await machine.uidMap())) return 'in a user namespace tmpfs cannot be excluded from swap';
  if (isAtLeast(machine.kernel, noswapSince)) return undefined;
  try {
    await machine.tryNoswap(signal);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return `the kernel ${machine.kernel} does not mount tmpfs with the option noswap: ${describeError(error)}`;
  }
}

/** Probes mounts in a separate process whose mount namespace ends with it. */
export function hostSwapProbe(clock: Clock): SwapProbe {
  return {
    kernel: release(),
    uidMap: () => readFile('/proc/self/uid_map', 'utf8'),
    async tryNoswap(signal) {
      const apart = ['--mount', '--propagation', 'private'];
      const args = [...apart, 'mount', '-t', 'tmpfs', '-o', 'noswap', 'tmpfs', '/'];
      await runChecked({ file: 'unshare', args, clock, deadlineMs: tryWithinMs }, signal);
    },
  };
}

/** Reads the text of a file; undefined if it does not exist. */
type ReadText = (path: string) => Promise<string | undefined>;

const usualFileContext = 'system_u:object_r:container_file_t:s0';
const usualPolicy = 'targeted';

/** Returns the SELinux settings; undefined on a machine without SELinux. */
export async function readSelinuxFacts(read: ReadText): Promise<SelinuxFacts | undefined> {
  // selinuxfs is mounted only where SELinux is enabled, enforcing or not.
  if ((await read('/sys/fs/selinux/enforce')) === undefined) return undefined;
  const policy = valueIn((await read('/etc/selinux/config')) ?? '', 'SELINUXTYPE') ?? usualPolicy;
  const contexts = /^[\w.-]+$/.test(policy)
    ? await read(`/etc/selinux/${policy}/contexts/lxc_contexts`)
    : undefined;
  return { fileContext: valueIn(contexts ?? '', 'file') ?? usualFileContext };
}

function valueIn(text: string, name: string): string | undefined {
  for (const line of text.split('\n')) {
    const [key = '', ...rest] = line.split('=');
    const value = rest.join('=').trim().replace(/^"/, '').replace(/"$/, '');
    if (key.trim() === name && rest.length > 0 && !value.includes('"'))
      return value === '' ? undefined : value;
  }
  return undefined;
}
