import type {
  CriClient,
  LinuxPodSandboxConfig,
  NamespaceOption,
  PodSandboxConfig,
} from '../../src/cri/index.ts';
import { isKind } from '../../src/lib/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import type { Backend } from './backend.ts';

const signal = new AbortController().signal;

/** Creates sandboxes and containers with unique names, and removes them at the end. */
export class Pods implements AsyncDisposable {
  readonly #backend: Backend;
  readonly #prefix: string;
  readonly #sandboxes: string[] = [];
  #count = 0;

  constructor(backend: Backend, prefix: string) {
    this.#backend = backend;
    this.#prefix = prefix;
  }

  get cri(): CriClient {
    return this.#backend.cri;
  }

  config(overrides: MessageInit<PodSandboxConfig> = {}): MessageInit<PodSandboxConfig> {
    const name = `${this.#prefix}-${++this.#count}`;
    return {
      metadata: { name, namespace: 'contract', uid: `uid-${name}`, attempt: 0 },
      hostname: name,
      logDirectory: `${this.#backend.logRoot}/${name}`,
      labels: { 'io.kubernetes.pod.uid': `uid-${name}`, suite: 'contract' },
      annotations: { note: 'kept as given' },
      linux: this.linux({ pid: 'CONTAINER' }),
      ...overrides,
    };
  }

  linux(namespaceOptions: MessageInit<NamespaceOption>): MessageInit<LinuxPodSandboxConfig> {
    return { cgroupParent: this.#backend.cgroupParent, securityContext: { namespaceOptions } };
  }

  async sandbox(config: MessageInit<PodSandboxConfig> = this.config()): Promise<Pod> {
    const { podSandboxId } = await this.cri.runPodSandbox({ config }, signal);
    this.#sandboxes.push(podSandboxId);
    return new Pod(this.#backend, podSandboxId, config);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const podSandboxId of this.#sandboxes) {
      await this.cri.stopPodSandbox({ podSandboxId }, signal).catch((error) => {
        if (!isKind(error, 'NotFound')) throw error;
      });
      await this.cri.removePodSandbox({ podSandboxId }, signal);
    }
  }
}

export interface ContainerWish {
  readonly script: string;
  readonly name?: string;
  readonly attempt?: number;
  readonly image?: string;
  readonly command?: readonly string[];
  readonly memoryLimit?: bigint;
  readonly labels?: Readonly<Record<string, string>>;
}

/** One sandbox and the containers created in it. */
export class Pod {
  readonly #backend: Backend;
  readonly id: string;
  readonly config: MessageInit<PodSandboxConfig>;

  constructor(backend: Backend, id: string, config: MessageInit<PodSandboxConfig>) {
    this.#backend = backend;
    this.id = id;
    this.config = config;
  }

  async create(options: ContainerWish): Promise<string> {
    const { name = 'main', attempt = 0 } = options;
    const { containerId } = await this.#backend.cri.createContainer(
      {
        podSandboxId: this.id,
        sandboxConfig: this.config,
        config: {
          metadata: { name, attempt },
          image: { image: options.image ?? this.#backend.image },
          command: options.command ?? ['sh', '-c', options.script],
          logPath: `${name}/${attempt}.log`,
          labels: { 'io.kubernetes.container.name': name, ...options.labels },
          annotations: { hash: 'abc123' },
          envs: [{ key: 'GREETING', value: Buffer.from('hello') }],
          linux: { resources: { memoryLimitInBytes: options.memoryLimit ?? 0n } },
        },
      },
      signal,
    );
    return containerId;
  }

  async run(options: ContainerWish): Promise<string> {
    const containerId = await this.create(options);
    await this.#backend.cri.startContainer({ containerId }, signal);
    return containerId;
  }

  logPath(name = 'main', attempt = 0): string {
    return `${this.config.logDirectory}/${name}/${attempt}.log`;
  }
}

export async function status(backend: Backend, containerId: string) {
  const { status } = await backend.cri.containerStatus({ containerId }, signal);
  if (status === undefined)
    throw new Error('ContainerStatus returned no status, although the client rejects such a response');
  return status;
}

export async function sandboxStatus(backend: Backend, podSandboxId: string) {
  const { status } = await backend.cri.podSandboxStatus({ podSandboxId }, signal);
  if (status === undefined)
    throw new Error('PodSandboxStatus returned no status, although the client rejects such a response');
  return status;
}

export function exited(backend: Backend, containerId: string) {
  return backend.until(`container ${containerId} to exit`, async () => {
    const observed = await status(backend, containerId);
    return observed.state === 'CONTAINER_EXITED' ? observed : undefined;
  });
}

/** Settles like the promise; if the back end has a virtual clock, advances it until then. */
export async function settled<T>(backend: Backend, promise: Promise<T>): Promise<T> {
  let over = false;
  const watched = promise.finally(() => {
    over = true;
  });
  watched.catch(() => {});
  await backend.until('a stream to end', async () => (over ? true : undefined));
  return await watched;
}

export { signal };
