import { closeSync, constants, openSync, readSync } from 'node:fs';
import { errnoOf } from '../../lib/index.ts';

/** The kernel's log as it can be read: record by record, from the oldest one it still has. */
export interface KernelLog {
  /** Fails as `node:fs` does when nobody may read it. */
  open(): KernelLogReader;
}

export interface KernelLogReader extends Disposable {
  /** The next record as the kernel spells it; undefined when there is none for now. Never waits. */
  next(): string | undefined;
}

/** No record is longer. */
const recordBytes = 8_192;

/**
 * Read without waiting: a read that waits would hold one of the few threads that all of the process's files share, or a
 * thread or a process of its own for nothing but that.
 */
export function hostKernelLog(path = '/dev/kmsg'): KernelLog {
  return {
    open() {
      const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
      const buffer = Buffer.alloc(recordBytes);
      return {
        next: () => readRecord(file, buffer),
        [Symbol.dispose]: () => closeSync(file),
      };
    },
  };
}

function readRecord(file: number, buffer: Buffer): string | undefined {
  for (;;) {
    try {
      const length = readSync(file, buffer);
      return length === 0 ? undefined : buffer.toString('utf8', 0, length);
    } catch (error) {
      if (errnoOf(error) === 'EAGAIN') return undefined;
      // Older records had to make room before we had read them; the next read goes on behind the gap.
      if (errnoOf(error) !== 'EPIPE') throw error;
    }
  }
}

export interface KernelRecord {
  /** Counted since the machine started, without gaps. */
  readonly sequence: number;
  readonly from: 'kernel' | 'others';
  readonly message: string;
}

/** Undefined for what is none, such as the further lines of one. */
export function parseRecord(text: string): KernelRecord | undefined {
  const parts = /^(\d+),(\d+),\d+,[^;]*;(.*)/.exec(text);
  if (parts === null) return undefined;
  const [, priority, sequence, message = ''] = parts;
  // The lowest three bits tell how grave it is, the others who said it; whoever may write there can say anything.
  return { sequence: Number(sequence), from: Number(priority) < 8 ? 'kernel' : 'others', message };
}
