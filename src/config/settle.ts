import { effectiveName, type Field, type Fields, type ValueType } from './fields.ts';
import { byDefault, fieldPath, keyPath, type Origin, Origins } from './origins.ts';
import type { Written, WrittenMap } from './written.ts';

export interface Settled {
  readonly value: Readonly<Record<string, unknown>>;
  readonly origins: Origins;
}

/** What is in effect when this much was written: every field gets its value and every value its origin. */
export function settleFields(fields: Fields, written: WrittenMap): Settled {
  const byPath = new Map<string, Origin>();
  const value = settleObject(fields, written, '', byPath);
  return { value, origins: new Origins(byPath) };
}

function settleObject(
  fields: Fields,
  written: WrittenMap | undefined,
  path: string,
  origins: Map<string, Origin>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const value = settleField(field, written?.entries.get(name), fieldPath(path, name), origins);
      return [effectiveName(name, field.type), value];
    }),
  );
}

function settleField(
  field: Field,
  node: Written | undefined,
  path: string,
  origins: Map<string, Origin>,
): unknown {
  if (node !== undefined && node.kind !== 'nothing' && !meansDefault(field, node)) {
    return settleValue(field.type, node, path, origins);
  }
  origins.set(path, byDefault);
  const isObject = field.type.kind === 'object' && field.presence === 'always';
  return isObject ? settleValue(field.type, undefined, path, origins) : field.default;
}

/** A zero on the command line was put there by hand and counts; a zero in a file mostly does not. */
function meansDefault(field: Field, node: Written): boolean {
  if (field.zero !== 'default' || node.kind !== 'value' || node.origin.kind === 'flag') return false;
  return node.value === 0 || node.value === '' || node.value === false;
}

function settleValue(
  type: ValueType,
  node: Written | undefined,
  path: string,
  origins: Map<string, Origin>,
): unknown {
  if (node !== undefined) origins.set(path, node.origin);
  if (type.kind === 'object')
    return settleObject(type.fields, node?.kind === 'map' ? node : undefined, path, origins);
  if (node === undefined || node.kind === 'nothing') return undefined;
  if (type.kind === 'map' && node.kind === 'map') {
    const entries = [...node.entries].filter(([, item]) => item.kind !== 'nothing');
    return Object.fromEntries(
      entries.map(([key, item]) => [key, settleValue(type.item, item, keyPath(path, key), origins)]),
    );
  }
  if (type.kind === 'list' && node.kind === 'list') {
    return node.items.map((item, index) => settleValue(type.item, item, keyPath(path, index), origins));
  }
  return node.kind === 'value' ? node.value : undefined;
}
