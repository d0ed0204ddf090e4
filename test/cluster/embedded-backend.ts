import { mkdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseDurationMs } from '../../src/lib/index.ts';
import {
  type Authority,
  CertificateFolder,
  type CertificateWish,
  type KeyPair,
} from '../fakes/certificate-authority.ts';
import { freePorts } from '../free-ports.ts';
import type { Credential } from './cluster-certificates.ts';
import type { EmbeddedApiFacts } from './embedded-api.ts';
import { httpsGet } from './https-get.ts';
import { Part } from './part.ts';
import type { PlaneBackend } from './plane-backend.ts';
import { findKubectl } from './programs.ts';

export interface EmbeddedOptions {
  /** The name of the node that may join; `node-a` if undefined. */
  readonly nodeName?: string | undefined;
  /**
   * The validity of certificates that the embedded API signs, as a Go duration; a year if
   * undefined.
   */
  readonly signingDuration?: string | undefined;
  /** The audit log of requests by nodes; not written if undefined. */
  readonly auditFile?: string | undefined;
}

const program = fileURLToPath(new URL('embedded-api.ts', import.meta.url));

/** Runs kubeling's embedded API in a separate process, in place of a complete control plane. */
export class EmbeddedBackend implements PlaneBackend {
  readonly kind = 'embedded';
  /** The API server trusts only certificates of its own CA, also those of kubelets. */
  readonly nodeConfig = { serverTLSBootstrap: true };
  readonly kubectl = findKubectl();
  readonly folder: string;
  readonly serverUrl: string;
  readonly #certificates = new CertificateFolder();
  readonly #facts: EmbeddedApiFacts;
  #server: Part;
  #authority: Authority | undefined;

  static async open(options: EmbeddedOptions): Promise<EmbeddedBackend> {
    const folder = await mkdtemp(join(tmpdir(), 'klg-embedded-'));
    const [port = 0] = await freePorts(1);
    const backend = new EmbeddedBackend(folder, port, options);
    try {
      await backend.#server.start();
      return backend;
    } catch (error) {
      await backend[Symbol.asyncDispose]();
      throw error;
    }
  }

  private constructor(folder: string, port: number, options: EmbeddedOptions) {
    const { nodeName = 'node-a', signingDuration, auditFile } = options;
    this.folder = folder;
    this.serverUrl = `https://127.0.0.1:${port}`;
    this.#facts = {
      directory: join(folder, 'api'),
      adminKubeconfig: this.adminKubeconfig,
      port,
      nodeName,
      ...(signingDuration === undefined
        ? {}
        : { maxCertificateLifetimeMs: parseDurationMs(signingDuration) }),
      auditFile,
    };
    mkdirSync(this.#facts.directory, { mode: 0o700 });
    this.#server = this.#part(this.#facts);
  }

  get adminKubeconfig(): string {
    return join(this.folder, 'admin.conf');
  }

  get caFile(): string {
    return join(this.folder, 'api', 'pki', 'ca.crt');
  }

  get ca(): string {
    return readFileSync(this.caFile, 'utf8');
  }

  get admin(): KeyPair {
    const both = this.#kept('admin.pem');
    return { cert: both, key: both };
  }

  issue(options: CertificateWish): KeyPair {
    this.#authority ??= this.#certificates.adopt(this.#kept('ca.pem'));
    return this.#authority.issue(options);
  }

  /**
   * The embedded API supports no bootstrap tokens: a node gets its first certificate here, and
   * requests later ones.
   */
  async firstCredential(nodeName: string): Promise<Credential> {
    return this.issue({ subject: `/O=system:nodes/CN=system:node:${nodeName}` });
  }

  async stopApiServer(how: NodeJS.Signals): Promise<void> {
    await this.#server.stop(how);
  }

  async startApiServer(): Promise<void> {
    await this.#server.start();
  }

  async signFor(duration: string): Promise<void> {
    await this.#server.stop();
    this.#server = this.#part({ ...this.#facts, maxCertificateLifetimeMs: parseDurationMs(duration) });
    await this.#server.start();
  }

  /** Does nothing: the embedded API keeps the history only while it runs. */
  async forgetHistory(): Promise<void> {
    await this.stopApiServer('SIGKILL');
    await this.startApiServer();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#server.stop();
    } finally {
      this.#certificates[Symbol.dispose]();
      await rm(this.folder, { recursive: true, force: true });
    }
  }

  #part(facts: EmbeddedApiFacts): Part {
    return new Part({
      name: 'embedded-api',
      program: process.execPath,
      args: [program, JSON.stringify(facts)],
      folder: this.folder,
      isHealthy: async () => (await httpsGet(`${this.serverUrl}/readyz`, { ca: this.ca })).status === 200,
    });
  }

  /** Returns the certificate and its key, which the API stores in one file. */
  #kept(name: string): string {
    return readFileSync(join(this.folder, 'api', 'pki', name), 'utf8');
  }
}
