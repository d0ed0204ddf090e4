import type { VolumeWorld } from '../volumes/volume-world.ts';
import type { ClusterScene, Rule, RuleScene } from './scene.ts';
import { containerOfCall, podOfCall } from './starts.ts';

/** Operations that remove a volume, or a part of a volume that containers need. */
const removals: ReadonlySet<string> = new Set([
  ...['unmount', 'unbind', 'unpin', 'removeTree', 'removeEmptyDirectory', 'unlink', 'NodeUnpublishVolume'],
]);

/**
 * The directory of a pod, of its volumes, of one plugin's volumes, or of one volume; deeper paths
 * are content of volumes.
 */
const volumePath =
  /\/pods\/([0-9a-f]{32})(?:\/volume(?:s|Devices)(?:\/[^/]+(?:\/[^/]+(?:\/(?:mount|vol_data\.json))?)?)?)?$/;
/** Where the block devices of pods are mapped by the kubelet, or created by CSI drivers. */
const devicePath = /\/plugins\/.*\/volumeDevices\/.*\/([0-9a-f]{32})$/;
/** Where local disks are mounted on the node. */
const diskPath = /\/plugins\/kubernetes\.io\/local-volume\/mounts\/[^/]+$/;
const podPath = /\/pods\/([0-9a-f]{32})\//;

export interface VolumeScene extends RuleScene {
  readonly volumes: VolumeWorld;
}

export function startsWithItsVolumes({ runtime, report, volumes, cluster, desk }: VolumeScene): Rule {
  return {
    calling(method, request) {
      if (method !== 'createContainer' && method !== 'startContainer') return;
      const uid = podOfCall(runtime, method, request);
      if (uid === undefined || !hasVolumes(cluster, uid)) return;
      const name = containerOfCall(runtime, request);
      const who = desk.known(uid)?.ephemeral?.some((each) => each.name === name) ? 'visitor' : 'own';
      if (method === 'startContainer') volumes.started(uid, who);
      for (const volume of volumes.missing(uid, who))
        report(
          'no container starts before its volumes are mounted',
          `${method} of ${name} of ${uid} without ${volume}`,
        );
    },
  };
}

export function volumesOutliveContainers({ runtime, report, volumes }: VolumeScene): Rule {
  return {
    volumeChanging(method, path) {
      if (!removals.has(method)) return;
      const uid = volumePath.exec(path)?.[1] ?? devicePath.exec(path)?.[1];
      // The content of an NFS volume may be removed after its server has lost the export.
      if (uid === undefined || volumes.isLost(path)) return;
      const running = runtime.runningContainers().filter(({ podUid }) => podUid === uid);
      const isThere = volumes.memory.entry(path) !== undefined;
      if (running.length === 0 || !isThere) return;
      const names = running.map(({ name }) => name).join(', ');
      report('no volume goes while a container of its pod runs', `${method} ${path} while ${names} runs`);
    },
  };
}

/** The global mount of a disk is not removed while it is bind-mounted into a pod. */
export function disksOutlivePods({ report, volumes }: VolumeScene): Rule {
  return {
    volumeChanging(method, path) {
      if (!removals.has(method) || !diskPath.test(path)) return;
      const mounts = volumes.memory.mounts();
      const { origin } = mounts.findLast(({ directory }) => directory === path) ?? {};
      const shown = mounts.find((mount) => mount.origin === origin && podPath.test(mount.directory));
      if (origin !== undefined && shown !== undefined)
        report('no disk is unmounted while a pod has it', `${method} ${path} while at ${shown.directory}`);
    },
  };
}

export function readersSeeWholes({ runtime, report, volumes, cluster }: VolumeScene): Rule {
  const look = (uid: string) => {
    const isRunning = runtime.runningContainers().some(({ podUid }) => podUid === uid);
    if (!isRunning || !hasVolumes(cluster, uid)) return;
    for (const what of volumes.torn(uid)) report('a reader sees all of an update or none', `${uid}: ${what}`);
  };
  return {
    // The check before a change also covers the state after the previous change.
    volumeChanging(_method, path) {
      const uid = podPath.exec(path)?.[1];
      if (uid !== undefined) look(uid);
    },
    settled() {
      for (const uid of new Set(runtime.runningContainers().map(({ podUid }) => podUid))) look(uid);
    },
  };
}

/** Whether the pod has all volume types; static pods have none. */
function hasVolumes(cluster: ClusterScene['cluster'] | undefined, uid: string): boolean {
  return cluster?.world.hadVolumes(uid) === true;
}
