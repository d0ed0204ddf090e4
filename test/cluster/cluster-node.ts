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

/** All of it is made in the folder, if one is given. */
export interface ClusterNodeOptions extends Pick<PrivateRuntimeOptions, 'folder'> {
  readonly name?: string;
  /** Whether it has its certificate already or only a token to ask for one. */
  readonly joins?: 'with-certificate' | 'by-bootstrap';
  /** Fields of the KubeletConfiguration that go over the usual ones. */
  readonly config?: object;
  readonly flags?: readonly string[];
  /** The address of the API server in its kubeconfig, when it should not go there directly. */
  readonly server?: string;
  /** Answers the socket of the runtime in its configuration, given the real one, when it should not go there directly. */
  readonly runtimeSocket?: (real: string) => Promise<string>;
  /** Beside the environment of the test. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Another kubelet in kubeling's place, to see how it does; `KUBELET` in the environment names one too. */
  readonly kubelet?: string;
}

interface NodeFacts {
  readonly name: string;
  readonly dir: string;
  /** Undefined for a node of no cluster. */
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
 * A node of a test's cluster: a containerd of its own and the process `kubeling run`, which can be killed and started
 * again. Everything on the machine that is its own goes when it is left.
 */
export class ClusterNode implements AsyncDisposable {
  readonly #facts: NodeFacts;
  /** The program of another kubelet; kubeling when there is none. */
  #kubelet: string | undefined;
  #moreFlags: readonly string[] = [];
  #process: ChildProcess | undefined;
  #out = '';
  #left: Promise<readonly string[]> | undefined;

  /** Prepares all it needs; `start` starts it. */
  static async open(plane: ControlPlane, options: ClusterNodeOptions = {}): Promise<ClusterNode> {
    return await ClusterNode.#open(plane, options);
  }

  /** As `open`, of no cluster: it has the pods of its manifests. */
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

  /** Of the HTTPS server. */
  get port(): number {
    return this.#facts.port;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** What all processes so far have said. */
  get out(): string {
    return this.#out;
  }

  get manifestDir(): string {
    return placesIn(this.#facts.dir).manifests;
  }

  get rootDir(): string {
    return placesIn(this.#facts.dir).root;
  }

  /** The kubeconfig it runs with; one that joins by bootstrap writes it itself. */
  get kubeconfig(): string {
    return placesIn(this.#facts.dir).kubeconfig;
  }

  /** Of the node's runtime, to see what is really there. */
  get cri(): CriClient {
    return this.#facts.runtime.cri;
  }

  /** Below which all of its pods are, in each hierarchy. */
  get cgroup(): string {
    return this.#facts.runtime.containerd.layout.cgroup;
  }

  /** Of the image that its runtime has. */
  get image(): string {
    return this.#facts.runtime.image;
  }

  /** Starts the process without waiting for anything. */
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

  /** Starts the process and waits until it calls itself healthy. */
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

  /** Waits until the API server has it as a node that is Ready. */
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

  /** Waits until the API server reaches it, which takes until it has a certificate that counts there. */
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

  /** Ends the process with a signal and waits until it is gone; containers run on. */
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

  /** It forgets who it is and asks for its certificates anew; only for one that joined by bootstrap. */
  async rejoin(): Promise<void> {
    const { kubeconfig, certificates } = placesIn(this.#facts.dir);
    await this.stop();
    for (const path of [kubeconfig, certificates]) await rm(path, { recursive: true, force: true });
    await this.start();
    await this.ready();
  }

  /** Another kubelet goes on in the place of this one, with the same flags and these, the same files and runtime. */
  async changeTo(kubelet: string | 'kubeling', ...flags: readonly string[]): Promise<void> {
    await this.stop();
    this.#moreFlags = flags;
    this.#kubelet = kubelet === 'kubeling' ? undefined : kubelet;
    await this.start();
  }

  /** In one step, so that nobody reads half a manifest. */
  async put(file: string, manifest: unknown): Promise<void> {
    const temporary = join(this.#facts.dir, `${file}.new`);
    await writeFile(temporary, typeof manifest === 'string' ? manifest : JSON.stringify(manifest));
    await rename(temporary, join(this.manifestDir, file));
  }

  async take(file: string): Promise<void> {
    await rm(join(this.manifestDir, file), { force: true });
  }

  /** The containers, running or not, of the pod with this name. */
  async containersOf(podName: string): Promise<readonly Container[]> {
    const { containers } = await this.cri.listContainers({}, new AbortController().signal);
    return containers.filter(({ labels }) => labels['io.kubernetes.pod.name'] === podName);
  }

  /** Takes everything down; answers what of this node is still on the machine. May be called twice. */
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
    // What is behind a mount that stayed may be anybody's.
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

/** Writes its files; answers its flags. */
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

/** There is no cluster that could say who somebody is. */
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

/** A kubelet wants the cgroup below which it works to be there: in every hierarchy, or in the one there is. */
async function makeCgroup(path: string): Promise<void> {
  const mounts = parseMountinfo(await readFile('/proc/self/mountinfo', 'utf8'));
  const places = mounts.filter(({ fsType }) => fsType === 'cgroup' || fsType === 'cgroup2');
  for (const { mountPoint } of places) await mkdir(join(mountPoint, path), { recursive: true });
}

/** Volumes of pods that were not taken down in order. */
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

/** Of logs in the folder; those of pods that were not removed in order are left over. */
async function removeLogLinks(dir: string): Promise<void> {
  const names = await readdir(logLinksDir).catch(() => []);
  for (const name of names) {
    const link = join(logLinksDir, name);
    const target = await readlink(link).catch(() => '');
    if (target.startsWith(`${dir}/`)) await rm(link, { force: true });
  }
}
