import { apiResources } from '../../../src/api/index.ts';
import type { SimulatedApi } from '../../simulator/index.ts';
import { drivers } from './pod-volumes.ts';

const namespace = 'default';

/** The volume source of a CSI volume with this handle. */
export function diskOf(handle: string, driver: string = drivers.disks): object {
  return { csi: { driver, volumeHandle: handle } };
}

/** Creates a volume and a claim that is bound to it. */
export function claim(api: SimulatedApi, name: string, source: object): void {
  const uid = `claim-${name}`;
  const accessModes = ['ReadWriteMany'];
  const claimRef = { namespace, name, uid };
  api.put(apiResources.persistentVolumes, { metadata: { name }, spec: { accessModes, claimRef, ...source } });
  api.put(apiResources.persistentVolumeClaims, {
    metadata: { namespace, name, uid },
    spec: { accessModes, volumeName: name },
    status: { phase: 'Bound' },
  });
}
