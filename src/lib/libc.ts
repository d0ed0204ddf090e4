import { openSync } from 'node:fs';

/** How a function of the C library is called. */
export interface LibraryCall {
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
    calls: Readonly<Record<Name, LibraryCall>>,
  ): { readonly functions: LibraryFunctions<Name> };
}

/** Functions of the C library, as far as this Node can call them and this library has them: all, or none. */
export function libraryCalls<Name extends string>(
  calls: Readonly<Record<Name, LibraryCall>>,
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
export interface MountCalls {
  mount(kind: { readonly type: string; readonly device: string; readonly options: string }, at: string): Done;
  unmount(at: string): Done;
}

type Done = 'done' | 'failed';

/** The last step of the way is not followed if it has become a link. */
const unmountNoFollow = 8;

/** Undefined where Node cannot call them. */
export function mountCalls(): MountCalls | undefined {
  const { mount, umount2 } = libraryCalls({
    mount: { arguments: ['string', 'string', 'string', 'uint64', 'string'], return: 'int32' },
    umount2: { arguments: ['string', 'int32'], return: 'int32' },
  });
  if (mount === undefined || umount2 === undefined) return undefined;
  return {
    mount: ({ type, device, options }, at) =>
      isWhole(device, at, type, options) ? done(mount(device, at, type, 0n, options)) : 'failed',
    unmount: (at) => (isWhole(at) ? done(umount2(at, unmountNoFollow)) : 'failed'),
  };
}

/** The kernel takes a text only as far as its first NUL. */
function isWhole(...texts: readonly string[]): boolean {
  return texts.every((text) => !text.includes('\0'));
}

function done(answer: number): Done {
  return answer === 0 ? 'done' : 'failed';
}

/** Whether something was mounted or unmounted since this was asked last. It costs next to nothing, unlike the table. */
export type MountWatch = () => 'changed' | 'same';

/** The numbers of one file, what to look for, and what was found. */
const entryBytes = 8;
const wantedAt = 4;
const foundAt = 6;
const priority = 2;

/** The kernel's word on the mounts this process sees; undefined where Node cannot ask for it. */
export function mountWatch(): MountWatch | undefined {
  const { poll } = libraryCalls({ poll: { arguments: ['pointer', 'uint64', 'int32'], return: 'int32' } });
  if (poll === undefined) return undefined;
  const entry = Buffer.alloc(entryBytes);
  try {
    // Open as long as this process lives: the kernel compares with what it has told by it before.
    entry.writeInt32LE(openSync('/proc/self/mountinfo', 'r'));
  } catch {
    return undefined;
  }
  entry.writeInt16LE(priority, wantedAt);
  return () => {
    entry.writeInt16LE(0, foundAt);
    return poll(entry, 1n, 0) === 0 ? 'same' : 'changed';
  };
}
