import { applyPatch, type JsonObject, type Patch, PatchSchema } from '../../api/index.ts';
import { KubelingError } from '../../lib/index.ts';
import { StatusError } from './contract.ts';
import { invalidAs } from './refusals.ts';
import type { StoredObject } from './stored-object.ts';

/** Patches applied to stored objects. */
export class Patching {
  readonly #schema = new PatchSchema();

  /** What the patch makes of the object; throws a StatusError when it makes no sense. */
  apply(kind: string, before: StoredObject, patch: Patch): JsonObject {
    const patched = this.#patched(kind, before, patch);
    const isOther = patched['kind'] !== before.kind || patched['apiVersion'] !== before.apiVersion;
    if (isOther) throw otherKind(before.kind);
    return patched;
  }

  #patched(kind: string, before: StoredObject, patch: Patch): JsonObject {
    try {
      return applyPatch(this.#schema, kind, before, patch);
    } catch (error) {
      throw inTheWordsOfTheApi(error);
    }
  }
}

function otherKind(kind: string): StatusError {
  const message = `Invalid value: a patch must not change what kind of object it is about: ${kind}`;
  return invalidAs({ kind: '', group: '', name: '' }, [
    { reason: 'FieldValueInvalid', field: 'patch', message },
  ]);
}

const prefix = 'Cannot apply a patch: ';

function inTheWordsOfTheApi(error: unknown): unknown {
  if (!(error instanceof KubelingError) || typeof error.details['status'] !== 'number') return error;
  const { status: code, reason } = error.details;
  const message = error.message.startsWith(prefix) ? error.message.slice(prefix.length) : error.message;
  return new StatusError({ code: Number(code), reason: String(reason ?? ''), message });
}
