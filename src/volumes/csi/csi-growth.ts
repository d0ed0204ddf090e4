import type { Pod } from '../../pods/index.ts';
import type { GrowingVolume } from '../claims/expansions.ts';
import type { CsiApi } from './csi-api.ts';
import type { CsiDrivers } from './csi-drivers.ts';
import { type CsiPlaces, csiPlugin } from './csi-places.ts';
import { type CsiVolume, capabilityOf } from './csi-request.ts';
import { secretsFor } from './csi-wishes.ts';
import { keyOf } from './volume-data.ts';

export interface CsiGrowthDeps {
  readonly places: CsiPlaces;
  readonly drivers: Pick<CsiDrivers, 'get'>;
  /** Undefined on a node without an API server. */
  readonly api: CsiApi | undefined;
}

/** How the driver makes a volume of a pod larger; undefined where it never does. Throws CSI_ABSENT. */
export function csiGrowth(
  { places, drivers, api }: CsiGrowthDeps,
  pod: Pod,
  volume: CsiVolume,
): GrowingVolume | undefined {
  const { name, claim, readOnly } = volume;
  if (claim === undefined) return undefined;
  const { client, can } = drivers.get(volume.driver, volume.origin);
  if (!can.has('EXPAND_VOLUME')) return undefined;
  const expand = async (bytes: bigint, signal: AbortSignal) => {
    const request = {
      volumeId: volume.handle,
      volumePath: places.shown(pod.metadata.uid, volume),
      stagingTargetPath: can.has('STAGE_UNSTAGE_VOLUME') ? places.stagedAt(volume) : '',
      capacityRange: { requiredBytes: bytes, limitBytes: 0n },
      volumeCapability: capabilityOf(volume, can, pod),
      secrets: await secretsFor(api, 'NodeExpandSecretRef', volume.expandSecret, signal),
    };
    await client.expand(request, signal);
  };
  return { name, claim, readOnly, key: keyOf(volume), plugin: csiPlugin(volume), expand };
}
