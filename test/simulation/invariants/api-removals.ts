import { isMirror } from '../cluster/cluster-world.ts';
import { settings } from '../kubelet-life.ts';
import type { ClusterScene, Rule } from './scene.ts';

/**
 * A pod may be deleted from the API only when nothing of it is left on the node, because a
 * controller may then start its replacement on the same volumes.
 */
export function apiObjectsGoLast({ runtime, report, cluster, volumes }: ClusterScene): Rule {
  const { world, machine, cgroups } = cluster;
  const rule = 'a pod goes from the API when nothing of it is left';
  return {
    apiChanged({ type, resource, object, before, user }) {
      if (type !== 'DELETED' || resource.plural !== 'pods' || user !== world.node.name) return;
      if (before === undefined || isMirror(before)) return;
      const { uid, name } = object.metadata;
      if (before.metadata.deletionTimestamp === undefined)
        report(rule, `${name} (${uid}) was removed without a delete request`);
      for (const one of runtime.runningContainers().filter(({ podUid }) => podUid === uid))
        report(rule, `${name} (${uid}) was removed while ${one.name} runs`);
      for (const path of cgroups.directories().filter((each) => each.includes(`pod${uid}`)))
        report(rule, `${name} (${uid}) was removed and left the cgroup ${path}`);
      for (const place of volumes?.mountedFor(uid) ?? [])
        report(rule, `${name} (${uid}) was removed while ${place} was mounted`);
      // Reads the names in the volumes directory now, before the simulation continues; only the
      // promise resolves later.
      void machine.files.names(`${settings.rootDir}/pods/${uid}/volumes`).then((names) => {
        for (const left of names) report(rule, `${name} (${uid}) was removed and left its volume ${left}`);
      });
    },
  };
}
