import type { Random } from '../../src/lib/index.ts';

/** The operations of the simulated runtime that take time. */
export type LatencyStep =
  /** The transfer of a request to the runtime; `answer` is the transfer of its response. */
  | 'request'
  | 'answer'
  | 'sandbox-start'
  | 'sandbox-remove'
  | 'network-teardown'
  | 'container-create'
  | 'container-start'
  | 'container-remove'
  | 'exec-start'
  /**
   * The time from the exit of a process, which events report immediately, until the runtime's
   * statuses report it.
   */
  | 'exit-seen'
  /** The time from an event until its subscriber receives it. */
  | 'event';

/** Returns the duration of an operation in milliseconds. */
export type Latency = (step: LatencyStep, random: Random) => number;

type Range = readonly [minMs: number, maxMs: number];

/**
 * Durations measured on a real containerd and divided by about ten; what matters is that different
 * operations take different times.
 */
const typicalRanges: { readonly [Step in LatencyStep]: Range } = {
  request: [0.1, 1],
  answer: [0.1, 1],
  'sandbox-start': [5, 25],
  'sandbox-remove': [1, 6],
  'network-teardown': [1, 8],
  'container-create': [1, 4],
  'container-start': [4, 15],
  'container-remove': [0.5, 3],
  'exec-start': [2, 8],
  'exit-seen': [1, 20],
  event: [0.1, 3],
};

export const typicalLatency: Latency = (step, random) => {
  const [min, max] = typicalRanges[step];
  return min + random.next() * (max - min);
};

/** All operations take no time, but are still asynchronous. */
export const noLatency: Latency = () => 0;
