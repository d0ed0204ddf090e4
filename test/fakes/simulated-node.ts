import type {
  ContainerConfig,
  ContainerStatus,
  CriTransport,
  PodSandboxConfig,
  PodSandboxStatus,
} from '../../src/cri/index.ts';
import { seededRandom } from '../../src/lib/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import {
  createSimulatedRuntime,
  type MemoryFiles,
  memoryFiles,
  type SimulatedRuntime,
  type SimulatedRuntimeOptions,
} from '../simulator/index.ts';
import { VirtualClock } from './virtual-clock.ts';

export const busybox = 'localhost/busybox:1';

type Overrides = Partial<Omit<SimulatedRuntimeOptions, 'clock' | 'random' | 'files'>> & {
  readonly seed?: number;
};

const limitMs = 24 * 3_600_000;

/**
 * A simulated runtime under virtual time, with short methods for operations that tests use often.
 */
export class SimulatedNode implements Disposable {
  readonly clock: VirtualClock;
  readonly files: MemoryFiles = memoryFiles();
  readonly runtime: SimulatedRuntime;
  readonly transport: CriTransport;
  readonly #controller = new AbortController();

  constructor({ seed = 1, ...options }: Overrides = {}) {
    const random = seededRandom(seed);
    this.clock = new VirtualClock({ random });
    this.runtime = createSimulatedRuntime({
      clock: this.clock,
      random,
      files: this.files,
      images: [{ reference: busybox, command: ['sh'], env: { PATH: '/bin' } }],
      ...options,
    });
    this.transport = this.runtime.transport();
  }

  get options(): { readonly signal: AbortSignal } {
    return { signal: this.#controller.signal };
  }

  get cri(): CriTransport['runtime'] {
    return this.transport.runtime;
  }

  get images(): CriTransport['image'] {
    return this.transport.image;
  }

  /** Advances the clock until the promise settles, and settles like it. */
  async done<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const mark = () => {
      settled = true;
    };
    promise.then(mark, mark);
    const ended = await this.clock.advanceUntil(() => settled, limitMs);
    if (!ended) throw new Error(`The promise did not settle within ${limitMs} ms of virtual time`);
    return await promise;
  }

  podConfig(name = 'pod', attempt = 0): MessageInit<PodSandboxConfig> {
    return {
      metadata: { name, namespace: 'ns', uid: `uid-${name}`, attempt },
      logDirectory: `/logs/${name}`,
      hostname: name,
      labels: { 'io.kubernetes.pod.uid': `uid-${name}` },
      linux: { cgroupParent: '/pods' },
    };
  }

  async sandbox(config: MessageInit<PodSandboxConfig> = this.podConfig()): Promise<string> {
    return (await this.done(this.cri.runPodSandbox({ config }, this.options))).podSandboxId;
  }

  async create(
    podSandboxId: string,
    config: MessageInit<ContainerConfig> & { readonly script?: string } = {},
    sandboxConfig = this.podConfig(),
  ): Promise<string> {
    const { script = 'sleep 1000', ...rest } = config;
    const whole = {
      metadata: { name: 'main', attempt: 0 },
      image: { image: busybox },
      command: ['sh', '-c', script],
      logPath: 'main.log',
      ...rest,
    };
    const request = { podSandboxId, sandboxConfig, config: whole };
    return (await this.done(this.cri.createContainer(request, this.options))).containerId;
  }

  async start(containerId: string): Promise<string> {
    await this.done(this.cri.startContainer({ containerId }, this.options));
    return containerId;
  }

  async stop(containerId: string, timeout = 0n): Promise<void> {
    await this.done(this.cri.stopContainer({ containerId, timeout }, this.options));
  }

  /** Starts a sandbox with one running container. */
  async pod(script?: string): Promise<{ readonly podSandboxId: string; readonly containerId: string }> {
    const podSandboxId = await this.sandbox();
    const containerId = await this.start(
      await this.create(podSandboxId, script === undefined ? {} : { script }),
    );
    return { podSandboxId, containerId };
  }

  async status(containerId: string): Promise<ContainerStatus> {
    const response = await this.done(this.cri.containerStatus({ containerId }, this.options));
    if (response.status === undefined) throw new Error('The response has no status');
    return response.status;
  }

  async sandboxStatus(podSandboxId: string): Promise<PodSandboxStatus> {
    const response = await this.done(this.cri.podSandboxStatus({ podSandboxId }, this.options));
    if (response.status === undefined) throw new Error('The response has no status');
    return response.status;
  }

  async exited(containerId: string): Promise<ContainerStatus> {
    for (;;) {
      const status = await this.status(containerId);
      if (status.state === 'CONTAINER_EXITED') return status;
      await this.clock.advance(10);
    }
  }

  [Symbol.dispose](): void {
    this.#controller.abort(new Error('The test is over'));
    this.runtime.close();
  }
}
