import { openSync } from 'node:fs';

/** How a function of the C library is called. */
export interface LibcFunction {
  readonly arguments: readonly string[];
  readonly return: string;
}

type LibraryFunctions<Name extends string> = {
  readonly [name in Name]?: (...values: readonly unknown[]) => number;
};

/** Node's way to functions of the C library; not every Node has it. */
interface ForeignFunctions {
  dlopen<Name extends string>(
    library: string,
    calls: Readonly<Record<Name, LibcFunction>>,
  ): { readonly functions: LibraryFunctions<Name> };
}

/** Functions of the C library, as far as this Node can call them and this library has them: all, or none. */
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
 * The kernel's own calls, for file systems that live in memory: to run a program for each would cost more than all else
 * that is done for a volume. Each answers whether it was done; why not, the program that does the same can say.
 *
 * They stop this process until they are done, so never to be used where something that may hang is mounted.
 */
export interface MountSyscalls {
  mount(
    kind: { readonly type: string; readonly device: string; readonly options: string },
    at: string,
  ): SyscallResult;
  unmount(at: string): SyscallResult;
}

type SyscallResult = 'done' | 'failed';

/** The last step of the way is not followed if it has become a link. */
const unmountNoFollow = 8;

/** Undefined where Node cannot call them. */
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

/** The kernel takes a text only as far as its first NUL. */
function haveNoNul(...texts: readonly string[]): boolean {
  return texts.every((text) => !text.includes('\0'));
}

function resultOf(answer: number): SyscallResult {
  return answer === 0 ? 'done' : 'failed';
}

/** Whether something was mounted or unmounted since this was asked last. It costs next to nothing, unlike the table. */
export type MountWatch = () => 'changed' | 'same';

/** The numbers of one file, what to look for, and what was found. */
const entryBytes = 8;
const eventsOffset = 4;
const returnedEventsOffset = 6;
const priority = 2;

/** The kernel's word on the mounts this process sees; undefined where Node cannot ask for it. */
export function mountWatch(): MountWatch | undefined {
  const { poll } = libcFunctions({ poll: { arguments: ['pointer', 'uint64', 'int32'], return: 'int32' } });
  if (poll === undefined) return undefined;
  const entry = Buffer.alloc(entryBytes);
  try {
    // Open as long as this process lives: the kernel compares with what it has told by it before.
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
