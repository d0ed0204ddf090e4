import {
  type ApiClient,
  apiResources,
  isApiCode,
  type ObjectRef,
  type Patch,
  type PatchSchema,
  podStatusPatch,
} from '../../api/index.ts';
import type { PodStatus } from '../../kinds/index.ts';
import type { Clock } from '../../lib/index.ts';
import { formatQuantity, tryParseQuantity } from '../../lib/index.ts';
import { isMirrorPod, isTerminalPhase, type Pod, type PodUid } from '../../pods/index.ts';
import { sameStatus } from '../normalize.ts';
import type { VersionedStatus } from '../status-manager.ts';
import { mergeStatus, sameInApi } from './merge-status.ts';

export interface SyncDeps {
  readonly clock: Clock;
  readonly api: Pick<ApiClient, 'get' | 'patch' | 'delete'>;
  readonly schema: PatchSchema;
  /**
   * Whether a container of the pod may still run, by the UID of the static pod, not of its mirror
   * pod.
   */
  readonly mayRun: (uid: PodUid) => boolean;
}

export interface SyncJob {
  readonly entry: VersionedStatus;
  /** The newest available copy of the API object. */
  readonly known: Pod;
  /** `first` until this process has written the status or found nothing to write. */
  readonly turn: 'first' | 'later';
}

/**
 * How far the cached status equals the one in the API: completely, or in everything except
 * condition times.
 */
export type Agreement = 'whole' | 'but-for-times';

export type SyncOutcome =
  /** The API server has the required status; `pod` is its copy of the API object. */
  | {
      readonly kind: 'in-step';
      readonly pod: Pod;
      readonly isHeld: boolean;
      readonly isPatched: boolean;
      readonly agreement: Agreement;
    }
  /** The API server does not have the pod, so its status cannot be written. */
  | { readonly kind: 'gone' }
  /** The API server has another pod with the same name. */
  | { readonly kind: 'replaced' }
  /**
   * The pod was deleted from the API server, because it has terminated and its deletion was
   * requested.
   */
  | { readonly kind: 'removed' };

/**
 * Writes one status to the API server, and deletes the pod when it is due. Rejects with errors of
 * the API server.
 */
export async function syncStatus(deps: SyncDeps, job: SyncJob, signal: AbortSignal): Promise<SyncOutcome> {
  const written = await write(deps, job, signal);
  if (written.kind !== 'in-step' || !isDueForRemoval(written.pod, job.entry)) return written;
  return await remove(deps, written.pod, signal);
}

/**
 * Whether the pod must be deleted: its deletion was requested, its terminal phase is in the API and
 * all its resources were removed from the node.
 */
export function isDueForRemoval(pod: Pod, entry: VersionedStatus): boolean {
  const isTerminating = pod.metadata.deletionTimestamp !== undefined && !isMirrorPod(pod);
  return isTerminating && isTerminalPhase(pod.status.phase) && entry.isFinished;
}

/**
 * Writes the status. The available copy of the pod is used first; the pod is read from the API
 * server only after the server has answered 409, 404 or 422.
 */
async function write(deps: SyncDeps, job: SyncJob, signal: AbortSignal): Promise<SyncOutcome> {
  try {
    return await patchIfNeeded(deps, job, job.known, signal);
  } catch (error) {
    if (!isApiCode(error, 'API_CONFLICT', 'API_NOT_FOUND', 'API_INVALID')) throw error;
  }
  const found = await readNewest(deps, job.known, signal);
  if (found === undefined) return { kind: 'gone' };
  const isSame = found.metadata.uid === job.known.metadata.uid;
  return isSame ? await patchIfNeeded(deps, job, found, signal) : { kind: 'replaced' };
}

async function patchIfNeeded(
  { clock, api, schema, mayRun }: SyncDeps,
  { entry, turn }: SyncJob,
  pod: Pod,
  signal: AbortSignal,
): Promise<SyncOutcome> {
  const facts = { ours: entry.status, mayRun: mayRun(entry.uid), now: clock.now() };
  const { status, isHeld } = mergeStatus({ pod, ...facts });
  const unchanged = { kind: 'in-step', pod, isHeld, isPatched: false, agreement: 'whole' } as const;
  const [before, after] = [plainStatus(pod.status), plainStatus(status)];
  if (sameInApi(before, after)) return unchanged;
  // A status of a previous kubelet is not written again only because the times of its conditions
  // were lost.
  if (turn === 'first' && sameStatus(before, after)) return { ...unchanged, agreement: 'but-for-times' };
  const patch = podStatusPatch(schema, { uid: pod.metadata.uid, before, after });
  if (patch === undefined) return unchanged;
  const at = { ...refOf(pod), subresource: 'status' };
  const response = await api.patch<Pod>(at, fenced(patch, pod), signal);
  return { ...unchanged, pod: response, isPatched: true };
}

/**
 * The patch contains the resourceVersion from which it was computed: a patch without a response may
 * take effect after a newer one, and must not revert it.
 */
function fenced({ kind, body }: Patch, { metadata: { uid, resourceVersion } }: Pod): Patch {
  return { kind, body: { ...(body as object), metadata: { uid, resourceVersion } } };
}

/** Reads the object that the API server has under the pod's name. */
async function readNewest({ api }: SyncDeps, known: Pod, signal: AbortSignal): Promise<Pod | undefined> {
  try {
    return await api.get<Pod>(refOf(known), {}, signal);
  } catch (error) {
    if (isApiCode(error, 'API_NOT_FOUND')) return undefined;
    throw error;
  }
}

/**
 * Deletes the pod. Already deleted counts as success; on a conflict the pod is read to compare
 * UIDs.
 */
async function remove(deps: SyncDeps, pod: Pod, signal: AbortSignal): Promise<SyncOutcome> {
  const { uid } = pod.metadata;
  try {
    await deps.api.delete(refOf(pod), { gracePeriodSeconds: 0, uid }, signal);
  } catch (error) {
    if (!isApiCode(error, 'API_NOT_FOUND', 'API_CONFLICT')) throw error;
    const found = await readNewest(deps, pod, signal);
    if (found?.metadata.uid === uid) throw error;
  }
  return { kind: 'removed' };
}

function refOf({ metadata: { namespace, name } }: Pod): ObjectRef {
  return { resource: apiResources.pods, namespace, name };
}

/**
 * Converts a status to a canonical form, in which equal statuses are identical. An API server
 * returns null for unset times, empty objects and strings for missing values, and canonical
 * quantities.
 */
export function plainStatus(status: PodStatus): PodStatus {
  return plainFields(status);
}

/**
 * Fields that are significant when empty: a container state without details, and resources of a
 * container that requests none.
 */
const meaningfulWhenEmpty: ReadonlySet<string> = new Set(['waiting', 'running', 'terminated', 'resources']);
const amounts: ReadonlySet<string> = new Set(['requests', 'limits', 'allocatedResources']);

function plainFields<T extends object>(fields: T): T {
  const plain: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) {
    const kept = plainValue(key, value);
    if (!isNothing(key, kept)) plain[key] = kept;
  }
  return plain as T;
}

function plainValue(key: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => plainValue('', one));
  if (typeof value !== 'object' || value === null) return value;
  return amounts.has(key) ? plainAmounts(value) : plainFields(value);
}

function plainAmounts(list: object): object {
  const plain = Object.entries(list).map(([name, text]) => {
    const amount = tryParseQuantity(String(text));
    return [name, amount === undefined ? text : formatQuantity(amount)];
  });
  return Object.fromEntries(plain);
}

function isNothing(key: string, value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  if (typeof value !== 'object' || meaningfulWhenEmpty.has(key)) return false;
  return (Array.isArray(value) ? value : Object.keys(value)).length === 0;
}
