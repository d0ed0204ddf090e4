import { type Clock, libcFunctions } from '../../lib/index.ts';

export interface MemoryReclaimDeps {
  readonly clock: Clock;
  /** Returns the CPU time that the process has used so far. */
  readonly cpuMs: () => number;
  /** Collects all garbage and returns free memory to the system. It blocks the event loop. */
  readonly collect: () => void;
}

const sampleMs = 5_000;
/** The process counts as idle below this share of a CPU. */
const restingShare = 0.02;
/** The CPU time after which a collection is worthwhile; less work leaves too little garbage. */
const leastWorkMs = 500;
/**
 * The minimum ratio of work to the cost of a collection, so that collections take at most a
 * thirtieth of the CPU time.
 */
const workPerCost = 30;
/**
 * The minimum ratio of work to the cost of a collection after a long idle time. Collections may
 * then take a tenth of the CPU time, because unused memory would otherwise stay allocated for
 * hours.
 */
const workPerCostWhenIdle = 10;
const idleShare = 0.01;
const idleSamples = 6;
const minIntervalMs = 30_000;

/**
 * Collects garbage while the process is idle, so that its memory returns to the system; not while
 * it is busy, because rare collections keep it fast. Resolves when aborted.
 */
export async function reclaimMemory(
  { clock, cpuMs, collect }: MemoryReclaimDeps,
  signal: AbortSignal,
): Promise<void> {
  let tidiedMs = Number.NEGATIVE_INFINITY;
  let tidiedCpuMs = 0;
  let costMs = 0;
  let beforeMs = cpuMs();
  const samples = [beforeMs];
  for (;;) {
    try {
      await clock.sleep(sampleMs, signal);
    } catch {
      return;
    }
    const usedMs = cpuMs();
    const isResting = (usedMs - beforeMs) / sampleMs < restingShare;
    beforeMs = usedMs;
    // The CPU usage is averaged, so that work every ten seconds does not count as activity each
    // time.
    const longAgoMs = samples.push(usedMs) > idleSamples ? samples.shift() : undefined;
    const isIdle = longAgoMs !== undefined && (usedMs - longAgoMs) / (idleSamples * sampleMs) < idleShare;
    const nowMs = clock.monotonicMs();
    const perCost = isIdle ? workPerCostWhenIdle : workPerCost;
    const worthMs = Math.max(leastWorkMs, perCost * costMs);
    if (!isResting || usedMs - tidiedCpuMs < worthMs || nowMs - tidiedMs < minIntervalMs) continue;
    collect();
    tidiedMs = nowMs;
    tidiedCpuMs = beforeMs = cpuMs();
    costMs = tidiedCpuMs - usedMs;
  }
}

/**
 * Collects garbage if Node.js runs with --expose-gc, and calls malloc_trim, without which the C
 * library would keep some ten megabytes that were freed outside the heap.
 */
export function collectGarbage(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  libcFunctions({ malloc_trim: { arguments: ['uint64'], return: 'int32' } }).malloc_trim?.(0n);
}

export function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
