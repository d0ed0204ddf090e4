import type { Node, PodStatus } from '../../kinds/index.ts';
import type { Patch } from '../client/client.ts';
import type { PatchSchema } from './schema.ts';
import { strategicDiff } from './strategic-diff.ts';

export interface PodStatusChange {
  /** The patch is refused when the pod of that name has become another one. */
  readonly uid: string;
  readonly before: PodStatus;
  readonly after: PodStatus;
}

/** For `pods/<name>/status`; undefined when there is nothing to say. */
export function podStatusPatch(
  schema: PatchSchema,
  { uid, before, after }: PodStatusChange,
): Patch | undefined {
  const status = strategicDiff(schema, 'PodStatus', before, after);
  return status && { kind: 'strategic', body: { metadata: { uid }, status } };
}

/** For `nodes/<name>/status`, which takes labels and annotations along; undefined when there is nothing to say. */
export function nodeStatusPatch(schema: PatchSchema, before: Node, after: Node): Patch | undefined {
  const body = strategicDiff(schema, 'Node', patchable(before), patchable(after));
  return body && { kind: 'strategic', body };
}

function patchable({ metadata, status }: Node): Node {
  const { labels, annotations } = metadata ?? {};
  return { metadata: { labels: labels ?? {}, annotations: annotations ?? {} }, status: status ?? {} };
}
