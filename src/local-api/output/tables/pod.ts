import type { JsonObject } from '../../../api/index.ts';
import type { Pod } from '../../../kinds/index.ts';
import type { StoredObject } from '../../core/index.ts';
import { ageOf } from './age.ts';
import { ageColumn, type Cell, column, nameColumn, orNone, type Printer, wide } from './column.ts';
import { podSummary } from './pod-summary.ts';

export const podPrinter: Printer = {
  columns: [
    nameColumn,
    column('Ready', 'How many of its containers take traffic, of how many.'),
    column('Status', 'Where the pod stands, told by what holds it up most.'),
    column('Restarts', 'How often its containers were started anew, and when that last happened.'),
    ageColumn,
    wide('IP', 'The first address of the pod.'),
    wide('Node', 'The node the pod is bound to.'),
    wide('Nominated Node', 'A node on which room is being made for the pod.'),
    wide(
      'Readiness Gates',
      'How many conditions the pod waits for besides its containers hold, of how many.',
    ),
  ],
  cells: (object, nowMs) => podCells(object, nowMs),
  conditions: ({ status }) => completion(status?.['phase']),
};

function podCells(object: StoredObject, nowMs: number): readonly Cell[] {
  const pod = object as unknown as Pod;
  const { ready, total, status, restarts, lastRestart } = podSummary(pod);
  const when = restarts === 0 || lastRestart === undefined ? '' : ` (${ageOf(lastRestart, nowMs)} ago)`;
  return [
    object.metadata.name,
    `${ready}/${total}`,
    status,
    `${restarts}${when}`,
    ageOf(object.metadata.creationTimestamp, nowMs),
    orNone(pod.status?.podIPs?.[0]?.ip),
    orNone(pod.spec?.nodeName),
    orNone(pod.status?.nominatedNodeName),
    gatesOf(pod),
  ];
}

function gatesOf({ spec, status }: Pod): string {
  const gates = spec?.readinessGates ?? [];
  if (gates.length === 0) return '<none>';
  const open = gates.filter(({ conditionType }) => {
    const condition = status?.conditions?.find(({ type }) => type === conditionType);
    return condition?.status === 'True';
  });
  return `${open.length}/${gates.length}`;
}

function completion(phase: unknown): readonly JsonObject[] | undefined {
  if (phase !== 'Succeeded' && phase !== 'Failed') return undefined;
  const message = phase === 'Succeeded' ? 'The pod has completed successfully.' : 'The pod failed.';
  return [{ type: 'Completed', status: 'True', reason: phase, message }];
}
