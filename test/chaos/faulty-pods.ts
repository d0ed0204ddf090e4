import { container, pod, podSpec } from '../cluster/cluster-pods.ts';
import type { FaultyCluster } from './faulty-cluster.ts';

/** A script that exits immediately on SIGTERM, and uses no CPU until then. */
const stays = 'trap "exit 0" TERM; sleep 100000 & wait';
const mounts = { volumeMounts: [{ name: 'marks', mountPath: '/marks' }] };

/** Builds a container that appends the time to the file `/marks/<mark>` whenever it starts. */
export function marked(mark: string, script = stays, fields: object = {}): object {
  const command = ['sh', '-c', `cut -d " " -f 1 /proc/uptime >> /marks/${mark}; ${script}`];
  return container('main', { command, ...mounts, ...fields });
}

interface PodFields {
  readonly containers?: readonly object[];
  readonly initContainers?: readonly object[];
  readonly volumes?: readonly object[];
}

/**
 * Unless containers are given, the pod has one, `main`, which writes its start times to a mark file
 * with the pod's name.
 */
export function markedPod({ marksDir }: FaultyCluster, name: string, fields: PodFields = {}): object {
  const { containers = [marked(name)], volumes = [], ...others } = fields;
  const marks = { name: 'marks', hostPath: { path: marksDir } };
  return pod(name, podSpec(containers, { ...others, volumes: [marks, ...volumes] }));
}

/** A probe that runs every second and passes after one success. */
export function execProbe(script: string): object {
  return {
    exec: { command: ['sh', '-c', script] },
    periodSeconds: 1,
    failureThreshold: 1,
    timeoutSeconds: 120,
  };
}

/** Builds a pod with an init container, a sidecar and two containers, one of them with a probe. */
export function manifoldPod(cluster: FaultyCluster, name: string): object {
  const readinessProbe = execProbe('true');
  return markedPod(cluster, name, {
    initContainers: [
      container('first', { command: ['true'] }),
      container('beside', { command: ['sh', '-c', stays], restartPolicy: 'Always' }),
    ],
    containers: [
      marked(name, stays, { readinessProbe }),
      container('second', { command: ['sh', '-c', stays] }),
    ],
  });
}

/** Binds the pod to the node, because the cluster has no scheduler. */
export function bound<T extends object>(made: T, nodeName: string): object {
  const { spec } = made as { readonly spec?: object };
  return { ...made, spec: { ...spec, nodeName } };
}
