import type { FieldPath } from '../kinds/index.ts';

/** Whether a feature gate of the kubelet is on. */
export type FeatureGate = (name: string) => boolean;

/** What decides which pods a static source may run. */
export interface PodRules {
  readonly enabled: FeatureGate;
  /**
   * Whether static pods may refer to objects of an API server, such as secrets. They may where such objects are known
   * before any pod starts, as with the embedded API.
   */
  readonly apiReferences: 'refused' | 'allowed';
}

/** What is wrong with a field of a pod. */
export interface FieldProblem {
  readonly field: FieldPath;
  readonly message: string;
}
