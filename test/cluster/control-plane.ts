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

/** A control plane of the test's own on loopback, real or embedded, and an administrator's hands on it. */
export class ControlPlane implements AsyncDisposable {
  readonly #backend: PlaneBackend;
  #written = 0;

  /** A real one. `assetsDir` holds the programs; etcd and kubectl may also be on the PATH. */
  static async open(assetsDir: string, flags: PlaneFlags = {}): Promise<ControlPlane> {
    const plane = new ControlPlane(await RealBackend.open(assetsDir, flags));
    return await plane.#prepared(() => plane.apply(...accessOfNodes()));
  }

  /** kubeling's own API, with nothing beside it. */
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

  /** The file with the authority that vouches for everybody in the cluster. */
  get ca(): string {
    return this.#backend.caFile;
  }

  get adminKubeconfig(): string {
    return this.#backend.adminKubeconfig;
  }

  /** Where the logs of its parts are, each named after the program. */
  get folder(): string {
    return this.#backend.folder;
  }

  /** Where the program is. */
  get kubectlProgram(): string {
    return this.#backend.kubectl;
  }

  /** What a node must have in its configuration to be reached. */
  get nodeConfig(): object {
    return this.#backend.nodeConfig;
  }

  /** As a cluster's administrator; answers what it printed, and throws with what it complained about. */
  async kubectl(...args: readonly string[]): Promise<string> {
    return await this.#kubectl(args, '');
  }

  /** A kubectl that goes on, such as one that follows a log; whoever asked for it ends it. */
  spawnKubectl(...args: readonly string[]): ChildProcess {
    return this.spawn((program) => [program, ...args]);
  }

  /** Any program that is given kubectl and the administrator's environment, such as a terminal with it inside. */
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

  /** Makes objects that are not there yet, each where its kind and namespace say; without a kubectl. */
  async make(...objects: readonly object[]): Promise<void> {
    for (const object of objects) await this.create(collectionOf(object as Sketch), object);
  }

  /** Asks the API server directly, which costs far less than a kubectl. */
  async ask(path: string): Promise<Answer> {
    return await httpsGet(`${this.serverUrl}${path}`, this.#identity());
  }

  /** The object at a path such as `/api/v1/nodes/a`; undefined when there is none. */
  async get<T>(path: string): Promise<T | undefined> {
    const { status, body } = await this.ask(path);
    if (status === 404) return undefined;
    if (status !== 200) throw new Error(`Cannot get ${path}: ${status} ${body}`);
    return JSON.parse(body);
  }

  /** A certificate that the cluster's authority vouches for. */
  issue(options: CertificateWish): KeyPair {
    return this.#backend.issue(options);
  }

  /** Makes an object in a collection such as `/api/v1/namespaces/default/pods`. */
  async create(path: string, object: object): Promise<void> {
    const { status, body } = await httpsPost(`${this.serverUrl}${path}`, this.#identity(), object);
    if (status !== 201) throw new Error(`Cannot create in ${path}: ${status} ${body}`);
  }

  /** Asks for anything, and answers whatever the API server answers. */
  async send(path: string, sent: Sent): Promise<Answer> {
    return await httpsSend(`${this.serverUrl}${path}`, this.#identity(), sent);
  }

  /** With a certificate for the node of this name; it goes to the API server directly unless told otherwise. */
  async nodeKubeconfig(nodeName: string, server = this.serverUrl): Promise<string> {
    const pair = this.issue({ subject: `/O=system:nodes/CN=system:node:${nodeName}` });
    return this.#writeKubeconfig(`node-${nodeName}.conf`, pair, server);
  }

  /** With what a node of this name may show to ask for its first certificate, which is then approved. */
  async bootstrapKubeconfig(nodeName = 'node-a', server = this.serverUrl): Promise<string> {
    const credential = await this.#backend.firstCredential(nodeName);
    this.#written += 1;
    return this.#writeKubeconfig(`bootstrap-${this.#written}.conf`, credential, server);
  }

  /**
   * The rest of the control plane goes on and waits for it. It ends at once unless told otherwise: in order it would
   * wait for its watchers, some longer than a test wants to.
   */
  async stopApiServer(how: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.#backend.stopApiServer(how);
  }

  /** How long certificates hold that it signs from now on, as Go writes durations. */
  async signFor(duration: string): Promise<void> {
    await this.#backend.signFor(duration);
  }

  /** At the same address with the same data; waits until it is ready. */
  async startApiServer(): Promise<void> {
    await this.#backend.startApiServer();
  }

  /** Versions from before are too old for watches from now on; who watches has to begin again. */
  async forgetHistory(): Promise<void> {
    await this.#backend.forgetHistory();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#backend[Symbol.asyncDispose]();
  }

  async #prepared(prepare: () => Promise<unknown>): Promise<ControlPlane> {
    try {
      await prepare();
      // Pods are refused before their service account is there.
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
