import type { StoredObject } from '../../core/index.ts';
import { typed } from '../pod-object.ts';
import { refusedPod } from './refuse-pod.ts';

/** Nobody here gives out what claims are for: such a pod would wait for ever. Asked after all else. */
export function checkResourceClaims(pod: StoredObject): void {
  if ((typed(pod).spec.resourceClaims ?? []).length > 0)
    throw refusedPod(
      pod,
      'pod rejected: resource claims are for clusters, and this API has no resource.k8s.io',
    );
}
