import { closeSync, readdirSync, readFileSync } from 'node:fs';
import { libcFunctions } from '../lib/index.ts';

type SetDescriptorFlags = (fd: number, command: number, flags: number) => number;

const closeOnExec = 0o2_000_000;
/** Constants of fcntl(2): the command F_SETFD and the flag FD_CLOEXEC. */
const setFlags = 2;
const closeOnExecFlag = 1;
const lastStandardStream = 2;

/**
 * Prevents inherited descriptors from reaching any program that this process starts: in a container
 * such a descriptor would allow an escape. Node.js already handles the first sixteen. If the C
 * library cannot be called, the others are closed, except those that an argument names, as a shell
 * does for `--config <(command)`.
 */
export function sealInheritedDescriptors(
  words: readonly string[],
  findFcntl: () => SetDescriptorFlags | undefined = systemFcntl,
): void {
  const inherited = descriptorsPassedOn();
  if (inherited.length === 0) return;
  const fcntl = findFcntl();
  for (const fd of inherited) {
    if (fcntl?.(fd, setFlags, closeOnExecFlag) === 0) continue;
    if (!words.some((word) => names(word, fd))) closeQuietly(fd);
  }
}

function systemFcntl(): SetDescriptorFlags | undefined {
  const fcntl = { arguments: ['int32', 'int32', 'int32'], return: 'int32' } as const;
  return libcFunctions({ fcntl }).fcntl;
}

function descriptorsPassedOn(): readonly number[] {
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((fd) => fd > lastStandardStream && isPassedOn(fd));
}

/**
 * Whether started programs inherit the descriptor. False for the descriptor with which the list of
 * descriptors was read, because it is closed by now.
 */
function isPassedOn(fd: number): boolean {
  try {
    const [, flags = ''] = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')) ?? [];
    return (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    return false;
  }
}

function names(word: string, fd: number): boolean {
  return word.endsWith(`/dev/fd/${fd}`) || word.endsWith(`/proc/self/fd/${fd}`);
}

function closeQuietly(fd: number): void {
  try {
    closeSync(fd);
  } catch {
    // The descriptor is closed already.
  }
}
