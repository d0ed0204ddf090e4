import { didYouMean, formatDurationMs } from '../lib/index.ts';
import { hasSecrets, type TextType, type ValueType } from './fields.ts';
import { fieldPath, keyPath } from './origins.ts';

/** What is wrong with a value of the right shape: "must be X: current value is Y", or undefined. */
export function checkScalar(type: ValueType, value: unknown): string | undefined {
  const must = whatItMustBe(type, value);
  return must === undefined ? undefined : `must be ${must}: current value is ${showValue(type, value)}`;
}

function whatItMustBe(type: ValueType, value: unknown): string | undefined {
  if (type.kind === 'int') {
    return (value as number) >= type.min && (value as number) <= type.max
      ? undefined
      : describeRange(type.min, type.max);
  }
  if (type.kind === 'float') {
    const inside = (value as number) > type.above && (value as number) <= type.max;
    return inside ? undefined : `a number above ${type.above} and up to ${type.max}`;
  }
  if (type.kind === 'duration') return durationMust(value as number, type.min, type.max);
  return type.kind === 'text' ? textMust(type, value as string) : undefined;
}

export function describeRange(min: number, max: number): string {
  return `a whole number from ${min} to ${max}`;
}

function durationMust(ms: number, min: number | undefined, max: number | undefined): string | undefined {
  const low = min !== undefined && ms < min;
  const high = max !== undefined && ms > max;
  if (!low && !high) return undefined;
  if (min !== undefined && max !== undefined)
    return `from ${formatDurationMs(min)} to ${formatDurationMs(max)}`;
  return low ? `${formatDurationMs(min)} or longer` : `${formatDurationMs(max ?? 0)} or shorter`;
}

function textMust(type: TextType, value: string): string | undefined {
  if (type.choices !== undefined && !type.choices.includes(value)) {
    const choices = type.choices.map((choice) => (choice === '' ? '""' : choice));
    return `one of ${choices.join(', ')}${didYouMean(value, type.choices)}`;
  }
  return type.check?.(value);
}

/** For a message; never a secret. */
export function showValue(type: ValueType, value: unknown): string {
  if (hasSecrets(type)) return 'hidden';
  return type.kind === 'duration' ? formatDurationMs(value as number) : JSON.stringify(value);
}

/** The same for everything inside a value, each with the path it stands at. */
export function checkDeeply(
  type: ValueType,
  value: unknown,
  path: string,
): { path: string; message: string }[] {
  if (type.kind === 'list') {
    return (value as readonly unknown[]).flatMap((item, index) =>
      checkDeeply(type.item, item, keyPath(path, index)),
    );
  }
  if (type.kind === 'map') {
    const entries = Object.entries(value as Readonly<Record<string, unknown>>);
    return entries.flatMap(([key, item]) => checkDeeply(type.item, item, keyPath(path, key)));
  }
  if (type.kind === 'object') {
    const object = value as Readonly<Record<string, unknown>>;
    const fields = Object.entries(type.fields).filter(([name]) => object[name] !== undefined);
    return fields.flatMap(([name, field]) => checkDeeply(field.type, object[name], fieldPath(path, name)));
  }
  const message = checkScalar(type, value);
  return message === undefined ? [] : [{ path, message }];
}
