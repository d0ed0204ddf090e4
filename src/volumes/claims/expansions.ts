import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimCondition,
  PersistentVolumeClaimStatus,
} from '../../kinds/index.ts';
import {
  apiTime,
  type Clock,
  describeError,
  isKind,
  type KubelingError,
  quantityValue,
  tryParseQuantity,
} from '../../lib/index.ts';
import type { Pod, PodJournal } from '../../pods/index.ts';
import { grpcCodeOf } from '../csi/csi-client.ts';
import { stageError } from '../manager/mount-attempts.ts';
import { type StorageObserver, timed, type VolumePlugin } from '../manager/volume-metrics.ts';

/** Reads and changes PersistentVolumeClaims in the API server. */
export interface ClaimApi {
  claim(namespace: string, name: string, signal: AbortSignal): Promise<PersistentVolumeClaim | undefined>;
  volume(name: string, signal: AbortSignal): Promise<PersistentVolume | undefined>;
  /** Patches the claim; rejects with a conflict when the claim has changed since it was read. */
  changeClaim(
    claim: PersistentVolumeClaim,
    change: ClaimChange,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim>;
  claimEvent(claim: PersistentVolumeClaim, event: ClaimEvent): void;
}

export interface ClaimEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface ExpansionsDeps {
  readonly nodeName: string;
  /** Access to claims; undefined on a node without an API server. */
  readonly api: ClaimApi | undefined;
  readonly clock: Clock;
  readonly journal: Pick<PodJournal, 'event'>;
  readonly observe: StorageObserver;
}

/** A volume that the controller may have enlarged. */
export interface ExpandableVolume {
  /** The name of the PersistentVolume. */
  readonly name: string;
  readonly claim: string;
  readonly readOnly: boolean;
  /** Key of the volume, unique among all volumes of all plugins. */
  readonly key: string;
  /** Plugin name for metrics. */
  readonly plugin: VolumePlugin;
  /**
   * Expands the volume on this node. When it rejects with a gRPC code, that code decides whether
   * the size is infeasible or the expansion is retried.
   */
  expand(bytes: bigint, signal: AbortSignal): Promise<void>;
}

/** gRPC codes of an expansion whose size can never be reached. */
const hopeless: ReadonlySet<string> = new Set(['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'NOT_FOUND']);

interface Expansion {
  readonly pod: Pod;
  readonly volume: ExpandableVolume;
  readonly claim: PersistentVolumeClaim;
  readonly plan: Extract<ExpansionPlan, { readonly do: 'expand' }>;
}

/**
 * Expands volumes on this node to the size of their PersistentVolume. The caller must hold the
 * volume's lock.
 */
export class Expansions {
  readonly #deps: ExpansionsDeps;
  /** Sizes of volumes at their last successful expansion on this node. */
  readonly #expanded = new Map<string, bigint>();
  /** Volumes that their driver refuses to expand while they are in use. */
  readonly #infeasible = new Set<string>();

  constructor(deps: ExpansionsDeps) {
    this.#deps = deps;
  }

  /**
   * Expands the volume after it was mounted and before a container starts. Rejects with the error
   * that fails the mount.
   */
  async atMount(pod: Pod, volume: ExpandableVolume, signal: AbortSignal): Promise<void> {
    const found = await this.#plan(volume, pod, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      // The pod starts with the volume's current size; the expansion is retried while the pod runs.
      if (isKind(error, 'Unavailable', 'DeadlineExceeded')) return undefined;
      throw error;
    });
    if (found?.plan.do === 'refuse') this.#reportReadOnly(pod, volume, found.claim);
    if (found?.plan.do === 'expand') await this.#expand({ ...found, plan: found.plan, pod, volume }, signal);
  }

  /** Expands the volume of a running pod. */
  async online(pod: Pod, volume: ExpandableVolume, signal: AbortSignal): Promise<void> {
    const found = await this.#plan(volume, pod, signal);
    if (found?.plan.do !== 'expand') return;
    const stage = 'NodeExpandVolume.NodeExpandVolume failed';
    await this.#expand({ ...found, plan: found.plan, pod, volume }, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      this.#reportFailed(pod, stageError(stage, volume.name, describeError(error)));
      throw error;
    });
  }

  /** Called when no pod uses the volume any more, so that the next pod may retry its expansion. */
  forget(key: string): void {
    this.#expanded.delete(key);
    this.#infeasible.delete(key);
  }

  async #plan(volume: ExpandableVolume, { metadata: { namespace } }: Pod, signal: AbortSignal) {
    const { api } = this.#deps;
    if (api === undefined || this.#infeasible.has(volume.key)) return undefined;
    const [claim, found] = await Promise.all([
      api.claim(namespace, volume.claim, signal),
      api.volume(volume.name, signal),
    ]);
    if (claim === undefined || found === undefined || claim.spec?.volumeName !== volume.name)
      return undefined;
    const had = claimedBytes(claim);
    if (had !== undefined && !this.#expanded.has(volume.key)) this.#expanded.set(volume.key, had);
    const access = volume.readOnly ? 'read-only' : 'writable';
    return { claim, plan: planExpansion(claim, found, access, this.#expanded.get(volume.key)) };
  }

  /** Expands the volume; rejects when the expansion must be retried. */
  async #expand(expansion: Expansion, signal: AbortSignal): Promise<void> {
    const { volume, pod, plan } = expansion;
    const { clock, observe } = this.#deps;
    const claim = await this.#reportStarted(expansion, signal);
    try {
      const work = () => volume.expand(plan.bytes, signal);
      await timed({ clock, observe }, 'volume_fs_resize', [volume.plugin], work);
    } catch (error) {
      signal.throwIfAborted();
      await this.#resolveFailure({ ...expansion, claim }, error, signal);
      return;
    }
    this.#expanded.set(volume.key, plan.bytes);
    if (plan.reported !== 'nothing') await this.#change(claim, finished(claim.status, plan.size), signal);
    const message = `MountVolume.NodeExpandVolume succeeded for volume "${volume.name}" ${this.#deps.nodeName}`;
    this.#report(pod, claim, { type: 'Normal', reason: 'FileSystemResizeSuccessful', message });
  }

  async #reportStarted({ claim, plan }: Expansion, signal: AbortSignal): Promise<PersistentVolumeClaim> {
    if (plan.reported !== 'steps' || stepOf(claim) === 'NodeResizeInProgress') return claim;
    return await this.#change(claim, begun(), signal);
  }

  /**
   * Reports an infeasible expansion without a retry, because the volume is usable with its current
   * size.
   */
  async #resolveFailure(
    { pod, volume, claim, plan }: Expansion,
    error: unknown,
    signal: AbortSignal,
  ): Promise<void> {
    const code = grpcCodeOf(error) ?? '';
    const isHopeless = hopeless.has(code);
    if (!isHopeless && code !== 'FAILED_PRECONDITION') throw error;
    const why = describeError(error);
    this.#reportFailed(pod, stageError('NodeExpandVolume.NodeExpandVolume failed', volume.name, why));
    if (isHopeless && plan.reported === 'steps')
      await this.#change(claim, infeasible(claim.status, why, apiTime(this.#deps.clock.now())), signal);
    else this.#infeasible.add(volume.key);
  }

  async #change(
    claim: PersistentVolumeClaim,
    change: ClaimChange,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim> {
    return (await this.#deps.api?.changeClaim(claim, change, signal)) ?? claim;
  }

  #reportReadOnly(pod: Pod, { name }: ExpandableVolume, claim: PersistentVolumeClaim): void {
    const message = `MountVolume.NodeExpandVolume failed for volume "${name}" requested read-only file system`;
    this.#report(pod, claim, { type: 'Warning', reason: 'FileSystemResizeFailed', message });
  }

  #reportFailed(pod: Pod, { message }: KubelingError): void {
    this.#deps.journal.event(pod, { type: 'Warning', reason: 'VolumeResizeFailed', message });
  }

  #report(pod: Pod, claim: PersistentVolumeClaim, event: ClaimEvent): void {
    this.#deps.journal.event(pod, event);
    this.#deps.api?.claimEvent(claim, event);
  }
}

/** A merge patch of a claim's status; null removes a field. */
export interface ClaimChange {
  readonly capacity?: Readonly<Record<string, string>>;
  readonly allocatedResourceStatuses?: Readonly<Record<string, string | null>>;
  readonly conditions?: readonly PersistentVolumeClaimCondition[];
}

export type ExpansionPlan =
  | { readonly do: 'nothing' }
  /** The volume cannot be expanded, because it is mounted read-only. */
  | { readonly do: 'refuse' }
  | {
      readonly do: 'expand';
      /** Desired size: that of the PersistentVolume. */
      readonly size: string;
      readonly bytes: bigint;
      /**
       * Which updates of the claim's status are sent: `steps` for every step of the expansion,
       * `size` for the capacity only (on clusters without the resize status), or `nothing`.
       */
      readonly reported: 'steps' | 'size' | 'nothing';
    };

const storage = 'storage';
const notRequired = 'volume.kubernetes.io/node-expansion-not-required';
/** Claim conditions that are set only during an expansion. */
const resizing: ReadonlySet<string> = new Set([
  'FileSystemResizePending',
  'Resizing',
  'ControllerResizeError',
  'NodeResizeError',
]);

/**
 * Decides whether a volume must be expanded on this node. `here` is the size of the volume after
 * its last expansion on this node.
 */
export function planExpansion(
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
  access: 'read-only' | 'writable',
  here: bigint | undefined,
): ExpansionPlan {
  const size = volume.spec?.capacity?.[storage];
  const [requested, had] = [bytesOf(size), claimedBytes(claim)];
  if (size === undefined || requested === undefined || had === undefined) return { do: 'nothing' };
  const step = stepOf(claim);
  const expand = (reported: 'steps' | 'size' | 'nothing') =>
    ({ do: 'expand', size, bytes: requested, reported }) as const;
  if (requested > had) {
    if (step === undefined && claim.status?.allocatedResources === undefined)
      return access === 'read-only' ? { do: 'refuse' } : expand('size');
    if (step !== 'NodeResizePending' && step !== 'NodeResizeInProgress') return { do: 'nothing' };
    return access === 'read-only' ? { do: 'refuse' } : expand('steps');
  }
  // The claim already has the new capacity because another node expanded the volume, but the file
  // system on this node has not grown.
  const isShared = volume.spec?.accessModes?.includes('ReadWriteMany') === true;
  const isNeeded = claim.metadata?.annotations?.[notRequired] === undefined;
  const isBehind = here !== undefined && here < requested && access === 'writable';
  return isShared && isNeeded && isBehind && step === undefined ? expand('nothing') : { do: 'nothing' };
}

/** Returns the capacity in the claim's status in bytes; undefined when it is not set. */
function claimedBytes({ status }: PersistentVolumeClaim): bigint | undefined {
  return bytesOf(status?.capacity?.[storage]);
}

function stepOf({ status }: PersistentVolumeClaim): string | undefined {
  return status?.allocatedResourceStatuses?.[storage];
}

export function begun(): ClaimChange {
  return { allocatedResourceStatuses: { [storage]: 'NodeResizeInProgress' } };
}

export function finished(status: PersistentVolumeClaimStatus | undefined, size: string): ClaimChange {
  return {
    capacity: { ...status?.capacity, [storage]: size },
    ...(status?.allocatedResourceStatuses?.[storage] === undefined
      ? {}
      : { allocatedResourceStatuses: { [storage]: null } }),
    conditions: conditionsBesides(status),
  };
}

/** Returns the change of the claim's status for a size that can never be reached. */
export function infeasible(
  status: PersistentVolumeClaimStatus | undefined,
  why: string,
  time: string,
): ClaimChange {
  const message = `failed to expand pvc with ${why}`;
  const condition = { type: 'NodeResizeError', status: 'True', lastTransitionTime: time, message };
  return {
    allocatedResourceStatuses: { [storage]: 'NodeResizeInfeasible' },
    conditions: [...conditionsBesides(status), condition],
  };
}

function conditionsBesides(
  status: PersistentVolumeClaimStatus | undefined,
): readonly PersistentVolumeClaimCondition[] {
  return (status?.conditions ?? []).filter(({ type }) => !resizing.has(type));
}

function bytesOf(text: string | undefined): bigint | undefined {
  const parsed = text === undefined ? undefined : tryParseQuantity(text);
  return parsed === undefined ? undefined : quantityValue(parsed);
}
