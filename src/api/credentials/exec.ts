import {
  type Clock,
  type Command,
  type CommandResult,
  describeError,
  isKind,
  KubelingError,
} from '../../lib/index.ts';
import type { ExecPlugin, KubeContext } from '../kubeconfig/kubeconfig.ts';
import { isHeaderText } from '../kubeconfig/kubeconfig.ts';
import type { LoadedValue } from './cached.ts';
import { type ClientCertificate, clientCertificate } from './identity.ts';

/** The credentials in the output of an exec plugin. */
export interface ExecCredential {
  readonly token: string | undefined;
  readonly client: ClientCertificate | undefined;
}

export interface ExecDeps {
  readonly clock: Clock;
  /** Runs a program until it exits; rejects for exit codes other than 0. */
  readonly run: (command: Command, signal: AbortSignal) => Promise<CommandResult>;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const deadlineMs = 60_000;

export interface ExecCredentialRequest {
  readonly plugin: ExecPlugin;
  readonly context: KubeContext;
  /**
   * The certificate authority of the cluster in PEM, for plugins that receive the cluster
   * configuration.
   */
  readonly ca: string | undefined;
}

/**
 * Runs an exec plugin and returns its credentials. Rejects with API_UNAVAILABLE, because the
 * failure of a plugin may be temporary.
 */
export async function runExecPlugin(
  request: ExecCredentialRequest,
  deps: ExecDeps,
  signal: AbortSignal,
): Promise<LoadedValue<ExecCredential>> {
  const { plugin } = request;
  const { command: file, args } = plugin;
  const env = { ...deps.environment, ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(execInfo(request)) };
  try {
    const { stdout } = await deps.run({ file, args, clock: deps.clock, deadlineMs, env }, signal);
    return readExecAnswer(stdout, plugin, deps.clock);
  } catch (error) {
    signal.throwIfAborted();
    throw failed(plugin, error);
  }
}

function execInfo({ plugin, context, ca }: ExecCredentialRequest): unknown {
  const cluster = plugin.clusterInfo === 'provided' ? clusterInfo(context, ca) : undefined;
  return { apiVersion: plugin.apiVersion, kind: 'ExecCredential', spec: { interactive: false, cluster } };
}

function clusterInfo({ cluster }: KubeContext, ca: string | undefined): unknown {
  return {
    server: cluster.server.href.replace(/\/$/, ''),
    'tls-server-name': cluster.tlsServerName,
    'insecure-skip-tls-verify': cluster.verification === 'skipped' ? true : undefined,
    'certificate-authority-data': ca === undefined ? undefined : Buffer.from(ca).toString('base64'),
    'proxy-url': cluster.proxyUrl?.href,
    config: cluster.execConfig,
  };
}

interface ExecAnswer {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly status?: {
    readonly token?: unknown;
    readonly clientCertificateData?: unknown;
    readonly clientKeyData?: unknown;
    readonly expirationTimestamp?: unknown;
  } | null;
}

function readExecAnswer(stdout: string, plugin: ExecPlugin, clock: Clock): LoadedValue<ExecCredential> {
  const answer = parseAnswer(stdout);
  if (answer.kind !== 'ExecCredential' || answer.apiVersion !== plugin.apiVersion) {
    throw bad(
      `must be an ExecCredential of ${plugin.apiVersion}: it is ${answer.kind} of ${answer.apiVersion}`,
    );
  }
  const { status } = answer;
  if (status === undefined || status === null) throw bad('must have a status');
  const token = textIn(status, 'token');
  if (token !== undefined && !isHeaderText(token)) throw bad('must have a token without spaces');
  const client = certificateIn(status, plugin);
  if (token === undefined && client === undefined)
    throw bad('must have a token, or a certificate with its key');
  return {
    value: { token, client },
    forMs: lifetimeMs(textIn(status, 'expirationTimestamp'), client, clock),
  };
}

function parseAnswer(stdout: string): ExecAnswer {
  try {
    const answer: unknown = JSON.parse(stdout);
    if (typeof answer === 'object' && answer !== null) return answer;
  } catch {
    // The output of the plugin may contain a secret, so it is not quoted.
  }
  throw bad('must be a JSON object');
}

type ExecStatus = NonNullable<ExecAnswer['status']>;

function textIn(status: ExecStatus, name: keyof ExecStatus): string | undefined {
  const value = status[name];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw bad(`must have text as status.${name}`);
  return value;
}

function certificateIn(status: ExecStatus, plugin: ExecPlugin): ClientCertificate | undefined {
  const cert = textIn(status, 'clientCertificateData');
  const key = textIn(status, 'clientKeyData');
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined) throw bad('must have both or neither of certificate and key');
  const from = { kind: 'file', name: `the certificate of ${plugin.command}` } as const;
  return clientCertificate({ cert, key, certName: from, keyName: from });
}

/**
 * How long the credentials of a plugin are valid. Without an expiry date, a token is valid until
 * the server rejects it and a certificate until it expires.
 */
function lifetimeMs(
  configured: string | undefined,
  client: ClientCertificate | undefined,
  clock: Clock,
): number {
  const ends = configured === undefined ? client?.expires : Date.parse(configured);
  if (ends === undefined) return Number.POSITIVE_INFINITY;
  if (Number.isNaN(ends)) throw bad(`must have a time as status.expirationTimestamp: it is "${configured}"`);
  return Math.max(0, ends - clock.now());
}

function bad(message: string): KubelingError {
  return new KubelingError('API_BAD_ANSWER', `the output of the plugin ${message}`);
}

function failed(plugin: ExecPlugin, error: unknown): KubelingError {
  const hint =
    isKind(error, 'Unsupported') && plugin.installHint !== undefined ? ` (${plugin.installHint})` : '';
  const message = `Cannot get credentials from the exec plugin ${plugin.command}: ${describeError(error)}${hint}`;
  return new KubelingError('API_UNAVAILABLE', message, { cause: error, details: { plugin: plugin.command } });
}
