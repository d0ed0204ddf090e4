import type { Node, NodeCondition } from '../kinds/index.ts';
import type { NodeEventInput, NodePressure } from './inputs.ts';

export interface ConditionFacts {
  readonly nodeName: string;
  /** The current time in the API's format. */
  readonly now: string;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly pressures: ReadonlySet<NodePressure>;
  /** The capacity of the node by resource name. */
  readonly capacity: Readonly<Record<string, string>>;
  /** The names of resources that the capacity must include. */
  readonly requiredCapacity: readonly string[];
}

export interface ConditionOutcome {
  readonly conditions: readonly NodeCondition[];
  readonly events: readonly NodeEventInput[];
}

type ConditionState = Pick<NodeCondition, 'status' | 'reason' | 'message'> & { readonly event: string };

interface ConditionText {
  readonly reason: string;
  readonly message: string;
  readonly event: string;
}

function conditionText(reason: string, message: string): ConditionText {
  return { reason: `KubeletHas${reason}`, message: `kubelet has ${message}`, event: `NodeHas${reason}` };
}

const pressureTable: readonly {
  readonly type: string;
  readonly pressure: NodePressure;
  readonly present: ConditionText;
  readonly absent: ConditionText;
}[] = [
  {
    type: 'MemoryPressure',
    pressure: 'memory',
    present: conditionText('InsufficientMemory', 'insufficient memory available'),
    absent: conditionText('SufficientMemory', 'sufficient memory available'),
  },
  {
    type: 'DiskPressure',
    pressure: 'disk',
    present: conditionText('DiskPressure', 'disk pressure'),
    absent: conditionText('NoDiskPressure', 'no disk pressure'),
  },
  {
    type: 'PIDPressure',
    pressure: 'pid',
    present: conditionText('InsufficientPID', 'insufficient PID available'),
    absent: conditionText('SufficientPID', 'sufficient PID available'),
  },
];

/**
 * Sets the kubelet's node conditions; those of other owners are kept. A new Ready condition is the
 * last one, as some clients expect.
 */
export function nodeConditions(before: readonly NodeCondition[], facts: ConditionFacts): ConditionOutcome {
  const states = new Map<string, ConditionState>([
    ...pressureTable.map(({ type, pressure, present, absent }) => {
      const isShort = facts.pressures.has(pressure);
      const state = { status: isShort ? 'True' : 'False', ...(isShort ? present : absent) };
      return [type, state] as const;
    }),
    ['Ready', readyState(facts)],
  ]);
  const known = new Map(before.map((condition) => [condition.type, condition]));
  const missing = [...states.keys()].filter((type) => !known.has(type));
  const conditions = [...known.keys(), ...missing].flatMap((type) =>
    withState(type, known.get(type), states.get(type), facts.now),
  );
  const events = [...states].flatMap(([type, state]) => flip(type, known.get(type), state, facts));
  return { conditions: readyLast(conditions), events };
}

function withState(
  type: string,
  before: NodeCondition | undefined,
  state: ConditionState | undefined,
  now: string,
): NodeCondition[] {
  if (state === undefined) return before === undefined ? [] : [before];
  const { event: _, ...shown } = state;
  const lastTransitionTime = before?.status === state.status ? (before.lastTransitionTime ?? now) : now;
  return [{ type, ...shown, lastHeartbeatTime: now, lastTransitionTime }];
}

function readyLast(conditions: readonly NodeCondition[]): readonly NodeCondition[] {
  const isReady = ({ type }: NodeCondition) => type === 'Ready';
  return [...conditions.filter((item) => !isReady(item)), ...conditions.filter(isReady)];
}

function readyState(facts: ConditionFacts): ConditionState {
  const missing = facts.requiredCapacity.filter((name) => !Object.hasOwn(facts.capacity, name));
  const problems = [
    ...new Set(facts.problems),
    ...(missing.length === 0 ? [] : [`missing node capacity for resources: ${missing.join(', ')}`]),
  ];
  const isReady = problems.length === 0;
  const text = isReady ? 'kubelet is posting ready status' : joined(problems);
  return {
    status: isReady ? 'True' : 'False',
    reason: isReady ? 'KubeletReady' : 'KubeletNotReady',
    message: facts.warnings.length === 0 ? text : `${text}. WARNING: ${joined(facts.warnings)}`,
    event: isReady ? 'NodeReady' : 'NodeNotReady',
  };
}

function joined(texts: readonly string[]): string {
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}

/** The first Ready condition of a node is not a transition, so it causes no event. */
function flip(
  type: string,
  before: NodeCondition | undefined,
  state: ConditionState,
  { nodeName }: ConditionFacts,
): NodeEventInput[] {
  if (before?.status === state.status || (type === 'Ready' && before === undefined)) return [];
  return [statusEvent(nodeName, state.event)];
}

export function statusEvent(nodeName: string, reason: string): NodeEventInput {
  return { type: 'Normal', reason, message: `Node ${nodeName} status is now: ${reason}` };
}

export function isReady(node: Node): boolean {
  return node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}
