import { openSync } from 'node:fs';

/** The signature of a function of the C library. */
export interface LibcFunction {
  readonly arguments: readonly string[];
  readonly return: string;
}

type LibraryFunctions<Name extends string> = {
  readonly [name in Name]?: (...values: readonly unknown[]) => number;
};

/** The foreign function interface `node:ffi`, which not every version of Node.js has. */
interface ForeignFunctions {
  dlopen<Name extends string>(
    library: string,
    calls: Readonly<Record<Name, LibcFunction>>,
  ): { readonly functions: LibraryFunctions<Name> };
}

/**
 * Loads functions of the C library; an empty object if this Node.js or this C library lacks one of
 * them.
 */
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
 * Calls mount(2) and umount2(2) for file systems in memory: running the mount program would cost
 * more than all other work for such a volume. The calls return only whether they succeeded; to get
 * the reason of a failure, run the program.
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

/** UMOUNT_NOFOLLOW: the last path component is not followed if it is a symbolic link. */
const unmountNoFollow = 8;

/** Returns the mount system calls; undefined if this Node.js cannot call them. */
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

/** Whether the texts can be passed to the kernel, which reads a string only up to its first NUL. */
function haveNoNul(...texts: readonly string[]): boolean {
  return texts.every((text) => !text.includes('\0'));
}

function resultOf(value: number): SyscallResult {
  return value === 0 ? 'done' : 'failed';
}

/**
 * Returns whether a mount was added or removed since the last call. Much cheaper than reading the
 * mount table.
 */
export type MountWatch = () => 'changed' | 'same';

/** The layout of struct pollfd: the descriptor, the requested events, the returned events. */
const entryBytes = 8;
const eventsOffset = 4;
const returnedEventsOffset = 6;
const priority = 2;

/**
 * Creates a watch that polls the mount table of this process; undefined if Node.js cannot call
 * poll(2).
 */
export function mountWatch(): MountWatch | undefined {
  const { poll } = libcFunctions({ poll: { arguments: ['pointer', 'uint64', 'int32'], return: 'int32' } });
  if (poll === undefined) return undefined;
  const entry = Buffer.alloc(entryBytes);
  try {
    // The descriptor stays open for the life of the process: the kernel reports changes since the
    // last poll of this descriptor.
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
