import { describeError, KubelingError } from '../../lib/index.ts';
import type { ExecPlugin, KubeContext } from '../kubeconfig/kubeconfig.ts';
import { isHeaderText } from '../kubeconfig/kubeconfig.ts';
import { ExpiringValue, type LoadedValue } from './cached.ts';
import type { Access, CredentialDeps } from './credentials.ts';
import { type ExecCredential, runExecPlugin } from './exec.ts';
import { isSameIdentity, readIdentity, type TlsIdentity } from './identity.ts';

const certificateAgeMs = 300_000;
const tokenAgeMs = 60_000;
/**
 * The minimum time between two runs of an exec plugin, which may be slow and costly: a server that
 * rejects every request must not cause a run per request.
 */
const minExecAgeMs = 10_000;

/** The most recently loaded credentials of one kubeconfig context. */
export class ContextCredentials {
  readonly context: KubeContext;
  readonly #deps: CredentialDeps;
  readonly #files: ExpiringValue<TlsIdentity>;
  readonly #token: ExpiringValue<string> | undefined;
  readonly #exec: ExpiringValue<ExecCredential> | undefined;
  #identity: TlsIdentity | undefined;

  constructor(context: KubeContext, deps: CredentialDeps) {
    this.context = context;
    this.#deps = deps;
    const { clock, logger } = deps;
    const { user } = context;
    const read = async () => ({ value: await readIdentity(context, deps.files), forMs: certificateAgeMs });
    this.#files = new ExpiringValue({ what: 'the certificates', read, clock, logger });
    const { tokenFile } = user;
    if (tokenFile !== undefined) {
      const readToken = () => this.#readToken(tokenFile);
      this.#token = new ExpiringValue({
        what: `the token file ${tokenFile}`,
        read: readToken,
        clock,
        logger,
      });
    }
    const { exec } = user;
    if (exec !== undefined && !hasOtherMeans(context)) {
      const run = (signal: AbortSignal) => this.#runPlugin(exec, signal);
      this.#exec = new ExpiringValue({ what: `the exec plugin ${exec.command}`, read: run, clock, logger });
    }
  }

  get isFresh(): boolean {
    return [this.#files, this.#token, this.#exec].every((kept) => kept?.isFresh ?? true);
  }

  expire(): void {
    this.#files.expire();
    this.#token?.expire();
    this.#exec?.expire();
  }

  refused(): void {
    this.#files.expire();
    this.#token?.expire();
    this.#exec?.expire(minExecAgeMs);
  }

  async get(signal: AbortSignal): Promise<Pick<Access, 'identity' | 'authorization'>> {
    const files = await this.#files.get(signal);
    const exec = await this.#exec?.get(signal);
    const identity = { ca: files.ca, client: exec?.client ?? files.client };
    if (this.#identity === undefined || !isSameIdentity(this.#identity, identity)) this.#identity = identity;
    return { identity: this.#identity, authorization: await this.#authorization(exec, signal) };
  }

  async #authorization(exec: ExecCredential | undefined, signal: AbortSignal): Promise<string | undefined> {
    const { basic, token: written } = this.context.user;
    const token = (await this.#tokenOfFile(signal)) ?? written ?? exec?.token;
    if (token !== undefined) return `Bearer ${token}`;
    if (basic === undefined) return undefined;
    return `Basic ${Buffer.from(`${basic.username}:${basic.password}`).toString('base64')}`;
  }

  /** Reads the token file; until it can be read, returns the token in the kubeconfig. */
  async #tokenOfFile(signal: AbortSignal): Promise<string | undefined> {
    try {
      return await this.#token?.get(signal);
    } catch (error) {
      if (signal.aborted || this.context.user.token === undefined) throw error;
      return undefined;
    }
  }

  async #readToken(path: string): Promise<LoadedValue<string>> {
    try {
      const token = (await this.#deps.files.readText(path)).trim();
      if (!isHeaderText(token))
        throw new KubelingError('FILE_CORRUPT', 'the token must be one line of printable text');
      return { value: token, forMs: tokenAgeMs };
    } catch (error) {
      const message = `Cannot use the token file ${path}: ${describeError(error)}`;
      throw new KubelingError('API_UNAVAILABLE', message, { cause: error, details: { path } });
    }
  }

  async #runPlugin(plugin: ExecPlugin, signal: AbortSignal): Promise<LoadedValue<ExecCredential>> {
    const { exec, clock, files } = this.#deps;
    const ca =
      plugin.clusterInfo === 'provided' ? (await readIdentity(this.context, files)).ca?.pem : undefined;
    return await runExecPlugin({ plugin, context: this.context, ca }, { ...exec, clock }, signal);
  }
}

/** Whether the user has credentials that take precedence over an exec plugin. */
function hasOtherMeans({ user }: KubeContext): boolean {
  return [user.token, user.tokenFile, user.basic, user.certificate].some((means) => means !== undefined);
}
