import { dirname, resolve } from 'node:path';
import { describeError, KubelingError, readYaml, type YamlTree } from '../../lib/index.ts';
import { readCluster } from './cluster.ts';
import { type KubeconfigProblem, Section } from './fields.ts';
import { readUser } from './user.ts';

/** A certificate, a key or a bundle of them: in the kubeconfig itself, or in a file that may change. */
export type Material =
  /** `name` says where it stands, for messages. */
  | { readonly kind: 'inline'; readonly name: string; readonly pem: string }
  | { readonly kind: 'file'; readonly name: string; readonly path: string };

export interface KubeCluster {
  readonly server: URL;
  readonly ca: Material | undefined;
  /** Whom the server's certificate must be made out to, if not to its host. */
  readonly tlsServerName: string | undefined;
  readonly verification: 'full' | 'skipped';
  readonly proxyUrl: URL | undefined;
  /** What the cluster has to tell exec plugins. */
  readonly execConfig: unknown;
}

/** A program that knows the credentials. */
export interface ExecPlugin {
  readonly apiVersion: 'client.authentication.k8s.io/v1' | 'client.authentication.k8s.io/v1beta1';
  /** A path, or a name to be looked for in PATH. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint: string | undefined;
  readonly clusterInfo: 'provided' | 'withheld';
}

/** Who we are. Several may be there: a certificate is shown besides any of the others. */
export interface KubeUser {
  readonly certificate: { readonly cert: Material; readonly key: Material } | undefined;
  readonly token: string | undefined;
  /** Wins over `token` as long as it can be read. */
  readonly tokenFile: string | undefined;
  readonly basic: { readonly username: string; readonly password: string } | undefined;
  readonly exec: ExecPlugin | undefined;
}

/** One way to reach an API server: a context of a kubeconfig with all it refers to. */
export interface KubeContext {
  readonly file: string;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly cluster: KubeCluster;
  readonly user: KubeUser;
}

/** The files of the machine; a small door so that tests may stand in for it. */
export interface ApiFiles {
  /** Rejects as `node:fs` does. */
  readText(path: string): Promise<string>;
}

export interface KubeconfigSource {
  readonly path: string;
  /** The file's `current-context` unless given. */
  readonly context?: string | undefined;
  readonly files: ApiFiles;
}

/** Rejects with KUBECONFIG_INVALID and every mistake in what the context uses, each with its line and field. */
export async function loadKubeconfig(source: KubeconfigSource): Promise<KubeContext> {
  const file = resolve(source.path);
  return parseKubeconfig({ file, text: await readText(source, file), context: source.context });
}

export interface KubeconfigText {
  /** Relative paths are meant from where it stands. */
  readonly file: string;
  readonly text: string;
  readonly context?: string | undefined;
}

export async function parseKubeconfig({ file, text, context }: KubeconfigText): Promise<KubeContext> {
  const problems: KubeconfigProblem[] = [];
  const tree = await treeOf(text, problems);
  const found = tree === undefined ? undefined : readContext(tree, { file, context, problems });
  if (found === undefined || problems.length > 0) throw invalid(file, problems);
  return found;
}

async function readText(source: KubeconfigSource, file: string): Promise<string> {
  try {
    return await source.files.readText(file);
  } catch (error) {
    const message = `Cannot read the kubeconfig ${file}: ${describeError(error)}`;
    throw new KubelingError('KUBECONFIG_INVALID', message, { cause: error, details: { file } });
  }
}

async function treeOf(text: string, problems: KubeconfigProblem[]): Promise<YamlTree | undefined> {
  const read = await readYaml(text);
  for (const { line, message } of read.problems) problems.push({ line, field: '', message });
  if (read.second !== undefined) {
    problems.push({
      line: read.second.line,
      field: '',
      message: 'must be one document: a second starts here',
    });
  }
  if (read.tree === undefined && problems.length === 0) {
    problems.push({ line: 1, field: '', message: 'must not be empty' });
  }
  return problems.length === 0 ? read.tree : undefined;
}

interface Reading {
  readonly file: string;
  readonly context: string | undefined;
  readonly problems: KubeconfigProblem[];
}

function readContext(tree: YamlTree, { file, context, problems }: Reading): KubeContext | undefined {
  const root = new Section(tree, '', problems);
  const name = context ?? root.text('current-context');
  if (name === undefined) return root.refuse('current-context', 'must name a context');
  const chosen = named(root, { list: 'contexts', part: 'context', name });
  const cluster = chosen && referred(root, chosen, { list: 'clusters', part: 'cluster' });
  // Without a user one is anonymous.
  const user = chosen?.has('user') ? referred(root, chosen, { list: 'users', part: 'user' }) : undefined;
  const place = { file, directory: dirname(file) };
  const readAs = readUser(user, place);
  const readAt = cluster && readCluster(cluster, place);
  if (chosen === undefined || readAt === undefined) return undefined;
  return { file, name, namespace: chosen.text('namespace'), cluster: readAt, user: readAs };
}

interface Entry {
  readonly list: string;
  readonly part: string;
  readonly name: string;
}

function named(root: Section, { list, part, name }: Entry): Section | undefined {
  const entries = root.sections(list);
  const entry = entries.find((each) => each.text('name') === name);
  if (entry !== undefined) return entry.section(part) ?? entry.refuse(part, 'must be there');
  const known = entries.map((each) => `"${each.text('name') ?? ''}"`).join(', ') || 'none';
  return root.refuse(list, `must have one named "${name}": there are ${known}`);
}

function referred(root: Section, from: Section, at: Omit<Entry, 'name'>): Section | undefined {
  const name = from.text(at.part);
  return name === undefined
    ? from.refuse(at.part, `must name one of the ${at.list}`)
    : named(root, { ...at, name });
}

function invalid(file: string, problems: readonly KubeconfigProblem[]): KubelingError {
  const lines = problems.map(({ line, field, message }) => {
    return `${file}:${line}: ${field === '' ? 'it' : field} ${message}`;
  });
  return new KubelingError('KUBECONFIG_INVALID', `Cannot use the kubeconfig: ${lines.join('; ')}`, {
    details: { file, problems },
  });
}
