import { apiResources } from '../../../api/index.ts';
import { forbidden, type StoredObject } from '../../core/index.ts';

/** A pod that may not be, though nothing is wrong with how it is written. */
export function refusedPod(
  { metadata }: StoredObject,
  why: string,
  causes?: Parameters<typeof forbidden>[2],
): Error {
  return forbidden({ resource: apiResources.pods, name: metadata.name }, why, causes);
}
