import { posix } from 'node:path';
import { describeError } from '../lib/index.ts';
import type { ConfigFiles } from './config-file.ts';
import { type DocumentKind, readConfigFile } from './config-file.ts';
import type { SourceFile } from './decode.ts';
import {
  bool,
  choiceOf,
  duration,
  type Effective,
  exact,
  type Fields,
  list,
  object,
  optional,
  plain,
  text,
} from './fields.ts';
import { configInvalid, type Finding, findingAt, findingIn, keyPath, type Origins } from './findings.ts';
import { resolveFields } from './resolve-fields.ts';

/**
 * Reads the credential provider plugins from the file or directory of
 * `--image-credential-provider-config`.
 */

const group = 'credentialprovider.kubelet.k8s.io';
const pluginApiVersions = [`${group}/v1`, `${group}/v1beta1`, `${group}/v1alpha1`] as const;

const environmentVariable = {
  name: exact(text(), '', 'Name of a variable the plugin gets besides those of the kubelet.'),
  value: exact(text({ secret: 'hidden' }), '', 'Its value.'),
} satisfies Fields;

const tokenAttributes = {
  serviceAccountTokenAudience: exact(text(), '', 'Whom the token of the pod is meant for.'),
  cacheType: exact(choiceOf('', 'ServiceAccount', 'Token'), '', 'What credentials are kept by.'),
  requireServiceAccount: optional(bool, 'Whether pods without a service account are left out.'),
  requiredServiceAccountAnnotationKeys: exact(list(text()), [], 'Annotations without which it is not asked.'),
  optionalServiceAccountAnnotationKeys: exact(list(text()), [], 'Annotations passed on when they are there.'),
} satisfies Fields;

const provider = {
  name: exact(text(), '', 'Name of the program in the directory of plugins.'),
  matchImages: exact(list(text()), [], 'Images it is asked about.'),
  defaultCacheDuration: optional(duration(), 'How long credentials are kept when it does not say.'),
  apiVersion: exact(text(), '', 'Version of the request and of the answer.'),
  args: exact(list(text()), [], 'Arguments of the program.'),
  env: exact(list(object(environmentVariable)), [], 'Variables besides those of the kubelet.'),
  tokenAttributes: optional(object(tokenAttributes), 'Asks for a token of the service account of the pod.'),
} satisfies Fields;

const fields = { providers: plain(list(object(provider)), [], 'The plugins, in the order they are asked.') };

const document: DocumentKind = {
  apiVersions: ['v1', 'v1beta1', 'v1alpha1'].map((version) => `kubelet.config.k8s.io/${version}`),
  kind: 'CredentialProviderConfig',
  fields,
};

type WrittenProvider = Effective<typeof provider>;

export interface CredentialPlugin
  extends Omit<WrittenProvider, 'defaultCacheDurationMs' | 'tokenAttributes'> {
  readonly defaultCacheDurationMs: number;
  readonly tokenAttributes: PluginTokenAttributes | undefined;
}

export interface PluginTokenAttributes
  extends Omit<Effective<typeof tokenAttributes>, 'requireServiceAccount'> {
  readonly requireServiceAccount: boolean;
}

export interface CredentialPluginSource {
  /** The path of a file, or of a directory whose files end in .json, .yaml or .yml. */
  readonly configPath: string;
  readonly binDir: string;
  readonly files: ConfigFiles;
  readonly serviceAccountTokens: 'allowed' | 'gated-off';
  /** Whether the program of a plugin exists and is executable. */
  readonly isExecutable: (path: string) => Promise<boolean>;
}

/**
 * Reads the plugins. Rejects with CONFIG_INVALID and all problems, because wrong credentials would
 * make pods fail one by one later.
 */
export async function readCredentialPlugins(
  source: CredentialPluginSource,
  signal: AbortSignal,
): Promise<readonly CredentialPlugin[]> {
  const found = await findFiles(source, signal);
  const problems: Finding[] = [...found.problems];
  const plugins: CredentialPlugin[] = [];
  const names = new Set<string>();
  for (const path of found.files) {
    const file: SourceFile = { kind: 'file', path };
    const { written, problems: mistakes } = await readConfigFile(document, file, source.files, signal);
    const { value, origins } = resolveFields(fields, written);
    problems.push(...mistakes);
    // The cast is safe: the type is derived from the table with which the value was resolved.
    const { providers } = value as unknown as Effective<typeof fields>;
    for (const [index, each] of providers.entries()) {
      const check = new ProviderCheck(each, keyPath('providers', index), origins, problems);
      await check.check(source, names);
      plugins.push(check.plugin());
    }
  }
  if (problems.length === 0 && plugins.length === 0) {
    problems.push(findingIn(source.configPath, 'must name at least one plugin', 'providers'));
  }
  if (problems.length > 0) throw configInvalid(problems);
  return plugins;
}

async function findFiles(
  { configPath, files }: CredentialPluginSource,
  signal: AbortSignal,
): Promise<{ readonly files: readonly string[]; readonly problems: readonly Finding[] }> {
  const entries = await files
    .readDirectory(configPath, signal)
    .catch((error: NodeJS.ErrnoException) => error);
  signal.throwIfAborted();
  // A path that is not a directory is read as a file; reading it reports the error if it is
  // unreadable.
  if (entries instanceof Error) return { files: [configPath], problems: [] };
  const names = entries
    .filter(({ name, kind }) => kind !== 'directory' && /\.(json|ya?ml)$/.test(name))
    .map(({ name }) => posix.join(configPath, name))
    .sort();
  const none = findingIn(configPath, 'must hold at least one file that ends in .json, .yaml or .yml');
  return { files: names, problems: names.length === 0 ? [none] : [] };
}

/** Checks one credential provider and collects every problem. */
class ProviderCheck {
  readonly #provider: WrittenProvider;
  readonly #path: string;
  readonly #origins: Origins;
  readonly #problems: Finding[];

  constructor(given: WrittenProvider, path: string, origins: Origins, problems: Finding[]) {
    this.#provider = given;
    this.#path = path;
    this.#origins = origins;
    this.#problems = problems;
  }

  /**
   * Returns the plugin. Missing required values, which were already reported as problems, are
   * replaced by harmless ones.
   */
  plugin(): CredentialPlugin {
    const { tokenAttributes: attributes, defaultCacheDurationMs = 0, ...rest } = this.#provider;
    const tokens = attributes && {
      ...attributes,
      requireServiceAccount: attributes.requireServiceAccount ?? true,
    };
    return { ...rest, defaultCacheDurationMs, tokenAttributes: tokens };
  }

  async check(source: CredentialPluginSource, names: Set<string>): Promise<void> {
    const { name, apiVersion, matchImages, defaultCacheDurationMs: cacheMs } = this.#provider;
    this.#checkName(names);
    if (!pluginApiVersions.some((known) => known === apiVersion)) {
      this.#report('apiVersion', `must be ${pluginApiVersions.join(' or ')}${current(apiVersion)}`);
    }
    if (matchImages.length === 0) this.#report('matchImages', 'must name at least one image');
    for (const [index, image] of matchImages.entries()) {
      if (!isRegistryPattern(image)) {
        this.#report(keyPath('matchImages', index), `must be HOST[:PORT][/PATH]${current(image)}`);
      }
    }
    if (cacheMs === undefined) this.#report('defaultCacheDuration', 'must be given, such as 10m');
    else if (cacheMs < 0) this.#report('defaultCacheDuration', 'must not be negative');
    this.#checkTokens(source);
    if (isFileName(name)) await this.#checkProgram(posix.join(source.binDir, name), source);
  }

  #checkName(names: Set<string>): void {
    const { name } = this.#provider;
    if (!isFileName(name)) {
      this.#report('name', `must be the name of a file, without slashes and spaces${current(name)}`);
    } else if (names.has(name)) this.#report('name', `must be used once only${current(name)}`);
    names.add(name);
  }

  async #checkProgram(path: string, { isExecutable }: CredentialPluginSource): Promise<void> {
    const found = await isExecutable(path).catch((error: unknown) => describeError(error));
    if (found === true) return;
    const why = typeof found === 'string' ? `: ${found}` : '';
    this.#report('name', `must be the name of a program: ${path} is none${why}`);
  }

  #checkTokens({ serviceAccountTokens }: CredentialPluginSource): void {
    const { tokenAttributes: attributes, apiVersion } = this.#provider;
    if (attributes === undefined) return;
    const report = (field: string, message: string) => this.#report(`tokenAttributes${field}`, message);
    if (serviceAccountTokens === 'gated-off') {
      report('', 'needs the feature gate KubeletServiceAccountTokenForCredentialProviders, which is off');
    }
    if (apiVersion !== pluginApiVersions[0]) report('', `needs apiVersion ${pluginApiVersions[0]}`);
    const { serviceAccountTokenAudience: audience, cacheType, requireServiceAccount } = attributes;
    const required = attributes.requiredServiceAccountAnnotationKeys;
    const optionalKeys = attributes.optionalServiceAccountAnnotationKeys;
    if (audience === '') report('.serviceAccountTokenAudience', 'must be given');
    if (cacheType === '') report('.cacheType', 'must be ServiceAccount or Token: it is missing');
    if (requireServiceAccount === undefined) report('.requireServiceAccount', 'must be true or false');
    if (requireServiceAccount === false && required.length > 0) {
      report('.requiredServiceAccountAnnotationKeys', 'needs requireServiceAccount to be true');
    }
    this.#checkKeys('requiredServiceAccountAnnotationKeys', required);
    this.#checkKeys('optionalServiceAccountAnnotationKeys', optionalKeys);
    const both = required.filter((key) => optionalKeys.includes(key));
    if (both.length > 0) report('', `must not have keys both required and optional: ${both.join(', ')}`);
  }

  #checkKeys(field: string, keys: readonly string[]): void {
    const names = new Set<string>();
    for (const [index, key] of keys.entries()) {
      const at = keyPath(`tokenAttributes.${field}`, index);
      if (!isAnnotationKey(key)) this.#report(at, `must be the key of an annotation${current(key)}`);
      else if (names.has(key)) this.#report(at, `must be listed once only${current(key)}`);
      names.add(key);
    }
  }

  #report(field: string, message: string): void {
    const path = `${this.#path}.${field}`;
    const own = this.#origins.of(path);
    // A missing field has no position, so the position of the plugin is reported.
    const origin = own.kind === 'default' ? this.#origins.of(this.#path) : own;
    this.#problems.push(findingAt(origin, path, message));
  }
}

function current(value: string): string {
  return value === '' ? ': it is missing' : `: current value is ${JSON.stringify(value)}`;
}

function isFileName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/ ]/.test(name);
}

function isRegistryPattern(image: string): boolean {
  return (
    /^[A-Za-z0-9*?[\]^._-]+(:\d*)?(\/[^\s]*)?$/.test(image) &&
    URL.canParse(`https://${image.replaceAll(/[*?[\]^]/g, 'x')}`)
  );
}

const domainShape = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Whether the key is a valid annotation key: a name with an optional domain before it. */
function isAnnotationKey(key: string): boolean {
  const [name = '', domain, ...rest] = key.toLowerCase().split('/').reverse();
  if (rest.length > 0 || !/^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$/.test(name)) return false;
  return domain === undefined || (domain.length <= 253 && domainShape.test(domain));
}
