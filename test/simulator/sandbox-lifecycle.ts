import type { PodSandboxConfig, RunPodSandboxRequest, RunPodSandboxResponse } from '../../src/cri/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import type { ContainerLifecycle } from './container-lifecycle.ts';
import type { CallContext, SimulatorContext } from './context.ts';
import type { Exits } from './exits.ts';
import { Latch } from './latch.ts';
import { type SandboxRecord, sandboxFacts } from './records.ts';
import { failed, inContext } from './refusals.ts';
import { shuffled } from './shuffle.ts';

export interface SandboxLifecycleOptions {
  readonly context: SimulatorContext;
  readonly exits: Exits;
  readonly containers: ContainerLifecycle;
  /**
   * The supported runtime handlers in addition to the empty name, which selects the default
   * handler.
   */
  readonly runtimeHandlers: readonly string[];
}

/** Starts, stops and removes sandboxes. */
export class SandboxLifecycle {
  readonly #context: SimulatorContext;
  readonly #options: SandboxLifecycleOptions;

  constructor(options: SandboxLifecycleOptions) {
    this.#options = options;
    this.#context = options.context;
  }

  async run(request: RunPodSandboxRequest, call: CallContext): Promise<RunPodSandboxResponse> {
    const { config, runtimeHandler } = request;
    if (config?.metadata === undefined) throw failed('sandbox config must include metadata');
    const id = this.#context.newId();
    const name = sandboxName(config);
    this.#reserve(name, id);
    try {
      const record = this.#newRecord(id, name, config, runtimeHandler);
      await this.#startUp(record, call);
      this.#publish(record);
      return { podSandboxId: id };
    } catch (error) {
      this.#context.store.sandboxNames.release(name, id);
      throw error;
    }
  }

  /**
   * Kills the containers and the process of the sandbox, and releases its network. Parts that are
   * already done are skipped.
   */
  async stop(record: SandboxRecord, call: CallContext): Promise<void> {
    const { store, random } = this.#context;
    for (const container of shuffled(store.containersOf(record), random)) {
      try {
        await this.#options.containers.stop(container, 0, call);
      } catch (error) {
        throw inContext(`failed to stop container "${container.id}"`, error);
      }
    }
    await this.#stopProcess(record, call);
    await this.#leaveNetwork(record, call);
  }

  /** Removes the sandbox with its containers; stops it first if necessary. */
  async remove(record: SandboxRecord, call: CallContext): Promise<void> {
    const { store, work, latencyMs } = this.#context;
    try {
      await this.stop(record, call);
    } catch (error) {
      throw inContext(`failed to forcibly stop sandbox "${record.id}"`, error);
    }
    await this.#removeContainers(record, call);
    await work.pause(latencyMs('sandbox-remove'), call.signal);
    if (store.sandboxes.has(record)) this.#forget(record);
  }

  /** Kills the process of the sandbox itself, without a call to the runtime. */
  kill(record: SandboxRecord): void {
    this.#options.exits.sandboxEnded(record);
  }

  #reserve(name: string, id: string): void {
    const { store, flavour, rules } = this.#context;
    const owner = store.sandboxNames.reserve(name, id);
    if (owner === undefined || rules.names === 'free') return;
    throw new GrpcError(
      flavour.nameTakenCode,
      `failed to reserve sandbox name "${name}": name "${name}" is reserved for "${owner}"`,
    );
  }

  #newRecord(id: string, name: string, config: PodSandboxConfig, runtimeHandler: string): SandboxRecord {
    const { flavour, nowNs } = this.#context;
    if (runtimeHandler !== '' && !this.#options.runtimeHandlers.includes(runtimeHandler)) {
      throw failed(flavour.unknownHandler(id, runtimeHandler));
    }
    const network = config.linux?.securityContext?.namespaceOptions?.network;
    return {
      id,
      name,
      config,
      runtimeHandler,
      createdAt: nowNs(),
      network: network === 'NODE' ? 'host' : 'own',
      state: 'starting',
      pid: 0,
      ips: [],
      stopped: new Latch(),
      cpu: undefined,
    };
  }

  async #startUp(record: SandboxRecord, call: CallContext): Promise<void> {
    const { store, work, latencyMs, network, events } = this.#context;
    store.startingSandboxes.add(record);
    events.publish('/containers/create', record.id);
    try {
      if (record.network === 'own') record.ips = network.attach(record.id);
      await work.pause(latencyMs('sandbox-start'), call.signal);
    } catch (error) {
      network.forget(record.ips);
      events.publish('/containers/delete', record.id);
      throw error;
    } finally {
      store.startingSandboxes.delete(record);
    }
  }

  #publish(record: SandboxRecord): void {
    const { store, events, trace, newPid } = this.#context;
    const { exits } = this.#options;
    record.state = 'ready';
    record.pid = newPid();
    store.sandboxes.add(record);
    trace.add({ kind: 'sandbox-started', ...sandboxFacts(record) });
    events.publish('/tasks/create', record.id);
    events.publish('/tasks/start', record.id);
    exits.tell('CONTAINER_CREATED_EVENT', record.id, record);
    exits.tell('CONTAINER_STARTED_EVENT', record.id, record);
  }

  async #stopProcess(record: SandboxRecord, call: CallContext): Promise<void> {
    if (record.state !== 'ready' && record.state !== 'unknown') return;
    if (record.pid !== 0) this.kill(record);
    // The runtime had observed the exit of the process, but was killed before it could record the
    // exit.
    else if (record.state === 'unknown') this.#options.exits.sandboxSeen(record);
    await record.stopped.wait(call.signal);
  }

  async #leaveNetwork(record: SandboxRecord, call: CallContext): Promise<void> {
    if (record.ips.length === 0) return;
    const { work, latencyMs, network } = this.#context;
    await work.pause(latencyMs('network-teardown'), call.signal);
    network.detach(record.id, record.ips);
    record.ips = [];
  }

  async #removeContainers(record: SandboxRecord, call: CallContext): Promise<void> {
    const { store, random } = this.#context;
    for (const container of shuffled(store.containersOf(record), random)) {
      try {
        if (store.containers.has(container)) await this.#options.containers.remove(container, call);
      } catch (error) {
        throw inContext(`failed to remove container "${container.id}"`, error);
      }
    }
  }

  #forget(record: SandboxRecord): void {
    const { store, events, trace } = this.#context;
    this.#options.exits.tell('CONTAINER_DELETED_EVENT', record.id, record);
    store.sandboxes.delete(record);
    store.sandboxNames.release(record.name, record.id);
    events.publish('/containers/delete', record.id);
    trace.add({ kind: 'sandbox-removed', ...sandboxFacts(record) });
  }
}

function sandboxName({ metadata }: PodSandboxConfig): string {
  return [metadata?.name, metadata?.namespace, metadata?.uid, metadata?.attempt].join('_');
}
