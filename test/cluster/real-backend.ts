import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CertificateWish, KeyPair } from '../fakes/certificate-authority.ts';
import { freePorts } from '../free-ports.ts';
import { bootstrapToken } from './cluster-access.ts';
import { ClusterCertificates, type Credential, writeKubeconfig } from './cluster-certificates.ts';
import { httpsPost } from './https-get.ts';
import type { Part } from './part.ts';
import type { PlaneBackend } from './plane-backend.ts';
import {
  apiServerPart,
  controllerManagerPart,
  etcdPart,
  type PlaneFlags,
  type PlanePlaces,
  schedulerPart,
} from './plane-parts.ts';
import { findClusterPrograms } from './programs.ts';

/** A real control plane on loopback: etcd, API server, controller manager and scheduler. */
export class RealBackend implements PlaneBackend {
  readonly kind = 'real';
  readonly nodeConfig = {};
  readonly admin: KeyPair;
  readonly #places: PlanePlaces;
  readonly #flags: PlaneFlags;
  readonly #etcd: Part;
  readonly #apiServer: Part;
  #controllerManager: Part;
  readonly #scheduler: Part;

  /** Starts the programs in `assetsDir`; etcd and kubectl may also be on the PATH. */
  static async open(assetsDir: string, flags: PlaneFlags): Promise<RealBackend> {
    const programs = findClusterPrograms(assetsDir);
    const folder = await mkdtemp(join(tmpdir(), 'klg-plane-'));
    const certificates = new ClusterCertificates();
    const [etcd = 0, etcdPeer = 0, apiServer = 0, controllerManager = 0, scheduler = 0] = await freePorts(5);
    const ports = { etcd, etcdPeer, apiServer, controllerManager, scheduler };
    const controllerManagerConfig = join(folder, 'controller-manager.conf');
    const schedulerConfig = join(folder, 'scheduler.conf');
    const places = { programs, certificates, folder, ports, controllerManagerConfig, schedulerConfig };
    const backend = new RealBackend(places, flags);
    try {
      await backend.#start();
      return backend;
    } catch (error) {
      await backend[Symbol.asyncDispose]();
      throw error;
    }
  }

  private constructor(places: PlanePlaces, flags: PlaneFlags) {
    this.#places = places;
    this.#flags = flags;
    this.admin = places.certificates.issue({ subject: '/O=system:masters/CN=admin' });
    this.#etcd = etcdPart(places);
    this.#apiServer = apiServerPart(places, flags);
    this.#controllerManager = controllerManagerPart(places, flags);
    this.#scheduler = schedulerPart(places);
  }

  get serverUrl(): string {
    return `https://127.0.0.1:${this.#places.ports.apiServer}`;
  }

  get ca(): string {
    return this.#places.certificates.ca;
  }

  get caFile(): string {
    return this.#places.certificates.file('ca.crt');
  }

  get adminKubeconfig(): string {
    return join(this.folder, 'admin.conf');
  }

  get kubectl(): string {
    return this.#places.programs.kubectl;
  }

  get folder(): string {
    return this.#places.folder;
  }

  issue(options: CertificateWish): KeyPair {
    return this.#places.certificates.issue(options);
  }

  /** Creates a bootstrap token; certificate requests with it are approved. */
  async firstCredential(): Promise<Credential> {
    const { token, secret } = bootstrapToken();
    const path = '/api/v1/namespaces/kube-system/secrets';
    const { status, body } = await httpsPost(
      `${this.serverUrl}${path}`,
      { ca: this.ca, ...this.admin },
      secret,
    );
    if (status !== 201) throw new Error(`Cannot create a bootstrap token: ${status} ${body}`);
    return { token };
  }

  async stopApiServer(how: NodeJS.Signals): Promise<void> {
    await this.#apiServer.stop(how);
  }

  async startApiServer(): Promise<void> {
    await this.#apiServer.start();
  }

  async signFor(signingDuration: string): Promise<void> {
    await this.#controllerManager.stop();
    this.#controllerManager = controllerManagerPart(this.#places, { ...this.#flags, signingDuration });
    await this.#controllerManager.start();
  }

  /** Compacts the history in etcd and waits until the API server has dropped its cached history. */
  async forgetHistory(): Promise<void> {
    const { header } = await this.#askEtcd('kv/range', { key: Buffer.from('/').toString('base64') });
    await this.#askEtcd('kv/compaction', { revision: header.revision, physical: true });
    await this.stopApiServer('SIGKILL');
    await this.startApiServer();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await Promise.all([this.#scheduler.stop(), this.#controllerManager.stop()]);
      await this.#apiServer.stop();
      await this.#etcd.stop();
    } finally {
      this.#places.certificates[Symbol.dispose]();
      await rm(this.folder, { recursive: true, force: true });
    }
  }

  async #start(): Promise<void> {
    this.#writeKubeconfigs();
    await this.#etcd.start();
    await this.#apiServer.start();
    await Promise.all([this.#controllerManager.start(), this.#scheduler.start()]);
  }

  async #askEtcd(path: string, body: object): Promise<{ readonly header: { readonly revision: string } }> {
    const url = `http://127.0.0.1:${this.#places.ports.etcd}/v3/${path}`;
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`Cannot query etcd for ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  #writeKubeconfigs(): void {
    const { certificates, controllerManagerConfig, schedulerConfig } = this.#places;
    const server = { url: this.serverUrl, ca: this.ca };
    writeKubeconfig(this.adminKubeconfig, server, this.admin);
    const controllerManager = certificates.issue({ subject: '/CN=system:kube-controller-manager' });
    writeKubeconfig(controllerManagerConfig, server, controllerManager);
    writeKubeconfig(schedulerConfig, server, certificates.issue({ subject: '/CN=system:kube-scheduler' }));
  }
}
