import { type ApiObject, apiResources, apiVersionOf } from '../../api/index.ts';
import type { Node, OwnerReference } from '../../kinds/index.ts';
import { annotations, type Pod } from '../../pods/index.ts';

/** What a node needs to be known by before it can own anything. */
export interface KnownNode {
  readonly name: string;
  readonly uid: string;
}

/** The node as an owner; undefined while the API has not named it, or when it is about to go. */
export function ownerNode(node: Node | undefined): KnownNode | undefined {
  const { name, uid, deletionTimestamp } = node?.metadata ?? {};
  if (name === undefined || uid === undefined || uid === '' || deletionTimestamp !== undefined)
    return undefined;
  return { name, uid };
}

/**
 * The shadow of a static pod in the API: the same pod, marked with the version of it that it shows and owned by the node
 * alone, as an API server demands of the pods a node makes.
 */
export function mirrorObject({ metadata, spec }: Pod, owner: KnownNode): ApiObject {
  const { name, namespace, labels, annotations: written = {} } = metadata;
  const { kind } = apiResources.pods;
  const mark = { [annotations.mirror]: written[annotations.hash] ?? '' };
  const made = {
    name,
    namespace,
    ...(labels !== undefined && { labels }),
    annotations: { ...written, ...mark },
    ownerReferences: [ownerReference(owner)],
  };
  return { apiVersion: apiVersionOf(apiResources.pods), kind, metadata: made, spec } as ApiObject;
}

function ownerReference({ name, uid }: KnownNode): OwnerReference {
  return { apiVersion: 'v1', kind: 'Node', name, uid, controller: true };
}
