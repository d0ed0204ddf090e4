import assert from 'node:assert/strict';
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { networkName } from '../src/containerd/index.ts';
import { type Container, type CriClient, createCriClient, wireTransport } from '../src/cri/index.ts';
import type { ContainerStatus, PodStatus } from '../src/kinds/index.ts';
import { realClock, systemRandom } from '../src/lib/index.ts';
import { whenLeftBehind } from './fakes/left-behind.ts';
import {
  compareSnapshots,
  listSnapshot,
  type MachineSnapshot,
  mentioning,
  takeSnapshot,
} from './machine-snapshot.ts';

const kubeling = fileURLToPath(new URL('../kubeling', import.meta.url));
const clock = realClock();
const random = systemRandom();
const signal = new AbortController().signal;
const pollMs = 20;
const abandonWithinMs = 60_000;

export interface NodePod {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly status: PodStatus;
}

/**
 * Polls in real time until the check returns a value. On a timeout the error contains the last
 * observed state.
 */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined>,
  limitMs = 120_000,
  told: () => string = () => '',
): Promise<T> {
  const end = performance.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > end)
      throw new Error(`Timed out after ${limitMs} ms waiting for ${what}\n${told()}`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

type PrepareNode = (dataDir: string) => Promise<Readonly<Record<string, string>>>;

/**
 * A `kubeling up` process with a private containerd for one test; it can be killed and started
 * again.
 */
export class KubelingNode implements AsyncDisposable {
  readonly dataDir: string;
  readonly #clean: MachineSnapshot;
  #env: NodeJS.ProcessEnv;
  #flags: readonly string[];
  readonly #words: readonly string[];
  #process: ChildProcess | undefined;
  #state: 'open' | 'left' = 'open';
  #out = '';
  #port = 0;
  #cri: CriClient | undefined;
  readonly #leftBehind: Disposable;

  /**
   * Starts a node. `prepare` may write files into the data directory; the variables it returns are
   * added to the environment of kubeling. `flags` are passed to each start. `through` is a program
   * with arguments that executes kubeling.
   */
  static async open(
    prepare: PrepareNode = async () => ({}),
    flags: readonly string[] = [],
    through: readonly string[] = [],
  ): Promise<KubelingNode> {
    const dataDir = await mkdtemp(join(tmpdir(), 'klg-node-'));
    const node = await KubelingNode.#prepared(dataDir, prepare, flags, through).catch(async (error) => {
      await rm(dataDir, { recursive: true, force: true }).catch(() => {});
      throw error;
    });
    try {
      await node.start();
    } catch (error) {
      // Removes the node, but throws the error of the failed start instead of reporting leftovers.
      await node.leave().catch(() => []);
      throw error;
    }
    return node;
  }

  static async #prepared(
    dataDir: string,
    prepare: PrepareNode,
    flags: readonly string[],
    through: readonly string[],
  ): Promise<KubelingNode> {
    const env = { ...process.env, ...(await prepare(dataDir)) };
    return new KubelingNode(dataDir, ofNode(dataDir, await takeSnapshot()), env, flags, through);
  }

  private constructor(
    dataDir: string,
    clean: MachineSnapshot,
    env: NodeJS.ProcessEnv,
    flags: readonly string[],
    through: readonly string[],
  ) {
    this.#words = [...through, kubeling];
    this.dataDir = dataDir;
    this.#clean = clean;
    this.#env = env;
    this.#flags = flags;
    this.#leftBehind = whenLeftBehind(() => this.#abandon());
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** The exit code of the kubeling process; null while it runs. */
  get exitCode(): number | null {
    return this.#process?.exitCode ?? null;
  }

  /** A CRI client of the node's runtime, which shows the actual sandboxes and containers. */
  get cri(): CriClient {
    assert.ok(this.#cri, 'the node has not been started');
    return this.#cri;
  }

  /** The output of all kubeling processes so far. */
  get out(): string {
    return this.#out;
  }

  /** Sets additional environment variables and the flags for the next start. */
  change(env: Readonly<Record<string, string>>, flags: readonly string[] = this.#flags): void {
    this.#env = { ...this.#env, ...env };
    this.#flags = flags;
  }

  /** Polls until the condition holds. */
  async until(what: string, isSo: () => Promise<boolean>): Promise<void> {
    await eventually(what, async () => ((await isSo()) ? true : undefined));
  }

  /** Starts the kubeling process without waiting until it is ready. */
  launch(): void {
    assert.equal(this.#state, 'open', 'a node that was left cannot be started again');
    const [file = '', ...words] = this.#words;
    const args = ['up', '--data-dir', this.dataDir, '--runtime-endpoint', 'private', ...this.#flags];
    const child = spawn(file, [...words, ...args], { env: this.#env });
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        this.#out += String(chunk);
      });
    }
    this.#process = child;
  }

  async start(): Promise<void> {
    const said = this.#out.length;
    this.launch();
    await eventually(
      'kubeling to be ready',
      async () => {
        if (/^ready/m.test(this.#out.slice(said))) return true;
        assert.equal(this.#process?.exitCode, null, `it ended:\n${this.#out}`);
        return undefined;
      },
      90_000,
      () => this.#out,
    );
    const { port, endpoint } = JSON.parse(await readFile(join(this.dataDir, 'up.json'), 'utf8'));
    this.#port = port;
    this.#cri ??= createCriClient({ transport: wireTransport({ endpoint, clock, random }), clock });
  }

  /**
   * Sends the signal to the kubeling process and waits until it has exited; containers keep
   * running.
   */
  async end(how: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill(how);
    await gone;
  }

  /** Writes a manifest atomically, so that kubeling never reads an incomplete file. */
  async put(file: string, manifest: unknown): Promise<void> {
    const reveal = await this.stage(file, manifest);
    await reveal();
  }

  /**
   * Writes the manifest to a temporary file; the returned function renames it into the manifest
   * directory.
   */
  async stage(file: string, manifest: unknown): Promise<() => Promise<void>> {
    const text = typeof manifest === 'string' ? manifest : JSON.stringify(manifest);
    const temporary = join(this.dataDir, `${file}.new`);
    await writeFile(temporary, text);
    return () => rename(temporary, join(this.dataDir, 'manifests', file));
  }

  async take(file: string): Promise<void> {
    await rm(join(this.dataDir, 'manifests', file), { force: true });
  }

  async get(path: string): Promise<string> {
    const token = await readFile(join(this.dataDir, 'kubelet/loopback-token'), 'utf8');
    const headers = { authorization: `Bearer ${token.trim()}` };
    const response = await fetch(`http://127.0.0.1:${this.#port}${path}`, { headers });
    return await response.text();
  }

  async pods(): Promise<readonly NodePod[]> {
    return JSON.parse(await this.get('/pods')).items;
  }

  /** The static pod with the given name in its manifest. */
  async pod(name: string): Promise<NodePod | undefined> {
    return (await this.pods()).find(({ metadata }) => metadata.name.startsWith(`${name}-`));
  }

  /** Waits until the pod's status fulfils a condition. */
  podIs(name: string, what: string, wanted: (status: PodStatus, pod: NodePod) => boolean): Promise<NodePod> {
    let last: NodePod | undefined;
    return eventually(
      `the pod ${name} to be ${what}`,
      async () => {
        last = await this.pod(name);
        return last !== undefined && wanted(last.status, last) ? last : undefined;
      },
      120_000,
      () => JSON.stringify(last?.status, undefined, 1),
    );
  }

  running(name: string): Promise<NodePod> {
    return this.podIs(
      name,
      'running',
      ({ containerStatuses = [] }) => containerStatuses.length > 0 && containerStatuses.every(isRunning),
    );
  }

  /**
   * The containers of an API pod with this name, or of a static pod with this name in its manifest.
   */
  async containersOf(name: string): Promise<readonly Container[]> {
    const { containers } = await this.cri.listContainers({}, signal);
    return containers.filter(({ labels }) => {
      const pod = labels['io.kubernetes.pod.name'];
      return pod === name || pod?.startsWith(`${name}-`) === true;
    });
  }

  command(...args: readonly string[]): Promise<string> {
    const [file = '', ...words] = this.#words;
    return new Promise((resolve) => {
      execFile(file, [...words, ...args, '--data-dir', this.dataDir], (_error, stdout, stderr) =>
        resolve(stdout + stderr),
      );
    });
  }

  /** Stops and removes the node; returns what is left of it on the machine. */
  async leave(): Promise<readonly string[]> {
    this.#state = 'left';
    await this.end('SIGTERM');
    this.#cri?.close();
    const reported = await this.command('down', '--all', '--grace=0s');
    const { added } = compareSnapshots(this.#clean, ofNode(this.dataDir, await takeSnapshot()));
    await rm(this.dataDir, { recursive: true, force: true });
    this.#leftBehind[Symbol.dispose]();
    const left = listSnapshot(added);
    return left.length === 0 ? left : [...left, reported];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }

  #abandon(): void {
    this.#process?.kill('SIGKILL');
    const [file = '', ...words] = this.#words;
    const args = ['down', '--all', '--grace=0s', '--data-dir', this.dataDir];
    execFileSync(file, [...words, ...args], { timeout: abandonWithinMs, stdio: 'ignore' });
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}

export function isRunning({ state }: ContainerStatus): boolean {
  return state?.running !== undefined;
}

function ofNode(dataDir: string, snapshot: MachineSnapshot): MachineSnapshot {
  return mentioning(snapshot, [dataDir, networkName(dataDir)]);
}
