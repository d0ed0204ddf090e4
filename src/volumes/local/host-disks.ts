import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  absoluteArgument,
  type Clock,
  type CommandResult,
  isKind,
  KubelingError,
  mountArguments,
  readMountTable,
  runCommand,
} from '../../lib/index.ts';
import { checkedDiskType, checkedMountOptions, commandFailure } from '../manager/mount-options.ts';
import { unusable } from '../projected/payload.ts';
import type { DiskContent, DiskMount, Disks } from './format-and-mount.ts';

/** Time limit for checking a large or slow disk. */
const checkMs = 10 * 60_000;
const formatMs = 10 * 60_000;
const growMs = 10 * 60_000;
const probeMs = 30_000;
const mountMs = 120_000;
/** Exit code of blkid when it found nothing or could not read the disk. */
const nothingFound = 2;
/** Number of bytes read at the start of a disk to check that it is readable. */
const probedBytes = 2 * 1024 * 1024;
/** Exit code of fsck when it left errors uncorrected. */
const leftUncorrected = 4;
const heldCode = 3;
/**
 * Opens a device with O_EXCL, which fails while the device is mounted or another process has opened
 * it with O_EXCL.
 */
const tryToHold = `
  const { openSync, constants } = require('node:fs');
  try {
    openSync(process.argv[1], constants.O_RDONLY | constants.O_EXCL);
  } catch (error) {
    if (error.code === 'EBUSY') process.exitCode = ${heldCode};
  }`;
const formatOptions: Readonly<Record<string, readonly string[]>> = {
  ext2: ['--'],
  ext3: ['-F', '-m0', '--'],
  ext4: ['-F', '-m0', '--'],
  xfs: ['-f', '--'],
  btrfs: ['--'],
};

/** Programs that grow a mounted file system, by file system type. */
const growers: Readonly<
  Record<string, (device: string, directory: string) => readonly [string, ...string[]]>
> = {
  ext2: (device) => ['resize2fs', '--', device],
  ext3: (device) => ['resize2fs', '--', device],
  ext4: (device) => ['resize2fs', '--', device],
  xfs: (_device, directory) => ['xfs_growfs', '-d', '--', directory],
  btrfs: (_device, directory) => ['btrfs', 'filesystem', 'resize', '--', 'max', directory],
};

/**
 * Disk operations of this machine, with the programs `blkid`, `mkfs.<type>`, `fsck`, `mount`,
 * `resize2fs` and others.
 */
export class HostDisks implements Disks {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async probe(device: string, signal: AbortSignal): Promise<DiskContent> {
    const args = [
      '-p',
      '-s',
      'TYPE',
      '-s',
      'PTTYPE',
      '-o',
      'export',
      '--',
      absoluteArgument('blkid', device),
    ];
    const result = await this.#run('blkid', args, probeMs, signal);
    if (result.end.kind === 'exited' && result.end.code === nothingFound) {
      await this.#checkReadable(device, signal);
      return { kind: 'nothing' };
    }
    const failure = commandFailure(result);
    if (failure !== undefined) throw unusable(`blkid ${device} failed: ${failure}`);
    const type = /^TYPE=(.+)$/m.exec(result.stdout)?.[1];
    // A disk with a partition table is not changed, even if it also has a file system.
    if (/^PTTYPE=./m.test(result.stdout) || type === undefined) return { kind: 'partitions' };
    return { kind: 'file-system', type };
  }

  async format(device: string, fsType: string, signal: AbortSignal): Promise<void> {
    const program = `mkfs.${checkedDiskType(fsType)}`;
    const before = Object.hasOwn(formatOptions, fsType) ? (formatOptions[fsType] ?? []) : [];
    const args = [...before, absoluteArgument(program, device)];
    const failure = commandFailure(await this.#run(program, args, formatMs, signal));
    if (failure !== undefined)
      throw unusable(`format of disk "${device}" failed: type:("${fsType}"): ${failure}`);
  }

  async check(device: string, signal: AbortSignal): Promise<void> {
    // `--` is omitted, because fsck would read the following arguments as file system options.
    const args = ['-a', absoluteArgument('fsck', device)];
    const result = await this.#run('fsck', args, checkMs, signal).catch((error: unknown) => {
      // On a machine without fsck the disk is mounted unchecked.
      if (error instanceof KubelingError && error.code === 'COMMAND_NOT_FOUND') return undefined;
      throw error;
    });
    if (result?.end.kind !== 'exited' || result.end.code !== leftUncorrected) return;
    const failure = commandFailure(result) ?? '';
    throw unusable(`'fsck' found errors on device ${device} but could not correct them: ${failure}`);
  }

  async grow(
    { device, directory }: Pick<DiskMount, 'device' | 'directory'>,
    signal: AbortSignal,
  ): Promise<void> {
    const found = await this.probe(device, signal);
    const type = found.kind === 'file-system' ? found.type : 'unknown';
    const grower = Object.hasOwn(growers, type) ? growers[type] : undefined;
    if (grower === undefined)
      throw unusable(
        `resize of format ${type} is not supported for device ${device} mounted at ${directory}`,
      );
    const [file, ...args] = grower(device, absoluteArgument('mount', directory));
    const failure = commandFailure(await this.#run(file, args, growMs, signal));
    if (failure !== undefined)
      throw unusable(`resize of device ${device} failed: ${failure} (${file} ${args.join(' ')})`);
  }

  async mount({ device, directory, fsType, options }: DiskMount, signal: AbortSignal): Promise<void> {
    const type = checkedDiskType(fsType);
    const all = [...checkedMountOptions(options), 'defaults'];
    const args = mountArguments({
      type,
      options: all,
      source: absoluteArgument('mount', device),
      target: directory,
    });
    const failure = commandFailure(await this.#run('mount', args, mountMs, signal));
    if (failure !== undefined) throw unusable(`mount failed: ${failure} (mount ${args.join(' ')})`);
  }

  async otherMounts(directory: string): Promise<readonly string[]> {
    const { place, mounts, own } = await mountedAt(directory);
    if (own === undefined) return [];
    return mounts
      .filter(({ device, root }) => device === own.device && root === own.root)
      .map(({ mountPoint }) => mountPoint)
      .filter((point) => point !== place);
  }

  async deviceAt(directory: string): Promise<string | undefined> {
    const { own } = await mountedAt(directory);
    // File systems without a block device have device numbers that sysfs does not list.
    const listed = own && (await realpath(`/sys/dev/block/${own.device}`).catch(() => undefined));
    return listed === undefined ? undefined : join('/dev', basename(listed).replaceAll('!', '/'));
  }

  /** The device is opened in a separate process, because an unresponsive disk blocks it. */
  async isHeld(device: string, signal: AbortSignal): Promise<boolean> {
    const { end } = await this.#run(process.execPath, ['-e', tryToHold, '--', device], probeMs, signal);
    return end.kind === 'exited' && end.code === heldCode;
  }

  /** Rejects when a disk cannot be read, because it may contain user data. */
  async #checkReadable(device: string, signal: AbortSignal): Promise<void> {
    const args = [`if=${device}`, 'of=/dev/null', `bs=${probedBytes}`, 'count=1'];
    const failure = commandFailure(await this.#run('dd', args, probeMs, signal));
    if (failure !== undefined) throw unusable(`${device} cannot be read: ${failure}`);
  }

  async #run(
    file: string,
    args: readonly string[],
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<CommandResult> {
    // The locale is fixed, because the output of programs is parsed.
    const env = { PATH: process.env['PATH'], LC_ALL: 'C' };
    try {
      return await runCommand({ file, args, env, clock: this.#clock, deadlineMs }, signal);
    } catch (error) {
      if (isKind(error, 'DeadlineExceeded')) throw unusable(`${file} ${args.join(' ')} did not end in time`);
      throw error;
    }
  }
}

/** Returns the mount at a directory from the mount table, without accessing the directory. */
async function mountedAt(directory: string) {
  const resolved = join(await realpath(dirname(directory)), basename(directory));
  const mounts = await readMountTable((path) => readFile(path, 'utf8'));
  return { place: resolved, mounts, own: mounts.findLast(({ mountPoint }) => mountPoint === resolved) };
}
