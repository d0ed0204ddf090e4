import type { Node, NodeCondition } from '../kinds/index.ts';
import { sameJson } from '../pods/index.ts';

/** Whether the API server should hear of it: anything but the time of a sign of life. */
export function isNodeChanged(before: Node, after: Node): boolean {
  return !sameJson(reported(before), reported(after));
}

/** What is told of a node. What is empty is as good as left out; the order of conditions says nothing. */
function reported({ metadata, status = {} }: Node): unknown {
  const { conditions = [], ...others } = status;
  return pruned({
    labels: metadata?.labels,
    annotations: metadata?.annotations,
    others,
    conditions: conditions.map(withoutHeartbeat).toSorted((a, b) => (a.type < b.type ? -1 : 1)),
  });
}

function withoutHeartbeat({ lastHeartbeatTime: _, ...condition }: NodeCondition): NodeCondition {
  return condition;
}

function pruned(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value === '' ? undefined : value;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(pruned);
  const kept = Object.entries(value)
    .map(([key, part]) => [key, pruned(part)] as const)
    .filter(([, part]) => part !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
