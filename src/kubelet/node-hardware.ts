import type { Container } from '../kinds/index.ts';
import type { DeviceAmounts } from '../node/index.ts';
import type { Pod } from '../pods/index.ts';
import type { Allotments, Allotter } from '../resources/index.ts';
import type { ContainerInputs } from '../runtime/index.ts';
import type { BackgroundLoops } from './background.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import { makeClaims, type NodeClaims } from './make-claims.ts';
import { makeNodeDevices, type NodeDevicesParts } from './make-node-devices.ts';
import type { PodSyncerParts } from './make-pod-syncer.ts';
import type { NodeDevices } from './node-devices.ts';
import type { PodFacts } from './pod-facts.ts';
import { PodResourcesServer, type PodResourcesServerDeps } from './pod-resources-server.ts';
import type { KubeletSettings } from './settings.ts';

export interface NodeHardwareParts extends Omit<NodeDevicesParts, 'numaNodes' | 'facts'> {
  readonly facts: NodeDevicesParts['facts'] & Pick<PodFacts, 'active'>;
  /** Processors and memory with their places. */
  readonly allotments: Allotments;
  /** Those who ask find pods by name there, or all of them. */
  readonly known: Pick<PodResourcesServerDeps['pods'], 'all' | 'find'>;
}

/** What of the machine is given to containers for themselves: devices of plugins, claimed resources, processors, memory. */
export class NodeHardware implements AsyncDisposable {
  /** Undefined on a machine without plugins for devices. */
  readonly devices: NodeDevices | undefined;
  /** Undefined where pods have no resource claims. */
  readonly claims: NodeClaims | undefined;
  readonly #settings: KubeletSettings;
  readonly #deps: KubeletDeps;
  readonly #parts: NodeHardwareParts;

  constructor(settings: KubeletSettings, deps: KubeletDeps, parts: NodeHardwareParts) {
    this.#settings = settings;
    this.#deps = deps;
    this.#parts = parts;
    this.claims = makeClaims(settings, deps, parts.couldRun);
    this.devices = makeNodeDevices(settings, deps, { ...parts, numaNodes: parts.allotments.numaNodes });
  }

  /** Those of plugins are given with the rest where anything else has its place. */
  get allotter(): Allotter | undefined {
    return this.#settings.allotment === undefined ? this.devices : this.#parts.allotments;
  }

  /** What plugins offer of devices. */
  get amounts(): DeviceAmounts {
    return this.devices?.amounts() ?? { capacity: {}, allocatable: {}, removed: [] };
  }

  get deviceStatus(): PodSyncerParts['deviceStatus'] {
    if (!this.#settings.isGateEnabled('ResourceHealthStatus')) return undefined;
    return (uid, container) => this.devices?.statusOf(uid, container) ?? [];
  }

  /** Goes on from what an earlier kubelet has noted. */
  async open(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.claims?.manager.open(),
      this.#parts.allotments.open(signal),
      this.devices?.open(),
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.devices?.[Symbol.asyncDispose]();
  }

  loops(): BackgroundLoops['again'] {
    return {
      ...(this.claims && { 'resource claims': this.claims.manager }),
      ...(this.devices && { 'plugins for devices': this.devices }),
      ...this.#podResources(),
      ...this.#parts.allotments.loops(),
    };
  }

  /** How many pods have any. */
  held(): Readonly<Record<'resourceClaims' | 'devices', number>> {
    return { resourceClaims: this.claims?.manager.size ?? 0, devices: this.devices?.size ?? 0 };
  }

  hasExclusiveCpus(pod: Pod): boolean {
    return this.#parts.allotments.hasExclusiveCpus(pod);
  }

  /** What was set aside for a container. */
  async grants(pod: Pod, container: Container, signal: AbortSignal): Promise<ContainerInputs['grants']> {
    const ofDevices = await this.devices?.grants(pod, container, signal);
    const claimed = this.claims?.manager.cdiDevices(pod, container) ?? [];
    return {
      ...ofDevices,
      cdiDevices: [...(ofDevices?.cdiDevices ?? []), ...claimed],
      ...this.#parts.allotments.grantsFor(pod, container.name),
    };
  }

  #podResources(): BackgroundLoops['again'] {
    const { devices: host } = this.#deps.machine;
    if (host === undefined) return {};
    const { facts, known, allotments } = this.#parts;
    const server = new PodResourcesServer({
      ...this.#deps,
      rootDir: this.#settings.rootDir,
      host,
      pods: { active: () => facts.active(), ...known },
      given: () => ({
        devices: this.devices?.given(),
        claims: this.claims?.manager.given(),
        ...allotments.given(),
      }),
    });
    return { 'resources of pods': server };
  }
}
