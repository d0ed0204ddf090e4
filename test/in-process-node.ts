import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { applyRuntimeVersion, kubeletSettings, realMachine } from '../src/cli/kubelet/kubelet-settings.ts';
import { hostFiles, loadConfig } from '../src/config/index.ts';
import type { Container, PodSpec, PodStatus } from '../src/kinds/index.ts';
import { Kubelet, type KubeletDeps, type KubeletSettings } from '../src/kubelet/index.ts';
import { collectLogs, MetricRegistry, realClock, systemRandom } from '../src/lib/index.ts';
import type { Pod, PodEvent } from '../src/pods/index.ts';
import { selfCheck } from '../src/runtime/index.ts';
import { eventually } from './kubeling-node.ts';
import { openPrivateRuntime, type PrivateRuntime, type PrivateRuntimeOptions } from './private-runtime.ts';

const clock = realClock();
const random = systemRandom();
const execute = promisify(execFile);

export interface InProcessOptions extends PrivateRuntimeOptions {
  /** Flags of the kubelet in addition to those that set its directories. */
  readonly flags?: readonly string[];
  readonly settings?: (dataDir: string) => Partial<KubeletSettings>;
  /** Changes the dependencies (`KubeletDeps`) of each kubelet that the node starts. */
  readonly aroundDeps?: (deps: KubeletDeps, runtime: PrivateRuntime) => KubeletDeps;
}

export interface PodParts {
  readonly metadata?: {
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
    readonly namespace?: string;
  };
  readonly spec?: Partial<PodSpec>;
  /** The containers by name; each runs its script in a shell. */
  readonly containers: Readonly<Record<string, string | ContainerParts>>;
}

export type ContainerParts = Partial<Container> & { readonly script?: string };

/** A complete kubelet in this process with a private containerd and a directory of manifests. */
export class InProcessNode implements AsyncDisposable {
  readonly runtime: PrivateRuntime;
  readonly logs = collectLogs(clock);
  readonly #options: InProcessOptions;
  #kubelet: Kubelet | undefined;
  #controller = new AbortController();
  #run: Promise<void> = Promise.resolve();
  #ended: unknown;

  static async open(options: InProcessOptions = {}): Promise<InProcessNode> {
    const node = new InProcessNode(await openPrivateRuntime(options), options);
    try {
      await node.#tryRuntime();
      await node.start();
    } catch (error) {
      await node[Symbol.asyncDispose]();
      throw error;
    }
    return node;
  }

  private constructor(runtime: PrivateRuntime, options: InProcessOptions) {
    this.runtime = runtime;
    this.#options = options;
  }

  get kubelet(): Kubelet {
    assert.ok(this.#kubelet, 'the kubelet has not been started');
    return this.#kubelet;
  }

  path(...parts: readonly string[]): string {
    return join(this.runtime.dataDir, ...parts);
  }

  get podLogs(): string {
    return this.path('logs');
  }

  /** Starts a new kubelet with the state on disk that earlier kubelets have left. */
  async start(changed: Partial<KubeletSettings> = {}): Promise<void> {
    const { cri } = this.runtime;
    const { logger } = this.logs;
    const metrics = new MetricRegistry({ onError: (error) => logger.error('metric', error) });
    const settings = await this.#settings(metrics, changed);
    const { aroundDeps = (same: KubeletDeps) => same } = this.#options;
    const given = { clock, random, logger, metrics, cri, machine: realMachine() };
    const deps = aroundDeps(given, this.runtime);
    this.#kubelet = await Kubelet.create(settings, deps, 'containerd');
    this.#controller = new AbortController();
    this.#run = this.#kubelet.run(this.#controller.signal);
    this.#run.catch((error: unknown) => {
      this.#ended = error;
    });
  }

  /** Stops the kubelet; its pods keep running. */
  async stop(): Promise<void> {
    this.#controller.abort(new Error('The test stops the kubelet'));
    await this.#run;
  }

  /** Writes all manifests at the same time, so that the pods start concurrently. */
  async put(pods: Readonly<Record<string, PodParts>>): Promise<void> {
    for (const [name, parts] of Object.entries(pods)) await this.#write(name, parts);
  }

  async take(...names: readonly string[]): Promise<void> {
    for (const name of names) await rm(this.path('manifests', `${name}.json`), { force: true });
  }

  /** Returns the pod by the name in its manifest. */
  pod(name: string): Pod | undefined {
    return this.kubelet.endpoints
      .podsWithStatus()
      .find(({ metadata }) => metadata.name.startsWith(`${name}-`));
  }

  async podIs(name: string, what: string, wanted: (status: PodStatus, pod: Pod) => boolean): Promise<Pod> {
    return await eventually(
      `the pod ${name} to be ${what}`,
      async () => {
        if (this.#ended !== undefined) throw this.#ended;
        const pod = this.pod(name);
        return pod !== undefined && wanted(pod.status, pod) ? pod : undefined;
      },
      120_000,
      () => this.told(name),
    );
  }

  async succeeded(name: string): Promise<Pod> {
    const pod = await this.podIs(name, 'over', ({ phase }) => phase === 'Succeeded' || phase === 'Failed');
    assert.equal(pod.status.phase, 'Succeeded', this.told(name));
    return pod;
  }

  /**
   * Waits until the pod has terminated; returns the output of a container, without the last
   * newline.
   */
  async printed(name: string, container = 'main'): Promise<string> {
    await this.succeeded(name);
    return await this.logOf(name, container);
  }

  /** Returns the current output of the first instance of a container. */
  async logOf(name: string, container: string): Promise<string> {
    const { metadata } = await this.podIs(name, 'there', () => true);
    const directory = `${metadata.namespace}_${metadata.name}_${metadata.uid}`;
    const text = await readFile(join(this.podLogs, directory, container, '0.log'), 'utf8');
    return text
      .split('\n')
      .map((line) => /^\S+ \S+ (\S+) (.*)$/.exec(line))
      .map((found) => (found === null ? '' : `${found[2]}${found[1] === 'F' ? '\n' : ''}`))
      .join('')
      .replace(/\n$/, '');
  }

  /** Waits until a container is waiting with this reason; returns the message of its state. */
  async waits(name: string, reason: string, container = 'main'): Promise<string> {
    const waiting = ({ containerStatuses = [], initContainerStatuses = [] }: PodStatus) =>
      [...containerStatuses, ...initContainerStatuses].find((status) => status.name === container)?.state
        ?.waiting;
    const { status } = await this.podIs(
      name,
      `waiting for ${reason}`,
      (seen) => waiting(seen)?.reason === reason,
    );
    return waiting(status)?.message ?? '';
  }

  events(name: string): readonly PodEvent[] {
    const stories = this.kubelet.state.flights
      .all()
      .filter(({ fullName }) => fullName?.startsWith(`${name}-`));
    return stories.flatMap(({ entries }) =>
      entries.flatMap((entry) => (entry.is === 'event' ? [entry] : [])),
    );
  }

  /** Waits for an event with this reason; returns its message. */
  async event(name: string, reason: string): Promise<string> {
    return await eventually(
      `the event ${reason} of ${name}`,
      async () => this.events(name).find((event) => event.reason === reason)?.message,
      120_000,
      () => this.told(name),
    );
  }

  told(name: string): string {
    const events = this.events(name).map(({ reason, message }) => `${reason}: ${message}`);
    const problems = this.kubelet.endpoints.sourceProblems().map((problem) => JSON.stringify(problem));
    return [JSON.stringify(this.pod(name)?.status, undefined, 1), ...events, ...problems].join('\n');
  }

  /** Removes all pods and waits until nothing of them is left. */
  async clear(): Promise<void> {
    await rm(this.path('manifests'), { recursive: true, force: true });
    await mkdir(this.path('manifests'), { recursive: true });
    let left: readonly string[] = [];
    await eventually(
      'nothing of the pods to be left',
      async () => {
        left = await readdir(this.path('kubelet', 'pods')).catch(() => []);
        return left.length === 0 ? true : undefined;
      },
      120_000,
      () => left.join('\n'),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.stop().catch(() => {});
    } finally {
      await this.#unmount();
      await this.runtime[Symbol.asyncDispose]();
    }
  }

  /** The data directory must not be removed while a file system is mounted in it. */
  async #unmount(): Promise<void> {
    const mounts = await readFile('/proc/self/mounts', 'utf8');
    const points = mounts.split('\n').map((line) => line.split(' ')[1] ?? '');
    for (const root of ['kubelet', 'shared']) {
      const ours = points.filter((point) => point.startsWith(this.path(root)));
      for (const point of ours.toReversed()) await execute('umount', ['-l', point]).catch(() => {});
    }
  }

  /** Also creates the cgroup of all pods, as `kubeling up` does. */
  async #tryRuntime(): Promise<void> {
    const { cri, image, containerd } = this.runtime;
    const plan = { image, logDirectory: this.path('check'), cgroupParent: containerd.layout.cgroup };
    await selfCheck(plan, { cri, clock, random, tell: () => {} }, AbortSignal.timeout(60_000));
  }

  async #settings(metrics: MetricRegistry, changed: Partial<KubeletSettings>): Promise<KubeletSettings> {
    const { cri, dataDir, containerd } = this.runtime;
    const { signal } = new AbortController();
    await mkdir(this.path('manifests'), { recursive: true });
    const argv = [
      `--root-dir=${this.path('kubelet')}`,
      `--pod-manifest-path=${this.path('manifests')}`,
      `--cgroup-root=${containerd.layout.cgroup}`,
      '--fail-swap-on=false',
      ...(this.#options.flags ?? []),
    ];
    const loaded = await loadConfig(argv, { files: hostFiles(), cwd: dataDir }, signal);
    const deps = { clock, cri, metrics, logger: this.logs.logger };
    return {
      ...(await applyRuntimeVersion(await kubeletSettings(loaded), loaded, deps, signal)),
      podLogsDir: this.podLogs,
      logLinksDir: this.path('links'),
      clusterDns: 'no-cluster',
      ...this.#options.settings?.(dataDir),
      ...changed,
    };
  }

  async #write(name: string, { metadata = {}, spec = {}, containers }: PodParts): Promise<void> {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, ...metadata },
      spec: {
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 1,
        ...spec,
        ...(spec.initContainers && { initContainers: spec.initContainers.map((each) => this.#whole(each)) }),
        containers: Object.entries(containers).map(([container, parts]) =>
          this.#whole({ ...(typeof parts === 'string' ? { script: parts } : parts), name: container }),
        ),
      },
    };
    const temporary = this.path(`${name}.new`);
    await writeFile(temporary, JSON.stringify(pod));
    await rename(temporary, this.path('manifests', `${name}.json`));
  }

  #whole({ script, ...fields }: ContainerParts): object {
    const command = script === undefined ? {} : { command: ['sh', '-c', script] };
    return { image: this.runtime.image, imagePullPolicy: 'IfNotPresent', ...command, ...fields };
  }
}
