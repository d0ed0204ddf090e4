import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { KeyPair } from '../fakes/certificate-authority.ts';
import { accessOfNodes, bootstrapToken } from './cluster-access.ts';
import { ClusterCertificates } from './cluster-certificates.ts';
import { freePorts } from './free-ports.ts';
import { type Answer, httpsGet } from './https-get.ts';
import type { Part } from './part.ts';
import { patiently } from './patiently.ts';
import {
  apiServerPart,
  controllerManagerPart,
  etcdPart,
  type PlaneFlags,
  type PlanePlaces,
  schedulerPart,
} from './plane-parts.ts';
import { findClusterPrograms } from './programs.ts';

interface PlaneFacts {
  readonly places: PlanePlaces;
  readonly flags: PlaneFlags;
  readonly admin: KeyPair;
}

/** A control plane of the test's own on loopback: etcd, API server, controller manager and scheduler, all real. */
export class ControlPlane implements AsyncDisposable {
  readonly #facts: PlaneFacts;
  readonly #etcd: Part;
  readonly #apiServer: Part;
  readonly #controllerManager: Part;
  readonly #scheduler: Part;
  #written = 0;

  /** `assetsDir` holds the programs; etcd and kubectl may also be on the PATH. */
  static async open(assetsDir: string, flags: PlaneFlags = {}): Promise<ControlPlane> {
    const programs = findClusterPrograms(assetsDir);
    const folder = await mkdtemp(join(tmpdir(), 'klg-plane-'));
    const certificates = new ClusterCertificates();
    const admin = certificates.issue('/O=system:masters/CN=admin');
    const [etcd = 0, etcdPeer = 0, apiServer = 0, controllerManager = 0, scheduler = 0] = await freePorts(5);
    const ports = { etcd, etcdPeer, apiServer, controllerManager, scheduler };
    const controllerManagerConfig = join(folder, 'controller-manager.conf');
    const schedulerConfig = join(folder, 'scheduler.conf');
    const places = { programs, certificates, folder, ports, controllerManagerConfig, schedulerConfig };
    const plane = new ControlPlane({ places, flags, admin });
    try {
      await plane.#start();
      return plane;
    } catch (error) {
      await plane[Symbol.asyncDispose]();
      throw error;
    }
  }

  private constructor(facts: PlaneFacts) {
    this.#facts = facts;
    this.#etcd = etcdPart(facts.places);
    this.#apiServer = apiServerPart(facts.places, facts.flags);
    this.#controllerManager = controllerManagerPart(facts.places, facts.flags);
    this.#scheduler = schedulerPart(facts.places);
  }

  get serverUrl(): string {
    return `https://127.0.0.1:${this.#facts.places.ports.apiServer}`;
  }

  /** The file with the authority that vouches for everybody in the cluster. */
  get ca(): string {
    return this.#facts.places.certificates.file('ca.crt');
  }

  get adminKubeconfig(): string {
    return join(this.#facts.places.folder, 'admin.conf');
  }

  /** Where the logs of its parts are, each named after the program. */
  get folder(): string {
    return this.#facts.places.folder;
  }

  /** As a cluster's administrator; answers what it printed, and throws with what it complained about. */
  async kubectl(...args: readonly string[]): Promise<string> {
    return await this.#kubectl(args, '');
  }

  /** A kubectl that goes on, such as one that follows a log; whoever asked for it ends it. */
  spawnKubectl(...args: readonly string[]): ChildProcess {
    const { folder, programs } = this.#facts.places;
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      KUBECONFIG: this.adminKubeconfig,
      KUBECACHEDIR: join(folder, 'kubectl-cache'),
    };
    return spawn('setpriv', ['--pdeathsig', 'KILL', '--', programs.kubectl, ...args], { env });
  }

  async apply(...objects: readonly object[]): Promise<string> {
    const list = { apiVersion: 'v1', kind: 'List', items: objects };
    return await this.#kubectl(['apply', '-f', '-'], JSON.stringify(list));
  }

  /** Asks the API server directly, which costs far less than a kubectl. */
  async ask(path: string): Promise<Answer> {
    const { admin, places } = this.#facts;
    return await httpsGet(`${this.serverUrl}${path}`, { ca: places.certificates.ca, ...admin });
  }

  /** The object at a path such as `/api/v1/nodes/a`; undefined when there is none. */
  async get<T>(path: string): Promise<T | undefined> {
    const { status, body } = await this.ask(path);
    if (status === 404) return undefined;
    if (status !== 200) throw new Error(`Cannot get ${path}: ${status} ${body}`);
    return JSON.parse(body);
  }

  /** With a certificate for the node of this name. */
  async nodeKubeconfig(nodeName: string): Promise<string> {
    const { certificates } = this.#facts.places;
    const pair = certificates.issue(`/O=system:nodes/CN=system:node:${nodeName}`);
    return this.#writeKubeconfig(`node-${nodeName}.conf`, pair);
  }

  /** With a new token that may ask for a node's first certificate and gets it approved. */
  async bootstrapKubeconfig(): Promise<string> {
    const { token, secret } = bootstrapToken();
    await this.apply(secret);
    this.#written += 1;
    return this.#writeKubeconfig(`bootstrap-${this.#written}.conf`, { token });
  }

  /**
   * The rest of the control plane goes on and waits for it. It ends at once unless told otherwise: in order it would
   * wait for its watchers, some longer than a test wants to.
   */
  async stopApiServer(how: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.#apiServer.stop(how);
  }

  /** At the same address with the same data; waits until it is ready. */
  async startApiServer(): Promise<void> {
    await this.#apiServer.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { certificates, folder } = this.#facts.places;
    try {
      await Promise.all([this.#scheduler.stop(), this.#controllerManager.stop()]);
      await this.#apiServer.stop();
      await this.#etcd.stop();
    } finally {
      certificates[Symbol.dispose]();
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #start(): Promise<void> {
    this.#writeOwnKubeconfigs();
    await this.#etcd.start();
    await this.#apiServer.start();
    await Promise.all([
      this.#controllerManager.start(),
      this.#scheduler.start(),
      this.apply(...accessOfNodes()),
    ]);
    // Pods are refused before their service account is there.
    const account = '/api/v1/namespaces/default/serviceaccounts/default';
    await patiently('the default service account', () => this.get(account));
  }

  #writeOwnKubeconfigs(): void {
    const { places, admin } = this.#facts;
    const { certificates, controllerManagerConfig, schedulerConfig } = places;
    certificates.writeKubeconfig(this.adminKubeconfig, this.serverUrl, admin);
    const controllerManager = certificates.issue('/CN=system:kube-controller-manager');
    certificates.writeKubeconfig(controllerManagerConfig, this.serverUrl, controllerManager);
    const scheduler = certificates.issue('/CN=system:kube-scheduler');
    certificates.writeKubeconfig(schedulerConfig, this.serverUrl, scheduler);
  }

  #writeKubeconfig(name: string, credential: KeyPair | { readonly token: string }): string {
    const { certificates, folder } = this.#facts.places;
    const path = join(folder, name);
    certificates.writeKubeconfig(path, this.serverUrl, credential);
    return path;
  }

  async #kubectl(args: readonly string[], input: string): Promise<string> {
    const child = this.spawnKubectl(...args);
    const { stdin, stdout, stderr } = child;
    if (stdin === null || stdout === null || stderr === null) throw new Error('Cannot talk to kubectl');
    // One that does not read its input may be gone before all is written.
    stdin.on('error', () => {});
    stdin.end(input);
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once('error', reject).once('close', resolve);
    });
    const [code, out, complaint] = await Promise.all([ended, text(stdout), text(stderr)]);
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')} ended with ${code}: ${complaint}${out}`);
    return out;
  }
}
