import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { CertificateWish, KeyPair } from '../fakes/certificate-authority.ts';
import { accessOfNodes } from './cluster-access.ts';
import { type Credential, writeKubeconfig } from './cluster-certificates.ts';
import { EmbeddedBackend, type EmbeddedOptions } from './embedded-backend.ts';
import { type Answer, httpsGet, httpsPost, httpsSend, type Sent } from './https-get.ts';
import { patiently } from './patiently.ts';
import type { PlaneBackend } from './plane-backend.ts';
import type { PlaneFlags } from './plane-parts.ts';
import { RealBackend } from './real-backend.ts';

/** A private control plane of the test on loopback, real or embedded, with administrator access. */
export class ControlPlane implements AsyncDisposable {
  readonly #backend: PlaneBackend;
  #written = 0;

  /**
   * Starts a real control plane. `assetsDir` contains the programs; etcd and kubectl may also be on
   * the PATH.
   */
  static async open(assetsDir: string, flags: PlaneFlags = {}): Promise<ControlPlane> {
    const plane = new ControlPlane(await RealBackend.open(assetsDir, flags));
    return await plane.#prepared(() => plane.apply(...accessOfNodes()));
  }

  /** Starts kubeling's embedded API, without other components. */
  static async openEmbedded(options: EmbeddedOptions = {}): Promise<ControlPlane> {
    const plane = new ControlPlane(await EmbeddedBackend.open(options));
    return await plane.#prepared(async () => {});
  }

  private constructor(backend: PlaneBackend) {
    this.#backend = backend;
  }

  get kind(): PlaneBackend['kind'] {
    return this.#backend.kind;
  }

  get serverUrl(): string {
    return this.#backend.serverUrl;
  }

  /** The file with the CA that signs all certificates of the cluster. */
  get ca(): string {
    return this.#backend.caFile;
  }

  get adminKubeconfig(): string {
    return this.#backend.adminKubeconfig;
  }

  /** The directory with the logs of the components, each named after its program. */
  get folder(): string {
    return this.#backend.folder;
  }

  /** The path of kubectl. */
  get kubectlProgram(): string {
    return this.#backend.kubectl;
  }

  /** The fields that a node's configuration requires so that the API server can connect to it. */
  get nodeConfig(): object {
    return this.#backend.nodeConfig;
  }

  /** Runs kubectl as cluster administrator. Returns its output; throws its error output. */
  async kubectl(...args: readonly string[]): Promise<string> {
    return await this.#kubectl(args, '');
  }

  /**
   * Starts a kubectl that keeps running, such as one that follows a log; the caller must stop it.
   */
  spawnKubectl(...args: readonly string[]): ChildProcess {
    return this.spawn((program) => [program, ...args]);
  }

  /**
   * Starts any program with the administrator's environment and the path of kubectl, such as a
   * terminal with kubectl in it.
   */
  spawn(commandWith: (kubectl: string) => readonly string[]): ChildProcess {
    const { folder, kubectl, adminKubeconfig } = this.#backend;
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      KUBECONFIG: adminKubeconfig,
      KUBECACHEDIR: join(folder, 'kubectl-cache'),
    };
    return spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...commandWith(kubectl)], { env });
  }

  async apply(...objects: readonly object[]): Promise<string> {
    const list = { apiVersion: 'v1', kind: 'List', items: objects };
    return await this.#kubectl(['apply', '-f', '-'], JSON.stringify(list));
  }

  /**
   * Creates objects that do not exist yet at the paths of their kinds and namespaces; does not use
   * kubectl.
   */
  async make(...objects: readonly object[]): Promise<void> {
    for (const object of objects) await this.create(collectionOf(object as Sketch), object);
  }

  /** Sends a GET request to the API server, which is much cheaper than running kubectl. */
  async ask(path: string): Promise<Answer> {
    return await httpsGet(`${this.serverUrl}${path}`, this.#identity());
  }

  /** Returns the object at a path such as `/api/v1/nodes/a`; undefined if it does not exist. */
  async get<T>(path: string): Promise<T | undefined> {
    const { status, body } = await this.ask(path);
    if (status === 404) return undefined;
    if (status !== 200) throw new Error(`Cannot get ${path}: ${status} ${body}`);
    return JSON.parse(body);
  }

  /** Creates a certificate signed by the CA of the cluster. */
  issue(options: CertificateWish): KeyPair {
    return this.#backend.issue(options);
  }

  /** Creates an object in a collection such as `/api/v1/namespaces/default/pods`. */
  async create(path: string, object: object): Promise<void> {
    const { status, body } = await httpsPost(`${this.serverUrl}${path}`, this.#identity(), object);
    if (status !== 201) throw new Error(`Cannot create in ${path}: ${status} ${body}`);
  }

  /** Sends any request and returns the response of the API server. */
  async send(path: string, sent: Sent): Promise<Answer> {
    return await httpsSend(`${this.serverUrl}${path}`, this.#identity(), sent);
  }

  /**
   * Writes a kubeconfig with a certificate for the node of this name. It contains the address of
   * the API server unless another one is given.
   */
  async nodeKubeconfig(nodeName: string, server = this.serverUrl): Promise<string> {
    const pair = this.issue({ subject: `/O=system:nodes/CN=system:node:${nodeName}` });
    return this.#writeKubeconfig(`node-${nodeName}.conf`, pair, server);
  }

  /**
   * Writes a kubeconfig with a bootstrap token, with which a node of this name requests its first
   * certificate; the request is approved.
   */
  async bootstrapKubeconfig(nodeName = 'node-a', server = this.serverUrl): Promise<string> {
    const credential = await this.#backend.firstCredential(nodeName);
    this.#written += 1;
    return this.#writeKubeconfig(`bootstrap-${this.#written}.conf`, credential, server);
  }

  /**
   * Stops the API server; the other components keep running and wait for it. The server is killed
   * by default, because a graceful stop waits until its watchers disconnect, which may take longer
   * than a test.
   */
  async stopApiServer(how: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.#backend.stopApiServer(how);
  }

  /** Sets the validity of certificates that the cluster signs from now on, as a Go duration. */
  async signFor(duration: string): Promise<void> {
    await this.#backend.signFor(duration);
  }

  /** Starts the API server at the same address with the same data, and waits until it is ready. */
  async startApiServer(): Promise<void> {
    await this.#backend.startApiServer();
  }

  /**
   * Compacts the history, so that earlier versions cannot be watched any more and watchers must
   * list again.
   */
  async forgetHistory(): Promise<void> {
    await this.#backend.forgetHistory();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#backend[Symbol.asyncDispose]();
  }

  async #prepared(prepare: () => Promise<unknown>): Promise<ControlPlane> {
    try {
      await prepare();
      // Waits for the service account, because pods are rejected before it exists.
      const account = '/api/v1/namespaces/default/serviceaccounts/default';
      await patiently('the default service account', () => this.get(account));
      return this;
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  #identity() {
    const { ca, admin } = this.#backend;
    return { ca, ...admin };
  }

  #writeKubeconfig(name: string, credential: Credential, url: string): string {
    const path = join(this.folder, name);
    writeKubeconfig(path, { url, ca: this.#backend.ca }, credential);
    return path;
  }

  async #kubectl(args: readonly string[], input: string): Promise<string> {
    const child = this.spawnKubectl(...args);
    const { stdin, stdout, stderr } = child;
    if (stdin === null || stdout === null || stderr === null) throw new Error('Cannot write to kubectl');
    // A kubectl that does not read its input may exit before everything is written.
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

interface Sketch {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly namespace?: string };
}

function collectionOf({ apiVersion, kind, metadata: { namespace } }: Sketch): string {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const directory = namespace === undefined ? '' : `/namespaces/${namespace}`;
  return `${group}${directory}/${kind.toLowerCase()}s`;
}
