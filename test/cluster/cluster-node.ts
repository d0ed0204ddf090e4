import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import {
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { unmountBelow } from '../../src/containerd/index.ts';
import type { Container, CriClient } from '../../src/cri/index.ts';
import type { Node } from '../../src/kinds/index.ts';
import { parseMountinfo, realClock, runChecked } from '../../src/lib/index.ts';
import { freePorts } from '../free-ports.ts';
import { listSnapshot, mentioning, takeSnapshot } from '../machine-snapshot.ts';
import {
  openPrivateRuntime,
  type PrivateRuntime,
  type PrivateRuntimeOptions,
  within,
} from '../private-runtime.ts';
import { machineAddresses } from './cluster-certificates.ts';
import type { ControlPlane } from './control-plane.ts';
import { nodeConfig } from './node-config.ts';
import { patiently } from './patiently.ts';

/** Creates all files in `folder`, if given. */
export interface ClusterNodeOptions extends Pick<PrivateRuntimeOptions, 'folder'> {
  readonly name?: string;
  /**
   * Whether the node has a client certificate already, or only a bootstrap token to request one.
   */
  readonly joins?: 'with-certificate' | 'by-bootstrap';
  /** Fields of the KubeletConfiguration that override the defaults of the tests. */
  readonly config?: object;
  readonly flags?: readonly string[];
  /**
   * The address of the API server in the node's kubeconfig, if the node should connect through a
   * proxy.
   */
  readonly server?: string;
  /**
   * For a node that should connect to its runtime through a proxy: returns the socket to configure,
   * given the socket of the runtime.
   */
  readonly runtimeSocket?: (real: string) => Promise<string>;
  /** Variables added to the environment of the test. */
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * The program of another kubelet to run instead of kubeling, for comparison; the variable
   * `KUBELET` sets it as well.
   */
  readonly kubelet?: string;
}

interface NodeFacts {
  readonly name: string;
  readonly dir: string;
  /** The control plane; undefined for a standalone node. */
  readonly plane: ControlPlane | undefined;
  readonly runtime: PrivateRuntime;
  readonly flags: readonly string[];
  readonly port: number;
  readonly healthzPort: number;
  readonly environment: Readonly<Record<string, string>>;
}

const kubeling = fileURLToPath(new URL('../../kubeling', import.meta.url));
const logLinksDir = '/var/log/containers';
const endsWithinMs = 30_000;
const unmountWithinMs = 30_000;
const toldCharacters = 6_000;

/**
 * A node of a test cluster: a private containerd and the process `kubeling run`, which can be
 * killed and restarted. When it is disposed, everything it created on the machine is removed.
 */
export class ClusterNode implements AsyncDisposable {
  readonly #facts: NodeFacts;
  /** The program of another kubelet; kubeling if undefined. */
  #kubelet: string | undefined;
  #moreFlags: readonly string[] = [];
  #process: ChildProcess | undefined;
  #out = '';
  #left: Promise<readonly string[]> | undefined;

  /** Prepares the node; `start` starts its kubelet. */
  static async open(plane: ControlPlane, options: ClusterNodeOptions = {}): Promise<ClusterNode> {
    return await ClusterNode.#open(plane, options);
  }

  /** Like `open`, but without a cluster: the node runs only the pods of its manifests. */
  static async openAlone(options: Omit<ClusterNodeOptions, 'joins' | 'server'> = {}): Promise<ClusterNode> {
    return await ClusterNode.#open(undefined, options);
  }

  static async #open(plane: ControlPlane | undefined, options: ClusterNodeOptions): Promise<ClusterNode> {
    const { folder = tmpdir() } = options;
    const runtime = await openPrivateRuntime({ folder });
    const dir = await realpath(await mkdtemp(join(folder, 'klg-member-')));
    try {
      const { name = 'node-a', environment = {} } = options;
      const [port = 0, healthzPort = 0] = await freePorts(2);
      const base = { name, dir, plane, runtime, port, healthzPort, environment };
      const { kubelet = process.env['KUBELET'] } = options;
      return new ClusterNode({ ...base, flags: await prepare(base, options) }, kubelet);
    } catch (error) {
      await runtime[Symbol.asyncDispose]();
      await rm(dir, { recursive: true, force: true });
      throw error;
    }
  }

  private constructor(facts: NodeFacts, kubelet: string | undefined) {
    this.#facts = facts;
    this.#kubelet = kubelet;
  }

  get name(): string {
    return this.#facts.name;
  }

  /** The port of the kubelet's HTTPS server. */
  get port(): number {
    return this.#facts.port;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** The output of all kubelet processes so far. */
  get out(): string {
    return this.#out;
  }

  get manifestDir(): string {
    return placesIn(this.#facts.dir).manifests;
  }

  get rootDir(): string {
    return placesIn(this.#facts.dir).root;
  }

  /** The path of the node's kubeconfig; a node that joins by bootstrap writes it itself. */
  get kubeconfig(): string {
    return placesIn(this.#facts.dir).kubeconfig;
  }

  /** A client of the node's runtime, to inspect the actual containers. */
  get cri(): CriClient {
    return this.#facts.runtime.cri;
  }

  /** The cgroup that contains all pods of the node, in each hierarchy. */
  get cgroup(): string {
    return this.#facts.runtime.containerd.layout.cgroup;
  }

  /** The name of the image that the runtime has. */
  get image(): string {
    return this.#facts.runtime.image;
  }

  /** Starts the kubelet process without waiting. */
  launch(): void {
    assert.equal(this.#left, undefined, 'a node that was left cannot be started again');
    assert.ok(!this.#isRunning(), 'the node runs already');
    const program = this.#kubelet === undefined ? [kubeling, 'run'] : [this.#kubelet];
    const args = ['--pdeathsig', 'KILL', '--', ...program, ...this.#facts.flags, ...this.#moreFlags];
    const env = { ...process.env, ...this.#facts.environment };
    const child = spawn('setpriv', args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk) => {
        this.#out += chunk;
      });
    }
    this.#process = child;
  }

  /** Starts the kubelet process and waits until it reports that it is healthy. */
  async start(): Promise<void> {
    this.launch();
    const url = `http://127.0.0.1:${this.#facts.healthzPort}/healthz`;
    await patiently(
      'kubeling to be healthy',
      async () => {
        assert.ok(this.#isRunning(), `kubeling ended:\n${this.#lastWords()}`);
        const response = await fetch(url).catch(() => undefined);
        return response?.ok === true ? true : undefined;
      },
      () => this.#lastWords(),
    );
  }

  /** Waits until the Node object is Ready. */
  async ready(): Promise<Node> {
    let last: Node | undefined;
    return await patiently(
      `the node ${this.name} to be Ready`,
      async () => {
        last = await this.#plane.get<Node>(`/api/v1/nodes/${this.name}`);
        const condition = last?.status?.conditions?.find(({ type }) => type === 'Ready');
        return condition?.status === 'True' ? last : undefined;
      },
      () => `${JSON.stringify(last?.status?.conditions, undefined, 1)}\n${this.#lastWords()}`,
    );
  }

  /**
   * Waits until the API server can connect to the kubelet, which requires a serving certificate
   * that it trusts.
   */
  async reachable(): Promise<void> {
    let last = '';
    await patiently(
      `the node ${this.name} to be reached`,
      async () => {
        const { status, body } = await this.#plane.ask(`/api/v1/nodes/${this.name}/proxy/healthz`);
        last = `${status} ${body}`;
        return status === 200 ? true : undefined;
      },
      () => `${last}\n${this.#lastWords()}`,
    );
  }

  /** Sends a signal to the kubelet and waits until it has exited; containers keep running. */
  async kill(how: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (child === undefined || !this.#isRunning()) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    const limit = setTimeout(() => child.kill('SIGKILL'), endsWithinMs);
    child.kill(how);
    await gone;
    clearTimeout(limit);
  }

  async stop(): Promise<void> {
    await this.kill('SIGTERM');
  }

  /** Deletes the certificates of a node that joined by bootstrap and requests new ones. */
  async rejoin(): Promise<void> {
    const { kubeconfig, certificates } = placesIn(this.#facts.dir);
    await this.stop();
    for (const path of [kubeconfig, certificates]) await rm(path, { recursive: true, force: true });
    await this.start();
    await this.ready();
  }

  /**
   * Replaces this node's kubelet by another one, with the same flags plus the given ones, the same
   * files and the same runtime.
   */
  async changeTo(kubelet: string | 'kubeling', ...flags: readonly string[]): Promise<void> {
    await this.stop();
    this.#moreFlags = flags;
    this.#kubelet = kubelet === 'kubeling' ? undefined : kubelet;
    await this.start();
  }

  /** Replaces the manifest atomically, so that the kubelet never reads half of it. */
  async put(file: string, manifest: unknown): Promise<void> {
    const temporary = join(this.#facts.dir, `${file}.new`);
    await writeFile(temporary, typeof manifest === 'string' ? manifest : JSON.stringify(manifest));
    await rename(temporary, join(this.manifestDir, file));
  }

  async take(file: string): Promise<void> {
    await rm(join(this.manifestDir, file), { force: true });
  }

  /** Returns the containers, running or not, of the pod with this name. */
  async containersOf(podName: string): Promise<readonly Container[]> {
    const { containers } = await this.cri.listContainers({}, new AbortController().signal);
    return containers.filter(({ labels }) => labels['io.kubernetes.pod.name'] === podName);
  }

  /** Removes the node. Returns what it left on the machine. May be called twice. */
  async leave(): Promise<readonly string[]> {
    this.#left ??= this.#leave();
    return await this.#left;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }

  async #leave(): Promise<readonly string[]> {
    const { dir, runtime } = this.#facts;
    await this.stop();
    await runtime[Symbol.asyncDispose]();
    const problems = await unmountAll(dir);
    await removeLogLinks(dir);
    const words = [dir, runtime.dataDir, runtime.containerd.layout.network];
    const left = listSnapshot(mentioning(await takeSnapshot(), words));
    // Files behind a mount that could not be unmounted may not belong to the test, so they are not
    // deleted.
    if (problems.length === 0) await rm(dir, { recursive: true, force: true });
    return [...left, ...problems];
  }

  get #plane(): ControlPlane {
    assert.ok(this.#facts.plane, 'the node is of no cluster');
    return this.#facts.plane;
  }

  #isRunning(): boolean {
    const child = this.#process;
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }

  #lastWords(): string {
    return this.#out.slice(-toldCharacters);
  }
}

function placesIn(dir: string) {
  return {
    manifests: join(dir, 'manifests'),
    root: join(dir, 'kubelet'),
    logs: join(dir, 'logs'),
    config: join(dir, 'config.yaml'),
    kubeconfig: join(dir, 'kubelet.conf'),
    certificates: join(dir, 'kubelet', 'pki'),
  };
}

/** Writes the configuration files of the node; returns the flags. */
async function prepare(
  facts: Omit<NodeFacts, 'flags'>,
  options: ClusterNodeOptions,
): Promise<readonly string[]> {
  const { name, dir, plane, runtime, port, healthzPort } = facts;
  const places = placesIn(dir);
  await mkdir(places.manifests);
  const { cgroup: cgroupRoot, socket } = runtime.containerd.layout;
  const runtimeSocket = (await options.runtimeSocket?.(socket)) ?? socket;
  const own = { manifestDir: places.manifests, podLogsDir: places.logs, port, healthzPort };
  const config = nodeConfig(
    { ...own, clientCaFile: plane?.ca ?? '', cgroupRoot, runtimeSocket },
    { ...(plane?.nodeConfig ?? openToNobody), ...options.config },
  );
  await writeFile(places.config, stringify(config));
  await makeCgroup(cgroupRoot);
  return [
    `--config=${places.config}`,
    ...(plane === undefined ? [] : await joining(name, places.kubeconfig, plane, options)),
    `--hostname-override=${name}`,
    `--root-dir=${places.root}`,
    `--cert-dir=${places.certificates}`,
    ...(options.flags ?? []),
  ];
}

/**
 * The authentication settings of a standalone node, which has no API server to authenticate
 * clients.
 */
const openToNobody = {
  authentication: { anonymous: { enabled: false }, webhook: { enabled: false } },
  authorization: { mode: 'AlwaysAllow' },
};

async function joining(
  name: string,
  kubeconfig: string,
  plane: ControlPlane,
  { joins = 'with-certificate', server = plane.serverUrl }: ClusterNodeOptions,
): Promise<readonly string[]> {
  const bootstrap = joins === 'by-bootstrap' ? await plane.bootstrapKubeconfig(name, server) : undefined;
  if (bootstrap === undefined) await copyFile(await plane.nodeKubeconfig(name, server), kubeconfig);
  const [address] = machineAddresses();
  return [
    `--kubeconfig=${kubeconfig}`,
    ...(bootstrap === undefined ? [] : [`--bootstrap-kubeconfig=${bootstrap}`]),
    ...(address === undefined ? [] : [`--node-ip=${address}`]),
  ];
}

/**
 * Creates the cgroup of the node, which a kubelet expects to exist: in every v1 hierarchy, or in
 * the single v2 one.
 */
async function makeCgroup(path: string): Promise<void> {
  const mounts = parseMountinfo(await readFile('/proc/self/mountinfo', 'utf8'));
  const places = mounts.filter(({ fsType }) => fsType === 'cgroup' || fsType === 'cgroup2');
  for (const { mountPoint } of places) await mkdir(join(mountPoint, path), { recursive: true });
}

/** Unmounts volumes of pods that were not removed regularly. */
async function unmountAll(dir: string): Promise<readonly string[]> {
  const clock = realClock();
  const run = (file: string, args: readonly string[], signal: AbortSignal) =>
    runChecked({ file, args, clock, deadlineMs: unmountWithinMs }, signal);
  const deps = { run, procDir: '/proc', sysDir: '/sys' };
  const { problems } = await within(unmountWithinMs, 'unmount volumes', (signal) =>
    unmountBelow(dir, deps, signal),
  );
  return problems;
}

/** Removes the container log links of pods that were not removed regularly. */
async function removeLogLinks(dir: string): Promise<void> {
  const names = await readdir(logLinksDir).catch(() => []);
  for (const name of names) {
    const link = join(logLinksDir, name);
    const target = await readlink(link).catch(() => '');
    if (target.startsWith(`${dir}/`)) await rm(link, { force: true });
  }
}
