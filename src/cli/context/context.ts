import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Document, isMap, isSeq, parse, parseDocument, YAMLMap, YAMLSeq } from 'yaml';
import {
  boolFlag,
  type FlagTable,
  formatFlagHelp,
  KubelingError,
  readFileIfExists,
  stringFlag,
} from '../../lib/index.ts';
import { type Command, type CommandContext, exitCodes, readFlags } from '../command.ts';
import { dataDirFlag, defaultDataDirectory, findDataDirectory } from '../data-directory/data-directory.ts';
import { backupOf, changeUserFile } from './user-file.ts';

const flags = {
  'data-dir': dataDirFlag,
  kubeconfig: {
    kind: stringFlag,
    help: 'The kubeconfig to change; by default the first one of $KUBECONFIG, else ~/.kube/config.',
  },
  name: { kind: stringFlag, help: 'The name of the context.', default: 'kubeling' },
  use: { kind: boolFlag, help: 'Make it the current context.', default: 'true' },
  remove: { kind: boolFlag, help: 'Remove the context instead.', default: 'false' },
} satisfies FlagTable;

const usage = `usage: kubeling context [flags]

Adds the cluster, user and context of the running kubeling to your kubeconfig, so that kubectl finds it without further
flags. The rest of the file is unchanged; the entries of an earlier call are replaced. "kubeling up" renews its certificate
in time: run this command again to get the new one. A backup of the file is saved beside it.

${formatFlagHelp(flags).trimEnd()}`;

async function run(context: CommandContext): Promise<number> {
  const values = readFlags(flags, context.argv);
  const path = values.kubeconfig ?? usualKubeconfig(context.env);
  const name = values.name ?? 'kubeling';
  const result =
    values.remove === true
      ? await remove(path, name)
      : await put(path, { name, choose: values.use === false ? 'keep' : 'use' }, values['data-dir']);
  context.stdout.write(`${result}\n`);
  return exitCodes.done;
}

async function put(
  path: string,
  { name, choose }: { readonly name: string; readonly choose: 'use' | 'keep' },
  dataDir: string = defaultDataDirectory,
): Promise<string> {
  const own = await readOwn(dataDir);
  const changed = await changeUserFile(path, (text) => mergeKubeconfig(text, own, { name, choose, path }));
  const current = choose === 'use' ? ', and it is the current context' : '';
  if (changed === 'same') return `The context ${name} was already in ${path}${current}.`;
  return `The context ${name} is in ${path}${current}.${changed === 'changed' ? backupText(path) : ''}`;
}

async function remove(path: string, name: string): Promise<string> {
  const changed = await changeUserFile(path, (text) => withoutContext(text, { name, path }));
  return changed === 'changed'
    ? `The context ${name} is no longer in ${path}.${backupText(path)}`
    : `There is no context ${name} in ${path}.`;
}

function backupText(path: string): string {
  return ` The previous file is saved as ${backupOf(path)}.`;
}

async function readOwn(dataDir: string): Promise<string> {
  const directory = await findDataDirectory(dataDir);
  const own = directory === undefined ? undefined : await readKubeconfig(directory.kubeconfig);
  if (own !== undefined) return own;
  throw new KubelingError(
    'HOME_UNUSABLE',
    `Cannot find a kubeconfig in ${dataDir}: start kubeling there with "kubeling up"`,
  );
}

async function readKubeconfig(path: string): Promise<string | undefined> {
  return await readFileIfExists(path).catch((cause) => {
    throw new KubelingError('FILE_READ', `Cannot read ${path}`, { cause });
  });
}

function usualKubeconfig(env: CommandContext['env']): string {
  const [first = ''] = (env['KUBECONFIG'] ?? '').split(delimiter).filter((part) => part !== '');
  return first === '' ? join(env['HOME'] ?? homedir(), '.kube', 'config') : first;
}

export const command: Command = {
  name: 'context',
  summary: 'add the API of "up" to your kubeconfig',
  usage,
  run,
};

export interface ContextOptions {
  /** The name of the cluster, user and context. */
  readonly name: string;
  readonly choose: 'use' | 'keep';
  /** The path of the file, for error messages. */
  readonly path: string;
}

interface OwnKubeconfig {
  readonly clusters: readonly { readonly cluster: unknown }[];
  readonly users: readonly { readonly user: unknown }[];
}

/**
 * Adds kubeling's entries to a user's kubeconfig. All other text stays unchanged, including
 * comments.
 */
export function mergeKubeconfig(
  theirs: string,
  ours: string,
  { name, choose, path }: ContextOptions,
): string {
  const { clusters, users } = parse(ours) as OwnKubeconfig;
  const document = readTheirs(theirs.trim() === '' ? 'apiVersion: v1\nkind: Config\n' : theirs, path);
  putEntry(document, 'clusters', { name, cluster: clusters[0]?.cluster }, path);
  putEntry(document, 'users', { name, user: users[0]?.user }, path);
  putEntry(document, 'contexts', { name, context: { cluster: name, user: name } }, path);
  if (choose === 'use' || !document.has('current-context')) document.set('current-context', name);
  return document.toString(asWritten);
}

/**
 * Removes the entries with the given name from a user's kubeconfig. All other text stays unchanged,
 * including comments.
 */
export function withoutContext(
  theirs: string,
  { name, path }: Pick<ContextOptions, 'name' | 'path'>,
): string {
  if (theirs.trim() === '') return theirs;
  const document = readTheirs(theirs, path);
  const removed = ['clusters', 'users', 'contexts'].map((list) => removeEntry(document, list, name));
  if (!removed.includes('taken')) return theirs;
  if (document.get('current-context') === name) document.set('current-context', '');
  return document.toString(asWritten);
}

function removeEntry(document: Document, list: string, name: string): 'taken' | 'absent' {
  const items = document.get(list);
  if (!isSeq(items)) return 'absent';
  const at = indexOf(items, name);
  if (at >= 0) items.items.splice(at, 1);
  // An empty list must be written in YAML flow style: [].
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

/** Replaces the entry with the same name in a list of the kubeconfig, or appends it. */
function putEntry(
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
