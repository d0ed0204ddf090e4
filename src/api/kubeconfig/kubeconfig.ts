import { dirname, resolve } from 'node:path';
import { describeError, KubelingError, readYaml, type YamlTree, yamlToJs } from '../../lib/index.ts';
import { type KubeconfigProblem, Section } from './fields.ts';
/**
 * A certificate, key or CA bundle: embedded in the kubeconfig, or a file whose content may change.
 */
export type Material =
  /** `name` is the kubeconfig field or the file, for error messages. */
  | { readonly kind: 'inline'; readonly name: string; readonly pem: string }
  | { readonly kind: 'file'; readonly name: string; readonly path: string };

export interface KubeCluster {
  readonly server: URL;
  readonly ca: Material | undefined;
  /** The name expected in the server's certificate; undefined for the host of the server. */
  readonly tlsServerName: string | undefined;
  readonly verification: 'full' | 'skipped';
  readonly proxyUrl: URL | undefined;
  /** Cluster-specific configuration that is passed to exec plugins. */
  readonly execConfig: unknown;
}

/** An exec plugin: a program that prints credentials. */
export interface ExecPlugin {
  readonly apiVersion: 'client.authentication.k8s.io/v1' | 'client.authentication.k8s.io/v1beta1';
  /** The path of the plugin, or a name that is looked up in PATH. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint: string | undefined;
  readonly clusterInfo: 'provided' | 'withheld';
}

/** The client's credentials. A client certificate is sent in addition to any other credential. */
export interface KubeUser {
  readonly certificate: { readonly cert: Material; readonly key: Material } | undefined;
  readonly token: string | undefined;
  /** The path of the token file, preferred over `token` while it is readable. */
  readonly tokenFile: string | undefined;
  readonly basic: { readonly username: string; readonly password: string } | undefined;
  readonly exec: ExecPlugin | undefined;
}

/** A kubeconfig context with its cluster and user: how to reach an API server. */
export interface KubeContext {
  readonly file: string;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly cluster: KubeCluster;
  readonly user: KubeUser;
}

/** File access of the kubeconfig loader; tests replace it. */
export interface ApiFiles {
  /** Reads a file; rejects with the errors of `node:fs`. */
  readText(path: string): Promise<string>;
}

export interface KubeconfigSource {
  readonly path: string;
  /** The name of the context; the kubeconfig's `current-context` unless given. */
  readonly context?: string | undefined;
  readonly files: ApiFiles;
}

/**
 * Loads a context of a kubeconfig. Rejects with KUBECONFIG_INVALID and all errors in the parts that
 * the context uses, each with line and field.
 */
export async function loadKubeconfig(source: KubeconfigSource): Promise<KubeContext> {
  const file = resolve(source.path);
  return parseKubeconfig({ file, text: await readText(source, file), context: source.context });
}

export interface KubeconfigText {
  /** The path of the kubeconfig; relative paths in it are resolved against its directory. */
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
  // A context without a user is valid: its requests are anonymous.
  const user = chosen?.has('user') ? referred(root, chosen, { list: 'users', part: 'user' }) : undefined;
  const location = { file, directory: dirname(file) };
  const readAs = readUser(user, location);
  const readAt = cluster && readCluster(cluster, location);
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

/** The cluster extension with the configuration that is passed to exec plugins. */
const execExtension = 'client.authentication.k8s.io/exec';

function readCluster(section: Section, location: KubeconfigLocation): KubeCluster | undefined {
  const server = section.has('server')
    ? readUrl(section, 'server')
    : section.refuse('server', 'must be the URL of the API server');
  const ca = readMaterial(section, 'certificate-authority', location);
  const verification = section.flag('insecure-skip-tls-verify') ? 'skipped' : 'full';
  if (ca !== undefined && verification === 'skipped') {
    section.refuse('insecure-skip-tls-verify', 'must not be true beside a certificate authority');
  }
  const tlsServerName = section.text('tls-server-name');
  const proxyUrl = readUrl(section, 'proxy-url');
  const execConfig = readExecConfig(section);
  return server && { server, ca, tlsServerName, verification, proxyUrl, execConfig };
}

function readUrl(section: Section, name: string): URL | undefined {
  const text = section.text(name);
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && url.hostname !== '') return url;
  // Hides credentials in the URL, which could include a password.
  const shown = text.replace(/\/\/[^/@]*@/, '//***@');
  return section.refuse(name, `must be a URL with http:// or https://: current value is "${shown}"`);
}

function readExecConfig(section: Section): unknown {
  const entry = section.sections('extensions').find((each) => each.text('name') === execExtension);
  const tree = entry?.tree('extension');
  return tree === undefined ? undefined : yamlToJs(tree);
}

const anonymous: KubeUser = {
  certificate: undefined,
  token: undefined,
  tokenFile: undefined,
  basic: undefined,
  exec: undefined,
};

/**
 * Identity options that are not supported are errors: if they were ignored, the client would act as
 * another user.
 */
const unsupported = ['auth-provider', 'as', 'as-uid', 'as-groups', 'as-user-extra'];

function readUser(section: Section | undefined, location: KubeconfigLocation): KubeUser {
  if (section === undefined) return anonymous;
  for (const name of unsupported) {
    if (section.has(name))
      section.refuse(name, 'is not supported: use a certificate, a token or an exec plugin');
  }
  const tokenFile = section.text('tokenFile');
  const token = readToken(section);
  const basic = readBasic(section);
  if (basic !== undefined && (token !== undefined || tokenFile !== undefined)) {
    section.refuse('username', 'must not be there beside a token');
  }
  return {
    certificate: readCertificate(section, location),
    token,
    tokenFile: tokenFile === undefined ? undefined : resolve(location.directory, tokenFile),
    basic,
    exec: readExec(section.section('exec'), location),
  };
}

/**
 * Reads the token. A token with control characters is rejected, because Node.js would reject every
 * request with it in a header.
 */
function readToken(section: Section): string | undefined {
  const token = section.text('token')?.trim();
  return token === undefined || isHeaderText(token)
    ? token
    : section.refuse('token', 'must be printable characters without spaces');
}

export function isHeaderText(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

function readBasic(section: Section): KubeUser['basic'] {
  const [username, password] = [section.text('username'), section.text('password')];
  if (username === undefined && password === undefined) return undefined;
  if (username === undefined) return section.refuse('username', 'must be there beside a password');
  return { username, password: password ?? '' };
}

function readCertificate(section: Section, location: KubeconfigLocation): KubeUser['certificate'] {
  const cert = readMaterial(section, 'client-certificate', location);
  const key = readMaterial(section, 'client-key', location);
  if (cert !== undefined && key !== undefined) return { cert, key };
  const written = (name: string) => section.has(name) || section.has(`${name}-data`);
  const [hasCert, hasKey] = [written('client-certificate'), written('client-key')];
  if (hasCert && !hasKey) return section.refuse('client-key', 'must be there beside a client certificate');
  if (hasKey && !hasCert) return section.refuse('client-certificate', 'must be there beside a client key');
  return undefined;
}

const execVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'] as const;
const interactiveModes = ['Never', 'IfAvailable', 'Always'];

function readExec(section: Section | undefined, location: KubeconfigLocation): ExecPlugin | undefined {
  if (section === undefined) return undefined;
  const written = section.text('apiVersion');
  const apiVersion = execVersions.find((version) => version === written);
  if (apiVersion === undefined) {
    section.refuse(
      'apiVersion',
      `must be one of ${execVersions.join(', ')}: current value is "${written ?? ''}"`,
    );
  }
  const command = section.text('command') ?? section.refuse('command', 'must be a program');
  checkInteractive(section, apiVersion);
  const env = readEnv(section);
  const args = section.texts('args');
  if (apiVersion === undefined || command === undefined) return undefined;
  return {
    apiVersion,
    command: command.includes('/') ? resolve(location.directory, command) : command,
    args,
    env,
    installHint: section.text('installHint'),
    clusterInfo: section.flag('provideClusterInfo') ? 'provided' : 'withheld',
  };
}

/** Rejects an interactive exec plugin: a kubelet has no user to prompt. */
function checkInteractive(section: Section, apiVersion: ExecPlugin['apiVersion'] | undefined): void {
  const mode = section.text('interactiveMode');
  if (mode === 'Always') section.refuse('interactiveMode', 'must not be Always: a node has no terminal');
  else if (mode === undefined && apiVersion === 'client.authentication.k8s.io/v1') {
    section.refuse('interactiveMode', `must be one of ${interactiveModes.join(', ')}`);
  } else if (mode !== undefined && !interactiveModes.includes(mode)) {
    const known = interactiveModes.join(', ');
    section.refuse('interactiveMode', `must be one of ${known}: current value is "${mode}"`);
  }
}

function readEnv(section: Section): Readonly<Record<string, string>> {
  const pairs = section.sections('env').map((each) => {
    const name = each.text('name') ?? each.refuse('name', 'must be the name of a variable');
    return [name ?? '', each.text('value') ?? ''] as const;
  });
  return Object.fromEntries(pairs);
}

/** The location of the kubeconfig. */
export interface KubeconfigLocation {
  readonly file: string;
  /** The directory against which relative paths are resolved. */
  readonly directory: string;
}

const base64 = /^[A-Za-z0-9+/\s]+(?:={1,2}\s*)?$/;

/** Reads the embedded value of a field, or else the path of its file. */
export function readMaterial(
  section: Section,
  name: string,
  location: KubeconfigLocation,
): Material | undefined {
  const inline = section.text(`${name}-data`);
  const path = section.text(name);
  if (inline !== undefined) return decode(section, `${name}-data`, { inline, location });
  if (path === undefined) return undefined;
  const full = resolve(location.directory, path);
  return { kind: 'file', name: full, path: full };
}

interface Inline {
  readonly inline: string;
  readonly location: KubeconfigLocation;
}

function decode(section: Section, field: string, { inline, location }: Inline): Material | undefined {
  const pem = base64.test(inline) ? Buffer.from(inline, 'base64').toString('latin1') : '';
  if (!pem.includes('-----BEGIN ')) return section.refuse(field, 'must be PEM text encoded as base64');
  return { kind: 'inline', name: `${field} of ${location.file}`, pem };
}
