import { createHash } from 'node:crypto';
import type { YamlScalar, YamlTree } from '../lib/index.ts';
import { type PodUid, podUid } from '../pods/index.ts';

/** Where a manifest lies, which is part of who its pod is. */
export interface ManifestPlace {
  readonly source: 'file' | 'http';
  /** The path of the file, or the URL. */
  readonly path: string;
  readonly nodeName: string;
}

/**
 * The UID of a pod whose manifest gives none: the same for the same manifest on the same node in the same place, for
 * all versions of kubeling. It is made of what was written, before any default is filled in, so that a new default of a
 * new version does not restart every pod. Comments, order of keys and layout do not count.
 */
export function staticPodUid(manifest: YamlTree, place: ManifestPlace): PodUid {
  const hash = createHash('sha256');
  for (const part of [canonicalJson(manifest), place.nodeName, place.source, place.path])
    hash.update(`${Buffer.byteLength(part)}:${part}\n`);
  return podUid(hash.digest('hex').slice(0, 32));
}

/** JSON with sorted keys and no spaces. Of a key written twice the last counts; a key set to null is left out. */
export function canonicalJson(tree: YamlTree): string {
  if (tree.kind === 'scalar') return canonicalScalar(tree.value);
  if (tree.kind === 'list') return `[${tree.items.map(canonicalJson).join(',')}]`;
  const entries = [...new Map(tree.entries.map((entry) => [entry.key, entry.value]))]
    .filter(([, value]) => !(value.kind === 'scalar' && value.value === null))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${canonicalJson(value)}`).join(',')}}`;
}

/** Numbers JSON has no word for are told apart from text by having no quotes. */
function canonicalScalar(value: YamlScalar): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
