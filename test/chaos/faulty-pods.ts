import { container, pod, podSpec } from '../cluster/cluster-pods.ts';
import type { FaultyCluster } from './faulty-cluster.ts';

/** Ends at once when told to, and costs nothing until then. */
const stays = 'trap "exit 0" TERM; sleep 100000 & wait';
const mounts = { volumeMounts: [{ name: 'marks', mountPath: '/marks' }] };

/** Leaves a line with the time in the file of marks whenever it starts. */
export function marked(mark: string, script = stays, fields: object = {}): object {
  const command = ['sh', '-c', `cut -d " " -f 1 /proc/uptime >> /marks/${mark}; ${script}`];
  return container('main', { command, ...mounts, ...fields });
}

interface PodFields {
  readonly containers?: readonly object[];
  readonly initContainers?: readonly object[];
  readonly volumes?: readonly object[];
}

/** Unless others are given it has one container, `main`, whose mark is called as the pod. */
export function markedPod({ marksDir }: FaultyCluster, name: string, fields: PodFields = {}): object {
  const { containers = [marked(name)], volumes = [], ...others } = fields;
  const marks = { name: 'marks', hostPath: { path: marksDir } };
  return pod(name, podSpec(containers, { ...others, volumes: [marks, ...volumes] }));
}

/** Every second, and once is enough. */
export function execProbe(script: string): object {
  return {
    exec: { command: ['sh', '-c', script] },
    periodSeconds: 1,
    failureThreshold: 1,
    timeoutSeconds: 120,
  };
}

/** With an init container, a sidecar and two containers of which one is probed. */
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

/** Nobody needs to be asked where it goes. */
export function bound<T extends object>(made: T, nodeName: string): object {
  const { spec } = made as { readonly spec?: object };
  return { ...made, spec: { ...spec, nodeName } };
}
