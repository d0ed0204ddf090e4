import type { DeleteOptions } from '../../api/index.ts';
import { apiTime, type Instant, instant } from '../../lib/index.ts';
import type { StoredMeta, StoredObject } from './stored-object.ts';

/** What a deletion does to an object. */
export type Deletion =
  | { readonly do: 'remove'; readonly object: StoredObject }
  /** It stays, marked: for its kubelet to end it, or for those whose finalizers it has. */
  | { readonly do: 'mark'; readonly object: StoredObject }
  /** It is being deleted already, in no more time than that. */
  | { readonly do: 'nothing' };

/** Preconditions were looked at before. */
export function deletionOf(object: StoredObject, options: DeleteOptions, now: Instant): Deletion {
  const asked =
    object.kind === 'Pod' ? gracefully(object, options.gracePeriodSeconds, now) : at0(object, now);
  if (asked === undefined) return { do: 'nothing' };
  return isToBeRemoved(asked.metadata) ? { do: 'remove', object: asked } : { do: 'mark', object: asked };
}

/** An object goes when its time of grace is over and nobody holds it any more. */
export function isToBeRemoved(meta: StoredMeta): boolean {
  const isHeld = (meta.finalizers ?? []).length > 0;
  return meta.deletionTimestamp !== undefined && (meta.deletionGracePeriodSeconds ?? 0) === 0 && !isHeld;
}

/** A pod gets the time it asks for; once it is being deleted that time only ever shrinks. */
function gracefully(pod: StoredObject, asked: number | undefined, now: Instant): StoredObject | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds: current = 0 } = pod.metadata;
  if (deletionTimestamp === undefined) return marked(pod, firstGrace(pod, asked), now);
  if (current === 0) return pod;
  if (asked === undefined) return undefined;
  const grace = asked < 0 ? 1 : asked;
  return grace >= current ? undefined : shortened(pod, deletionTimestamp, current, grace, now);
}

function shortened(
  pod: StoredObject,
  deletionTimestamp: string,
  current: number,
  grace: number,
  now: Instant,
): StoredObject {
  const wanted = Date.parse(deletionTimestamp) - current * 1_000 + grace * 1_000;
  const isPast = wanted < now;
  const at = apiTime(instant(isPast ? now : wanted));
  const seconds = isPast && grace !== 0 ? 1 : grace;
  return withDeletion(pod, at, seconds);
}

function firstGrace({ spec, status }: StoredObject, asked: number | undefined): number {
  const phase = status?.['phase'];
  const isOver = phase === 'Succeeded' || phase === 'Failed';
  if (isOver || spec?.['nodeName'] === undefined || spec['nodeName'] === '') return 0;
  const grace = asked ?? (spec['terminationGracePeriodSeconds'] as number | undefined) ?? 0;
  return grace < 0 ? 1 : grace;
}

function at0(object: StoredObject, now: Instant): StoredObject | undefined {
  if (object.metadata.deletionTimestamp === undefined) return marked(object, 0, now);
  return isToBeRemoved(object.metadata) ? object : undefined;
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
