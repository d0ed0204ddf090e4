import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EvictionSignal, EvictionThreshold } from '../../config/index.ts';
import { EventFd } from './event-fd.ts';
import { amountOf, isMemory, type Observations } from './observations.ts';

/** The margin of available memory above a threshold. */
export interface MemoryHeadroom {
  readonly signal: EvictionSignal;
  readonly bytes: number;
}

/** Notifies when available memory falls below a threshold between two evaluations. */
export interface MemoryThresholdNotifier extends Disposable {
  /** Watches the given thresholds instead of the previous ones; calls `goesOff` once. */
  set(rooms: readonly MemoryHeadroom[], goesOff: () => void): Promise<void>;
}

/**
 * Returns the margin above each memory threshold; a threshold that is already met is omitted,
 * because it needs no notification.
 */
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

/** The directory of a cgroup in the memory tree, and the growth of its usage to watch for. */
export interface MemoryGrowth {
  readonly directory: string;
  readonly bytes: number;
}

/**
 * Notifies when the memory usage of a cgroup grows. Only one watch is active at a time, until its
 * result is disposed.
 */
export type WatchMemory = (growths: readonly MemoryGrowth[], grown: () => void) => Disposable;

/**
 * Watches with the usage notifications of cgroups v1. They count all memory including reclaimable
 * cache, so they may fire too early, but never too late.
 */
export const watchMemory: WatchMemory = (growths, grown) => {
  const event = EventFd.open();
  if (event === undefined) throw new Error('Node.js cannot receive memory notifications of the kernel');
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
