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

/** The sorts of mistakes an API server tells apart. */
export type FieldReason =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueDuplicate'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueNotFound'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany';

/** What is wrong with a field of a pod, in the words of an API server. */
export interface FieldProblem {
  /** The very field that is wrong. */
  readonly field: FieldPath;
  /** The field as an API server names it, which is at times one further up. */
  readonly named: FieldPath;
  readonly reason: FieldReason;
  /** Without the field, such as `Required value`. */
  readonly message: string;
}
