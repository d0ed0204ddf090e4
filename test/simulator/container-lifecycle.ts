import type {
  ContainerConfig,
  CreateContainerRequest,
  CreateContainerResponse,
  PodSandboxConfig,
} from '../../src/cri/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import { ContainerFiles } from './container-files.ts';
import type { CallContext, SimulatorContext } from './context.ts';
import type { Exits } from './exits.ts';
import type { StoredImage } from './image-store.ts';
import { planLaunch, stopSignalOf } from './launch-plan.ts';
import { ContainerLauncher } from './launcher.ts';
import {
  type ContainerRecord,
  containerFacts,
  containerState,
  hasProcess,
  newContainerRecord,
  type SandboxRecord,
} from './records.ts';
import { failed, inContext } from './refusals.ts';
import { mergeResources } from './resources.ts';
import { required } from './store.ts';

/** The exit code of a container whose exit the runtime did not observe. */
export const unseenCode = 255;

interface WantedContainer {
  readonly id: string;
  readonly name: string;
  readonly sandbox: SandboxRecord;
  readonly config: ContainerConfig;
  readonly sandboxConfig: PodSandboxConfig | undefined;
}

/** Creates, starts, stops and removes containers. */
export class ContainerLifecycle {
  readonly #context: SimulatorContext;
  readonly #exits: Exits;
  readonly #launcher: ContainerLauncher;

  constructor(context: SimulatorContext, exits: Exits) {
    this.#context = context;
    this.#exits = exits;
    this.#launcher = new ContainerLauncher(context, exits);
  }

  async create(request: CreateContainerRequest, call: CallContext): Promise<CreateContainerResponse> {
    const { store, flavour, newId } = this.#context;
    const sandbox = required(
      store.sandboxes.find(request.podSandboxId),
      `failed to find sandbox id "${request.podSandboxId}"`,
    );
    if (sandbox.pid === 0) {
      const { code, message } = flavour.sandboxNotRunning(sandbox.id);
      throw new GrpcError(code, message);
    }
    const { config, sandboxConfig } = request;
    if (config?.metadata === undefined) throw failed('container config must include metadata');
    const id = newId();
    const name = containerName(config, sandboxConfig);
    this.#reserve(name, id);
    const record = await this.#make({ id, name, sandbox, config, sandboxConfig }, call);
    store.containers.add(record);
    this.announceCreated(record);
    return { containerId: id };
  }

  /** Reports the creation of a container. */
  announceCreated(record: ContainerRecord): void {
    const { events, trace } = this.#context;
    trace.add({ kind: 'container-created', ...containerFacts(record) });
    events.publish('/containers/create', record.id);
    this.#exits.tell('CONTAINER_CREATED_EVENT', record.id, record.sandbox);
  }

  async start(record: ContainerRecord, call: CallContext): Promise<void> {
    const { rules, work, latencyMs } = this.#context;
    const state = containerState(record);
    if (state !== 'CONTAINER_CREATED' && rules.startOfStarted === 'succeeds') return;
    const obstacle = startObstacle(record);
    if (obstacle !== undefined) {
      throw failed(`failed to set starting state for container "${record.id}": ${obstacle}`);
    }
    record.busy = 'starting';
    try {
      checkSandbox(record.sandbox);
      await work.pause(latencyMs('container-start'), call.signal);
      checkSandbox(record.sandbox);
      this.#launcher.launch(record);
    } catch (error) {
      this.#launcher.failed(record, error);
      throw error;
    } finally {
      record.busy = undefined;
    }
    this.#exits.tell('CONTAINER_STARTED_EVENT', record.id, record.sandbox);
  }

  /**
   * Sends the stop signal and kills the container when the timeout expires, or immediately without
   * a timeout. Returns when the runtime has observed the exit. Does nothing for a container that
   * does not run.
   */
  async stop(record: ContainerRecord, timeoutMs: number, call: CallContext): Promise<void> {
    const { work, rules } = this.#context;
    const state = containerState(record);
    if (state === 'CONTAINER_EXITED' && rules.stopOfExited === 'fails')
      throw failed('container is not running');
    if (state !== 'CONTAINER_RUNNING' && state !== 'CONTAINER_UNKNOWN') return;
    if (state === 'CONTAINER_UNKNOWN' && !hasProcess(record)) return this.#giveUpOn(record);
    if (timeoutMs > 0) {
      if (!record.stopSignalled) this.#signal(record, record.stopSignal);
      record.stopSignalled = true;
      if (await record.stopped.waitFor(timeoutMs, work, call.signal)) return;
    }
    this.#signal(record, 'KILL');
    await record.stopped.wait(call.signal);
  }

  /** Removes the container; a running container is killed first. */
  async remove(record: ContainerRecord, call: CallContext): Promise<void> {
    const { store, work, latencyMs, rules } = this.#context;
    const state = containerState(record);
    const mayRun = state === 'CONTAINER_RUNNING' || state === 'CONTAINER_UNKNOWN';
    if (mayRun && rules.removeOfRunning === 'kills') await this.#stopForRemoval(record, call);
    const obstacle = removalObstacle(record);
    if (obstacle !== undefined) {
      throw failed(`failed to set removing state for container "${record.id}": ${obstacle}`);
    }
    record.busy = 'removing';
    try {
      await work.pause(latencyMs('container-remove'), call.signal);
    } catch (error) {
      record.busy = undefined;
      throw error;
    }
    if (store.containers.has(record)) this.#forget(record);
  }

  async #stopForRemoval(record: ContainerRecord, call: CallContext): Promise<void> {
    try {
      await this.stop(record, 0, call);
    } catch (error) {
      throw inContext(`failed to forcibly stop container "${record.id}"`, error);
    }
  }

  #forget(record: ContainerRecord): void {
    const { store, events, trace } = this.#context;
    store.containers.delete(record);
    store.containerNames.release(record.name, record.id);
    events.publish('/containers/delete', record.id);
    trace.add({ kind: 'container-removed', ...containerFacts(record) });
    this.#exits.tell('CONTAINER_DELETED_EVENT', record.id, record.sandbox);
  }

  #reserve(name: string, id: string): void {
    const { store, flavour, rules } = this.#context;
    const owner = store.containerNames.reserve(name, id);
    if (owner === undefined || rules.names === 'free') return;
    throw new GrpcError(
      flavour.nameTakenCode,
      `${flavour.containerNameTaken(name)}: name "${name}" is reserved for "${owner}"`,
    );
  }

  async #make(expected: WantedContainer, call: CallContext): Promise<ContainerRecord> {
    const { store, work, latencyMs } = this.#context;
    let record: ContainerRecord | undefined;
    try {
      record = this.#newRecord(expected);
      store.creatingContainers.add(record);
      await work.pause(latencyMs('container-create'), call.signal);
      return record;
    } catch (error) {
      store.containerNames.release(expected.name, expected.id);
      throw error;
    } finally {
      if (record !== undefined) store.creatingContainers.delete(record);
    }
  }

  #newRecord({ id, name, sandbox, config, sandboxConfig }: WantedContainer): ContainerRecord {
    const { nowNs, files, chooseScript } = this.#context;
    const image = this.#image(config);
    this.#checkImageMounts(id, config);
    const directory = sandboxConfig?.logDirectory ?? '';
    return newContainerRecord({
      id,
      name,
      sandbox,
      config,
      imageId: image.id,
      logPath: directory === '' || config.logPath === '' ? '' : joinPath(directory, config.logPath),
      stopSignal: stopSignalOf(config, image.definition),
      launch: planLaunch(id, sandbox.config, config, image.definition, chooseScript),
      files: new ContainerFiles(config.mounts, files),
      createdAt: nowNs(),
      resources: mergeResources(undefined, config.linux?.resources),
    });
  }

  /**
   * A runtime without support for image volumes ignores the image field and finds a mount without a
   * host path.
   */
  #checkImageMounts(id: string, { mounts }: ContainerConfig): void {
    const { flavour, images } = this.#context;
    const context = `failed to generate container "${id}" spec: failed to generate spec`;
    for (const { image, hostPath } of mounts) {
      if (image === undefined) continue;
      if (flavour.imageVolumes === 'unsupported' && hostPath === '') {
        throw failed(`${context}: failed to mkdir "": mkdir : no such file or directory`);
      }
      if (images.resolve(image.image) === undefined) {
        throw failed(`${context}: failed to mount image volume: image "${image.image}" not found`);
      }
    }
  }

  #image(config: ContainerConfig): StoredImage {
    const expected = config.image?.image ?? '';
    const context = `failed to resolve image "${expected}"`;
    try {
      const image = this.#context.images.resolve(expected);
      if (image !== undefined) return image;
    } catch (error) {
      throw inContext(context, error);
    }
    throw new GrpcError('NOT_FOUND', `${context}: not found`);
  }

  #signal(record: ContainerRecord, signal: string): void {
    if (!hasProcess(record)) return;
    this.#context.trace.add({ kind: 'container-signalled', ...containerFacts(record), signal });
    record.process?.signal(signal);
  }

  /** Records the container as exited, if necessary with an unknown exit code. */
  #giveUpOn(record: ContainerRecord): void {
    record.ended ??= { exitCode: unseenCode, cause: 'lost', at: this.#context.nowNs() };
    this.#exits.containerSeen(record);
  }
}

function containerName(config: ContainerConfig, sandboxConfig: PodSandboxConfig | undefined): string {
  const pod = sandboxConfig?.metadata;
  return [
    config.metadata?.name ?? '',
    pod?.name ?? '',
    pod?.namespace ?? '',
    pod?.uid ?? '',
    config.metadata?.attempt ?? 0,
  ].join('_');
}

function checkSandbox(sandbox: SandboxRecord): void {
  if (sandbox.state !== 'ready') throw failed(`sandbox container "${sandbox.id}" is not running`);
}

function startObstacle(record: ContainerRecord): string | undefined {
  const state = containerState(record);
  if (state !== 'CONTAINER_CREATED') return `container is in ${state} state`;
  if (record.busy === 'removing') return "container is in removing state, can't be started";
  return record.busy === 'starting' ? 'container is already in starting state' : undefined;
}

function removalObstacle(record: ContainerRecord): string | undefined {
  const state = containerState(record);
  if (state === 'CONTAINER_RUNNING') return 'container is still running, to stop first';
  if (state === 'CONTAINER_UNKNOWN') return 'container state is unknown, to stop first';
  if (record.busy === 'starting') return "container is in starting state, can't be removed";
  return record.busy === 'removing' ? 'container is already in removing state' : undefined;
}

function joinPath(directory: string, name: string): string {
  return `${directory.replace(/\/+$/, '')}/${name.replace(/^\/+/, '')}`;
}
