import { type Document, isMap, isSeq, parse, parseDocument, YAMLMap, YAMLSeq } from 'yaml';
import { KubelingError } from '../../lib/index.ts';

export interface MergeWish {
  /** The name of the cluster, user and context. */
  readonly name: string;
  readonly choose: 'use' | 'keep';
  /** The path of the file, for messages. */
  readonly path: string;
}

interface OwnKubeconfig {
  readonly clusters: readonly { readonly cluster: unknown }[];
  readonly users: readonly { readonly user: unknown }[];
}

/**
 * Adds our entries to a user's kubeconfig. The rest stays as it was written, including comments.
 */
export function mergeKubeconfig(theirs: string, ours: string, { name, choose, path }: MergeWish): string {
  const { clusters, users } = parse(ours) as OwnKubeconfig;
  const document = readTheirs(theirs.trim() === '' ? 'apiVersion: v1\nkind: Config\n' : theirs, path);
  put(document, 'clusters', { name, cluster: clusters[0]?.cluster }, path);
  put(document, 'users', { name, user: users[0]?.user }, path);
  put(document, 'contexts', { name, context: { cluster: name, user: name } }, path);
  if (choose === 'use' || !document.has('current-context')) document.set('current-context', name);
  return document.toString(asWritten);
}

/**
 * Removes the entries of that name from a user's kubeconfig. The rest stays as it was written,
 * including comments.
 */
export function withoutContext(theirs: string, { name, path }: Pick<MergeWish, 'name' | 'path'>): string {
  if (theirs.trim() === '') return theirs;
  const document = readTheirs(theirs, path);
  const taken = ['clusters', 'users', 'contexts'].map((list) => take(document, list, name));
  if (!taken.includes('taken')) return theirs;
  if (document.get('current-context') === name) document.set('current-context', '');
  return document.toString(asWritten);
}

function take(document: Document, list: string, name: string): 'taken' | 'absent' {
  const items = document.get(list);
  if (!isSeq(items)) return 'absent';
  const at = indexOf(items, name);
  if (at >= 0) items.items.splice(at, 1);
  // A block list cannot be empty.
  if (items.items.length === 0) items.flow = true;
  return at >= 0 ? 'taken' : 'absent';
}

function readTheirs(text: string, path: string): Document {
  const document = parseDocument(text, { prettyErrors: false });
  const [wrong] = document.errors;
  if (wrong === undefined && isMap(document.contents)) return document;
  // The parser's own message quotes the text, which contains secrets.
  const line = text.slice(0, wrong?.pos[0]).split('\n').length;
  const why =
    wrong === undefined ? 'its top level is not a map' : `line ${line} is not valid YAML (${wrong.code})`;
  throw new KubelingError(
    'KUBECONFIG_INVALID',
    `Cannot change the contexts of ${path}: it must be a kubeconfig: ${why}`,
  );
}

function indexOf(items: YAMLSeq, name: string): number {
  return items.items.findIndex((each) => each instanceof YAMLMap && each.get('name') === name);
}

/** Long lines, such as certificates, are not folded. */
const asWritten = { lineWidth: 0 } as const;

/** Replaces the entry of that name, or appends it. */
function put(
  document: Document,
  list: string,
  item: { readonly name: string } & Readonly<Record<string, unknown>>,
  path: string,
): void {
  const found = document.get(list);
  if (found === undefined || found === null) document.set(list, new YAMLSeq());
  const items = document.get(list);
  if (!isSeq(items))
    throw new KubelingError(
      'KUBECONFIG_INVALID',
      `Cannot add the context to ${path}: ${list} must be a list`,
    );
  const at = indexOf(items, item.name);
  const node = document.createNode(item);
  if (at < 0) items.items.push(node);
  else items.items[at] = node;
  items.flow = false;
}
