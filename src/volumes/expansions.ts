import type { PersistentVolume, PersistentVolumeClaim } from '../../kinds/index.ts';
import { apiTime, describeError, isKind, type KubelingError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { failedAt } from '../failed-at.ts';
import { timed } from '../volume-metrics.ts';
import type { CsiDriver } from './csi-drivers.ts';
import {
  begun,
  type ClaimChange,
  claimedBytes,
  type ExpansionPlan,
  finished,
  infeasible,
  planExpansion,
  stepOf,
} from './csi-expansion-plan.ts';
import { grpcCodeOf } from './csi-failures.ts';
import { type CsiPlaces, csiPlugin } from './csi-places.ts';
import { type CsiVolume, capabilityOf } from './csi-request.ts';
import type { CsiVolumesDeps } from './csi-volumes.ts';
import { secretsFor } from './csi-wishes.ts';
import { keyOf } from './volume-data.ts';

/** What the API says of claims, and is told. */
export interface CsiClaimApi {
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

export interface CsiExpansionsDeps
  extends Pick<CsiVolumesDeps, 'nodeName' | 'api' | 'clock' | 'drivers' | 'journal' | 'observe'> {
  readonly places: CsiPlaces;
}

/** No larger one can be had, ever. */
const hopeless: ReadonlySet<string> = new Set(['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'NOT_FOUND']);

interface Expansion {
  readonly pod: Pod;
  readonly volume: CsiVolume;
  readonly claim: PersistentVolumeClaim;
  readonly driver: CsiDriver;
  readonly plan: Extract<ExpansionPlan, { readonly do: 'expand' }>;
}

/** Makes volumes as large on this node as they have become in the cluster. Call with the lock of the volume held. */
export class CsiExpansions {
  readonly #deps: CsiExpansionsDeps;
  /** How large each was when this node last knew. */
  readonly #here = new Map<string, bigint>();
  /** Those that the driver does not expand for as long as they are in use as they are. */
  readonly #givenUp = new Set<string>();

  constructor(deps: CsiExpansionsDeps) {
    this.#deps = deps;
  }

  /** After the volume was published and before anything of the pod starts. Rejects with what the mount is to fail with. */
  async atMount(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<void> {
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
  async online(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<void> {
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
  forget(volume: Pick<CsiVolume, 'driver' | 'handle'>): void {
    this.#here.delete(keyOf(volume));
    this.#givenUp.delete(keyOf(volume));
  }

  async #plan(volume: CsiVolume, { metadata: { namespace } }: Pod, signal: AbortSignal) {
    const { api } = this.#deps;
    const driver = this.#deps.drivers.get(volume.driver);
    const isOut = !driver.can.has('EXPAND_VOLUME') || this.#givenUp.has(keyOf(volume));
    if (api === undefined || volume.claim === undefined || isOut) return undefined;
    const [claim, found] = await Promise.all([
      api.claim(namespace, volume.claim, signal),
      api.volume(volume.name, signal),
    ]);
    if (claim === undefined || found === undefined || claim.spec?.volumeName !== volume.name)
      return undefined;
    const had = claimedBytes(claim);
    if (had !== undefined && !this.#here.has(keyOf(volume))) this.#here.set(keyOf(volume), had);
    const access = volume.readOnly ? 'read-only' : 'writable';
    return { driver, claim, plan: planExpansion(claim, found, access, this.#here.get(keyOf(volume))) };
  }

  /** Rejects for what is to be tried again. */
  async #expand(expansion: Expansion, signal: AbortSignal): Promise<void> {
    const { volume, pod, plan, driver } = expansion;
    const { clock, observe } = this.#deps;
    const claim = await this.#tellBegun(expansion, signal);
    try {
      const plugins = [csiPlugin(volume.driver)];
      const request = await this.#request(expansion, signal);
      await timed({ clock, observe }, 'volume_fs_resize', plugins, () =>
        driver.client.expand(request, signal),
      );
    } catch (error) {
      signal.throwIfAborted();
      await this.#judge({ ...expansion, claim }, error, signal);
      return;
    }
    this.#here.set(keyOf(volume), plan.bytes);
    if (plan.told !== 'nothing') await this.#change(claim, finished(claim.status, plan.size), signal);
    const message = `MountVolume.NodeExpandVolume succeeded for volume "${volume.name}" ${this.#deps.nodeName}`;
    this.#tell(pod, claim, { type: 'Normal', reason: 'FileSystemResizeSuccessful', message });
  }

  async #tellBegun({ claim, plan }: Expansion, signal: AbortSignal): Promise<PersistentVolumeClaim> {
    if (plan.told !== 'steps' || stepOf(claim) === 'NodeResizeInProgress') return claim;
    return await this.#change(claim, begun(), signal);
  }

  async #request({ pod, volume, driver, plan }: Expansion, signal: AbortSignal) {
    const { places, api } = this.#deps;
    const isStaged = driver.can.has('STAGE_UNSTAGE_VOLUME');
    return {
      volumeId: volume.handle,
      volumePath: places.volume(pod.metadata.uid, volume.name).mount,
      stagingTargetPath: isStaged ? places.stagedVolume(volume.driver, volume.handle).mount : '',
      capacityRange: { requiredBytes: plan.bytes, limitBytes: 0n },
      volumeCapability: capabilityOf(volume, driver.can, pod),
      secrets: await secretsFor(api, 'NodeExpandSecretRef', volume.expandSecret, signal),
    };
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
    else this.#givenUp.add(keyOf(volume));
  }

  async #change(
    claim: PersistentVolumeClaim,
    change: ClaimChange,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim> {
    return (await this.#deps.api?.changeClaim(claim, change, signal)) ?? claim;
  }

  #tellReadOnly(pod: Pod, { name }: CsiVolume, claim: PersistentVolumeClaim): void {
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
