import type { ApiResource } from '../../api/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { ObjectChange } from '../core/contract.ts';
import { frozen, type StoredObject } from '../core/stored-object.ts';
import type { ChangeRow } from './worker/messages.ts';

/** Under which the store remembers what there is to know of a resource. */
export function resourceName({ group, plural }: ApiResource): string {
  return `${group}/${plural}`;
}

/** Objects of one resource, and in it of one namespace, lie beside each other. Names have no slash in them. */
export function rowKey(resource: ApiResource, { metadata }: StoredObject): string {
  return `${resourceName(resource)}/${metadata.namespace ?? ''}/${metadata.name}`;
}

export function resourceNameOfKey(key: string): string {
  return key.split('/', 2).join('/');
}

export function rowOf({ version, type, resource, object }: ObjectChange, ts: number): ChangeRow {
  return { rev: version, key: rowKey(resource, object), op: type, value: JSON.stringify(object), ts };
}

/** What is not an object is damage that the pages of the file do not show. */
export function objectOf(key: string, value: string): StoredObject {
  try {
    const object = JSON.parse(value) as StoredObject | null;
    if (typeof object?.metadata?.name === 'string') return frozen(object);
  } catch {
    // Falls through to the same answer as any other value that is no object.
  }
  throw new KubelingError('STORE_CORRUPT', `what is stored for ${key} is no object`);
}
