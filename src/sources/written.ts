import type { YamlTree } from '../lib/index.ts';

/** What a manifest says, as opposed to what was made of it. Of a key written twice the last counts. */
export function entryOf(tree: YamlTree | undefined, key: string): YamlTree | undefined {
  return tree?.kind === 'map' ? tree.entries.findLast((entry) => entry.key === key)?.value : undefined;
}

/** Setting something to null is as good as leaving it out. */
export function isWritten(tree: YamlTree | undefined): tree is YamlTree {
  return tree !== undefined && !(tree.kind === 'scalar' && tree.value === null);
}

export function textOf(tree: YamlTree | undefined): string | undefined {
  return tree?.kind === 'scalar' && tree.value !== null ? String(tree.value) : undefined;
}
