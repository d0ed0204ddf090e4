import type { FieldPath } from '../kinds/index.ts';

/** Whether a feature gate of the kubelet is enabled; gates change which static pods are valid. */
export type FeatureGate = (name: string) => boolean;

/** Settings that decide which static pods are valid. */
export interface PodRules {
  readonly enabled: FeatureGate;
  /**
   * Whether static pods may refer to API objects, such as secrets. This is allowed where such
   * objects exist before any pod starts, as with the embedded API.
   */
  readonly apiReferences: 'refused' | 'allowed';
}

/** The kinds of validation errors of the API server. */
export type FieldReason =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueDuplicate'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueNotFound'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany';

/** A validation error of a field, with the text of the API server. */
export interface FieldProblem {
  /** The path of the invalid field. */
  readonly field: FieldPath;
  /** The path that the API server's error names, which may be a parent of the invalid field. */
  readonly named: FieldPath;
  readonly reason: FieldReason;
  /** The message without the field, such as `Required value`. */
  readonly message: string;
}
