import { closeSync, constants, openSync, readSync } from 'node:fs';
import { errnoOf } from '../../lib/index.ts';

/** The kernel log, read record by record from the oldest one. */
export interface KernelLog {
  /** Fails like `node:fs` without permission. */
  open(): KernelLogReader;
}

export interface KernelLogReader extends Disposable {
  /** Returns the next raw record; undefined if there is none. Never blocks. */
  next(): string | undefined;
}

/** The maximum length of a record. */
const recordBytes = 8_192;

/** Non-blocking: a blocking read would occupy a thread of the libuv pool. */
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
      // Older records were overwritten before they were read; the next read continues after the
      // gap.
      if (errnoOf(error) !== 'EPIPE') throw error;
    }
  }
}

export interface KernelRecord {
  /** Counted since boot, without gaps. */
  readonly sequence: number;
  readonly from: 'kernel' | 'others';
  readonly message: string;
}

/** Undefined for continuation lines. */
export function parseRecord(text: string): KernelRecord | undefined {
  const parts = /^(\d+),(\d+),\d+,[^;]*;(.*)/.exec(text);
  if (parts === null) return undefined;
  const [, priority, sequence, message = ''] = parts;
  // The lowest three bits are the severity, the others the facility; user space can write any
  // facility but the kernel's.
  return { sequence: Number(sequence), from: Number(priority) < 8 ? 'kernel' : 'others', message };
}
