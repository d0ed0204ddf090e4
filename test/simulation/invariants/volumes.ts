import type { VolumeWorld } from '../volumes/volume-world.ts';
import type { ClusterScene, Rule, RuleScene } from './scene.ts';
import { podOfCall } from './starts.ts';

/** What takes a volume away, or a part of it that containers would miss. */
const removals: ReadonlySet<string> = new Set([
  ...['unmount', 'unbind', 'removeTree', 'removeEmptyDirectory', 'unlink', 'NodeUnpublishVolume'],
]);

/** The directory of a pod, of its volumes, of those of one plugin, or of one of them; what is in them is content. */
const volumePath =
  /\/pods\/([0-9a-f]{32})(?:\/volumes(?:\/[^/]+(?:\/[^/]+(?:\/(?:mount|vol_data\.json))?)?)?)?$/;
const podPath = /\/pods\/([0-9a-f]{32})\//;

export interface VolumeScene extends RuleScene {
  readonly volumes: VolumeWorld;
}

export function startsWithItsVolumes({ runtime, report, volumes, cluster }: VolumeScene): Rule {
  return {
    calling(method, request) {
      if (method !== 'createContainer' && method !== 'startContainer') return;
      const uid = podOfCall(runtime, method, request);
      if (uid === undefined || !hasVolumes(cluster, uid)) return;
      for (const volume of volumes.missing(uid))
        report('no container starts before its volumes are mounted', `${method} of ${uid} without ${volume}`);
    },
  };
}

export function volumesOutliveContainers({ runtime, report, volumes }: VolumeScene): Rule {
  return {
    volumeChanging(method, path) {
      const uid = removals.has(method) ? volumePath.exec(path)?.[1] : undefined;
      if (uid === undefined) return;
      const running = runtime.runningContainers().filter(({ podUid }) => podUid === uid);
      const isThere = volumes.memory.entry(path) !== undefined;
      if (running.length === 0 || !isThere) return;
      const names = running.map(({ name }) => name).join(', ');
      report('no volume goes while a container of its pod runs', `${method} ${path} while ${names} runs`);
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
    // Right before a change is right after the one before.
    volumeChanging(_method, path) {
      const uid = podPath.exec(path)?.[1];
      if (uid !== undefined) look(uid);
    },
    settled() {
      for (const uid of new Set(runtime.runningContainers().map(({ podUid }) => podUid))) look(uid);
    },
  };
}

/** Pods of manifests have none. */
function hasVolumes(cluster: ClusterScene['cluster'] | undefined, uid: string): boolean {
  return cluster?.world.hadVolumes(uid) === true;
}
