import type {
  ContainerFilter,
  ContainerStatusRequest,
  ContainerStatusResponse,
  ListContainersRequest,
  ListContainersResponse,
  ListPodSandboxRequest,
  ListPodSandboxResponse,
  PodSandboxFilter,
  PodSandboxStatusRequest,
  PodSandboxStatusResponse,
} from '../../src/cri/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import type { SimulatorContext } from './context.ts';
import type { ContainerRecord, SandboxRecord } from './records.ts';
import { shuffled } from './shuffle.ts';
import { type Found, required } from './store.ts';
import {
  containerInfo,
  containerItem,
  containerStatus,
  sandboxInfo,
  sandboxItem,
  sandboxStatus,
} from './views.ts';

/** Lists sandboxes, containers and their statuses. */
export class Listing {
  readonly #context: SimulatorContext;

  constructor(context: SimulatorContext) {
    this.#context = context;
  }

  listSandboxes({ filter }: ListPodSandboxRequest): MessageInit<ListPodSandboxResponse> {
    const { store, random } = this.#context;
    const accepts = this.#sandboxFilter(filter);
    return { items: shuffled(store.sandboxes.all(), random).map(sandboxItem).filter(accepts) };
  }

  sandboxStatus({ podSandboxId, verbose }: PodSandboxStatusRequest): MessageInit<PodSandboxStatusResponse> {
    const { store, flavour } = this.#context;
    const record = required(store.sandboxes.find(podSandboxId), 'an error occurred when try to find sandbox');
    return { status: sandboxStatus(record, flavour), info: verbose ? sandboxInfo(record) : {} };
  }

  listContainers({ filter }: ListContainersRequest): MessageInit<ListContainersResponse> {
    const { store, random, flavour } = this.#context;
    const accepts = this.#containerFilter(filter);
    const items = shuffled(store.containers.all(), random).map((record) => containerItem(record, flavour));
    return { containers: items.filter(accepts) };
  }

  containerStatus({ containerId, verbose }: ContainerStatusRequest): MessageInit<ContainerStatusResponse> {
    const { images, flavour } = this.#context;
    const record = this.container(containerId);
    return {
      status: containerStatus(record, images, flavour),
      info: verbose ? containerInfo(record) : {},
    };
  }

  /** The container with this ID; throws the runtime's error if it does not exist. */
  container(id: string): ContainerRecord {
    return required(this.findContainer(id), `an error occurred when try to find container "${id}"`);
  }

  findContainer(id: string): Found<ContainerRecord> {
    return this.#context.store.containers.find(id);
  }

  findSandbox(id: string): Found<SandboxRecord> {
    return this.#context.store.sandboxes.find(id);
  }

  #sandboxFilter(filter: PodSandboxFilter | undefined) {
    const { store, rules } = this.#context;
    const id = fullId(store.sandboxes.find(filter?.id ?? ''), filter?.id ?? '');
    const { state, labelSelector = {} } = filter ?? {};
    return (item: ReturnType<typeof sandboxItem>) =>
      (id === '' || id === item.id) &&
      (state === undefined || rules.stateMatches(state.state, item.state)) &&
      rules.labelsMatch(labelSelector, item.labels);
  }

  #containerFilter(filter: ContainerFilter | undefined) {
    const { store, rules } = this.#context;
    const id = fullId(store.containers.find(filter?.id ?? ''), filter?.id ?? '');
    const sandboxId = fullId(store.sandboxes.find(filter?.podSandboxId ?? ''), filter?.podSandboxId ?? '');
    const { state, labelSelector = {} } = filter ?? {};
    return (item: ReturnType<typeof containerItem>) =>
      (id === '' || id === item.id) &&
      (sandboxId === '' || sandboxId === item.podSandboxId) &&
      (state === undefined || rules.stateMatches(state.state, item.state)) &&
      rules.labelsMatch(labelSelector, item.labels);
  }
}

/** Completes a shortened ID; an ID that matches no record stays unchanged. */
export function fullId(found: Found<{ readonly id: string }>, given: string): string {
  return found.kind === 'one' ? found.record.id : given;
}
