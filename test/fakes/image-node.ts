import { join } from 'node:path';
import { hostFiles, readCredentialPlugins } from '../../src/config/index.ts';
import type { CriClient } from '../../src/cri/index.ts';
import type { Secret } from '../../src/kinds/index.ts';
import { collectLogs, KubelingError, realClock, systemRandom } from '../../src/lib/index.ts';
import type { ObservedPod, Pod, PodEvent, PodStep } from '../../src/pods/index.ts';
import {
  CrashBackoff,
  noServiceAccounts,
  PluginProvider,
  PodCredentials,
  PullRecords,
  processPlugins,
  RecordFiles,
  RuntimeManager,
  realRuntimeFiles,
  type SyncPodResult,
  type VerificationPolicy,
} from '../../src/runtime/index.ts';
import { type PrivateRuntime, within } from '../private-runtime.ts';
import { noProbes } from './pod-runtime-rig.ts';
import { noHooks } from './runtime-stubs.ts';
import { simplePlanner } from './simple-planner.ts';

export interface ImageNodeOptions {
  readonly runtime: PrivateRuntime;
  /** The root directory of the kubelet. */
  readonly rootDir: string;
  readonly maxParallel?: number | undefined;
  readonly policy?: VerificationPolicy;
  /** The configuration file of credential plugins, and the directory of their programs. */
  readonly plugins?: { readonly configPath: string; readonly binDir: string };
}

const clock = realClock();
const random = systemRandom();
const limitMs = 120_000;

/**
 * Runs pods on a real containerd with all image features: pull secrets, credential plugins and pull
 * records.
 */
export class ImageNode implements AsyncDisposable {
  readonly events: (PodEvent & { readonly pod: string })[] = [];
  readonly steps: (PodStep & { readonly atMs: number })[] = [];
  readonly logs = collectLogs(clock);
  /** The maximum number of concurrent pulls that was observed. */
  mostPulls = 0;
  readonly #secrets: Map<string, Secret>;
  readonly #runtime: RuntimeManager;

  #counting(cri: CriClient): CriClient {
    let pulls = 0;
    const pullImage: CriClient['pullImage'] = async (...args) => {
      this.mostPulls = Math.max(this.mostPulls, ++pulls);
      return await cri.pullImage(...args).finally(() => {
        pulls--;
      });
    };
    return new Proxy(cri, {
      get: (target, name) => (name === 'pullImage' ? pullImage : Reflect.get(target, name)),
    });
  }

  static async open(options: ImageNodeOptions): Promise<ImageNode> {
    const { logger } = collectLogs(clock);
    const files = new RecordFiles({ files: realRuntimeFiles(), logger, rootDir: options.rootDir });
    const policy = options.policy ?? { kind: 'NeverVerifyPreloadedImages' };
    const records = new PullRecords({ clock, logger, files, policy });
    await records.open();
    return new ImageNode(options, records, await pluginsOf(options));
  }

  private constructor(
    { runtime, maxParallel = 1 }: ImageNodeOptions,
    pullRecords: PullRecords,
    plugins: readonly PluginProvider[],
  ) {
    const at = (name: string) => join(runtime.dataDir, name);
    const secrets = new Map<string, Secret>();
    const journal = {
      event: (pod: Pod, event: PodEvent) => void this.events.push({ ...event, pod: pod.metadata.name }),
      step: (_uid: unknown, step: PodStep) => void this.steps.push({ ...step, atMs: clock.monotonicMs() }),
    };
    this.#secrets = secrets;
    this.#runtime = new RuntimeManager({
      cri: this.#counting(runtime.cri),
      clock,
      random,
      journal,
      logger: this.logs.logger,
      files: realRuntimeFiles(),
      planner: simplePlanner({
        podLogsDir: at('logs/pods'),
        podsDir: at('pods'),
        cgroupParent: runtime.containerd.layout.cgroup,
      }),
      crashBackoff: new CrashBackoff({ random }),
      hooks: noHooks,
      credentials: new PodCredentials({
        journal,
        secrets: { get: async (namespace, name) => secrets.get(`${namespace}/${name}`) ?? missing(name) },
        nodeLogins: async () => new Map(),
        plugins,
      }),
      pullRecords,
      pods: {
        shouldPodContentBeRemoved: () => false,
        shouldPodRuntimeBeRemoved: () => false,
        secondsLeft: () => undefined,
      },
      settings: {
        runtimeName: 'containerd',
        podLogsDir: at('logs/pods'),
        logLinksDir: at('logs/containers'),
        pulls: { maxParallel, qps: 0, burst: 0 },
        gc: { minAgeMs: 0, maxPerContainer: 1, maxContainers: -1 },
      },
    });
  }

  /** Stores an image pull secret. */
  setSecret(name: string, host: string, username: string, password: string): void {
    const config = JSON.stringify({ auths: { [host]: { username, password } } });
    this.#secrets.set(`default/${name}`, {
      metadata: { name, namespace: 'default', uid: `uid-${name}` },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': Buffer.from(config).toString('base64') },
    });
  }

  /** Syncs the pod once; returns the reason why its last container did not start, or undefined. */
  async sync(pod: Pod): Promise<string | undefined> {
    return (await this.result(pod)).actions.at(-1)?.failure?.reason;
  }

  result(pod: Pod): Promise<SyncPodResult> {
    return within(limitMs, 'sync a pod', async (signal) => {
      const observed = await this.#observe(pod, signal);
      return await this.#runtime.syncPod({ pod, observed, context: noProbes }, signal);
    });
  }

  async syncUntil(pod: Pod, signal: AbortSignal): Promise<SyncPodResult> {
    return await this.#runtime.syncPod(
      { pod, observed: await this.#observe(pod, signal), context: noProbes },
      signal,
    );
  }

  /** Stops the pod, so that its next sync restarts all its containers. */
  async kill(pod: Pod): Promise<void> {
    await within(limitMs, 'kill a pod', async (signal) => {
      const running = await this.#observe(pod, signal);
      await this.#runtime.killPod({ pod, running, graceSeconds: 1 }, signal);
      await this.#runtime.removePod(pod, signal);
    });
  }

  messages(pod: string, reason: string): readonly string[] {
    return this.events
      .filter((event) => event.pod === pod && event.reason === reason)
      .map(({ message }) => message);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#runtime[Symbol.asyncDispose]();
  }

  async #observe(pod: Pod, signal: AbortSignal): Promise<ObservedPod> {
    const { uid, name, namespace } = pod.metadata;
    const listed = await this.#runtime.listPod(uid, signal);
    if (listed !== undefined) return await this.#runtime.observe(listed, signal);
    return { uid, name, namespace, ips: [], sandboxes: [], containers: [] };
  }
}

async function pluginsOf({ plugins }: ImageNodeOptions): Promise<readonly PluginProvider[]> {
  if (plugins === undefined) return [];
  const { signal } = new AbortController();
  const files = hostFiles();
  const isExecutable = async () => true;
  const source = { ...plugins, files, isExecutable, serviceAccountTokens: 'allowed' } as const;
  const specs = await readCredentialPlugins(source, signal);
  const { logger } = collectLogs(clock);
  const run = processPlugins(clock, process.env);
  const shared = { clock, logger, binDir: plugins.binDir, serviceAccounts: noServiceAccounts, run };
  return specs.map((spec) => new PluginProvider(spec, shared));
}

function missing(name: string): never {
  throw new KubelingError('IMAGE_CREDENTIALS', `There is no secret ${name}`);
}
