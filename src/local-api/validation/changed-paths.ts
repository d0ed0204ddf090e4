import { isJsonObject, sameValue } from '../../api/index.ts';

const mostPaths = 20;

/** The paths of fields that differ, such as `spec.containers[0].command`; limited in number. */
export function changedPaths(before: unknown, after: unknown, path: string): readonly string[] {
  const all = [...differences(before, after, path)];
  return all.length <= mostPaths ? all : [...all.slice(0, mostPaths), `and ${all.length - mostPaths} more`];
}

function* differences(before: unknown, after: unknown, path: string): Generator<string> {
  if (sameValue(before, after)) return;
  if (isJsonObject(before) && isJsonObject(after)) yield* inObjects(before, after, path);
  else if (Array.isArray(before) && Array.isArray(after)) yield* inLists(before, after, path);
  else yield path;
}

function* inObjects(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  path: string,
): Generator<string> {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  for (const name of names) yield* differences(before[name], after[name], `${path}${member(name)}`);
}

function* inLists(before: readonly unknown[], after: readonly unknown[], path: string): Generator<string> {
  const length = Math.max(before.length, after.length);
  for (let index = 0; index < length; index++)
    yield* differences(before[index], after[index], `${path}[${index}]`);
}

/** A map key that contains a dot is put in brackets. */
function member(name: string): string {
  return /^[A-Za-z]\w*$/.test(name) ? `.${name}` : `[${name}]`;
}
