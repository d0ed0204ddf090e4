import { type JsonObject, sameValue } from '../../api/index.ts';
import type { FieldCause, StoredObject } from '../core/index.ts';
import { forbiddenField } from './causes.ts';
import { changedPaths } from './changed-paths.ts';
import { isMirror, typed } from './pod-object.ts';

const field = 'spec.ephemeralContainers';

/** They only ever get more. */
export function ephemeralCauses(before: StoredObject, after: StoredObject): readonly FieldCause[] {
  const next = new Map((typed(after).spec.ephemeralContainers ?? []).map((one) => [one.name, one]));
  return (typed(before).spec.ephemeralContainers ?? []).flatMap((old) => {
    const now = next.get(old.name);
    const what = `existing ephemeral containers "${old.name}"`;
    if (now === undefined) return [forbiddenField(field, `${what} may not be removed\n`)];
    if (sameValue(old, now)) return [];
    const paths = changedPaths(old, now, `${field}[${old.name}]`).join(', ');
    return [forbiddenField(field, `${what} may not be changed\nchanged: ${paths}`)];
  });
}

/** What a node shows of a pod of its own cannot be written to. */
export function mirrorCauses(before: StoredObject, why: string): readonly FieldCause[] | undefined {
  return isMirror(before) ? [forbiddenField('[]', why)] : undefined;
}

/** Of all that was sent only the list of ephemeral containers counts. */
export function ephemeralPart(before: StoredObject, wanted: JsonObject): StoredObject {
  const list = (wanted['spec'] as JsonObject | undefined)?.['ephemeralContainers'];
  const { ephemeralContainers: _, ...rest } = before.spec ?? {};
  return { ...before, spec: list === undefined ? rest : { ...rest, ephemeralContainers: list } };
}
