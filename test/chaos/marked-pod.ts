import { busyboxImageName } from '../../src/containerd/index.ts';

/** The behaviour of a test pod. */
export type Behaviour =
  /** The container runs until it is stopped, and exits immediately on SIGTERM. */
  | 'stays'
  /** The container behaves like `stays`, after an init container. */
  | 'prepares'
  /** The container runs until it is killed, because it ignores SIGTERM. */
  | 'lingers'
  /** The container exits with an error, and is always restarted. */
  | 'crashes'
  /** The container exits successfully, and must not be restarted. */
  | 'ends';

/**
 * One version of a test pod. Each version is unique, so it has its own UID and its starts can be
 * attributed to it.
 */
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

/**
 * A shell command that prints the ID of its own container, which is the last part of the cgroup
 * path. In a cgroup namespace the path is hidden, and the output is empty.
 */
const ownId = 'sed -n "s,.*/,,p" /proc/self/cgroup | sort | tail -n 1';

/** The mark file, to which each container appends a line when it starts. */
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
