import { busyboxImageName } from '../../src/containerd/index.ts';

/** What a pod does by itself. */
export type Behaviour =
  /** Runs until it is told to end, and ends at once. */
  | 'stays'
  /** The same, after a container that prepares it. */
  | 'prepares'
  /** Runs, and does not listen when it is told to end. */
  | 'lingers'
  /** Ends with an error, and is started again for ever. */
  | 'crashes'
  /** Ends well, and must not be started again. */
  | 'ends';

/** One version of one pod. No two are alike, so each has a UID of its own and each start of it can be told apart. */
export interface MarkedPod {
  readonly name: string;
  readonly version: number;
  readonly behaviour: Behaviour;
}

const untilTold = 'trap "exit 0" TERM; sleep 100000 & wait';
const scripts: Readonly<Record<Behaviour, string>> = {
  stays: untilTold,
  prepares: untilTold,
  lingers: 'trap "" TERM; sleep 100000',
  crashes: 'sleep 0.3; exit 1',
  ends: 'sleep 0.3; exit 0',
};

/** The last part of its cgroup's path is a container's id; it is not to be seen where cgroups have a namespace. */
const ownId = 'sed -n "s,.*/,,p" /proc/self/cgroup | sort | tail -n 1';

/** Each container leaves one line in this file of the marks directory when it starts. */
export function markOf({ name, version }: MarkedPod): string {
  return `${name}.${version}`;
}

export function manifestOf(pod: MarkedPod, marksDir: string) {
  const { name, version, behaviour } = pod;
  const container = (called: string, script: string) => ({
    name: called,
    image: busyboxImageName,
    command: ['sh', '-c', `echo ${called} $(${ownId}) >> /marks/${markOf(pod)}; ${script}`],
    volumeMounts: [{ name: 'marks', mountPath: '/marks' }],
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, annotations: { version: String(version) } },
    spec: {
      terminationGracePeriodSeconds: behaviour === 'lingers' ? 1 : 2,
      restartPolicy: behaviour === 'ends' ? 'OnFailure' : 'Always',
      volumes: [{ name: 'marks', hostPath: { path: marksDir } }],
      ...(behaviour === 'prepares' ? { initContainers: [container('first', 'sleep 0.2')] } : {}),
      containers: [container('main', scripts[behaviour])],
    },
  };
}
