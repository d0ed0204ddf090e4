import type { JsonObject } from '../api/index.ts';
import type { StoredObject } from './core/index.ts';

/** Marks that the binding of volumes leaves. */
const bindingMark = 'pv.kubernetes.io/';

/**
 * What a file says, with what the server itself has written into the object since: a file that is read again changes
 * nothing unless it says something else.
 */
export function updateFrom(wanted: JsonObject, before: StoredObject): JsonObject {
  const metadata = wanted['metadata'] as JsonObject;
  const { finalizers, annotations = {} } = before.metadata;
  const marks = Object.entries(annotations).filter(([name]) => name.startsWith(bindingMark));
  const spec = wanted['spec'] as JsonObject | undefined;
  return {
    ...wanted,
    metadata: {
      ...(finalizers === undefined ? {} : { finalizers }),
      ...metadata,
      annotations: { ...Object.fromEntries(marks), ...(metadata['annotations'] as JsonObject | undefined) },
    },
    ...(spec === undefined
      ? {}
      : { spec: { ...spec, ...bindingOf(spec, (before['spec'] ?? {}) as JsonObject) } }),
  };
}

/** Who is bound to whom, as long as the file does not name another one. */
function bindingOf(spec: JsonObject, before: JsonObject): JsonObject {
  const own = Object.entries(before).filter(
    ([name, value]) =>
      (name === 'claimRef' && isSameClaim(spec[name], value)) ||
      ((name === 'volumeName' || name === 'storageClassName') && spec[name] === undefined),
  );
  return Object.fromEntries(own);
}

function isSameClaim(wanted: unknown, bound: unknown): boolean {
  if (wanted === undefined) return true;
  const [one, other] = [wanted as JsonObject, bound as JsonObject];
  return one['name'] === other['name'] && one['namespace'] === other['namespace'];
}
