import type { PodStatus } from '../../../src/kinds/index.ts';
import type { StoredObject } from '../../../src/local-api/api/stored-object.ts';
import { ownUidOf } from '../cluster/cluster-world.ts';
import { differences } from '../cluster/differences.ts';
import { everyContainer, type PodSketch } from '../sketch.ts';
import type { ClusterScene, Rule } from './scene.ts';

/** A restarted kubelet does not write pod statuses that the API already has. */
export function restartsWriteNothing({ report, cluster, desk }: ClusterScene): Rule {
  return {
    apiChanged({ type, resource, object, before, user }) {
      if (resource.plural !== 'pods' || user !== cluster.world.node.name) return;
      const uid = ownUidOf(object);
      if (!cluster.isQuiet(uid) || mayBecomeReady(desk.known(uid)) || isEditedAtRest(before)) return;
      const where = differences(object.status, before?.status).join(' ');
      report('a restart of the kubelet writes nothing that is so already', `${type} ${uid} ${where}`);
    },
  };
}

/**
 * Whether the pod was edited after it had terminated: only the next kubelet reports the new
 * generation in the status.
 */
function isEditedAtRest(object: StoredObject | undefined): boolean {
  const { phase = '', observedGeneration } = (object?.status ?? {}) as PodStatus;
  return ['Succeeded', 'Failed'].includes(phase) && observedGeneration !== object?.metadata.generation;
}

/** Whether a readiness probe of the pod may still change its result without a disturbance. */
function mayBecomeReady(sketch: PodSketch | undefined): boolean {
  const containers = sketch === undefined ? [] : everyContainer(sketch);
  return containers.some(({ probes }) => (probes?.readiness?.untilAttempt ?? 0) > 0);
}
