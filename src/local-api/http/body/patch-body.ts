import { isJsonObject, type JsonObject, type PatchKind } from '../../../api/index.ts';
import { badRequest } from '../../core/refusals.ts';
import { readMediaType } from '../media-types.ts';
import { unsupportedMediaType } from '../refusals.ts';
import { explained, type JsonText, readJsonText } from './json-text.ts';

const kinds: ReadonlyMap<string, PatchKind> = new Map([
  ['application/json-patch+json', 'json'],
  ['application/merge-patch+json', 'merge'],
  ['application/strategic-merge-patch+json', 'strategic'],
]);

/** Throws a refusal for a type of patch nobody here knows how to apply. */
export function patchKind(contentType: string | undefined): PatchKind {
  const kind = kinds.get(readMediaType(contentType ?? '')?.essence ?? '');
  if (kind === undefined) throw unsupportedMediaType([...kinds.keys()]);
  return kind;
}

export interface PatchBody extends Pick<JsonText, 'duplicates'> {
  readonly value: JsonObject | readonly unknown[];
}

/** Whether a patch fits what it is applied to, only that can tell; here it must have the shape of one. */
export function readPatch(kind: PatchKind, bytes: Buffer): PatchBody {
  const { value, duplicates } = explained('error decoding patch: ', () => readJsonText(bytes.toString()));
  if (kind === 'json' && Array.isArray(value)) return { value, duplicates };
  if (kind !== 'json' && isJsonObject(value)) return { value, duplicates };
  const must = kind === 'json' ? 'a JSON patch must be a list' : 'a patch must be an object';
  throw badRequest(`error decoding patch: ${must}`);
}
