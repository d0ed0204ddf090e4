import type { PodStatus } from '../../../src/kinds/index.ts';
import type { StoredObject } from '../../../src/simulator/index.ts';
import { isMirror, ownUidOf } from '../cluster/cluster-world.ts';
import { differences } from '../cluster/differences.ts';
import { everyContainer, type PodSketch } from '../sketch.ts';
import type { ClusterScene, Rule } from './scene.ts';

/** What the API has already is not written again by the next kubelet. */
export function restartsWriteNothing({ report, cluster, desk }: ClusterScene): Rule {
  return {
    apiChanged({ type, resource, object, before, user }) {
      if (resource.plural !== 'pods' || user !== cluster.world.node.name) return;
      const uid = ownUidOf(object);
      if (!cluster.isQuiet(uid) || !isKnownAgain(before) || mayBecomeReady(desk.known(uid))) return;
      const where = differences(object.status, before?.status).join(' ');
      report('a restart of the kubelet writes nothing that is so already', `${type} ${uid} ${where}`);
    },
  };
}

/** Of a static pod the next kubelet knows what runs, and little of what was before. */
function isKnownAgain(object: StoredObject | undefined): boolean {
  if (object === undefined || !isMirror(object)) return true;
  const { phase, containerStatuses = [], initContainerStatuses = [] } = (object.status ?? {}) as PodStatus;
  const all = [...containerStatuses, ...initContainerStatuses];
  return (
    phase === 'Running' &&
    all.every(({ lastState, state }) => lastState === undefined && state?.running !== undefined)
  );
}

/** Whether a probe may still change its mind by itself. */
function mayBecomeReady(sketch: PodSketch | undefined): boolean {
  const containers = sketch === undefined ? [] : everyContainer(sketch);
  return containers.some(({ probes }) => (probes?.readiness?.untilAttempt ?? 0) > 0);
}
