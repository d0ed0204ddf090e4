import { openSync } from 'node:fs';

/** The signature of a function of the C library. */
export interface LibcFunction {
  readonly arguments: readonly string[];
  readonly return: string;
}

type LibraryFunctions<Name extends string> = {
  readonly [name in Name]?: (...values: readonly unknown[]) => number;
};

/** The foreign function interface of Node.js; not every version has it. */
interface ForeignFunctions {
  dlopen<Name extends string>(
    library: string,
    calls: Readonly<Record<Name, LibcFunction>>,
  ): { readonly functions: LibraryFunctions<Name> };
}

/** Functions of the C library: all of them, or none if this Node.js or this library lacks one. */
export function libcFunctions<Name extends string>(
  calls: Readonly<Record<Name, LibcFunction>>,
): LibraryFunctions<Name> {
  try {
    const foreign = process.getBuiltinModule('node:ffi') as ForeignFunctions | undefined;
    return foreign?.dlopen('libc.so.6', calls).functions ?? {};
  } catch {
    return {};
  }
}

/**
 * mount(2) and umount2(2) for file systems in memory: running a program for each would cost more
 * than everything else for a volume. They return whether the call succeeded; to learn why not, run
 * the program.
 *
 * They block this process, so they must not be used where a mount may hang.
 */
export interface MountSyscalls {
  mount(
    kind: { readonly type: string; readonly device: string; readonly options: string },
    at: string,
  ): SyscallResult;
  unmount(at: string): SyscallResult;
}

type SyscallResult = 'done' | 'failed';

/** The last path component is not followed if it is a symbolic link. */
const unmountNoFollow = 8;

/** Undefined if Node.js cannot call them. */
export function mountSyscalls(): MountSyscalls | undefined {
  const { mount, umount2 } = libcFunctions({
    mount: { arguments: ['string', 'string', 'string', 'uint64', 'string'], return: 'int32' },
    umount2: { arguments: ['string', 'int32'], return: 'int32' },
  });
  if (mount === undefined || umount2 === undefined) return undefined;
  return {
    mount: ({ type, device, options }, at) =>
      haveNoNul(device, at, type, options) ? resultOf(mount(device, at, type, 0n, options)) : 'failed',
    unmount: (at) => (haveNoNul(at) ? resultOf(umount2(at, unmountNoFollow)) : 'failed'),
  };
}

/** The kernel reads a string up to its first NUL. */
function haveNoNul(...texts: readonly string[]): boolean {
  return texts.every((text) => !text.includes('\0'));
}

function resultOf(value: number): SyscallResult {
  return value === 0 ? 'done' : 'failed';
}

/**
 * Whether a mount was added or removed since the last call. Much cheaper than reading the mount
 * table.
 */
export type MountWatch = () => 'changed' | 'same';

/** struct pollfd: the descriptor, the requested events, the returned events. */
const entryBytes = 8;
const eventsOffset = 4;
const returnedEventsOffset = 6;
const priority = 2;

/** Polls the mount table of this process; undefined if Node.js cannot call poll(2). */
export function mountWatch(): MountWatch | undefined {
  const { poll } = libcFunctions({ poll: { arguments: ['pointer', 'uint64', 'int32'], return: 'int32' } });
  if (poll === undefined) return undefined;
  const entry = Buffer.alloc(entryBytes);
  try {
    // Open for the life of the process: the kernel compares with the last poll of this descriptor.
    entry.writeInt32LE(openSync('/proc/self/mountinfo', 'r'));
  } catch {
    return undefined;
  }
  entry.writeInt16LE(priority, eventsOffset);
  return () => {
    entry.writeInt16LE(0, returnedEventsOffset);
    return poll(entry, 1n, 0) === 0 ? 'same' : 'changed';
  };
}
