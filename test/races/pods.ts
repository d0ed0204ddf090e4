import type { PodSpec, PodStatus, Pod as WrittenPod } from '../../src/kinds/index.ts';
import { withPodDefaults } from '../../src/pods/defaults/index.ts';
import { annotations, type Pod, type PodMeta, podUid } from '../../src/pods/index.ts';
import { manifestText } from '../simulation/manifests.ts';
import { type Behaviour, images, type PodSketch } from '../simulation/sketch.ts';

export interface PodShape extends Behaviour {
  /** The names of the containers, all with the same behaviour; by default only `app`. */
  readonly containers?: readonly string[];
  readonly image?: string;
  readonly revision?: number;
  readonly graceSeconds?: number;
  readonly restartPolicy?: PodSketch['restartPolicy'];
  readonly metadata?: Partial<PodMeta>;
  readonly spec?: Partial<PodSpec>;
  readonly status?: PodStatus;
}

/**
 * The manifest of a pod that by default runs permanently, exits on SIGTERM and mounts all its
 * volumes.
 */
export function manifest(name: string, shape: PodShape = {}): string {
  return JSON.stringify(written(name, shape));
}

/** A pod as an API server would return it. */
export function apiPod(name: string, uid: string, shape: PodShape = {}): Pod {
  const { metadata, spec } = withPodDefaults(written(name, shape), () => false);
  return {
    metadata: { ...metadata, name, namespace: 'default', uid: podUid(uid), ...shape.metadata },
    spec,
    status: shape.status ?? { phase: 'Pending' },
  };
}

/** The mirror pod of a static pod, with the given UID, as an API server would return it. */
export function mirrorOf(pod: Pod, uid: string, metadata: Partial<PodMeta> = {}): Pod {
  const hash = pod.metadata.annotations?.[annotations.hash] ?? '';
  const own = { ...pod.metadata.annotations, [annotations.mirror]: hash };
  return { ...pod, metadata: { ...pod.metadata, annotations: own, ...metadata, uid: podUid(uid) } };
}

function written(name: string, shape: PodShape): WrittenPod {
  const { containers = ['app'], image = images.present, metadata, spec, status: _status, ...rest } = shape;
  const { revision = 0, graceSeconds = 2, restartPolicy = 'Always', ...behaviour } = rest;
  const sketch: PodSketch = {
    name,
    revision,
    graceSeconds,
    restartPolicy,
    init: [],
    containers: containers.map((container) => ({ name: container, image, ...behaviour })),
  };
  const pod = JSON.parse(manifestText(sketch)) as WrittenPod & { readonly spec: PodSpec };
  const volumeMounts = spec?.volumes?.map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` }));
  const mounting = pod.spec.containers.map((container) => ({ ...container, volumeMounts }));
  return {
    ...pod,
    metadata: { ...pod.metadata, ...metadata },
    spec: { ...pod.spec, containers: mounting, ...spec },
  };
}
