import type { YamlTree } from '../../lib/index.ts';

/** The tree as JSON with sorted keys and no spaces, which is how parts that nobody looks into are kept. */
export function rawJson(tree: YamlTree): string {
  if (tree.kind === 'scalar')
    return typeof tree.value === 'string' ? JSON.stringify(tree.value) : String(tree.value);
  if (tree.kind === 'list') return `[${tree.items.map(rawJson).join(',')}]`;
  const entries = [...new Map(tree.entries.map((entry) => [entry.key, entry.value]))].sort(([a], [b]) =>
    a < b ? -1 : 1,
  );
  return `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${rawJson(value)}`).join(',')}}`;
}
