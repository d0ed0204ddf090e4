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

/** In real time: look, and look again soon. The last thing seen is told when it was in vain. */
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
    if (performance.now() > end) throw new Error(`Waited ${limitMs} ms in vain for ${what}\n${told()}`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

type PrepareNode = (dataDir: string) => Promise<Readonly<Record<string, string>>>;

/** A `kubeling up` of the test's own with a containerd of its own, as a process that can be killed and started again. */
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
   * `prepare` may put things into the data directory; what it answers is added to the environment of kubeling. `flags`
   * are given to it each time it starts. `through` is a program, with its arguments, that becomes each kubeling.
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
      // Whatever is left, why it did not start matters more.
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

  /** Of the process; null while it runs. */
  get exitCode(): number | null {
    return this.#process?.exitCode ?? null;
  }

  /** The CRI of the node's runtime, to see what is really there. */
  get cri(): CriClient {
    assert.ok(this.#cri, 'the node has not been started');
    return this.#cri;
  }

  /** What all processes so far have said. */
  get out(): string {
    return this.#out;
  }

  /** What it is to be started with from now on: added to its environment, and its flags. */
  change(env: Readonly<Record<string, string>>, flags: readonly string[] = this.#flags): void {
    this.#env = { ...this.#env, ...env };
    this.#flags = flags;
  }

  /** Waits until it is so. */
  async until(what: string, isSo: () => Promise<boolean>): Promise<void> {
    await eventually(what, async () => ((await isSo()) ? true : undefined));
  }

  /** Starts the process without waiting for anything. */
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

  /** Ends the process and waits until it is gone; containers run on. */
  async end(how: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill(how);
    await gone;
  }

  /** In one step, so that nobody reads half a manifest. */
  async put(file: string, manifest: unknown): Promise<void> {
    const reveal = await this.stage(file, manifest);
    await reveal();
  }

  /** Writes the manifest aside; the answer puts it into the directory. */
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

  /** By the name its manifest gives it. */
  async pod(name: string): Promise<NodePod | undefined> {
    return (await this.pods()).find(({ metadata }) => metadata.name.startsWith(`${name}-`));
  }

  /** Waits for a pod whose status is as wanted. */
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

  /** Of a pod of the API by its name, and of static ones by the name their manifest gives them. */
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

  /** Takes everything down; answers what of this node is still on the machine. */
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
