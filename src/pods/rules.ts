import type { FieldPath } from '../kinds/index.ts';

/** Whether a feature gate of the kubelet is enabled. */
export type FeatureGate = (name: string) => boolean;

/** Decides which static pods are valid. */
export interface PodRules {
  readonly enabled: FeatureGate;
  /**
   * Whether static pods may refer to API objects, such as secrets. They may where such objects
   * exist before any pod starts, as with the embedded API.
   */
  readonly apiReferences: 'refused' | 'allowed';
}

/** The kinds of validation errors of an API server. */
export type FieldReason =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueDuplicate'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueNotFound'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany';

/** A validation error of a field, in the wording of an API server. */
export interface FieldProblem {
  /** The invalid field. */
  readonly field: FieldPath;
  /** The field as an API server reports it, which may be a parent. */
  readonly named: FieldPath;
  readonly reason: FieldReason;
  /** Without the field, such as `Required value`. */
  readonly message: string;
}
