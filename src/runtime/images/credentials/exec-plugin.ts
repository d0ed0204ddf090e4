import { type Clock, KubelingError, runCommand, tryParseDurationMs } from '../../../lib/index.ts';
import { goJson } from '../../containers/go-format.ts';
import type { DockerConfig, RegistryLogin } from './docker-config.ts';

/** A call of a credential provider plugin; the runner adds the kubelet's environment. */
export interface PluginCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly input: string;
}

export interface PluginOutput {
  /** The exit code of the plugin; undefined when it was killed. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export type RunPlugin = (command: PluginCommand, signal: AbortSignal) => Promise<PluginOutput>;

const deadlineMs = 60_000;

/** Runs credential provider plugins as processes. */
export function processPlugins(
  clock: Clock,
  environment: Readonly<Record<string, string | undefined>>,
): RunPlugin {
  return async ({ file, args, env, input }, signal) => {
    const command = { file, args, input, env: { ...environment, ...env }, clock, deadlineMs };
    const { end, stdout, stderr } = await runCommand(command, signal);
    return { exitCode: end.kind === 'exited' ? end.code : undefined, stdout, stderr };
  };
}

export interface PluginRequest {
  readonly apiVersion: string;
  readonly image: string;
  readonly token: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface PluginResponse {
  readonly cacheKeyType: 'Image' | 'Registry' | 'Global';
  /** How long the response may be cached; undefined for the plugin's default. */
  readonly cacheMs: number | undefined;
  readonly logins: DockerConfig;
}

export function encodeRequest({ apiVersion, image, token, annotations }: PluginRequest): string {
  const kind = 'CredentialProviderRequest';
  const sorted = Object.entries(annotations).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const account = {
    ...(token === '' ? {} : { serviceAccountToken: token }),
    ...(sorted.length === 0 ? {} : { serviceAccountAnnotations: Object.fromEntries(sorted) }),
  };
  return `${goJson({ kind, apiVersion, image, ...account })}\n`;
}

/**
 * Runs a plugin and parses its response. Throws IMAGE_CREDENTIALS without any plugin output, which
 * may be a password.
 */
export function decodeResponse(text: string, apiVersion: string): PluginResponse {
  const answer = recordOf(parse(text), 'it must be an object');
  const { kind, apiVersion: version, cacheKeyType, cacheDuration, auth } = answer;
  if (version !== apiVersion) {
    const reported = typeof version === 'string' ? JSON.stringify(version) : 'missing';
    throw invalidResponse(`its apiVersion must be ${apiVersion}: it is ${reported}`);
  }
  if (kind !== 'CredentialProviderResponse')
    throw invalidResponse('its kind must be CredentialProviderResponse');
  checkFields(answer);
  if (cacheKeyType !== 'Image' && cacheKeyType !== 'Registry' && cacheKeyType !== 'Global') {
    throw invalidResponse('its cacheKeyType must be Image, Registry or Global');
  }
  return { cacheKeyType, cacheMs: readDuration(cacheDuration), logins: readLogins(auth) };
}

const knownFields = new Set(['kind', 'apiVersion', 'cacheKeyType', 'cacheDuration', 'auth']);

function checkFields(answer: Readonly<Record<string, unknown>>): void {
  const unknown = Object.keys(answer).filter((name) => !knownFields.has(name));
  if (unknown.length > 0) throw invalidResponse('it must have no other fields than those of its version');
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidResponse('it must be JSON');
  }
}

function readDuration(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  const ms = typeof value === 'string' ? tryParseDurationMs(value) : undefined;
  if (ms === undefined) throw invalidResponse('its cacheDuration must be a duration such as 10m');
  return ms;
}

function readLogins(value: unknown): DockerConfig {
  if (value === undefined || value === null) return new Map();
  const entries = Object.entries(recordOf(value, 'its auth must be an object')).map(([registry, login]) => {
    const { username = '', password = '' } = recordOf(login, 'each login must be an object');
    if (typeof username !== 'string' || typeof password !== 'string') {
      throw invalidResponse('username and password must be text');
    }
    return [registry, { username, password, email: '' } satisfies RegistryLogin] as const;
  });
  return new Map(entries);
}

function recordOf(value: unknown, why: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidResponse(why);
  return value as Readonly<Record<string, unknown>>;
}

function invalidResponse(why: string): KubelingError {
  return new KubelingError('IMAGE_CREDENTIALS', `Cannot use the response of the credential plugin as ${why}`);
}
