import { lstatSync, readlinkSync } from 'node:fs';
import { readFile, readlink } from 'node:fs/promises';
import { posix } from 'node:path';
import { abortable, withDeadline } from './abort.ts';
import { type BackoffState, nextBackoff } from './backoff.ts';
import type { Clock } from './clock.ts';
import { absoluteArgument } from './command-arguments.ts';
import { KubelingError } from './errors.ts';
import { type MountWatch, mountWatch } from './libc.ts';
import { type Mount, mountOf, readMountTable } from './mountinfo.ts';
import type { Random } from './random.ts';
import { runCommand } from './run-command.ts';

export interface UnresponsiveMountsDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly mounts: () => Promise<readonly Mount[]>;
  /**
   * Returns whether mounts have changed. Without it the mount table is read unless the last read is
   * very recent.
   */
  readonly watch?: MountWatch | undefined;
  /**
   * Returns the target of a symbolic link; undefined for any other path. Called only for responsive
   * file systems.
   */
  readonly readLink: (path: string) => Promise<string | undefined>;
  /**
   * Resolves or rejects as soon as the file system has responded in any way. Must not use file
   * operations of this process, which could block.
   */
  readonly probe: (mountPoint: string, signal: AbortSignal) => Promise<void>;
}

/** The last observed state of the file system at a mount point. */
type MountState =
  | { readonly is: 'asked'; readonly response: Promise<void> }
  | { readonly is: 'alive'; readonly atMs: number }
  | { readonly is: 'silent'; readonly backoff: BackoffState };

interface MountTable {
  readonly mounts: readonly Mount[];
  /** The mounts of remote file systems, which may be unresponsive. */
  readonly foreign: readonly Mount[];
  /**
   * A cache of parent directories that are on a local disk according to this mount table, and are
   * not symbolic links.
   */
  readonly plain: Set<string>;
}

interface TableRead {
  readonly readAtMs: number;
  /** When the mount table was last known to be current, in monotonic time. */
  atMs: number;
  readonly table: Promise<MountTable>;
  /** The parsed mount table, once the read has completed. */
  known?: MountTable;
}

/**
 * The types of file systems that the kernel serves without a remote server, from memory or a local
 * disk.
 */
const localTypes: ReadonlySet<string> = new Set(
  [
    'bcachefs btrfs erofs exfat ext2 ext3 ext4 f2fs hugetlbfs iso9660 jfs nilfs2 ntfs3 overlay ramfs reiserfs squashfs',
    'tmpfs udf vfat xfs zfs binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fusectl mqueue',
    'nsfs proc pstore rpc_pipefs securityfs selinuxfs sysfs tracefs',
  ].flatMap((line) => line.split(' ')),
);
const tableMs = 1_000;
/**
 * The maximum age of the cached mount table if the kernel reports no change: mount points also
 * change when a parent directory is renamed, which the kernel does not report.
 */
const watchedTableMs = 30_000;
const aliveMs = 1_000;
const probeDeadlineMs = 5_000;
const retry = { baseMs: 10_000, maxMs: 300_000, resetAfterMs: 3_600_000 };
const maxLinks = 40;
const never = new AbortController().signal;
const responsive = Promise.resolve();

/**
 * Detects unresponsive remote file systems, which are served by a server or a process (FUSE). A
 * process that accesses an unresponsive one blocks in the kernel and cannot be killed, and a few
 * such accesses block all file operations of Node.js. So a path that may lead to a remote file
 * system is checked first: with the mount table, which is always readable, and with a probe in a
 * child process.
 */
export class UnresponsiveMounts {
  readonly #deps: UnresponsiveMountsDeps;
  readonly #states = new Map<string, MountState>();
  #read: TableRead | undefined;

  constructor(deps: UnresponsiveMountsDeps) {
    this.#deps = deps;
  }

  /** The number of file systems that are unresponsive now. */
  get size(): number {
    return [...this.#states.values()].filter(({ is }) => is === 'silent').length;
  }

  /**
   * Resolves once all file systems of the path have responded; rejects with MOUNT_SILENT for an
   * unresponsive one.
   */
  check(path: string, signal: AbortSignal = never): Promise<void> {
    // A fast path for machines without remote file systems, because most machines have none and
    // many paths are checked together.
    const read = this.#recent();
    return read?.known?.foreign.length === 0 ? responsive : this.mountsOf(path, signal).then(() => {});
  }

  /**
   * Checks the path like `check`, and returns whether only local file systems serve it, or also a
   * remote one, which may become unresponsive at any time.
   */
  async mountsOf(path: string, signal: AbortSignal = never): Promise<'own' | 'elsewhere'> {
    const { mounts, foreign, plain } = await this.#mounts();
    if (foreign.length === 0) return 'own';
    let scope: 'own' | 'elsewhere' = 'own';
    const steps = path.split('/');
    let [at, links] = ['', 0];
    for (let step = steps.shift(); step !== undefined && links <= maxLinks; step = steps.shift()) {
      if (step === '' || step === '.') continue;
      const next = step === '..' ? posix.dirname(`${at}/`) : `${at}/${step}`;
      if (plain.has(next)) {
        at = next;
        continue;
      }
      const mount = mountOf(next, foreign) && mountOf(next, mounts);
      const isOwn = mount === undefined || !isFromElsewhere(mount);
      if (!isOwn) {
        scope = 'elsewhere';
        await this.#isResponsive(mount, signal);
      }
      const target = await this.#deps.readLink(next);
      if (target === undefined) {
        at = next === '/' ? '' : next;
        if (isOwn && steps.length > 0) plain.add(at);
        continue;
      }
      links++;
      steps.unshift(...target.split('/'));
      if (target.startsWith('/')) at = '';
    }
    return scope;
  }

  /**
   * The first mount point at or below the path whose file system may be unresponsive. The path must
   * be free of symbolic links.
   */
  async firstBelow(path: string): Promise<string | undefined> {
    const { foreign } = await this.#mounts();
    return foreign.find(({ mountPoint: at }) => at === path || at.startsWith(`${path}/`))?.mountPoint;
  }

  /**
   * Drops the cached mount table. Called after a file system was mounted, because it may be
   * unresponsive from the start.
   */
  renew(): void {
    this.#read = undefined;
  }

  /**
   * The mount table is long and needed often, so it is cached for a short time. The result of a
   * check may therefore be outdated, which cannot be avoided: a file system can become unresponsive
   * right after any check.
   */
  async #mounts(): Promise<MountTable> {
    const recent = this.#recent();
    if (recent !== undefined) return recent.known ?? (await recent.table);
    const nowMs = this.#deps.clock.monotonicMs();
    const read: TableRead = { readAtMs: nowMs, atMs: nowMs, table: this.#readTable() };
    this.#read = read;
    read.known = await read.table;
    return read.known;
  }

  #recent(): TableRead | undefined {
    const read = this.#read;
    if (read === undefined) return undefined;
    const { watch, clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (nowMs - read.atMs < tableMs) return read;
    const isStillRight =
      nowMs - read.readAtMs < watchedTableMs && read.known !== undefined && watch?.() === 'same';
    // The watch reports each change only once, so the table is dropped at the first report.
    this.#read = isStillRight ? read : undefined;
    if (!isStillRight) return undefined;
    read.atMs = nowMs;
    // The watch does not report changes of symbolic links, so their cache is cleared.
    read.known?.plain.clear();
    return read;
  }

  async #readTable(): Promise<MountTable> {
    // Resets the watch, so that it reports changes from now on.
    this.#deps.watch?.();
    const mounts = await this.#deps.mounts();
    this.#removeUnmounted(mounts);
    return { mounts, foreign: mounts.filter(isFromElsewhere), plain: new Set() };
  }

  #removeUnmounted(mounts: readonly Mount[]): void {
    const there = new Set(mounts.map(({ mountPoint }) => mountPoint));
    for (const [point, { is }] of this.#states)
      if (is !== 'asked' && !there.has(point)) this.#states.delete(point);
  }

  async #isResponsive(mount: Mount, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const known = this.#states.get(mount.mountPoint);
    const nowMs = clock.monotonicMs();
    if (known?.is === 'alive' && nowMs - known.atMs < aliveMs) return;
    if (known?.is === 'silent' && nowMs - known.backoff.lastMs < known.backoff.delayMs)
      throw unresponsiveError(mount);
    const response = known?.is === 'asked' ? known.response : this.#probe(mount, known);
    await abortable(response, signal);
  }

  #probe(mount: Mount, before: MountState | undefined): Promise<void> {
    const { clock, random, probe } = this.#deps;
    const { mountPoint } = mount;
    const limit = { clock, ms: probeDeadlineMs, what: `ask the file system at ${mountPoint}` };
    const response = withDeadline(limit, (inner) => probe(mountPoint, inner), never).then(
      () => void this.#states.set(mountPoint, { is: 'alive', atMs: clock.monotonicMs() }),
      () => {
        const previous = before?.is === 'silent' ? before.backoff : undefined;
        const backoff = nextBackoff(retry, previous, { nowMs: clock.monotonicMs(), random });
        this.#states.set(mountPoint, { is: 'silent', backoff });
        throw unresponsiveError(mount);
      },
    );
    // Avoids an unhandled rejection if all callers have aborted when the probe fails.
    response.catch(() => {});
    this.#states.set(mountPoint, { is: 'asked', response });
    return response;
  }
}

/** Creates the checks with the functions of the real machine. */
export function hostUnresponsiveMounts(clock: Clock, random: Random): UnresponsiveMounts {
  return new UnresponsiveMounts({
    clock,
    random,
    mounts: () => readMountTable((path) => readFile(path, 'utf8')),
    watch: mountWatch(),
    readLink: async (path) =>
      remoteBlockTypes.test(path) ? await readlink(path).catch(() => undefined) : targetOf(path),
    async probe(mountPoint, signal) {
      const args = ['-f', '-c', '%T', '--', absoluteArgument('stat', mountPoint)];
      await runCommand({ file: 'stat', args, clock, deadlineMs: probeDeadlineMs }, signal);
    },
  });
}

/**
 * Paths below volumes that other processes may mount from remote servers. The cached mount table
 * may be older than such a mount, so links at these paths are read in the thread pool.
 */
const remoteBlockTypes = /\/kubernetes\.io[~/](?!configmap|secret|downward-api|projected|empty-dir)/;

/**
 * Reads the link synchronously, because the path is known to be responsive, and is usually not a
 * symbolic link.
 */
function targetOf(path: string): string | undefined {
  try {
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    return isLink ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether the mount is remote. The root file system is never checked, because nothing works unless
 * it responds.
 */
function isFromElsewhere({ fsType, mountPoint }: Mount): boolean {
  return mountPoint !== '/' && !localTypes.has(fsType);
}

function unresponsiveError({ mountPoint, fsType }: Mount): KubelingError {
  return new KubelingError('MOUNT_SILENT', `the file system at ${mountPoint} (${fsType}) does not answer`, {
    details: { mountPoint },
  });
}
