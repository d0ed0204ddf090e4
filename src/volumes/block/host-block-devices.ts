import { lstat, mkdir, open, readFile, realpath, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  absoluteArgument,
  type Clock,
  type CommandResult,
  describeError,
  errnoOf,
  KubelingError,
  loopDevicesOf,
  mountArguments,
  readMountTable,
  runCommand,
  umountArguments,
} from '../../lib/index.ts';
import { removalBlocked } from '../files/remove-volumes.ts';
import { commandFailure } from '../manager/mount-options.ts';
import { unusable } from '../projected/payload.ts';
import type { BlockDevices } from './block-volumes.ts';

const directoryMode = 0o750;
const fileMode = 0o640;
const programMs = 30_000;
/** Unit of device sizes in sysfs. */
const sectorBytes = 512;

/** Block device operations of this machine, with the programs `mount`, `umount` and `losetup`. */
export class HostBlockDevices implements BlockDevices {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async find(path: string): Promise<string | undefined> {
    try {
      return (await stat(path)).isBlockDevice() ? await realpath(path) : undefined;
    } catch (error) {
      if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '')) return undefined;
      throw new KubelingError('FILE_READ', `Cannot read ${path}: ${describeError(error)}`, { cause: error });
    }
  }

  async sizeOf(path: string): Promise<number | undefined> {
    const facts = await stat(path).catch(unlessMissing);
    if (facts?.isBlockDevice() !== true) return undefined;
    // The size is read from sysfs, because opening a failed device may block.
    const sectors = await readFile(`/sys/dev/block/${numberOf(facts.rdev)}/size`, 'utf8').catch(
      unlessMissing,
    );
    return sectors === undefined ? undefined : Number(sectors) * sectorBytes;
  }

  async bind(device: string, file: string, signal: AbortSignal): Promise<void> {
    await mkdir(dirname(file), { recursive: true, mode: directoryMode });
    if (await this.#shows(device, file)) return;
    if (await isMounted(file)) throw unusable(`${file} is a mount point of something else`);
    const handle = await open(file, 'wx', fileMode).catch((error) => {
      if (errnoOf(error) !== 'EEXIST') throw error;
    });
    await handle?.close();
    const source = absoluteArgument('mount', device);
    const args = mountArguments({ options: ['bind'], source, target: file });
    const failure = commandFailure(await this.#run('mount', args, signal));
    if (failure !== undefined) throw unusable(`mount failed: ${failure}`);
  }

  async unbind(file: string, signal: AbortSignal): Promise<'done' | 'busy'> {
    if (await isMounted(file)) {
      const failure = commandFailure(await this.#run('umount', umountArguments([], file), signal));
      if (failure?.includes('busy') === true) return 'busy';
      if (failure !== undefined && !failure.includes('not mounted'))
        throw removalBlocked([`unmount failed: ${failure}`]);
    }
    const facts = await lstat(file).catch(unlessMissing);
    if (facts === undefined) return 'done';
    if (!facts.isFile() || facts.size > 0) throw removalBlocked([`${file} was not put there by this node`]);
    await unlink(file);
    return 'done';
  }

  async pin(file: string, signal: AbortSignal): Promise<void> {
    if ((await pinsOf(file)).length > 0) return;
    const args = ['-f', '--', absoluteArgument('losetup', file)];
    const failure = commandFailure(await this.#run('losetup', args, signal));
    if (failure !== undefined) throw unusable(`losetup -f ${file} failed: ${failure}`);
  }

  async unpin(file: string, signal: AbortSignal): Promise<void> {
    for (const loop of await pinsOf(file)) {
      const failure = commandFailure(await this.#run('losetup', ['-d', loop], signal));
      if (failure !== undefined) throw removalBlocked([`losetup -d ${loop} failed: ${failure}`]);
    }
  }

  async #shows(device: string, file: string): Promise<boolean> {
    if (!(await isMounted(file))) return false;
    const [desired, found] = await Promise.all([stat(device), stat(file)]);
    return found.isBlockDevice() && found.rdev === desired.rdev;
  }

  async #run(file: string, args: readonly string[], signal: AbortSignal): Promise<CommandResult> {
    // The locale is fixed, because the output of programs is parsed.
    const env = { PATH: process.env['PATH'], LC_ALL: 'C' };
    return await runCommand({ file, args, env, clock: this.#clock, deadlineMs: programMs }, signal);
  }
}

/** Resolves symbolic links, because the kernel reports mount points with all links resolved. */
async function canonical(file: string): Promise<string | undefined> {
  const directory = await realpath(dirname(file)).catch(unlessMissing);
  return directory === undefined ? undefined : join(directory, basename(file));
}

async function isMounted(file: string): Promise<boolean> {
  const resolved = await canonical(file);
  const mounts = await readMountTable((path) => readFile(path, 'utf8'));
  return mounts.some(({ mountPoint }) => mountPoint === resolved);
}

/** Returns the loop devices that are attached to the file. */
async function pinsOf(file: string): Promise<readonly string[]> {
  const resolved = await canonical(file);
  return resolved === undefined ? [] : await loopDevicesOf(resolved);
}

/** Formats a device number as `major:minor`, like the kernel. */
function numberOf(rdev: number): string {
  const [low, high] = [rdev % 2 ** 32, Math.floor(rdev / 2 ** 32)];
  const minor = (low & 0xff) | ((low >>> 12) & 0xfff00);
  const major = ((low >>> 8) & 0xfff) | (high & ~0xfff);
  return `${major}:${minor}`;
}

function unlessMissing(error: unknown): undefined {
  if (errnoOf(error) !== 'ENOENT') throw error;
}
