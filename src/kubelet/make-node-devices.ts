import { initContainersOf, newestInstance, type ObservedPod, type Pod, type PodUid } from '../pods/index.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import { NodeDevices } from './node-devices.ts';
import type { PodFacts } from './pod-facts.ts';
import type { KubeletSettings } from './settings.ts';

/** What of the kubelet the devices of pods depend on. */
export interface NodeDevicesParts {
  readonly facts: Pick<PodFacts, 'wanted' | 'isActive' | 'isTerminationRequested'>;
  readonly sources: { allReady(): boolean };
  readonly couldRun: (uid: PodUid) => boolean;
  readonly lastSeen: (uid: PodUid) => ObservedPod | undefined;
  /** Of the machine, where anybody has looked. */
  readonly numaNodes?: readonly number[] | undefined;
}

/** Undefined on a machine without plugins for devices. */
export function makeNodeDevices(
  { rootDir }: Pick<KubeletSettings, 'rootDir'>,
  deps: Pick<KubeletDeps, 'clock' | 'random' | 'logger' | 'metrics' | 'machine' | 'cluster'>,
  { facts, sources, couldRun, lastSeen, numaNodes }: NodeDevicesParts,
): NodeDevices | undefined {
  const { machine, cluster } = deps;
  if (machine.devices === undefined) return undefined;
  const runs = (uid: PodUid) => lastSeen(uid)?.containers.some(({ state }) => state === 'running') === true;
  return new NodeDevices({
    ...deps,
    rootDir,
    numaNodes,
    host: machine.devices,
    files: machine.files,
    mayUse: (uid) => {
      const pod = facts.wanted(uid);
      if (pod !== undefined && facts.isActive(pod)) return true;
      // Nobody's pod may have containers all the same.
      return !sources.allReady() || runs(uid) || (pod === undefined && couldRun(uid));
    },
    isEnding: (uid) =>
      facts.isTerminationRequested(uid) || (sources.allReady() && facts.wanted(uid) === undefined),
    isServed: (pod, { name }) => isServed(pod, name, lastSeen(pod.metadata.uid)),
    changed: () => cluster?.devicesChanged?.(),
  });
}

/** An init container that has done its work does not come again as long as the sandbox is there. */
function isServed(pod: Pod, container: string, observed: ObservedPod | undefined): boolean {
  if (observed?.sandboxes.some(({ state }) => state === 'ready') !== true) return false;
  const instance = newestInstance(observed, container);
  if (instance?.state === 'running') return true;
  const isInit = initContainersOf(pod).some(({ name }) => name === container);
  return isInit && instance?.state === 'exited' && instance.exitCode === 0;
}
