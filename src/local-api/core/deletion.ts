import type { DeleteOptions } from '../../api/index.ts';
import { apiTime, type Instant, instant } from '../../lib/index.ts';
import type { StoredMeta, StoredObject } from './stored-object.ts';

/** What a deletion does to an object. */
export type Deletion =
  | { readonly do: 'remove' }
  /** Everyone sees that it is being deleted, and then that it is gone. */
  | { readonly do: 'mark-and-remove'; readonly object: StoredObject }
  /** It stays, marked: for its kubelet to end it, or for those whose finalizers it has. */
  | { readonly do: 'mark'; readonly object: StoredObject }
  /** It is being deleted already, in no more time than that. */
  | { readonly do: 'nothing' };

/** Whether somebody has still to let go of an object before it may be removed. */
export type Holds = (object: StoredObject) => boolean;

/** Preconditions were looked at before. */
export function deletionOf(
  object: StoredObject,
  options: DeleteOptions,
  now: Instant,
  holds: Holds,
): Deletion {
  if (object.kind === 'Pod') return podDeletion(object, options.gracePeriodSeconds, now, holds);
  if (!isHeld(object, holds)) return { do: 'remove' };
  const isMarked = object.metadata.deletionTimestamp !== undefined;
  return isMarked ? { do: 'nothing' } : { do: 'mark', object: marked(object, 0, now) };
}

/** An object goes when its time of grace is over and nobody holds it any more. */
export function isToBeRemoved(object: StoredObject, holds: Holds): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = object.metadata;
  return deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && !isHeld(object, holds);
}

function isHeld(object: StoredObject, holds: Holds): boolean {
  return (object.metadata.finalizers ?? []).length > 0 || holds(object);
}

/** A pod gets the time it asks for; once it is being deleted that time only ever shrinks. */
function podDeletion(pod: StoredObject, asked: number | undefined, now: Instant, holds: Holds): Deletion {
  const { deletionTimestamp, deletionGracePeriodSeconds: current = 0 } = pod.metadata;
  if (deletionTimestamp === undefined) return seen(marked(pod, firstGrace(pod, asked), now), holds);
  if (current === 0) return isHeld(pod, holds) ? { do: 'nothing' } : { do: 'remove' };
  if (asked === undefined) return { do: 'nothing' };
  const grace = asked < 0 ? 1 : asked;
  if (grace >= current) return { do: 'nothing' };
  return seen(shortened(pod, pod.metadata, grace, now), holds);
}

function seen(object: StoredObject, holds: Holds): Deletion {
  return { do: isToBeRemoved(object, holds) ? 'mark-and-remove' : 'mark', object };
}

function shortened(
  pod: StoredObject,
  { deletionTimestamp = '', deletionGracePeriodSeconds = 0 }: StoredMeta,
  grace: number,
  now: Instant,
): StoredObject {
  const wanted = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1_000 + grace * 1_000;
  const isPast = wanted < now;
  const at = apiTime(instant(isPast ? now : wanted));
  return withDeletion(pod, at, isPast && grace !== 0 ? 1 : grace);
}

function firstGrace({ spec, status }: StoredObject, asked: number | undefined): number {
  const phase = status?.['phase'];
  const isOver = phase === 'Succeeded' || phase === 'Failed';
  if (isOver || spec?.['nodeName'] === undefined || spec['nodeName'] === '') return 0;
  const grace = asked ?? (spec['terminationGracePeriodSeconds'] as number | undefined) ?? 0;
  return grace < 0 ? 1 : grace;
}

function marked(object: StoredObject, seconds: number, now: Instant): StoredObject {
  const asked = withDeletion(object, apiTime(instant(now + seconds * 1_000)), seconds);
  const { generation } = asked.metadata;
  if (generation === undefined) return asked;
  return { ...asked, metadata: { ...asked.metadata, generation: generation + 1 } };
}

function withDeletion(object: StoredObject, deletionTimestamp: string, seconds: number): StoredObject {
  return {
    ...object,
    metadata: { ...object.metadata, deletionTimestamp, deletionGracePeriodSeconds: seconds },
  };
}
