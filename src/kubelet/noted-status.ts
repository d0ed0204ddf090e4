import type { PodCondition, PodStatus } from '../kinds/index.ts';
import { isTerminalPhase } from '../pods/index.ts';

export type NotedCondition = Pick<PodCondition, 'type' | 'status' | 'lastTransitionTime'>;

/** What a static pod keeps of its status: nobody else remembers it. With a phase it has ended for good. */
export interface NotedStatus {
  readonly startTime: string;
  readonly phase?: string | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly conditions: readonly NotedCondition[];
}

/** Others are written by others, or ask for something to be done. */
const notedConditions: ReadonlySet<string> = new Set([
  'PodScheduled',
  'PodReadyToStartContainers',
  'Initialized',
  'ContainersReady',
  'Ready',
]);

/** undefined for a pod that has not started. Of one that goes on, what is not true yet will change without a note. */
export function notedStatus(status: PodStatus): NotedStatus | undefined {
  const { startTime, phase, reason, message, conditions = [] } = status;
  if (startTime === undefined) return undefined;
  const isOver = isTerminalPhase(phase);
  return {
    startTime,
    ...(isOver && { phase, reason, message }),
    conditions: conditions
      .filter((one) => notedConditions.has(one.type) && (isOver || one.status === 'True'))
      .map(({ type, status: is, lastTransitionTime }) => ({ type, status: is, lastTransitionTime })),
  };
}

export function isNotedStatus(value: unknown): value is NotedStatus {
  if (!isRecord(value) || !isTime(value['startTime'])) return false;
  const { phase, reason, message, conditions } = value;
  if (phase !== undefined && phase !== 'Succeeded' && phase !== 'Failed') return false;
  if (![reason, message].every((text) => text === undefined || typeof text === 'string')) return false;
  return Array.isArray(conditions) && conditions.every(isNotedCondition);
}

function isNotedCondition(value: unknown): boolean {
  if (!isRecord(value) || typeof value['type'] !== 'string') return false;
  const { type, status, lastTransitionTime } = value;
  return notedConditions.has(type) && typeof status === 'string' && isTime(lastTransitionTime);
}

function isTime(value: unknown): boolean {
  return typeof value === 'string' && !Number.isNaN(Date.parse(value));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
