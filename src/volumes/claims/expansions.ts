import type { PersistentVolume, PersistentVolumeClaim } from '../../kinds/index.ts';
import { apiTime, type Clock, describeError, isKind, type KubelingError } from '../../lib/index.ts';
import type { Pod, PodJournal } from '../../pods/index.ts';
import { grpcCodeOf } from '../csi/csi-failures.ts';
import { failedAt } from '../manager/failed-at.ts';
import { type StorageObserver, timed, type VolumePlugin } from '../manager/volume-metrics.ts';
import {
  begun,
  type ClaimChange,
  claimedBytes,
  type ExpansionPlan,
  finished,
  infeasible,
  planExpansion,
  stepOf,
} from './expansion-plan.ts';

/** What the API says of claims, and is told. */
export interface ClaimApi {
  claim(namespace: string, name: string, signal: AbortSignal): Promise<PersistentVolumeClaim | undefined>;
  volume(name: string, signal: AbortSignal): Promise<PersistentVolume | undefined>;
  /** Rejects when the claim has become another since it was read. */
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
  /** Undefined on a node without an API server. */
  readonly api: ClaimApi | undefined;
  readonly clock: Clock;
  readonly journal: Pick<PodJournal, 'event'>;
  readonly observe: StorageObserver;
}

/** A volume that may have become larger elsewhere. */
export interface GrowingVolume {
  /** Of the PersistentVolume. */
  readonly name: string;
  readonly claim: string;
  readonly readOnly: boolean;
  /** Of all volumes of all kinds. */
  readonly key: string;
  /** As metrics name it. */
  readonly plugin: VolumePlugin;
  /** Makes it so large on this node; a rejection that names a gRPC code is judged by that. */
  expand(bytes: bigint, signal: AbortSignal): Promise<void>;
}

/** No larger one can be had, ever. */
const hopeless: ReadonlySet<string> = new Set(['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'NOT_FOUND']);

interface Expansion {
  readonly pod: Pod;
  readonly volume: GrowingVolume;
  readonly claim: PersistentVolumeClaim;
  readonly plan: Extract<ExpansionPlan, { readonly do: 'expand' }>;
}

/** Makes volumes as large on this node as they have become in the cluster. Call with the lock of the volume held. */
export class Expansions {
  readonly #deps: ExpansionsDeps;
  /** How large each was when this node last knew. */
  readonly #here = new Map<string, bigint>();
  /** Those that the driver does not expand for as long as they are in use as they are. */
  readonly #givenUp = new Set<string>();

  constructor(deps: ExpansionsDeps) {
    this.#deps = deps;
  }

  /** After the volume was mounted and before anything of the pod starts. Rejects with what the mount is to fail with. */
  async atMount(pod: Pod, volume: GrowingVolume, signal: AbortSignal): Promise<void> {
    const found = await this.#plan(volume, pod, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      // A pod can start with what there is; it is looked at again while it runs.
      if (isKind(error, 'Unavailable', 'DeadlineExceeded')) return undefined;
      throw error;
    });
    if (found?.plan.do === 'refuse') this.#tellReadOnly(pod, volume, found.claim);
    if (found?.plan.do === 'expand') await this.#expand({ ...found, plan: found.plan, pod, volume }, signal);
  }

  /** Under a pod that runs. */
  async online(pod: Pod, volume: GrowingVolume, signal: AbortSignal): Promise<void> {
    const found = await this.#plan(volume, pod, signal);
    if (found?.plan.do !== 'expand') return;
    const stage = 'NodeExpandVolume.NodeExpandVolume failed';
    await this.#expand({ ...found, plan: found.plan, pod, volume }, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      this.#tellFailed(pod, failedAt(stage, volume.name, describeError(error)));
      throw error;
    });
  }

  /** No pod has it any more: whoever comes next may try again. */
  forget(key: string): void {
    this.#here.delete(key);
    this.#givenUp.delete(key);
  }

  async #plan(volume: GrowingVolume, { metadata: { namespace } }: Pod, signal: AbortSignal) {
    const { api } = this.#deps;
    if (api === undefined || this.#givenUp.has(volume.key)) return undefined;
    const [claim, found] = await Promise.all([
      api.claim(namespace, volume.claim, signal),
      api.volume(volume.name, signal),
    ]);
    if (claim === undefined || found === undefined || claim.spec?.volumeName !== volume.name)
      return undefined;
    const had = claimedBytes(claim);
    if (had !== undefined && !this.#here.has(volume.key)) this.#here.set(volume.key, had);
    const access = volume.readOnly ? 'read-only' : 'writable';
    return { claim, plan: planExpansion(claim, found, access, this.#here.get(volume.key)) };
  }

  /** Rejects for what is to be tried again. */
  async #expand(expansion: Expansion, signal: AbortSignal): Promise<void> {
    const { volume, pod, plan } = expansion;
    const { clock, observe } = this.#deps;
    const claim = await this.#tellBegun(expansion, signal);
    try {
      const work = () => volume.expand(plan.bytes, signal);
      await timed({ clock, observe }, 'volume_fs_resize', [volume.plugin], work);
    } catch (error) {
      signal.throwIfAborted();
      await this.#judge({ ...expansion, claim }, error, signal);
      return;
    }
    this.#here.set(volume.key, plan.bytes);
    if (plan.told !== 'nothing') await this.#change(claim, finished(claim.status, plan.size), signal);
    const message = `MountVolume.NodeExpandVolume succeeded for volume "${volume.name}" ${this.#deps.nodeName}`;
    this.#tell(pod, claim, { type: 'Normal', reason: 'FileSystemResizeSuccessful', message });
  }

  async #tellBegun({ claim, plan }: Expansion, signal: AbortSignal): Promise<PersistentVolumeClaim> {
    if (plan.told !== 'steps' || stepOf(claim) === 'NodeResizeInProgress') return claim;
    return await this.#change(claim, begun(), signal);
  }

  /** What can never be is given up: the volume is of use as it is. */
  async #judge({ pod, volume, claim, plan }: Expansion, error: unknown, signal: AbortSignal): Promise<void> {
    const code = grpcCodeOf(error) ?? '';
    const isHopeless = hopeless.has(code);
    if (!isHopeless && code !== 'FAILED_PRECONDITION') throw error;
    const why = describeError(error);
    this.#tellFailed(pod, failedAt('NodeExpandVolume.NodeExpandVolume failed', volume.name, why));
    if (isHopeless && plan.told === 'steps')
      await this.#change(claim, infeasible(claim.status, why, apiTime(this.#deps.clock.now())), signal);
    else this.#givenUp.add(volume.key);
  }

  async #change(
    claim: PersistentVolumeClaim,
    change: ClaimChange,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim> {
    return (await this.#deps.api?.changeClaim(claim, change, signal)) ?? claim;
  }

  #tellReadOnly(pod: Pod, { name }: GrowingVolume, claim: PersistentVolumeClaim): void {
    const message = `MountVolume.NodeExpandVolume failed for volume "${name}" requested read-only file system`;
    this.#tell(pod, claim, { type: 'Warning', reason: 'FileSystemResizeFailed', message });
  }

  #tellFailed(pod: Pod, { message }: KubelingError): void {
    this.#deps.journal.event(pod, { type: 'Warning', reason: 'VolumeResizeFailed', message });
  }

  #tell(pod: Pod, claim: PersistentVolumeClaim, event: ClaimEvent): void {
    this.#deps.journal.event(pod, event);
    this.#deps.api?.claimEvent(claim, event);
  }
}
