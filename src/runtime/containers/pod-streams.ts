import type { CriClient } from '../../cri/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { Pod, PodUid, RuntimeContainer, RuntimePod } from '../../pods/index.ts';

/** Which streams of a process are opened; with a terminal, stderr is part of stdout. */
export interface ProcessStreams {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

export interface PodStreamsDeps {
  readonly cri: Pick<CriClient, 'exec' | 'attach' | 'portForward' | 'execSync'>;
  readonly observer: { listPod(uid: PodUid, signal: AbortSignal): Promise<RuntimePod | undefined> };
}

/**
 * Opens exec, attach and port-forward streams to running containers. Each call lists the pod's
 * containers from the runtime, because only running containers can be used. A returned URL is valid
 * for one use and one minute.
 */
export class PodStreams {
  readonly #deps: PodStreamsDeps;

  constructor(deps: PodStreamsDeps) {
    this.#deps = deps;
  }

  async exec(
    pod: Pod,
    container: string,
    command: readonly string[],
    streams: ProcessStreams,
    signal: AbortSignal,
  ): Promise<string> {
    const { id: containerId } = await this.#running(pod, container, signal);
    const { url } = await this.#deps.cri.exec({ containerId, cmd: command, ...streams }, signal);
    return url;
  }

  async attach(pod: Pod, container: string, streams: ProcessStreams, signal: AbortSignal): Promise<string> {
    const { id: containerId } = await this.#running(pod, container, signal);
    const { url } = await this.#deps.cri.attach({ containerId, ...streams }, signal);
    return url;
  }

  /** Opens a port-forward stream; `ports` is for protocols that name the ports in the request. */
  async portForward(pod: Pod, ports: readonly number[], signal: AbortSignal): Promise<string> {
    const { name, namespace, uid } = pod.metadata;
    const sandbox = newestRunning((await this.#deps.observer.listPod(uid, signal))?.sandboxes ?? []);
    if (sandbox === undefined) {
      throw new KubelingError('STREAM_NO_POD', `pod not found (${JSON.stringify(`${name}_${namespace}`)})`);
    }
    const { url } = await this.#deps.cri.portForward({ podSandboxId: sandbox.id, port: ports }, signal);
    return url;
  }

  /**
   * Runs the command in the container to completion and returns its output. Rejects with
   * COMMAND_FAILED for a non-zero exit code.
   */
  async run(
    pod: Pod,
    container: string,
    command: readonly string[],
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    const { id: containerId } = await this.#running(pod, container, signal);
    const { exitCode, stdout, stderr } = await this.#deps.cri.execSync({ containerId, cmd: command }, signal);
    if (exitCode === 0) return Buffer.concat([stdout, stderr]);
    const output = Buffer.from(stderr).toString();
    throw new KubelingError(
      'COMMAND_FAILED',
      `command '${command.join(' ')}' exited with ${exitCode}: ${output}`,
    );
  }

  async #running(pod: Pod, name: string, signal: AbortSignal): Promise<RuntimeContainer> {
    const listed = await this.#deps.observer.listPod(pod.metadata.uid, signal);
    const container = newestRunning((listed?.containers ?? []).filter((each) => each.name === name));
    if (container !== undefined) return container;
    throw new KubelingError('STREAM_NO_CONTAINER', `container not found (${JSON.stringify(name)})`);
  }
}

function newestRunning<T extends Pick<RuntimeContainer, 'state' | 'createdAtNs'>>(
  items: readonly T[],
): T | undefined {
  return items
    .filter(({ state }) => state === 'running')
    .reduce<T | undefined>(
      (best, each) => (best !== undefined && best.createdAtNs >= each.createdAtNs ? best : each),
      undefined,
    );
}
