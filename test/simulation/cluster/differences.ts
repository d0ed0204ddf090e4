/** Lists where two JSON values differ, as `path: one, not other`, for failure messages. */
export function differences(one: unknown, other: unknown, path = ''): readonly string[] {
  if (!isTree(one) || !isTree(other)) {
    const [first, second] = [JSON.stringify(one), JSON.stringify(other)];
    return first === second ? [] : [`${path}: ${first}, not ${second}`];
  }
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...keys].flatMap((key) => differences(one[key], other[key], path === '' ? key : `${path}.${key}`));
}

function isTree(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
