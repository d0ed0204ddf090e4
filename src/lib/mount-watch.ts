import { openSync } from 'node:fs';
import { libraryCalls } from './library-calls.ts';

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
