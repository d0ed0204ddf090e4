import type { ContainerImage } from '../kinds/index.ts';
import { type Clock, withDeadline } from '../lib/index.ts';
import type { AddressFacts } from './addresses.ts';
import { readDefaultRoutes } from './addresses.ts';
import type { NodeImages } from './images.ts';
import type {
  DeviceAmounts,
  LocalAddress,
  MachineCapacity,
  NodeHealth,
  NodeMachine,
  NodeResources,
  NodeRuntime,
  NodeVolumes,
  Pressure,
  RuntimeFacts,
} from './inputs.ts';
import type { LatestAddresses } from './polled-addresses.ts';
import type { NodeSettings } from './settings.ts';
import { readSystemInfo, type SystemInfo } from './system-info.ts';

/** All the world says about the node at one moment; the rest is decided from it alone. */
export interface NodeFacts {
  readonly addresses: AddressFacts;
  readonly system: SystemInfo;
  readonly machine: MachineCapacity | undefined;
  readonly devices: DeviceAmounts | undefined;
  readonly runtime: RuntimeFacts | undefined;
  readonly images: readonly ContainerImage[];
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly pressures: ReadonlySet<Pressure>;
  readonly volumesInUse: readonly string[] | undefined;
}

export interface FactSources {
  readonly clock: Clock;
  readonly settings: NodeSettings;
  readonly machine: NodeMachine;
  readonly resources: NodeResources;
  readonly runtime: NodeRuntime;
  readonly health: NodeHealth;
  readonly images: NodeImages;
  readonly volumes?: NodeVolumes | undefined;
  readonly provider?: LatestAddresses | undefined;
  /** Told each time what could be learned, and what could not. */
  readonly learned: (what: string, error: unknown) => void;
}

const checkMs = 5_000;
const lookupMs = 2_000;
/** While the node starts it is looked at ten times a second: what hardly changes is not read each time. */
const slowFactsForMs = 5_000;

interface SlowFacts {
  readonly readMs: number;
  readonly system: SystemInfo;
  readonly lookedUp: readonly string[];
  readonly routes: AddressFacts['routes'];
}

/** The addresses of the machine, and by what it can be seen cheaply that they are still the same. */
interface Local {
  readonly signature: string;
  readonly addresses: readonly LocalAddress[];
}

export type RuntimeQuery = 'ask-runtime' | 'as-known';

/** Reads the facts. Never rejects but when aborted: what cannot be read is left as unknown. */
export class FactReader {
  readonly #sources: FactSources;
  #slow: SlowFacts | undefined;
  #local: Local | undefined;

  constructor(sources: FactSources) {
    this.#sources = sources;
  }

  /** At the start the runtime is asked first; later somebody else asks it all the time, and what is known counts. */
  async read(about: RuntimeQuery, signal: AbortSignal): Promise<NodeFacts> {
    const { settings, resources, runtime, health, images, volumes, provider } = this.#sources;
    if (about === 'ask-runtime') await this.#checkRuntime(signal);
    const [{ system, lookedUp, routes }, local] = await Promise.all([
      this.#readSlow(signal),
      this.#readLocal(),
      this.#try('images', images.refresh(signal)),
    ]);
    signal.throwIfAborted();
    return {
      addresses: { lookedUp, routes, local, provided: provider?.latest },
      system,
      machine: resources.capacity(),
      devices: resources.devices?.(),
      runtime: runtime.facts(),
      images: images.latest(settings.maxImages),
      problems: health.problems(),
      warnings: health.warnings?.() ?? [],
      pressures: health.pressures(),
      volumesInUse: volumes?.inUse(),
    };
  }

  async #checkRuntime(signal: AbortSignal): Promise<void> {
    const { clock, runtime } = this.#sources;
    const deadline = { clock, ms: checkMs, what: 'ask the container runtime how it is' };
    const checked = withDeadline(deadline, (inner) => runtime.check(inner), signal);
    await this.#try('runtime', checked);
  }

  /**
   * To list the interfaces stops this process until the kernel is done with theirs, which takes long while the networks
   * of many pods are made: it is done only when an address may have changed.
   */
  async #readLocal(): Promise<readonly LocalAddress[]> {
    const { machine } = this.#sources;
    const [ipv4, ipv6] = await Promise.all([
      machine.read('/proc/net/fib_trie'),
      machine.read('/proc/net/if_inet6'),
    ]);
    const signature = `${ipv4}${ipv6?.split('\n').filter(isRoutable).join('\n')}`;
    const isKnown = ipv4 !== undefined && this.#local?.signature === signature;
    if (!isKnown) this.#local = { signature, addresses: machine.addresses() };
    return this.#local?.addresses ?? [];
  }

  async #readSlow(signal: AbortSignal): Promise<SlowFacts> {
    const { clock, machine } = this.#sources;
    const readMs = clock.monotonicMs();
    if (this.#slow !== undefined && readMs - this.#slow.readMs < slowFactsForMs) return this.#slow;
    const [system, lookedUp, ipv4 = '', ipv6 = ''] = await Promise.all([
      readSystemInfo(machine),
      this.#lookup(signal),
      machine.read('/proc/net/route'),
      machine.read('/proc/net/ipv6_route'),
    ]);
    this.#slow = { readMs, system, lookedUp, routes: readDefaultRoutes(ipv4, ipv6) };
    return this.#slow;
  }

  /** A name that DNS does not know is common, and no mistake: there are other ways to an address. */
  async #lookup(signal: AbortSignal): Promise<readonly string[]> {
    const { clock, machine, settings } = this.#sources;
    if (settings.ips.some((ip) => ip !== '0.0.0.0' && ip !== '::')) return [];
    const deadline = { clock, ms: lookupMs, what: `look up ${settings.name}` };
    return await withDeadline(deadline, (inner) => machine.lookup(settings.name, inner), signal).catch(
      () => [],
    );
  }

  async #try(what: string, work: Promise<void>): Promise<void> {
    const { learned } = this.#sources;
    await work.then(
      () => learned(what, undefined),
      (error: unknown) => learned(what, error),
    );
  }
}

/** Of a line of /proc/net/if_inet6: each pod's end of its network has an address for its link alone. */
function isRoutable(line: string): boolean {
  return !line.startsWith('fe80');
}
