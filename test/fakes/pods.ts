import type { PodSpec, PodStatus } from '../../src/kinds/index.ts';
import { type Pod, type PodMeta, podUid } from '../../src/pods/index.ts';

export interface PodParts {
  readonly metadata?: Partial<PodMeta>;
  readonly spec?: Partial<PodSpec>;
  readonly status?: PodStatus;
}

/** Builds the pod `web` with one container `main` and the fields that a test overrides. */
export function aPod({ metadata, spec, status }: PodParts = {}): Pod {
  return {
    metadata: { uid: podUid('uid-1'), name: 'web', namespace: 'default', ...metadata },
    spec: { containers: [{ name: 'main', image: 'example/web:1' }], ...spec },
    status: { ...status },
  };
}
