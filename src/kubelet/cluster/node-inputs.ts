import type { CriClient } from '../../cri/index.ts';
import type {
  CsiNodePublisher,
  DeviceCapacity,
  MachineCapacity,
  NodeHealth,
  NodeImageFacts,
  NodePressure,
  NodeResources,
  NodeRuntime,
  RuntimeFacts,
} from '../../node/index.ts';
import type { KubeletControl, KubeletParts } from '../stages/control.ts';

type ReportedKubelet = Pick<KubeletParts, 'state' | 'resources' | 'runtime'> & {
  readonly control: KubeletControl;
};

const shortOf = { MemoryPressure: 'memory', DiskPressure: 'disk', PIDPressure: 'pid' } as const;

export interface NodeInputsOptions {
  readonly cri: Pick<CriClient, 'listImages' | 'updateRuntimeConfig'>;
  readonly capacity: () => MachineCapacity | undefined;
  /** The images on the node, as the runtime reports them. */
  readonly runtime: { readonly name: string; readonly version: string };
}

/**
 * Provides the properties and problems of the machine, the runtime and the kubelet for the Node
 * object.
 */
export class NodeInputs implements NodeResources, NodeRuntime, NodeHealth {
  readonly #options: NodeInputsOptions;
  readonly #kubelet: ReportedKubelet;
  readonly #csiNode: Pick<CsiNodePublisher, 'problem'>;

  constructor(
    options: NodeInputsOptions,
    kubelet: ReportedKubelet,
    csiNode: Pick<CsiNodePublisher, 'problem'>,
  ) {
    this.#options = options;
    this.#kubelet = kubelet;
    this.#csiNode = csiNode;
  }

  capacity(): MachineCapacity | undefined {
    return this.#options.capacity();
  }

  devices(): DeviceCapacity {
    return this.#kubelet.resources.amounts();
  }

  areDevicesUnregistered(): boolean {
    return this.#kubelet.resources.devices?.areForgotten === true;
  }

  async check(signal: AbortSignal): Promise<void> {
    await this.#kubelet.runtime.checkRuntime(signal);
  }

  facts(): RuntimeFacts {
    const { handlers, strictGroups } = this.#kubelet.state.runtimeState.abilities;
    return {
      ...this.#options.runtime,
      handlers: [...handlers].map(([name, can]) => ({
        name,
        recursiveReadOnlyMounts: can.recursiveReadOnly,
        userNamespaces: can.userNamespaces,
      })),
      supplementalGroupsPolicy: strictGroups,
    };
  }

  async images(signal: AbortSignal): Promise<readonly NodeImageFacts[]> {
    const { images } = await this.#options.cri.listImages({}, signal);
    return images.map(({ repoDigests, repoTags, size }) => ({
      repoDigests,
      repoTags,
      sizeBytes: Number(size),
    }));
  }

  async usePodCidrs(cidrs: readonly string[], signal: AbortSignal): Promise<void> {
    const runtimeConfig = { networkConfig: { podCidr: cidrs.join(',') } };
    await this.#options.cri.updateRuntimeConfig({ runtimeConfig }, signal);
  }

  problems(): readonly string[] {
    const uninitialized = this.#csiNode.problem();
    const shutdown = this.#kubelet.control.shutdown?.problem();
    return [
      ...this.#kubelet.control.problems(),
      ...this.#kubelet.state.runtimeState.problems().network,
      ...(uninitialized === undefined ? [] : [uninitialized]),
      ...(shutdown === undefined ? [] : [shutdown]),
    ];
  }

  pressures(): ReadonlySet<NodePressure> {
    return new Set(this.#kubelet.control.pressures().map((condition) => shortOf[condition]));
  }
}
