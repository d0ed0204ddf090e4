import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EvictionSignal, EvictionThreshold } from '../../config/index.ts';
import { EventFd } from './event-fd.ts';
import { amountOf, isMemory, type Observations } from './observations.ts';

/** By how much what is left may shrink before a threshold is crossed. */
export interface MemoryHeadroom {
  readonly signal: EvictionSignal;
  readonly bytes: number;
}

/** Somebody who tells when memory falls short between two looks. */
export interface MemoryThresholdNotifier extends Disposable {
  /** Set anew in place of what was set before; goes off once. */
  set(rooms: readonly MemoryHeadroom[], goesOff: () => void): Promise<void>;
}

/** What is crossed already has been told. */
export function memoryHeadrooms(
  thresholds: readonly EvictionThreshold[],
  observations: Observations,
): readonly MemoryHeadroom[] {
  return thresholds.flatMap(({ signal, value }) => {
    const left = isMemory(signal) ? observations.get(signal) : undefined;
    const bytes = left === undefined ? 0 : left.available - amountOf(value, left.capacity);
    return bytes > 0 ? [{ signal, bytes }] : [];
  });
}

/** A cgroup, by its directory in the tree of memory, and by how much it may grow. */
export interface MemoryGrowth {
  readonly directory: string;
  readonly bytes: number;
}

/** Tells when memory that is used grows; one call is in force at a time, until what it gave is disposed of. */
export type WatchMemory = (growths: readonly MemoryGrowth[], grown: () => void) => Disposable;

/**
 * By the kernel, which does so with cgroups v1. What it counts is all that is used, whether it could be had again or not:
 * it may tell too early, but not too late for more than what became of use since it was asked.
 */
export const watchMemory: WatchMemory = (growths, grown) => {
  const event = EventFd.open();
  if (event === undefined) throw new Error('This Node cannot be told of events by the kernel');
  try {
    for (const growth of growths) watchGrowth(event, growth);
  } catch (error) {
    event[Symbol.dispose]();
    throw error;
  }
  event.onEvent(grown);
  return event;
};

function watchGrowth({ fd }: EventFd, { directory, bytes }: MemoryGrowth): void {
  const path = join(directory, 'memory.usage_in_bytes');
  const usage = openSync(path, 'r');
  try {
    const level = Math.trunc(Number(readFileSync(path, 'latin1')) + bytes);
    writeFileSync(join(directory, 'cgroup.event_control'), `${fd} ${usage} ${level}`, { flag: 'r+' });
  } finally {
    closeSync(usage);
  }
}
