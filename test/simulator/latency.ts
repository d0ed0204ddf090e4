import type { Random } from '../../src/lib/index.ts';

/** What the runtime spends time on. */
export type LatencyStep =
  /** A request on its way to the runtime, and its answer on the way back. */
  | 'request'
  | 'answer'
  | 'sandbox-start'
  | 'sandbox-remove'
  | 'network-teardown'
  | 'container-create'
  | 'container-start'
  | 'container-remove'
  | 'exec-start'
  /** From a process's end, which events tell at once, until the runtime's answers tell it too. */
  | 'exit-seen'
  /** From an event until its subscriber has it. */
  | 'event';

/** How many milliseconds a step takes this time. */
export type Latency = (step: LatencyStep, random: Random) => number;

type Range = readonly [minMs: number, maxMs: number];

/** Seen on a real containerd, about ten times faster; what matters is that everything takes some time of its own. */
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

/** Nothing takes time, but everything still takes its turn. */
export const noLatency: Latency = () => 0;
