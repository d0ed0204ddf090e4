import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { errnoOf } from './errors.ts';
import { libcFunctions } from './libc.ts';
import { noFollowFlags } from './open-path.ts';

/** FS_IOC_GETFLAGS and FS_IOC_SETFLAGS of 64-bit Linux. */
const getFlags = 0x80086601n;
const setFlags = 0x40086602n;
/** FS_IMMUTABLE_FL and FS_APPEND_FL. */
const deleteProtection = 0x30;
const flagsBytes = 8;

const ioctlOfLibc = () =>
  libcFunctions({ ioctl: { arguments: ['int32', 'uint64', 'pointer'], return: 'int32' } }).ioctl;
let ioctl: ReturnType<typeof ioctlOfLibc> | 'not-loaded' = 'not-loaded';

/**
 * Deletes or renames, and tries again after clearing the flags immutable and append-only of the paths that are involved: the
 * entry and the directories it is in. A container with CAP_LINUX_IMMUTABLE can set them, and then not even root can delete
 * the file. Without a way to call ioctl the first error is thrown.
 */
export async function clearingInodeFlags<T>(
  act: () => T | Promise<T>,
  paths: readonly (string | Buffer)[],
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!isProtectionError(error)) throw error;
    let cleared = 0;
    for (const path of paths) if (await clearFlags(path)) cleared++;
    if (cleared === 0) throw error;
    return await act();
  }
}

export function isProtectionError(error: unknown): boolean {
  return ['EPERM', 'EACCES'].includes(errnoOf(error) ?? '');
}

/** Whether a flag was set and is cleared. Only regular files and directories have flags: opening a device may change it. */
async function clearFlags(path: string | Buffer): Promise<boolean> {
  if (ioctl === 'not-loaded') ioctl = ioctlOfLibc();
  if (ioctl === undefined) return false;
  try {
    await using held = await open(path, noFollowFlags);
    const facts = await held.stat();
    if (!facts.isFile() && !facts.isDirectory()) return false;
    await using file = await open(`/proc/self/fd/${held.fd}`, constants.O_RDONLY | constants.O_NONBLOCK);
    const flags = Buffer.alloc(flagsBytes);
    if (ioctl(file.fd, getFlags, flags) !== 0) return false;
    const found = flags.readUInt32LE();
    if ((found & deleteProtection) === 0) return false;
    flags.writeUInt32LE((found & ~deleteProtection) >>> 0);
    return ioctl(file.fd, setFlags, flags) === 0;
  } catch {
    return false;
  }
}
