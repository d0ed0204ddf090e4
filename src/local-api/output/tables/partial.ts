import type { JsonObject } from '../../../api/index.ts';

/** Only what all objects have in common. */
export function partialOf({ metadata }: JsonObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: metadata ?? {} };
}

/** An object, or a list of them, cut down to metadata. */
export function asPartial(objectOrList: JsonObject): JsonObject {
  const { items, metadata } = objectOrList;
  if (!Array.isArray(items)) return partialOf(objectOrList);
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion: 'meta.k8s.io/v1',
    metadata: metadata ?? {},
    items: items.map((item: JsonObject) => partialOf(item)),
  };
}
