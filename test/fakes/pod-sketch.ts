import { annotations, type ObservedPod, type Pod, podUid, type RuntimePod } from '../../src/pods/index.ts';

export interface PodSketch {
  readonly uid?: string;
  readonly name?: string;
  /** The source of the pod; api if undefined. */
  readonly source?: 'api' | 'file' | 'http';
  readonly phase?: string;
  readonly graceSeconds?: number;
  /** If set, the pod was deleted in the API with this grace period. */
  readonly deletionGraceSeconds?: number;
}

/** Builds a pod with one container, as a source would deliver it. */
export function podOf(sketch: PodSketch = {}): Pod {
  const { uid = 'uid-1', name = 'web', source = 'api', deletionGraceSeconds } = sketch;
  const deletion =
    deletionGraceSeconds === undefined
      ? {}
      : {
          deletionTimestamp: '2026-01-01T00:00:00Z',
          deletionGracePeriodSeconds: deletionGraceSeconds,
        };
  return {
    metadata: {
      uid: podUid(uid),
      name,
      namespace: 'default',
      annotations: { [annotations.source]: source },
      ...deletion,
    },
    spec: {
      containers: [{ name: 'main', image: 'busybox' }],
      terminationGracePeriodSeconds: sketch.graceSeconds ?? 30,
    },
    status: { phase: sketch.phase ?? 'Pending' },
  };
}

export function observedOf(uid: string, state: 'running' | 'exited' | 'nothing' = 'nothing'): ObservedPod {
  const sandboxes = [
    {
      id: `${uid}-sandbox`,
      attempt: 0,
      state: state === 'running' ? ('ready' as const) : ('not-ready' as const),
      createdAtNs: 1n,
      network: 'pod' as const,
      ips: [],
      runtimeHandler: '',
    },
  ];
  return {
    uid: podUid(uid),
    name: 'web',
    namespace: 'default',
    ips: state === 'running' ? ['10.0.0.1'] : [],
    sandboxes: state === 'nothing' ? [] : sandboxes,
    containers: [],
  };
}

export function runtimePodOf(uid: string, items: Partial<Pick<RuntimePod, 'containers' | 'sandboxes'>> = {}) {
  return {
    uid: podUid(uid),
    name: 'web',
    namespace: 'default',
    sandboxes: items.sandboxes ?? [],
    containers: items.containers ?? [],
  } satisfies RuntimePod;
}
