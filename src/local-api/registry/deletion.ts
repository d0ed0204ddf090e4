import type { DeleteOptions } from '../../api/index.ts';
import { isJsonObject, type JsonObject } from '../../api/index.ts';
import { apiTime, type Instant, instant } from '../../lib/index.ts';
import type { FieldCause } from '../api/api-types.ts';
import { badRequest, invalidFields } from '../api/status-errors.ts';
import type { StoredMeta, StoredObject } from '../api/stored-object.ts';
import { wholeNumber } from './list-options.ts';

/** The effect of a delete request on its object. */
export type Deletion =
  | { readonly do: 'remove' }
  /**
   * The object is first marked as terminating and then removed, so that watchers receive a MODIFIED
   * and a DELETED event.
   */
  | { readonly do: 'mark-and-remove'; readonly object: StoredObject }
  /**
   * The object is marked as terminating: it stays until its kubelet deletes it or its finalizers
   * are removed.
   */
  | { readonly do: 'mark'; readonly object: StoredObject }
  /**
   * Nothing changes, because the object is already being deleted with at most this grace period.
   */
  | { readonly do: 'nothing' };

/** Whether something besides metadata.finalizers blocks the removal. */
export type DeletionBlocker = (object: StoredObject) => boolean;

/** Determines the effect of a delete request whose preconditions have been checked. */
export function planDeletion(
  object: StoredObject,
  options: DeleteOptions,
  now: Instant,
  holds: DeletionBlocker,
): Deletion {
  if (object.kind === 'Pod') return podDeletion(object, options.gracePeriodSeconds, now, holds);
  if (!isBlocked(object, holds)) return { do: 'remove' };
  const isMarked = object.metadata.deletionTimestamp !== undefined;
  return isMarked ? { do: 'nothing' } : { do: 'mark', object: markedForDeletion(object, 0, now) };
}

/** An object is removed when its grace period is zero and nothing blocks the removal. */
export function isRemovable(object: StoredObject, holds: DeletionBlocker): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = object.metadata;
  return deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && !isBlocked(object, holds);
}

function isBlocked(object: StoredObject, blocks: DeletionBlocker): boolean {
  return (object.metadata.finalizers ?? []).length > 0 || blocks(object);
}

/** Sets the grace period of a pod; it can only be shortened afterwards. */
function podDeletion(
  pod: StoredObject,
  requested: number | undefined,
  now: Instant,
  holds: DeletionBlocker,
): Deletion {
  const { deletionTimestamp, deletionGracePeriodSeconds: current = 0 } = pod.metadata;
  if (deletionTimestamp === undefined)
    return markOrRemove(markedForDeletion(pod, initialGracePeriod(pod, requested), now), holds);
  if (current === 0) return isBlocked(pod, holds) ? { do: 'nothing' } : { do: 'remove' };
  if (requested === undefined) return { do: 'nothing' };
  const grace = requested < 0 ? 1 : requested;
  if (grace >= current) return { do: 'nothing' };
  return markOrRemove(withShorterGracePeriod(pod, pod.metadata, grace, now), holds);
}

function markOrRemove(object: StoredObject, holds: DeletionBlocker): Deletion {
  return { do: isRemovable(object, holds) ? 'mark-and-remove' : 'mark', object };
}

function withShorterGracePeriod(
  pod: StoredObject,
  { deletionTimestamp = '', deletionGracePeriodSeconds = 0 }: StoredMeta,
  grace: number,
  now: Instant,
): StoredObject {
  const requestedMs = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1_000 + grace * 1_000;
  const isPast = requestedMs < now;
  const at = apiTime(instant(isPast ? now : requestedMs));
  return withDeletion(pod, at, isPast && grace !== 0 ? 1 : grace);
}

function initialGracePeriod({ spec, status }: StoredObject, requested: number | undefined): number {
  const phase = status?.['phase'];
  const isOver = phase === 'Succeeded' || phase === 'Failed';
  if (isOver || spec?.['nodeName'] === undefined || spec['nodeName'] === '') return 0;
  const grace = requested ?? (spec['terminationGracePeriodSeconds'] as number | undefined) ?? 0;
  return grace < 0 ? 1 : grace;
}

function markedForDeletion(object: StoredObject, seconds: number, now: Instant): StoredObject {
  const marked = withDeletion(object, apiTime(instant(now + seconds * 1_000)), seconds);
  const { generation } = marked.metadata;
  if (generation === undefined) return marked;
  return { ...marked, metadata: { ...marked.metadata, generation: generation + 1 } };
}

function withDeletion(object: StoredObject, deletionTimestamp: string, seconds: number): StoredObject {
  return {
    ...object,
    metadata: { ...object.metadata, deletionTimestamp, deletionGracePeriodSeconds: seconds },
  };
}

export interface ParsedDeleteOptions extends DeleteOptions {
  readonly writeMode: 'commit' | 'dry-run';
}

const policies = ['Foreground', 'Background', 'Orphan'];

/**
 * The delete options from the body of the request, otherwise from its query. Throws a StatusError.
 */
export function deleteOptionsOf(body: unknown, query: URLSearchParams): ParsedDeleteOptions {
  const options = isJsonObject(body) && Object.keys(body).length > 0 ? body : fromQuery(query);
  const causes = [...policyCauses(options), ...dryRunCauses(options['dryRun'])];
  if (causes.length > 0)
    throw invalidFields({ kind: 'DeleteOptions', group: 'meta.k8s.io', name: '' }, causes);
  const { uid, resourceVersion } = (options['preconditions'] ?? {}) as DeleteOptions;
  return {
    gracePeriodSeconds: seconds(options['gracePeriodSeconds']),
    uid: text(uid, 'preconditions.uid'),
    resourceVersion: text(resourceVersion, 'preconditions.resourceVersion'),
    writeMode: Array.isArray(options['dryRun']) && options['dryRun'].length > 0 ? 'dry-run' : 'commit',
  };
}

function fromQuery(query: URLSearchParams): JsonObject {
  return {
    ...(query.has('gracePeriodSeconds')
      ? { gracePeriodSeconds: wholeNumber(query, 'gracePeriodSeconds') }
      : {}),
    ...(query.has('propagationPolicy') ? { propagationPolicy: query.get('propagationPolicy') } : {}),
    ...(query.has('orphanDependents') ? { orphanDependents: query.get('orphanDependents') !== 'false' } : {}),
    dryRun: query.getAll('dryRun'),
  };
}

/** There is no garbage collector, so the propagation policy is only validated. */
function policyCauses({ propagationPolicy, orphanDependents }: JsonObject): readonly FieldCause[] {
  const field = 'propagationPolicy';
  if (propagationPolicy === undefined || propagationPolicy === null) return [];
  if (orphanDependents !== undefined && orphanDependents !== null)
    return [
      {
        reason: 'FieldValueInvalid',
        field,
        message: `Invalid value: "${propagationPolicy}": orphanDependents and deletionPropagation cannot be both set`,
      },
    ];
  if (policies.includes(String(propagationPolicy))) return [];
  const list = policies.map((policy) => `"${policy}"`);
  return [
    {
      reason: 'FieldValueNotSupported',
      field,
      message: `Unsupported value: "${propagationPolicy}": supported values: ${[...list, '"nil"'].join(', ')}`,
    },
  ];
}

function dryRunCauses(dryRun: unknown): readonly FieldCause[] {
  const values = Array.isArray(dryRun) ? (dryRun as readonly unknown[]) : [];
  const unsupported = values.find((value) => value !== 'All');
  if (unsupported === undefined) return [];
  return [
    {
      reason: 'FieldValueNotSupported',
      field: 'dryRun',
      message: `Unsupported value: ${JSON.stringify(values)}: supported values: "All"`,
    },
  ];
}

function seconds(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (Number.isSafeInteger(value)) return value as number;
  throw badRequest(`gracePeriodSeconds must be a whole number: current value is ${JSON.stringify(value)}`);
}

function text(value: unknown, field: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  throw badRequest(`${field} must be a text: current value is ${JSON.stringify(value)}`);
}
