import type { FlagKind, Quantity } from '../lib/index.ts';

/**
 * The building blocks of the configuration table. Each field has a type, a default, a flag that
 * sets it and a description. Decoding, defaults, flags, validation and printing all use this table.
 */

/** Returns why a text is invalid, as the continuation of "must be"; undefined if it is valid. */
export type TextCheck = (text: string) => string | undefined;

export type ValueType =
  | { readonly kind: 'bool' }
  | { readonly kind: 'int'; readonly min: number; readonly max: number }
  /** A number greater than `above` and at most `max`. */
  | { readonly kind: 'float'; readonly above: number; readonly max: number }
  | TextType
  | DurationType
  | { readonly kind: 'quantity' }
  | { readonly kind: 'list'; readonly item: ValueType }
  | { readonly kind: 'map'; readonly item: ValueType }
  | { readonly kind: 'object'; readonly fields: Fields };

export interface TextType {
  readonly kind: 'text';
  /** The allowed texts; any text if undefined. */
  readonly choices?: readonly string[];
  readonly check?: TextCheck;
  /** The text is a path; a relative path is resolved against the directory of its file. */
  readonly path?: 'resolved';
  /** The text is a secret: it is not shown in messages or in a printed configuration. */
  readonly secret?: 'hidden';
}

/** A duration with bounds in milliseconds, both inclusive. */
export interface DurationType {
  readonly kind: 'duration';
  readonly min?: number;
  readonly max?: number;
  /** Whether a number without a unit is accepted, as nanoseconds. */
  readonly numbers?: 'nanoseconds';
}

/**
 * A field type together with the TypeScript type of its values, which exists only at compile time.
 */
export type Typed<T, Y extends ValueType = ValueType> = Y & { readonly values?: () => T };
type ValuesOf<Y> = Y extends { readonly values?: () => infer T } ? T : never;

export interface FieldFlag {
  readonly name: string;
  /** The syntax of the flag, if it differs from the default syntax of the field's type. */
  readonly syntax?: FlagKind<unknown>;
  /** Whether the flag is current, or deprecated in favor of a configuration file. */
  readonly standing: 'current' | 'deprecated';
}

export interface Field {
  readonly type: ValueType;
  /**
   * The default value; undefined for objects that are always present, whose fields have defaults
   * instead.
   */
  readonly default: unknown;
  readonly presence: 'always' | 'optional';
  /**
   * The meaning of a zero value (0, "", 0s, false) in a file. Tools that write configurations write
   * zeros for all fields they do not set, so for most fields a zero means the default.
   */
  readonly zero: 'default' | 'counts';
  readonly doc: string;
  readonly flag?: FieldFlag;
}

export type Fields = Readonly<Record<string, Field>>;
type TypedField<T, K extends ValueType['kind']> = Field & {
  readonly type: { readonly kind: K };
  readonly values?: () => T;
};

/**
 * The TypeScript type of the values of a field table: each value under its name, durations in
 * milliseconds under the name with the suffix `Ms`.
 */
export type Effective<F extends Fields> = {
  readonly [N in keyof F & string as EffectiveName<N, F[N]>]: ValuesOf<F[N]>;
};
type EffectiveName<N extends string, Y extends Field> = Y['type']['kind'] extends 'duration' ? `${N}Ms` : N;

export function effectiveName(name: string, type: ValueType): string {
  return type.kind === 'duration' ? `${name}Ms` : name;
}

export const bool: Typed<boolean, { readonly kind: 'bool' }> = { kind: 'bool' };
export const quantity: Typed<Quantity, { readonly kind: 'quantity' }> = { kind: 'quantity' };

type IntType = Extract<ValueType, { kind: 'int' }>;

export function int32(min = -(2 ** 31), max = 2 ** 31 - 1): Typed<number, IntType> {
  return { kind: 'int', min, max };
}

/** A 64-bit integer, limited to the integers that a double represents exactly. */
export function int64(min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER): Typed<number, IntType> {
  return { kind: 'int', min, max };
}

export function float(above: number, max: number): Typed<number, Extract<ValueType, { kind: 'float' }>> {
  return { kind: 'float', above, max };
}

export function text(options: Omit<TextType, 'kind' | 'choices'> = {}): Typed<string, TextType> {
  return { kind: 'text', ...options };
}

export function choiceOf<const T extends string>(...choices: readonly T[]): Typed<T, TextType> {
  return { kind: 'text', choices };
}

export function duration(options: Omit<DurationType, 'kind'> = {}): Typed<number, DurationType> {
  return { kind: 'duration', ...options };
}

export function list<T>(item: Typed<T>): Typed<readonly T[], Extract<ValueType, { kind: 'list' }>> {
  return { kind: 'list', item };
}

export function map<T>(
  item: Typed<T>,
): Typed<Readonly<Record<string, T>>, Extract<ValueType, { kind: 'map' }>> {
  return { kind: 'map', item };
}

export function object<F extends Fields>(
  fields: F,
): Typed<Effective<F>, Extract<ValueType, { kind: 'object' }>> {
  return { kind: 'object', fields };
}

/** Defines a field in which an explicit zero means the default. */
export function plain<Y extends Typed<unknown>>(
  type: Y,
  standard: ValuesOf<Y>,
  doc: string,
  flag?: FieldFlag,
): TypedField<ValuesOf<Y>, Y['kind']> {
  return { type, default: standard, presence: 'always', zero: 'default', doc, ...(flag && { flag }) };
}

/** Defines a field in which an explicit zero is a value. */
export function exact<Y extends Typed<unknown>>(
  type: Y,
  standard: ValuesOf<Y>,
  doc: string,
  flag?: FieldFlag,
): TypedField<ValuesOf<Y>, Y['kind']> {
  return { type, default: standard, presence: 'always', zero: 'counts', doc, ...(flag && { flag }) };
}

/** Defines a field that may have no value. */
export function optional<Y extends Typed<unknown>>(
  type: Y,
  doc: string,
): TypedField<ValuesOf<Y> | undefined, Y['kind']> {
  return { type, default: undefined, presence: 'optional', zero: 'counts', doc };
}

/** Defines an object field that is always present and whose fields have defaults. */
export function nested<F extends Fields>(fields: F, doc: string): TypedField<Effective<F>, 'object'> {
  return { type: object(fields), default: undefined, presence: 'always', zero: 'counts', doc };
}

/** Declares a deprecated flag for a field, for users without a configuration file. */
export function flag(name: string, syntax?: FlagKind<unknown>): FieldFlag {
  return { name, standing: 'deprecated', ...(syntax && { syntax }) };
}

export function currentFlag(name: string, syntax?: FlagKind<unknown>): FieldFlag {
  return { name, standing: 'current', ...(syntax && { syntax }) };
}

export function hasSecrets(type: ValueType): boolean {
  if (type.kind === 'text') return type.secret === 'hidden';
  if (type.kind === 'list' || type.kind === 'map') return hasSecrets(type.item);
  return type.kind === 'object' && Object.values(type.fields).some((field) => hasSecrets(field.type));
}
