import type { Random } from '../../src/lib/index.ts';

/** The operations on which the runtime spends time. */
export type LatencyStep =
  /** A request on its way to the runtime, and its response on the way back. */
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
   * From the exit of a process, which events report immediately, until the runtime's statuses
   * report it too.
   */
  | 'exit-seen'
  /** From an event until its subscriber receives it. */
  | 'event';

/** The duration of a step in milliseconds. */
export type Latency = (step: LatencyStep, random: Random) => number;

type Range = readonly [minMs: number, maxMs: number];

/**
 * Measured on a real containerd, divided by about ten; it only matters that every step takes a
 * different time.
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

/** No step takes time, but every step is still asynchronous. */
export const noLatency: Latency = () => 0;
