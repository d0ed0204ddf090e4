import type { ContainerState, PodSandboxState } from '../../src/cri/index.ts';

/**
 * Rules of a container runtime that can be violated on purpose, one at a time, to show that a test
 * suite notices. The rest of the simulator does not depend on mutations.
 */
export type SimulatorMutation =
  | 'exit-code-lost'
  | 'finished-before-started'
  | 'state-filter-ignored'
  | 'label-filter-matches-any'
  | 'stop-missing-fails'
  | 'stop-exited-fails'
  | 'remove-missing-fails'
  | 'remove-running-refused'
  | 'name-not-reserved'
  | 'start-twice-allowed'
  | 'exec-timeout-answers'
  | 'log-stream-mixed-up'
  | 'events-silent';

type Labels = Readonly<Record<string, string>>;

/** The decisions of the runtime that a mutation can change. */
export interface Rules {
  exitCode(code: number): number;
  finishedAt(finished: bigint, started: bigint): bigint;
  stateMatches<State extends ContainerState | PodSandboxState>(expected: State, actual: State): boolean;
  labelsMatch(selector: Labels, labels: Labels): boolean;
  /**
   * Whether stopping or removing a missing container fails even if the simulated containerd version
   * allows it.
   */
  readonly missingFails: 'never' | 'on-stop' | 'on-remove';
  readonly stopOfExited: 'succeeds' | 'fails';
  readonly removeOfRunning: 'kills' | 'fails';
  readonly names: 'reserved' | 'free';
  readonly startOfStarted: 'fails' | 'succeeds';
  /** The result of a command that exceeded its timeout. */
  readonly execTimeout: 'fails' | 'answers';
  logStream(stream: 'stdout' | 'stderr'): 'stdout' | 'stderr';
  readonly events: 'sent' | 'silent';
}

export const healthyRules: Rules = {
  exitCode: (code) => code,
  finishedAt: (finished) => finished,
  stateMatches: (expected, actual) => expected === actual,
  labelsMatch(selector, labels) {
    for (const key in selector) if (labels[key] !== selector[key]) return false;
    return true;
  },
  missingFails: 'never',
  stopOfExited: 'succeeds',
  removeOfRunning: 'kills',
  names: 'reserved',
  startOfStarted: 'fails',
  execTimeout: 'fails',
  logStream: (stream) => stream,
  events: 'sent',
};

const broken: { readonly [Mutation in SimulatorMutation]: Partial<Rules> } = {
  'exit-code-lost': { exitCode: () => 0 },
  'finished-before-started': { finishedAt: (_finished, started) => started - 1n },
  'state-filter-ignored': { stateMatches: () => true },
  'label-filter-matches-any': {
    labelsMatch: (selector, labels) =>
      Object.keys(selector).length === 0 ||
      Object.entries(selector).some(([key, value]) => labels[key] === value),
  },
  'stop-missing-fails': { missingFails: 'on-stop' },
  'stop-exited-fails': { stopOfExited: 'fails' },
  'remove-missing-fails': { missingFails: 'on-remove' },
  'remove-running-refused': { removeOfRunning: 'fails' },
  'name-not-reserved': { names: 'free' },
  'start-twice-allowed': { startOfStarted: 'succeeds' },
  'exec-timeout-answers': { execTimeout: 'answers' },
  'log-stream-mixed-up': { logStream: (stream) => (stream === 'stdout' ? 'stderr' : 'stdout') },
  'events-silent': { events: 'silent' },
};

export const simulatorMutations = Object.keys(broken) as readonly SimulatorMutation[];

export function rulesWith(mutation: SimulatorMutation | undefined): Rules {
  return mutation === undefined ? healthyRules : { ...healthyRules, ...broken[mutation] };
}
