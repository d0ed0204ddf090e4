import { closeSync, constants, openSync, readSync } from 'node:fs';
import { errnoOf } from '../../lib/index.ts';

/** Reads the kernel log (/dev/kmsg) record by record from the oldest one. */
export interface KernelLog {
  /** Opens the kernel log; without permission it fails like the functions of `node:fs`. */
  open(): KernelLogReader;
}

export interface KernelLogReader extends Disposable {
  /** Returns the next raw record; undefined if there is no new record. Never blocks. */
  next(): string | undefined;
}

/** The maximum length of a kernel log record. */
const recordBytes = 8_192;

/** Opened as non-blocking: a blocking read would occupy a thread of the libuv pool. */
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
      // EPIPE: the kernel has overwritten records that were not read yet; the next read continues
      // after the gap.
      if (errnoOf(error) !== 'EPIPE') throw error;
    }
  }
}

export interface KernelRecord {
  /** The number of the record since boot; numbers have no gaps. */
  readonly sequence: number;
  readonly from: 'kernel' | 'others';
  readonly message: string;
}

/** Parses a raw record; undefined for continuation lines. */
export function parseRecord(text: string): KernelRecord | undefined {
  const parts = /^(\d+),(\d+),\d+,[^;]*;(.*)/.exec(text);
  if (parts === null) return undefined;
  const [, priority, sequence, message = ''] = parts;
  // The lowest three bits are the severity, the others the facility. Only the kernel can write
  // facility 0; user space can write all other facilities.
  return { sequence: Number(sequence), from: Number(priority) < 8 ? 'kernel' : 'others', message };
}
